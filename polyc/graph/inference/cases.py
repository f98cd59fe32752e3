"""Cases: what only one of two ways to go on fits to, where a comparison of sizes decides.

    y = If(t == 1; Squeeze(x), x)    x: float32[n, t]    ->    y = Squeeze(x), and calls need t = 1

PyTorch's older exporter writes x.squeeze(1) so, and the two results differ in their ranks: no array
can be both. But what follows is mostly made for one of them. So both are tried, to the end of the
graph, and where the other one fits to no call at all there is nothing to decide. So it is wherever
code asks how two sizes compare (`Size`), as where a bound of a Slice may be below zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from polyc.errors import InvalidModel, NeedsValues, NotFixed, ShapeError
from polyc.graph.expand.control.repeat import Cases, is_bound
from polyc.graph.ir import Node, Tensor
from polyc.graph.shapes.ratios import Ratio, as_ratio
from polyc.types.sizes import Extent, Size, bounds

T = TypeVar("T")

Needs = tuple[Size, ...]
"""Sizes that must not be negative."""

Both = tuple[Needs, Needs]
"""What is needed where a condition holds, and where it does not."""

MOST_CASES = 8
"""How many decisions, one behind another, are tried in both ways."""

_KEEPS = frozenset({"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


def decide_cases(infer: Callable[[Needs], T], needs: Needs = (), depth: int = 0) -> T:
    """What `infer` gives for what is needed, and for the one case that a call can be in.

    Whatever a case is refused for by its shapes no call could do. Where both fit, or one is refused
    for another reason, the error stays: a call decides.
    """
    try:
        return infer(needs)
    except (NotFixed, NeedsValues) as unknown:
        if not unknown.cases or depth == MOST_CASES:
            raise
        fitting = []
        for case in unknown.cases:
            try:
                fitting.append(decide_cases(infer, (*needs, *case), depth + 1))
            except (ShapeError, InvalidModel):
                continue
        if len(fitting) != 1:
            raise
        return fitting[0]


def find_cases(
    node: Node, inputs: Sequence[Tensor | None], known: Mapping[str, Cases]
) -> Cases | None:
    """The cases of what a node writes, if it is one comparison of sizes that a call decides."""
    if node.op in _KEEPS:
        return known.get(node.inputs[0])
    if node.op == "Not":
        holds, fails = known.get(node.inputs[0], ((), None))
        return None if fails is None else (fails, holds)
    if node.op == "Add" and _is_zero(inputs[1]):  # as Paddle copies, also what is 0 or 1
        return known.get(node.inputs[0])
    if node.op == "And":
        return _both(node.inputs, inputs, known)
    if node.op not in _COMPARED:
        return None
    one, other = (_single(tensor) for tensor in inputs)
    if one is None or other is None:
        return None
    difference = one.above * other.below - other.above * one.below
    return _COMPARED[node.op](difference) if isinstance(difference, Size) else None


def _both(
    names: Sequence[str], inputs: Sequence[Tensor | None], known: Mapping[str, Cases]
) -> Cases | None:
    """Of two conditions, both of which must hold; that one does not is no sum that is known."""
    found = []
    for name, tensor in zip(names, inputs, strict=True):
        if tensor is not None and tensor.value is not None and tensor.value.all():
            continue
        if name not in known:
            return None
        found.append(known[name])
    if len(found) == 1:
        return found[0]
    if not all(map(is_bound, found)):
        return None
    return tuple(need for holds, _ in found for need in holds), None


def _is_zero(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.value is not None and not tensor.value.any()


def _single(tensor: Tensor | None) -> Ratio | None:
    """The one element of a tensor, if that is a number, or known once sizes are."""
    if tensor is None or tensor.size != 1 or tensor.dtype.kind not in "iuf":
        return None
    value: Any = tensor.entries if tensor.entries is not None else tensor.value
    try:
        return None if value is None else as_ratio(np.asarray(value, object).item())
    except NotFixed:
        return None


def _equal(difference: Size) -> Both:
    """Equal or not: the other side is what is larger, unless only what is smaller can be."""
    larger = difference if bounds(difference)[1] > 0 else -difference
    return _needs(difference, -difference), _needs(larger - 1)


def _less(difference: Extent) -> Both:
    return _needs(-difference - 1), _needs(difference)


def _greater(difference: Extent) -> Both:
    return _less(-difference)


def _needs(*extents: Extent) -> Needs:
    return tuple(extent for extent in extents if isinstance(extent, Size))


def _swap(compare: Callable[[Size], Both]) -> Callable[[Size], Both]:
    return lambda difference: compare(difference)[::-1]


_COMPARED: Mapping[str, Callable[[Size], Both]] = {
    "Equal": _equal,
    "Less": _less,
    "Greater": _greater,
    "LessOrEqual": _swap(_greater),
    "GreaterOrEqual": _swap(_less),
}
"""Operator -> the cases of what it says of a - b."""
