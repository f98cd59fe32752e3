"""Questions about isl's affine functions, answered as plain numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

import islpy as isl

from polyc.poly.parameters import among_own_sizes, at_sizes, in_own_sizes, parameters_of
from polyc.poly.remember import remember
from polyc.types.estimate import estimate


def tuple_id(name: str) -> isl.Id:
    """The id of a tuple; taken from a space: one that is made of the name alone is another one."""
    space = isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, 0)
    return space.set_tuple_name(isl.dim_type.set, name).get_tuple_id(isl.dim_type.set)


def outputs(function: isl.PwMultiAff) -> Iterator[isl.PwAff]:
    """The coordinate functions  S -> Z  of a function  S -> A."""
    return (output(function, k) for k in range(function.dim(isl.dim_type.out)))


def output(function: isl.PwMultiAff, dimension: int) -> isl.PwAff:
    """One coordinate function."""
    return function.get_pw_aff(dimension)


def single_aff(function: isl.PwAff) -> isl.Aff | None:
    """The affine function itself, if there is only one piece (whatever its domain)."""
    if function.n_piece() != 1:
        return None
    ((_, aff),) = function.get_pieces()
    return aff


Column = tuple[int | None, ...]
"""How far one step of an iterator moves in each dimension of an array; None: not by a constant."""


def columns_of(index: isl.PwMultiAff) -> tuple[Column, ...]:
    """The column of each iterator."""
    rows = [coefficients(function) for function in outputs(index)]
    count = index.dim(isl.dim_type.in_)
    return tuple(tuple(row[p] for row in rows) for p in range(count))


def moves(column: Column) -> bool:
    """Whether an iterator moves in the array at all."""
    return any(step != 0 for step in column)


def moving_dimension(column: Column) -> int | None:
    """The one dimension in which an iterator moves, if it does so by a constant step."""
    moving = [d for d, step in enumerate(column) if step != 0]
    return moving[0] if len(moving) == 1 and column[moving[0]] is not None else None


def unit_dimension(column: Column) -> int | None:
    """The one dimension in which an iterator moves, if it does so by one."""
    d = moving_dimension(column)
    return d if d is not None and column[d] == 1 else None


MOST_PIECES = 4
"""Pieces of a function that is still composed with divisions.

