"""isl's sets and functions as nested tuples of integers: equal tuples have equal meaning.

    [size_n] -> { S[i, j] : 0 <= i < size_n and 2j <= i }
        ->  ("size_n",), 2, one part: no divisions, no equalities,
            the inequalities as rows of coefficients of (1, size_n, i, j), sorted:
            (-1, 1, -1, 0), (0, 0, 1, -2), (0, 0, 1, 0)

What tuples and iterators are called is left out: an iterator is its position. Parameters keep their
names, since these say what a caller passes. Objects with different tuples may still have the same
meaning, as isl has no normal form; then something is done twice that could have been done once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import islpy as isl

from polyc.poly.parameters import parameters_of

Canonical: TypeAlias = "tuple[Canonical, ...] | int | str"
"""Hashable; `repr` writes it in one way only, so that it can be kept on disk."""

CST, PARAM, IN = isl.dim_type.cst, isl.dim_type.param, isl.dim_type.in_
SET, DIV = isl.dim_type.set, isl.dim_type.div

_NO_NAMES: Mapping[str, str] = {}

_EVERYWHERE: Canonical = ((), (), ())
"""A part of a set without divisions, equalities and inequalities."""


def canonical_set(domain: isl.Set, names: Mapping[str, str] = _NO_NAMES) -> Canonical:
    """A set by the constraints of its parts; `names` are other names of parameters."""
    head = (_parameters(domain, names), domain.dim(SET))
    if domain.plain_is_universe():
        return (*head, _EVERYWHERE)
    # With all divisions known, each existentially quantified variable is said by its definition.
    parts = domain.compute_divs().get_basic_sets()
    return (*head, *sorted(map(_constraints, parts), key=repr))


def canonical_function(
    function: isl.PwMultiAff | isl.PwAff, names: Mapping[str, str] = _NO_NAMES
) -> Canonical:
    """A function by its pieces: for each the domain, and the coefficients of each coordinate."""
    pieces: list[Canonical] = []

    def take(domain: isl.Set, piece: isl.MultiAff | isl.Aff) -> None:
        found = (
            [piece.get_aff(k) for k in range(piece.dim(isl.dim_type.out))]
            if isinstance(piece, isl.MultiAff)
            else [piece]
        )
        pieces.append((canonical_set(domain, names), *map(_coefficients, found)))

    function.foreach_piece(take)
    return (_parameters(function, names), *sorted(pieces, key=repr))


def _parameters(
    relation: isl.Set | isl.PwMultiAff | isl.PwAff, names: Mapping[str, str]
) -> Canonical:
    return tuple(names.get(name, name) for name in parameters_of(relation))


def _constraints(part: isl.BasicSet) -> Canonical:
    """The divisions of a part of a set, its equalities, and its inequalities  row . x >= 0."""
    order = CST, PARAM, SET, DIV
    return (
        tuple(_coefficients(part.get_div(k)) for k in range(part.dim(DIV))),
        _rows(part.equalities_matrix(*order)),
        _rows(part.inequalities_matrix(*order)),
    )


def _rows(matrix: isl.Mat) -> Canonical:
    columns = range(matrix.cols())
    return tuple(
        sorted(
            tuple(_int(matrix.get_element_val(row, column)) for column in columns)
            for row in range(matrix.rows())
        )
    )


def _coefficients(aff: isl.Aff) -> Canonical:
    """A quasi-affine function: its denominator, constant, coefficients, and divisions e/d."""
    scale = aff.get_denominator_val()
    whole = aff if scale.is_one() else aff.scale_val(scale)
    plain = (
        _int(whole.get_coefficient_val(kind, k))
        for kind in (PARAM, IN)
        for k in range(whole.dim(kind))
    )
    factors = ((k, _int(whole.get_coefficient_val(DIV, k))) for k in range(whole.dim(DIV)))
    divisions = tuple((factor, _coefficients(whole.get_div(k))) for k, factor in factors if factor)
    return (_int(scale), _int(whole.get_constant_val()), *plain, divisions)


def _int(value: isl.Val) -> int:
    return 0 if value.is_zero() else int(value.to_python())
