"""Operators that only rename positions: the same elements under another shape."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from polyc.errors import NotFixed
from polyc.graph.ir import Dim, Node, Shape
from polyc.graph.shapes.checks import (
    FIX_SIZES,
    are_equal,
    constant_ints,
    given,
    known_extents,
    may_be_equal,
    require,
    require_rank,
)
from polyc.graph.shapes.dims import (
    broadcast_shapes,
    normalize_axes,
    normalize_axis,
)
from polyc.graph.shapes.rules import Inputs, shape_rule
from polyc.types.derived import Derived
from polyc.types.follows import names_of
from polyc.types.parameters import named, needed_ranges, settled
from polyc.types.ranges import assume
from polyc.types.sizes import Size, bounds, divide


def resolve_reshape(shape: Shape, target: Sequence[Dim], allowzero: bool = False) -> Shape:
    """The target of a Reshape without its placeholders.

        (2, 3, 4), (0, -1) -> (2, 12)         0 copies the input's dimension (unless allowzero)
        (N, 3, 4), (-1, 2) -> (6*N, 2)        -1 takes what is left

    Raises RuleBroken where the numbers of elements differ, NotFixed where a symbol hides them.
    """
    rule, way_out = "Reshape target", "correct the target shape"
    for t in target:
        if isinstance(t, Size) and bounds(t)[0] < -1 <= bounds(t)[1]:
            statement = f"{rule}: whether {t} is negative is known only at run time"
            raise NotFixed(statement, FIX_SIZES, needs=(t,))
    valid = all(t >= -1 for t in target) and target.count(-1) <= 1
    require(valid, rule, "sizes, 0, and at most one -1", tuple(target), way_out)
    copies = [i for i, t in enumerate(target) if t == 0 and not allowzero]
    inside = all(i < len(shape) for i in copies)
    require(inside, rule, f"0 only in the first {len(shape)} places", tuple(target), way_out)
    kept: list[Dim] = [shape[i] if i in copies else t for i, t in enumerate(target)]
    here = settled(math.prod(shape))
    there = settled(math.prod(d for d in kept if d != -1))
    if -1 in kept:
        require(there != 0, rule, "no other 0 beside -1", tuple(target), way_out)
        rest = _divide(here, there, shape, kept)
        require(rest is not None, f"{rule} beside -1", f"a divisor of {here}", there, way_out)
        return tuple(named(rest) if d == -1 and rest is not None else d for d in kept)
    if may_be_equal(here, there) and not are_equal(here, there):
        raise _regroups(shape, target, _find_needs(here, there))
    require(
        are_equal(here, there), "number of elements of the Reshape target", here, there, way_out
    )
    return tuple(kept)


def _find_needs(here: Dim, there: Dim) -> tuple[Dim, ...]:
    """What sizes must be so that there are as many elements: multiples of what they are divided by.

    [h, w] to [h//4, 4, w]   ->   4*floor(h/4) - h, h - 4*floor(h/4)
    """
    for needs in _list_multiples(here, there):
        with assume(needed_ranges(needs)):
            if are_equal(settled(here), settled(there)):
                return needs
    return here - there, there - here


def _list_multiples(here: Dim, there: Dim) -> Iterator[tuple[Size, ...]]:
    """That sizes are multiples of what they are divided by: in the target, or on both sides."""
    for sides in ((there,), (here, there)):
        multiples: list[Dim] = []
        for name in sorted(names_of(sides)):
            if isinstance(name, Derived) and name.operation == "floor":
                whole, by = name.operands
                rest = whole - Size.of(name) * by
                multiples += [rest, -rest]
        needs = tuple(need for need in multiples if isinstance(need, Size))
        if needs:
            yield needs


def _divide(here: Dim, there: Dim, shape: Shape, target: Sequence[Dim]) -> Dim | None:
    """here / there; None if that is a fraction."""
    quotient = divide(here, there)
    if quotient is None and isinstance(here, Size):  # there is one for some sizes
        common = math.prod(d for d in target if isinstance(d, Size) and d in shape)
        left, by = divide(here, common), divide(there, common)
        if isinstance(left, Size) and isinstance(by, int):
            quotient = left // by
            rest = quotient * by - left
            if isinstance(rest, Size) and not are_equal(rest, 0):
                raise _regroups(shape, target, (rest, -rest))
    if quotient is None and (isinstance(here, Size) or isinstance(there, Size)):
        for needs in _list_multiples(here, there):
            with assume(needed_ranges(needs)):
                if divide(settled(here), settled(there)) is not None:
                    raise _regroups(shape, target, needs)
        raise _regroups(shape, target)
    return quotient


def _regroups(shape: Shape, target: Sequence[Dim], needs: tuple[Dim, ...] = ()) -> NotFixed:
    return NotFixed(
        f"Reshape of {shape} to {tuple(target)} regroups a symbolic size",
        FIX_SIZES,
        needs=needs if all(bounds(need)[1] >= 0 for need in needs) else (),
    )


def resolve_permutation(perm: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """The permutation of a Transpose, output dimension -> input dimension; None reverses."""
    if perm is None:
        return tuple(reversed(range(rank)))
    proper = sorted(perm) == list(range(rank))
    way_out = "list each dimension once"
    require(proper, "attribute perm", f"a permutation of 0 to {rank - 1}", tuple(perm), way_out)
    return tuple(int(p) for p in perm)


@shape_rule("Reshape")
def infer_reshape(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(2, 3, 4), target (0, -1) -> (2, 12)"""
    data, target = given(inputs[0]), known_extents(given(inputs[1]), "shape")
    return (resolve_reshape(data.shape, target, bool(node.get("allowzero", 0))),)


@shape_rule("Transpose")
def infer_transpose(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(2, 3, 4), perm (2, 0, 1) -> (4, 2, 3)"""
    data = given(inputs[0])
    return (tuple(data.shape[p] for p in resolve_permutation(node.get("perm"), data.rank)),)


@shape_rule("Squeeze")
def infer_squeeze(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(1, 3, 1), axes (0,) -> (3, 1); without axes, every dimension of 1 goes"""
    data, listed = given(inputs[0]), inputs[1]
    if listed is None:
        return (tuple(d for d in data.shape if not _is_one(d)),)
    axes = normalize_axes(constant_ints(listed, "axes"), data.rank)
    for axis in axes:
        extent = data.shape[axis]
        rule = f"extent of squeezed axis {axis}"
        require(are_equal(extent, 1), rule, 1, extent, "correct axes")
    return (tuple(d for i, d in enumerate(data.shape) if i not in axes),)


def _is_one(extent: Dim) -> bool:
    """Whether an extent is 1 in all calls; NotFixed, with both cases, where it is in some."""
    low, high = bounds(extent)
    if isinstance(extent, Size) and low <= 1 <= high and low < high:
        statement = f"whether {extent} is 1 is known only at run time"
        raise NotFixed(statement, FIX_SIZES, cases=((extent - 1, 1 - extent), (extent - 2,)))
    return low == 1 == high


@shape_rule("Unsqueeze")
def infer_unsqueeze(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(3, 4), axes (0, -1) -> (1, 3, 4, 1); axes count in the output"""
    data, listed = given(inputs[0]), constant_ints(given(inputs[1]), "axes")
    rank = data.rank + len(listed)
    axes = normalize_axes(listed, rank)
    rest = iter(data.shape)
    return (tuple(1 if i in axes else next(rest) for i in range(rank)),)


@shape_rule("Flatten")
def infer_flatten(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(2, 3, 4), axis 2 -> (6, 4)"""
    data, axis = given(inputs[0]), int(node.get("axis", 1))
    cut = data.rank if axis == data.rank else normalize_axis(axis, max(data.rank, 1))
    return ((math.prod(data.shape[:cut]), math.prod(data.shape[cut:])),)


@shape_rule("Expand")
def infer_expand(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(3, 1), target (2, 1, 4) -> (2, 3, 4)"""
    data, target = given(inputs[0]), known_extents(given(inputs[1]), "shape")
    sizes = all(t >= 0 for t in target)
    require(sizes, "target shape", "no negative size", target, "correct the target shape")
    return (broadcast_shapes(data.shape, target),)


@shape_rule("DepthToSpace")
def infer_depth_to_space(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(n, c·b·b, h, w) -> (n, c, h·b, w·b)"""
    data, block = given(inputs[0]), _check_blocks(node, inputs)
    batch, channels, height, width = data.shape
    rule, way_out = "depth must be a multiple of blocksize²", "change blocksize"
    depth = channels // block**2
    whole = depth * block**2
    wanted = whole if isinstance(channels, Size) else f"a multiple of {block**2}"
    require(are_equal(whole, channels), rule, wanted, channels, way_out)
    return ((batch, depth, height * block, width * block),)


@shape_rule("SpaceToDepth")
def infer_space_to_depth(node: Node, inputs: Inputs) -> tuple[Shape, ...]:
    """(n, c, h·b, w·b) -> (n, c·b·b, h, w)"""
    data, block = given(inputs[0]), _check_blocks(node, inputs)
    batch, channels, height, width = data.shape
    rule, way_out = "height and width must be multiples of blocksize", "pad the input"
    for extent in (height, width):
        whole = extent // block
        require(are_equal(whole * block, extent), rule, whole * block, extent, way_out)
    return ((batch, channels * block**2, height // block, width // block),)


def _check_blocks(node: Node, inputs: Inputs) -> int:
    require_rank(given(inputs[0]), "input", 4, 4)
    return int(node.attributes["blocksize"])
