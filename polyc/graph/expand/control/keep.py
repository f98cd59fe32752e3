"""If whose condition a call decides: both branches are compiled, and one of them is executed.

    y = If(c; then, else)   ->   t = then();  e = else();  y = Choose(c, t, e)

No node lies inside of another. What is needed for one side of a Choose alone is executed only where
the condition says so (`graph/branches.py`). The results of both must be of the same types and
ranks, which turns out by typing them; else the branch is chosen when the condition is known
(`graph/expand/control/unroll.py`). Where they are not equally long, how long is a size that the
call finds (`_Choices`). What a branch alone needs of sizes Choose says: only calls that take it
must keep to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

import numpy as np

from polyc.errors import NotFixed, PolycError
from polyc.graph.bodies import Names, instantiate, reads
from polyc.graph.compose import Composer
from polyc.graph.expand.control.repeat import Around, Operands, Typed
from polyc.graph.expand.finding import trim
from polyc.graph.ir import INTERNAL, Body, Node, Tensor
from polyc.graph.shapes.dims import normalize_axis
from polyc.graph.shapes.pointwise import BROADCASTING, UNARY
from polyc.graph.shapes.reduction import REDUCTIONS
from polyc.types.found import found_in
from polyc.types.parameters import needed_ranges
from polyc.types.ranges import assume
from polyc.types.sizes import Extent, Size, bounds, greatest

SIDES = ("then_branch", "else_branch")

TOTAL = frozenset({*UNARY.split(), *BROADCASTING.split(), *REDUCTIONS.split()})
TOTAL |= {"Cast", "Clip", "Concat", "Constant", "Expand", "Flatten", "NonMaxSuppression", "NonZero"}
TOTAL |= {"Reshape", "Shape", "Size", "Slice", "Squeeze", "TopK", "Transpose", "Unsqueeze"}
"""Operators that no index from outside may lead beyond what there is."""


def keep_branches(node: Node, inputs: Operands, around: Around) -> Body | Typed | None:
    """Both branches, typed, and a Choose for each result; None where a call must not decide.

    Where one gives nothing, the other one may be all of it (`_keep_filled`). What both need of
    sizes every call must keep to: NotFixed says so. It is also raised for branches that give other
    types or ranks, or are not known before a call.
    """
    condition = inputs[0]
    if not around.decides or condition is None or condition.is_constant:
        return None
    if condition.dtype != np.bool_ or not condition.is_static or condition.size != 1:
        return None
    wanted = [k for k, output in enumerate(node.outputs) if output]
    typed: list[Typed] = []
    results: list[tuple[str, ...]] = []
    for side in SIDES:
        body: Body = node.attributes[side]
        names = tuple(
            around.names.fresh(f"{name}.{side}") if k in wanted else ""
            for k, name in enumerate(body.outputs)
        )
        nodes = instantiate(Node(side, "If", (), names), body, around.names)
        found = around.attempt(nodes, True, False)
        if isinstance(found, PolycError):
            _refuse(node, f"its {side} is not known before a call ({found})", around)
        if _is_empty(found, names) and around.finds:
            nothing = [found.tensors.get(name) for name in names]
            if filled := _keep_filled(node, side, nothing, around):
                return filled
        if any(name not in found.tensors for name in names if name):
            _refuse(node, f"its {side} gives a sequence or an optional", around)
        typed.append(found)
        results.append(names)
    needs = _share_needs(node, typed, around)
    chosen = _Choices(node, needs, around, Composer(around.names))
    for k in wanted:
        sides = (found.tensors[names[k]] for found, names in zip(typed, results, strict=True))
        chosen.add(node.outputs[k], *sides)
    inside = [inner for found in typed for inner in found.nodes]
    return Typed(inside, {**typed[0].tensors, **typed[1].tensors}, rest=chosen.c.nodes)


@dataclass(frozen=True)
class _Choices:
    """The results of an If, each one of what two branches give.

    t[n], e[m]   ->   y = Choose(c, t, e)[: Where(c, n, m)]     both filled up to max(n, m)

    That they are not equally long is so where a branch of a net takes other frames than the other
    one. lengths: what of two extents is taken; results of one length in each branch stay so.
    """

    node: Node
    needs: tuple[tuple[Size, ...], ...]
    around: Around
    c: Composer
    lengths: dict[tuple[Extent, Extent], str] = field(default_factory=dict)

    def add(self, output: str, one: Tensor, other: Tensor) -> None:
        """Nodes that write an output. Of branches that are not equally long a call finds how long
        the result is."""
        axes = [d for d, (n, m) in enumerate(zip(one.shape, other.shape, strict=False)) if n != m]
        alike = (one.dtype, one.rank) == (other.dtype, other.rank)
        if not alike or (axes and not self.around.finds):
            _refuse(self.node, f"its branches give {one} and {other}", self.around)
        most = tuple(map(greatest, one.shape, other.shape))
        sides = self._fill_up(one, most), self._fill_up(other, most)
        chosen = self.around.names.fresh(f"{self.node.name}.choose")
        said = {"needs": self.needs} if any(self.needs) else {}
        read = self.node.inputs[0], *sides
        self.c.nodes.append(Node(chosen, "Choose", read, (chosen,), said, INTERNAL))
        for axis in axes:
            chosen = trim(self.c, chosen, self._taken(one.shape[axis], other.shape[axis]), axis)
        self.c.nodes[-1] = replace(self.c.nodes[-1], outputs=(output,))

    def _taken(self, one: Extent, other: Extent) -> str:
        """The extent of the branch that is taken, as a list of one."""
        if (one, other) not in self.lengths:
            both = self._length(one), self._length(other)
            self.lengths[one, other] = self.c("Where", self.node.inputs[0], *both)
        return self.lengths[one, other]

    def _fill_up(self, x: Tensor, shape: Sequence[Extent]) -> str:
        """A tensor with zeros behind it up to a shape."""
        lacking = [whole - extent for whole, extent in zip(shape, x.shape, strict=True)]
        if not any(lack != 0 for lack in lacking):
            return x.name
        nothing, behind = self.c.integers(*[0] * x.rank), map(self._length, lacking)
        return self.c("Pad", x.name, self.c("Concat", nothing, *behind, axis=0))

    def _length(self, extent: Extent) -> str:
        return self.c("Reshape", self.around.number(extent), self.c.integers(1))


def _is_empty(branch: Typed, names: Sequence[str]) -> bool:
    """Whether each result of a branch is a list without elements."""
    return all(branch.tensors[name].shape == (0,) for name in names if name in branch.tensors)


def _keep_filled(
    node: Node, empty: str, nothing: Sequence[Tensor | None], around: Around
) -> Body | None:
    """The branch beside one that gives nothing: executed always, and kept or cut off.

    y = If(c; then, else: nothing)   ->   t = then();  y = t[: Where(c, size of t, 0)]

    Networks ask so whether there is something to select from. None where the branch may fail in
    calls that do not take it, as x[0] does of an x without elements; and where it gives no lists.
    """
    side = SIDES[1 - SIDES.index(empty)]
    body: Body = node.attributes[side]
    names = tuple(
        around.names.fresh(f"{name}.{side}") if wanted else ""
        for name, wanted in zip(body.outputs, nothing, strict=True)
    )
    nodes = instantiate(Node(side, "If", (), names), body, around.names)
    typed = around.attempt(nodes, False, True)
    if isinstance(typed, PolycError) or not all(_is_total(inner, typed) for inner in nodes):
        return None
    for name, wanted in zip(names, nothing, strict=True):
        if wanted and (typed.tensors[name].rank, typed.tensors[name].dtype) != (1, wanted.dtype):
            return None
    if _is_empty(typed, names):
        return None
    taken = Names({name for n in body.nodes for name in (n.name, *reads(n), *n.outputs)})
    asked, c = taken.fresh("condition"), Composer(taken)
    condition = c("Reshape", asked, c.integers(1))
    outputs = []
    for name, wanted in zip(body.outputs, nothing, strict=True):
        if wanted:
            sizes = {empty: c.integers(0), side: c.extent(name, 0)}
            name = trim(c, name, c("Where", condition, *(sizes[one] for one in SIDES)))
        outputs.append(name)
    return Body((asked,), (*body.nodes, *c.nodes), tuple(outputs))


def _is_total(node: Node, around: Typed) -> bool:
    """Whether a node that needs nothing more of sizes fails for no values of what it reads."""
    if node.domain:
        return False
    if node.op != "Gather":
        return node.op in TOTAL
    data, indices = (around.tensors[name] for name in node.inputs)
    extent = data.shape[normalize_axis(int(node.get("axis", 0)), data.rank)]
    if isinstance(extent, Size) or indices.value is None:
        return False
    return all(-extent <= index < extent for index in indices.value.flat)


def _share_needs(
    node: Node, typed: Sequence[Typed], around: Around
) -> tuple[tuple[Size, ...], ...]:
    """What each of two branches alone needs; what both do is assumed from now on."""
    one, other = typed
    alone = [[need for need in side.needs if bounds(need)[0] < 0] for side in typed]
    both = [need for need in alone[0] if _follows(need, other)]
    both += [need for need in alone[1] if _follows(need, one) and need not in both]
    if both:
        raise NotFixed(
            f"both branches need that {both[0]} is not negative", "say so", needs=tuple(both)
        )
    for side, needs in zip(SIDES, alone, strict=True):
        for need in needs:
            if found_in([need]):
                why = f"its {side} alone needs that {need}, which it finds, is not negative"
                _refuse(node, why, around)
    return tuple(alone[0]), tuple(alone[1])


def _follows(need: Size, branch: Typed) -> bool:
    """Whether something is not negative where a branch is right."""
    with assume(needed_ranges(tuple(branch.needs))):
        return need in branch.needs or bounds(need)[0] >= 0


def _refuse(node: Node, why: str, around: Around) -> NoReturn:
    raise NotFixed(
        f"its condition is computed at run time, and {why}",
        "export the model so that the condition becomes a constant",
        node.inputs[0],
        cases=around.both_cases(node.inputs[0]),
    )
