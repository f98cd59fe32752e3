"""The tensor graph: what a model is before it becomes integer sets.

A `Graph` is a frozen list of `Node`s in topological order over named `Tensor`s. Nodes use the
operators of the ONNX standard in the *newest* form of each operator: the importer upgrades older
forms, so that every later stage knows one form only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from polyc.errors import InvalidModel, refuse
from polyc.names import show
from polyc.types.derived import plain_name
from polyc.types.ranges import SizeRange
from polyc.types.sizes import Extent, Size

INTERNAL = "polyc"
"""The domain of operators that are no standard's, and only stand between others."""

MAX_RANK = 16
"""Dimensions of the largest tensor: isl's problems grow by their number faster than any size."""

Dim = Extent
"""The extent of one dimension: a number, or a size known only at run time."""

Shape = tuple[Dim, ...]


@dataclass(frozen=True)
class Tensor:
    """A named tensor: element type, shape, and its value where it is a constant.

    A name in the shape is that of a size known only at run time. `entries` are the elements of a
    tensor that consists of such sizes, of dtype object: the Shape of x: float32[n, 3] is (n, 3);
    those of a float tensor are ratios of sizes.
    """

    name: str
    dtype: np.dtype
    shape: Shape
    value: np.ndarray | None = field(default=None, compare=False, repr=False)
    entries: np.ndarray | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if any(isinstance(d, str) for d in self.shape):
            named = tuple(Size.of(plain_name(d)) if isinstance(d, str) else d for d in self.shape)
            object.__setattr__(self, "shape", named)

    @property
    def is_constant(self) -> bool:
        return self.value is not None

    @property
    def is_known(self) -> bool:
        """Whether its elements are constants, or known once sizes are; floats are data."""
        return self.value is not None or (self.entries is not None and self.dtype.kind != "f")

    @property
    def is_static(self) -> bool:
        return all(isinstance(d, int) for d in self.shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape, to compute with: a `Size` does as numbers do, or else raises NotFixed."""
        return cast(tuple[int, ...], self.shape)

    @property
    def size(self) -> int:
        """Number of elements, as `extents` are."""
        return math.prod(self.extents)

    def __str__(self) -> str:
        return f"{show(self.name)}: {self.dtype}[{_dims(self.shape)}]"


@dataclass(frozen=True)
class Node:
    """One operator application; an absent optional input or output is the empty name."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""

    def get(self, attribute: str, default: Any = None) -> Any:
        return self.attributes.get(attribute, default)

    def __str__(self) -> str:
        shown = ", ".join(f"{k}={_brief(v)}" for k, v in sorted(self.attributes.items()))
        arguments = ", ".join(show(i) or "-" for i in self.inputs)
        arguments += f"; {shown}" if shown else ""
        return f"{', '.join(map(show, self.outputs))} = {self.op}({arguments})"


@dataclass(frozen=True)
class Body:
    """A graph inside an attribute: the branch of an If, what a Loop or a Scan repeats.

    Its nodes, in topological order, may also read tensors of the graph around it. Constants are
    Constant nodes.
    """

    inputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]


@runtime_checkable
class Expression(Protocol):
    """What people write graphs with (`graph/builder.py`): it knows how a graph is made of it."""

    def make_graph(self, outputs: Mapping[str, Any]) -> Graph: ...


@dataclass(frozen=True)
class Graph:
    """Nodes in topological order over a table of tensors; each tensor is written at most once.

    `tensors` holds every name that appears: inputs, constants (with a value) and results. `needs`:
    what must not be negative for the graph to be right; a call checks it. `found`: sizes that a
    call finds (`types/found.py`), whose values are the last of the outputs.
    """

    name: str
    nodes: tuple[Node, ...]
    tensors: Mapping[str, Tensor]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    needs: tuple[Size, ...] = ()
    found: tuple[SizeRange, ...] = ()

    @cached_property
    def producers(self) -> Mapping[str, Node]:
        """Tensor name -> the node that writes it."""
        return {o: n for n in self.nodes for o in n.outputs if o}

    @cached_property
    def consumers(self) -> Mapping[str, tuple[Node, ...]]:
        """Tensor name -> the nodes that read it, once per node, in order."""
        table: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                if name:
                    table.setdefault(name, []).append(node)
        return {k: tuple(v) for k, v in table.items()}

    def tensor(self, name: str) -> Tensor:
        return self.tensors[name]

    def value(self, name: str) -> np.ndarray | None:
        """The value of a constant, or None for an absent name or a tensor computed at run time."""
        return self.tensors[name].value if name else None

    def rewrite(
        self,
        nodes: Sequence[Node],
        tensors: Mapping[str, Tensor] | None = None,
        outputs: Sequence[str] | None = None,
    ) -> Graph:
        """This graph with other nodes; tensors that no node, input or output names are dropped."""
        table = self.tensors if tensors is None else tensors
        final = tuple(self.outputs if outputs is None else outputs)
        used = dict.fromkeys([*self.inputs, *final])
        for node in nodes:
            used.update(dict.fromkeys((*node.inputs, *node.outputs)))
        used.pop("", None)
        kept = {name: table[name] for name in used}
        return replace(self, nodes=tuple(nodes), tensors=kept, outputs=final)

    @staticmethod
    def of(**outputs: Expression) -> Graph:
        """The graph of named expressions: Graph.of(y=relu(x)) -> x ↦ y; see `polyc.ops`."""
        if not outputs:
            raise InvalidModel("a graph needs at least one output; name what it computes")
        for name, value in outputs.items():
            if not isinstance(value, Expression):
                refuse(name, value, "an expression of `polyc.ops`")
        return next(iter(outputs.values())).make_graph(outputs)

    def __str__(self) -> str:
        lines = [f"graph {show(self.name)}("]
        lines += [f"  {self.tensors[i]}," for i in self.inputs]
        lines += [") {"]
        for node in self.nodes:
            shapes = ", ".join(
                f"{self.tensors[o].dtype}[{_dims(self.tensors[o].shape)}]"
                for o in node.outputs
                if o
            )
            lines.append(f"  {node}    # {shapes}")
        return "\n".join([*lines, f"  return {', '.join(map(show, self.outputs))}", "}"])


def _dims(shape: Shape) -> str:
    return ", ".join(show(str(d)) for d in shape)


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<{value.dtype}{list(value.shape)}>"
    if isinstance(value, Body):
        return f"<{len(value.nodes)} nodes>"
    return show(str(value))