A reflected border has 3 pieces an axis. Reading three such axes by the digits of a position gives
18 pieces with nested divisions, and isl compares two of these for minutes.
"""


def divides(function: isl.PwMultiAff) -> bool:
    """Whether some piece of it has an integer division."""
    affs = (aff for pw in outputs(function) for _, aff in pw.get_pieces())
    return any(aff.dim(isl.dim_type.div) for aff in affs)


def is_simple(outer: isl.PwMultiAff, inner: isl.PwMultiAff) -> bool:
    """Whether  outer . inner  is a function that isl can reason about in little time."""
    return outer.n_piece() <= MOST_PIECES or not divides(inner)


def is_affine(function: isl.PwMultiAff) -> bool:
    """Whether a function is affine, without a division, and defined everywhere."""
    if not function.isa_multi_aff():
        return False
    affine = function.as_multi_aff()
    count = affine.dim(isl.dim_type.out)
    return all(affine.get_aff(k).dim(isl.dim_type.div) == 0 for k in range(count))


def simplify(function: isl.PwMultiAff, domain: isl.Set) -> isl.PwMultiAff:
    """The same function on `domain`, without pieces and divisions that the domain makes idle.

    A plain affine function is left alone: an iterator of extent 1 stays itself and does not become
    0, so that accesses can still be aligned by their iterators.
    """
    if is_affine(function):
        return function
    domain = among_own_sizes(domain, function)
    whole = domain.is_subset(function.domain())
    if all(map(_is_plain, outputs(function))):
        return function.gist(function.domain()) if whole else function
    if not whole or domain.is_empty():
        return function
    result = function.gist(domain).coalesce()
    for k, coordinate in enumerate(outputs(result)):
        if not _is_plain(coordinate):
            fitted = _fit_affine(coordinate, domain) or _fit_quotients(coordinate, domain)
            result = result.set_pw_aff(k, fitted) if fitted is not None else result
    return result


def _is_plain(function: isl.PwAff) -> bool:
    aff = single_aff(function)
    return aff is not None and aff.dim(isl.dim_type.div) == 0


def _fit_affine(function: isl.PwAff, domain: isl.Set) -> isl.PwAff | None:
    """The affine function that equals this one on `domain`, if there is one.

    isl keeps { [g, o] -> [(28 g + o) mod 28] : 0 <= o < 28 } as it is after a few compositions. The
    function is probed at a corner and one step along each dimension; that the affine function
    through these values is the same everywhere is then proven.
    """
    corner = domain.lexmin().sample_point()
    base = function.eval(corner)
    space = domain.get_space()
    fitted = isl.Aff.val_on_domain_space(space, base)
    for k in range(domain.dim(isl.dim_type.set)):
        start = corner.get_coordinate_val(isl.dim_type.set, k)
        step = corner.set_coordinate_val(isl.dim_type.set, k, start.add(isl.Val(1)))
        if not isl.Set.from_point(step).is_subset(domain):
            continue  # one value only: any slope will do
        slope = function.eval(step).sub(base)
        variable = isl.Aff.var_on_domain(isl.LocalSpace.from_space(space), isl.dim_type.set, k)
        moved = variable.sub(isl.Aff.val_on_domain_space(space, start))
        fitted = fitted.add(moved.scale_val(slope))
    result = isl.PwAff.from_aff(fitted)
    return result if domain.is_subset(result.eq_set(function)) else None


def _fit_quotients(function: isl.PwAff, domain: isl.Set) -> isl.PwAff | None:
    """The function with what never carries taken out of its quotients, if there is any.

    floor((256 i + 64 h + d) / 4096)   ->   floor(i / 16)      where 64 h + d is below 256

    Views of views divide so, and as it stands each of these iterators seems to move by leaps.
    """
    aff = single_aff(function)
    if aff is None:
        return None
    found = aff
    for d in range(aff.dim(isl.dim_type.div)):
        times = aff.get_coefficient_val(isl.dim_type.div, d)
        quotient = aff.get_div(d)
        shorter = None if times.is_zero() else _without_rest(quotient, domain)
        if shorter is not None:
            found = found.add(shorter.floor().sub(quotient.floor()).scale_val(times))
    result = isl.PwAff.from_aff(found)
    return result if found is not aff and domain.is_subset(result.eq_set(function)) else None


def _without_rest(quotient: isl.Aff, domain: isl.Set) -> isl.Aff | None:
    """The quotient without terms that together are less than what all others are multiples of."""
    if any(quotient.involves_dims(kind, 0, quotient.dim(kind)) for kind in _NO_ITERATORS):
        return None
    divisor = quotient.get_denominator_val()
    dividend = quotient.scale_val(divisor)
    count = dividend.dim(isl.dim_type.in_)
    steps = [dividend.get_coefficient_val(isl.dim_type.in_, k).to_python() for k in range(count)]
    constant, whole = dividend.get_constant_val().to_python(), divisor.to_python()
    for multiple in sorted({gcd(whole, step) for step in steps if step} - {1}, reverse=True):
        rest = isl.Aff.val_on_domain_space(domain.get_space(), isl.Val(constant % multiple))
        space = isl.LocalSpace.from_space(domain.get_space())
        for k, step in enumerate(steps):
            if step % multiple:
                variable = isl.Aff.var_on_domain(space, isl.dim_type.set, k)
                rest = rest.add(variable.scale_val(isl.Val(step)))
        if rest.is_cst() and rest.get_constant_val().is_zero():
            continue
        low, high = domain.min_val(rest), domain.max_val(rest)
        if low.is_int() and high.is_int() and low.is_nonneg() and high.lt(isl.Val(multiple)):
            return dividend.sub(rest).scale_down_val(divisor)
    return None


_NO_ITERATORS = (isl.dim_type.param, isl.dim_type.div)


def coefficients(function: isl.PwAff) -> tuple[int | None, ...]:
    """How much the value grows with each iterator; None where that is not one constant.

    { S[i, j] -> [2 i + floor(j/3)] }           ->  (2, None)
    { S[i, j] -> [i] : j < 5; [i + 9] : j >= 5 }  ->  (1, None)
    """
    pieces = function.get_pieces()
    different = [aff for k, (_, aff) in enumerate(pieces) if not _among(aff, pieces[:k])]
    rows = [_coefficients(aff) for aff in different]
    if len(rows) == 1:
        return rows[0]
    steps: list[int | None] = []
    for k in range(function.dim(isl.dim_type.in_)):
        found = {row[k] for row in rows}
        chosen = any(domain.involves_dims(isl.dim_type.set, k, 1) for domain, _ in pieces)
        steps.append(None if chosen or len(found) != 1 else found.pop())
    return tuple(steps)


def _among(aff: isl.Aff, pieces: Sequence[tuple[isl.Set, isl.Aff]]) -> bool:
    """Whether some of the pieces are this affine function."""
    return any(aff.plain_is_equal(other) for _, other in pieces)


def _coefficients(aff: isl.Aff) -> tuple[int | None, ...]:
    count = aff.dim(isl.dim_type.in_)
    steps: list[int | None] = []
    for k in range(count):
        value = aff.get_coefficient_val(isl.dim_type.in_, k)
        steps.append(int(value.to_python()) if value.is_int() else None)
    for d in range(aff.dim(isl.dim_type.div)):
        if aff.get_coefficient_val(isl.dim_type.div, d).is_zero():
            continue
        div = aff.get_div(d)
        for k in range(count):
            if div.involves_dims(isl.dim_type.in_, k, 1):
                steps[k] = None
    return tuple(steps)


def is_divided(function: isl.PwAff, position: int) -> bool:
    """Whether a value is a quotient of an iterator that it depends on in no other way.

    { S[i, j] -> [i + floor((j + 1)/2)] }  for j
    """
    aff = single_aff(function)
    if aff is None or not aff.get_coefficient_val(isl.dim_type.in_, position).is_zero():
        return False
    divided = [
        (aff.get_coefficient_val(isl.dim_type.div, d), aff.get_div(d))
        for d in range(aff.dim(isl.dim_type.div))
        if aff.get_div(d).involves_dims(isl.dim_type.in_, position, 1)
    ]
    if len(divided) != 1:
        return False
    (times, div), step = divided[0], isl.dim_type.in_
    share = div.get_coefficient_val(step, position).mul(div.get_denominator_val())
    return bool(times.is_one() and share.is_one())


def plain_iterator(function: isl.PwAff) -> tuple[int, int] | None:
    """(position, constant) if the function is one iterator plus a constant, else None."""
    found = shifted_iterator(function)
    if found is None or found[1][1:]:
        return None
    position, ((_, constant), *_) = found
    return position, constant


def shifted_iterator(function: isl.PwAff) -> tuple[int, tuple[tuple[str, int], ...]] | None:
    """The position of an iterator, and what is added to it: a number and multiples of sizes.

    [n] -> { S[i, j] -> [j + 2n + 5] }   ->   1, (("", 5), ("n", 2))
    """
    aff = single_aff(function)
    if aff is None or aff.dim(isl.dim_type.div):
        return None
    steps = [aff.get_coefficient_val(isl.dim_type.in_, k) for k in range(aff.dim(isl.dim_type.in_))]
    used = [k for k, step in enumerate(steps) if not step.is_zero()]
    if len(used) != 1 or not steps[used[0]].is_one():
        return None
    added = [("", aff.get_constant_val())]
    for k, name in enumerate(parameters_of(function)):
        added.append((name, aff.get_coefficient_val(isl.dim_type.param, k)))
    if not all(value.is_int() for _, value in added):
        return None
    numbers = [(name, int(value.to_python())) for name, value in added]
    return used[0], tuple(sorted(pair for pair in numbers if pair[1] or not pair[0]))


def exact_extents(domain: isl.Set) -> tuple[int | None, ...]:
    """One more than the largest value of each iterator, whatever the sizes known only at run time.

    None where it depends on these.   { S[i, j] : 0 <= i < 4 and 0 <= j < size_n }  ->  4, None
    """
    if domain.is_empty():
        return (0,) * domain.dim(isl.dim_type.set)
    return _exact_extents(in_own_sizes(domain).reset_tuple_id())


@remember
def _exact_extents(domain: isl.Set) -> tuple[int | None, ...]:
    return tuple(_exact_extent(domain, k) for k in range(domain.dim(isl.dim_type.set)))


def _exact_extent(domain: isl.Set, position: int) -> int | None:
    largest = domain.dim_max(position)
    if not all(aff.is_cst() for _, aff in largest.get_pieces()):
        return None
    return int(largest.max_val().to_python()) + 1


def _at_estimate(domain: isl.Set) -> isl.Set:
    """The elements for an estimate of the sizes, whatever is assumed of these among each other."""
    count = domain.dim(isl.dim_type.set)
    kept = domain.drop_constraints_not_involving_dims(isl.dim_type.set, 0, count)
    return at_sizes(kept, estimate)


def estimated_extents(domain: isl.Set) -> tuple[int, ...]:
    """The extents of the smallest box at the origin that holds a bounded set.

    Where they depend on sizes known at run time, those of an estimate: for costs and tiles, and for
    nothing that must be right, for which there is `exact_extents`. What is assumed of the sizes
    among each other is left out, since an estimate of each may break it; what has no instance for
    the estimate, but for other sizes, counts as one.
    """
    count = domain.dim(isl.dim_type.set)
    if domain.is_empty():
        return (0,) * count
    found = domain
    if domain.dim(isl.dim_type.param):
        found = _at_estimate(domain)
        if not found.is_bounded():  # by a quotient, of which alone the bound speaks
            found = _at_estimate(domain.remove_divs())
    if found.is_empty():
        return (1,) * count
    return tuple(int(found.dim_max_val(k).to_python()) + 1 for k in range(count))
