"""Questions about isl's affine functions, answered as plain numbers."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl


def outputs(function: isl.PwMultiAff) -> Iterator[isl.PwAff]:
    """The coordinate functions  S -> Z  of a function  S -> A."""
    return (function.get_pw_aff(k) for k in range(function.dim(isl.dim_type.out)))


def single_aff(function: isl.PwAff) -> isl.Aff | None:
    """The affine function itself, if there is only one piece (whatever its domain)."""
    if function.n_piece() != 1:
        return None
    ((_, aff),) = function.get_pieces()
    return aff


def simplify(function: isl.PwMultiAff, domain: isl.Set) -> isl.PwMultiAff:
    """The same function on `domain`, without pieces and divisions that the domain makes idle.

    A plain affine function is left alone: an iterator of extent 1 stays itself and does not become
    0, so that accesses can still be aligned by their iterators.
    """
    affs = [single_aff(pw) for pw in outputs(function)]
    if all(aff is not None and aff.dim(isl.dim_type.div) == 0 for aff in affs):
        whole = domain.is_subset(function.domain())
        return function.gist(function.domain()) if whole else function
    if not domain.is_subset(function.domain()):
        return function
    return function.gist(domain).coalesce()


def coefficient(function: isl.PwAff, position: int) -> int | None:
    """How much the value grows with the iterator; None if that is not one constant.

    { S[i, j] -> [2 i + floor(j/3)] }:  2 for i, None for j.
    """
    aff = single_aff(function)
    if aff is None:
        moves = any(
            piece.involves_dims(isl.dim_type.in_, position, 1)
            or domain.involves_dims(isl.dim_type.set, position, 1)
            for domain, piece in function.get_pieces()
        )
        return None if moves else 0
    for d in range(aff.dim(isl.dim_type.div)):
        divides = not aff.get_coefficient_val(isl.dim_type.div, d).is_zero()
        if divides and aff.get_div(d).involves_dims(isl.dim_type.in_, position, 1):
            return None
    value = aff.get_coefficient_val(isl.dim_type.in_, position)
    return int(value.to_python()) if value.is_int() else None


def plain_iterator(function: isl.PwAff) -> tuple[int, int] | None:
    """(position, constant) if the function is one iterator plus a constant, else None."""
    aff = single_aff(function)
    if aff is None or aff.dim(isl.dim_type.div):
        return None
    used = [
        k
        for k in range(aff.dim(isl.dim_type.in_))
        if not aff.get_coefficient_val(isl.dim_type.in_, k).is_zero()
    ]
    if len(used) != 1 or not aff.get_coefficient_val(isl.dim_type.in_, used[0]).is_one():
        return None
    constant = aff.get_constant_val()
    return (used[0], int(constant.to_python())) if constant.is_int() else None


def box_extents(domain: isl.Set) -> tuple[int, ...]:
    """The extents of the smallest box at the origin that holds a bounded set."""
    count = domain.dim(isl.dim_type.set)
    if domain.is_empty():
        return (0,) * count
    return tuple(int(domain.dim_max_val(k).to_python()) + 1 for k in range(count))
