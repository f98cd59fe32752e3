"""What a lowering works with: the tensors seen so far, and the statements emitted so far.

`Lowering` is the one mutable object of this stage; it lives inside `lower_graph` and is frozen into
a `Scop` at its end. A lowering function takes it and a node, and does one of two things:

* a *view* (Reshape, Slice, …) binds its output to a `Ref`, and emits nothing;
* everything else emits statements that write a new array, and binds its output to that array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property

import numpy as np

from polyc.budget import UNLIMITED, Budget
from polyc.graph.branches import find_branches
from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.steps import steps_in
from polyc.poly.conditions import spell
from polyc.scop.expr import Expr, cast
from polyc.scop.lower.emit import Emitter
from polyc.scop.lower.space import Ref, Space
from polyc.scop.scop import (
    Reduction,
    Scop,
    gather_steps,
)
from polyc.target.costs import MOST
from polyc.types.branches import Branches, Demands
from polyc.types.sizes import Extent

Lower = Callable[["Lowering", Node], None]
LOWERINGS: dict[str, Lower] = {}


def lowers(*operators: str) -> Callable[[Lower], Lower]:
    """Register a function as the lowering of ONNX operators."""

    def register(function: Lower) -> Lower:
        for operator in operators:
            assert operator not in LOWERINGS, f"{operator} is lowered twice"
            LOWERINGS[operator] = function
        return function

    return register


Count = Callable[["Lowering", Node], Sequence[Extent]]
COUNTS: dict[str, Count] = {}


def counts(*operators: str) -> Callable[[Count], Count]:
    """Register what statements of these operators count besides what shapes say: tiles."""

    def register(function: Count) -> Count:
        for operator in operators:
            COUNTS[operator] = function
        return function

    return register


class Lowering(Emitter):
    """The state of `lower_graph`: arrays, statements, and each tensor's view."""

    def __init__(
        self,
        graph: Graph,
        streamed: float | None = MOST,
        budget: Budget = UNLIMITED,
        lanes: int = 0,
        in_blocks: bool = True,
        direct: float = 1.0,
    ) -> None:
        super().__init__(budget)
        self.graph, self.streamed = graph, streamed
        self.lanes, self.in_blocks, self.direct = lanes, in_blocks, direct
        self._refs: dict[str, Ref] = {}
        self.taken: Branches = ()  # the same by tensors
        self.demands: Demands = {}  # what these need of sizes
        self.conditions: dict[tuple[Branches, str], str] = {}
        self.carried: dict[tuple[str, int], Ref] = {}

    @cached_property
    def inside(self) -> dict[tuple[str, ...], Branches]:
        """The branches that each node is in, by what it writes."""
        branches = find_branches(self.graph)
        return dict(zip((node.outputs for node in self.graph.nodes), branches, strict=True))

    # -- tensors and arrays -------------------------------------------------------------------

    def type(self, tensor: str) -> Tensor:
        return self.graph.tensors[tensor]

    def has(self, node: Node, position: int) -> bool:
        """Whether the optional input at `position` is there."""
        return position < len(node.inputs) and bool(node.inputs[position])

    def ref(self, tensor: str) -> Ref:
        """The view that holds a tensor; a constant becomes an array when it is first read."""
        if tensor not in self._refs:
            if self.type(tensor).entries is not None:
                in_step = steps_in(self.type(tensor))
                with self.in_branches(()), nullcontext() if in_step else self.before_steps():
                    self._refs[tensor] = self._write_entries(self.type(tensor))
                return self._refs[tensor]
            value = self.graph.value(tensor)
            assert value is not None, f"{tensor} is read before it is lowered"
            self._refs[tensor] = self.array(tensor, value.dtype, value.shape, "constant", value)
        return self._refs[tensor]

    def _write_entries(self, tensor: Tensor) -> Ref:
        """A tensor that consists of sizes, as data: a statement for each element."""
        assert tensor.entries is not None
        result = self.array(tensor.name, tensor.dtype, tensor.extents)
        node = Node(tensor.name, "Shape", (), (tensor.name,))
        for place, entry in np.ndenumerate(tensor.entries):
            space = self.space(node)
            value = cast(space.index(spell(entry)), tensor.dtype)
            self.assign(node, space, result, [str(k) for k in place], value)
        return result

    def is_used(self, tensor: str) -> bool:
        """Whether a node reads a tensor, or it is an output of the graph."""
        return tensor in self.graph.consumers or tensor in self.graph.outputs

    def bind(self, tensor: str, ref: Ref) -> None:
        """Say where a tensor lies."""
        assert tensor not in self._refs, f"{tensor} is bound twice"
        self._refs[tensor] = ref

    def result(self, node: Node, position: int = 0) -> Ref:
        """A new array for output `position` of a node, already bound to the tensor."""
        tensor = self.type(node.outputs[position])
        ref = self.array(tensor.name, tensor.dtype, tensor.extents)
        self.bind(tensor.name, ref)
        return ref

    # -- statements ---------------------------------------------------------------------------

    def accumulate(
        self,
        node: Node,
        space: Space,
        at: Sequence[str],
        value: Expr,
        operator: Reduction,
        finish: Callable[[Space, Expr], Expr] = lambda _, total: total,
        into: Sequence[str] | None = None,
    ) -> None:
        """output[into] = finish(op over the other iterators of value); output 0 of the node.

        `into` are index formulas over the iterators `at` (the same as `at` unless given); `finish`
        gets the space of the finishing statement and the total. The running total has an array of
        its own, so that it can live in registers whatever the finishing statement is fused with.
        """
        target = self.result(node)
        total = self.array(f"{target.array}_acc", value.dtype, [space.extents[i] for i in at])
        self.reduce(node, space, total, at, value, operator)
        end = Space(self._unique(f"{space.name}_out"), {i: space.extents[i] for i in at})
        done = cast(finish(end, end.load(total, *at)), target.dtype)
        self._emit(node, end, target, at if into is None else into, done, None)

    def freeze(self, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> Scop:
        sizes = [size.name for size in self.graph.found]
        found = dict(zip(sizes, outputs[len(outputs) - len(sizes) :], strict=True))
        statements = gather_steps(self.statements)
        return Scop(name, statements, self.arrays, tuple(inputs), tuple(outputs), found=found)
