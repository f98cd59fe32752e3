"""Loop and Scan as loops over steps, where all steps are alike.

    s, y = Scan(s0, x; body)   ->   t = Step(n);  s = Carried(t, s0)
                                    new, row = body(s, Gather(x, t))
                                    s, y = Repeat(t, n, new, row)

Their number must be known, or be once sizes are; the condition of a Loop must stay true; and states
must keep their types. Whether that is so turns out by typing one step. What is not alike, such as
states that grow, is written out step by step (`graph/expand/control/unroll.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from polyc.errors import PolycError
from polyc.graph.bodies import Names, instantiate
from polyc.graph.compose import Composer
from polyc.graph.ir import INTERNAL, Body, Node, Tensor
from polyc.graph.shapes.checks import given
from polyc.graph.shapes.dims import normalize_axis
from polyc.graph.steps import Loop, steps_in
from polyc.types.ranges import STEP
from polyc.types.sizes import Extent, Size, names_in

Operands = Sequence[Tensor | None]

Cases = tuple[tuple[Size, ...], tuple[Size, ...] | None]
"""What is needed of sizes where a condition holds, and where it does not, if that is one thing.

Of "not equal" only one side is taken, so that together they may be less than all there is.
"""


def is_bound(cases: Cases) -> bool:
    """Whether a condition is one comparison by size, so that it fails wherever it does not hold."""
    holds, fails = cases
    return len(holds) == 1 and fails == (-holds[0] - 1,)


@dataclass(frozen=True)
class Typed:
    """Nodes that were typed for a trial: what they became, all types, what they need of sizes.

    rest: nodes behind them, which are not typed yet; cases: of conditions that sizes decide, what
    is needed of these where one holds, and where not.
    """

    nodes: Sequence[Node]
    tensors: Mapping[str, Tensor]
    needs: Sequence[Size] = ()
    rest: Sequence[Node] = ()
    cases: Mapping[str, Cases] = field(default_factory=dict)


@dataclass(frozen=True)
class Around:
    """Where a node stands: names that are in use, and what types nodes that would stand there.

    attempt: (nodes, whether they may need more of sizes than is known, whether a call may find
    some) -> what they are, or why they cannot be typed, or not before a call. decides: whether a
    call may decide which nodes are executed; finds: whether it may find sizes; cases: as of
    `Typed`; number: the name of a tensor that is some extent.
    """

    names: Names
    attempt: Callable[[Sequence[Node], bool, bool], Typed | PolycError]
    number: Callable[[Extent], str]
    decides: bool = False
    finds: bool = False
    cases: Mapping[str, Cases] = field(default_factory=dict)

    def both_cases(self, condition: str) -> tuple[tuple[Size, ...], ...]:
        """What is needed on either side of a condition; nothing if that is not known."""
        holds, fails = self.cases.get(condition, ((), None))
        return () if fails is None else (holds, fails)


def repeat_scan(node: Node, inputs: Operands, around: Around) -> Body | None:
    """A Scan as a loop; slices are views, and results are stacked along axis 0, then moved."""
    body: Body = node.attributes["body"]
    scanned = int(node.attributes["num_scan_inputs"])
    count = len(node.inputs) - scanned
    data, types = node.inputs[count:], inputs[count:]
    if any(t is None for t in inputs):
        return None  # a sequence, or an optional
    wanted = node.get("scan_input_axes") or (0,) * scanned
    axes = [normalize_axis(a, given(t).rank) for a, t in zip(wanted, types, strict=True)]
    if len({given(t).shape[axis] for t, axis in zip(types, axes, strict=True)}) != 1:
        return None
    c = Composer(around.names)
    steps = c("Shape", data[0], start=axes[0], end=axes[0] + 1)
    loop = Loop(c, c("Squeeze", steps, c.integers(0)), node.inputs[:count])
    backwards = node.get("scan_input_directions") or (0,) * scanned
    slices = [
        c("Gather", name, loop.position(bool(back)), axis=axis)
        for name, axis, back in zip(data, axes, backwards, strict=True)
    ]
    results = insert_step(c, node, (*loop.states, *slices), body, around.names)
    typed = around.attempt(c.nodes, False, False)
    if isinstance(typed, PolycError) or not are_alike(typed, results, loop.states):
        return None
    kinds = len(results) - count
    order = node.get("scan_output_directions") or (0,) * kinds
    last, stacked = loop.finish(results[:count], results[count:], [bool(b) for b in order])
    outputs = []
    for stack, row, axis in zip(
        stacked, results[count:], node.get("scan_output_axes") or (0,) * kinds, strict=True
    ):
        rank = typed.tensors[row].rank + 1
        place = normalize_axis(axis, rank)
        moved = [*range(1, place + 1), 0, *range(place + 1, rank)]
        outputs.append(c("Transpose", stack, perm=tuple(moved)) if place else stack)
    return c.body(node.inputs, (*last, *outputs))


def insert_step(
    c: Composer, node: Node, inputs: Sequence[str], body: Body, names: Names
) -> tuple[str, ...]:
    """Write down the body for these inputs; the names of what it gives."""
    results = tuple(names.fresh(f"{output}.step") for output in body.outputs)
    c.nodes += instantiate(Node("step", node.op, tuple(inputs), results), body, names)
    return results


def are_alike(typed: Typed, results: Sequence[str], states: Sequence[str]) -> bool:
    """Whether each step does the same to tensors of the same types."""
    tensors = typed.tensors
    if any(name not in tensors for name in (*results, *states)):
        return False  # a sequence, or an optional
    for new, old in zip(results, states, strict=False):
        if (tensors[new].dtype, tensors[new].shape) != (tensors[old].dtype, tensors[old].shape):
            return False
    for node in typed.nodes:
        if node.domain == INTERNAL and node.op == "RandomBits":
            return False  # new ones in each step
        if node.domain == INTERNAL and node.op == "Repeat" and steps_in(tensors[node.inputs[1]]):
            return False
    written = [tensors[name] for node in typed.nodes for name in node.outputs if name]
    written += [tensors[name] for name in results]
    return not any(s.startswith(STEP) for tensor in written for s in names_in(tensor.shape))
