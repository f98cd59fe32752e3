"""Addresses with what cancels taken out: the digits of a number make up the number.

    3136*floor(e/3136) + 49*floor((e mod 3136)/49) + (e mod 49)   ->   e

Kernels walk many loops as one (`mapping/cuda/coordinates.py`), so that the indices of an array are
digits of a long index, and its address is often that index again. Within a vector loop, a division
by a multiple of the lanes gives the same for all lanes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from polyc.codegen.index import Affine, Atom, FloorDiv, Mod, Var, const, floordiv, modulo
from polyc.codegen.loopnest import Element

Multiples = Mapping[str, int]
"""Loop variable -> what it is always a multiple of, where that is more than 1."""


def fold(index: Affine) -> Affine:
    """The index with  d*floor(a/d)  as  a - (a mod d)  wherever that leaves fewer divisions."""
    index = _join_quotients(_rebuild(index))
    for atom, coefficient in index.terms:
        if not isinstance(atom, FloorDiv) or coefficient % atom.divisor:
            continue
        rest = index - Affine(0, ((atom, coefficient),))
        whole = atom.argument - _reduced(atom.argument, atom.divisor)
        candidate = rest + whole * (coefficient // atom.divisor)
        if _count(candidate) < _count(index):
            return fold(candidate)
    return index


def _join_quotients(index: Affine) -> Affine:
    """floor(a/40) - 256*floor(a/10240)  as  floor(a/40) mod 256."""
    terms = {atom: c for atom, c in index.terms if isinstance(atom, FloorDiv)}
    for fine, coefficient in terms.items():
        for coarse, other in terms.items():
            size, odd = divmod(coarse.divisor, fine.divisor)
            if coarse.argument != fine.argument or odd or size < 2 or other != -size * coefficient:
                continue
            pair = Affine(0, ((fine, coefficient),)) + Affine(0, ((coarse, other),))
            digit = Affine(0, ((Mod(Affine(0, ((fine, 1),)), size), coefficient),))
            return _join_quotients(index - pair + digit)
    return index


def _rebuild(index: Affine) -> Affine:
    """Nested digits in their shortest form, innermost first."""
    total = const(index.constant)
    for atom, coefficient in index.terms:
        total = total + _rebuild_atom(atom) * coefficient
    return total


def _rebuild_atom(atom: Atom) -> Affine:
    match atom:
        case FloorDiv(argument, divisor):
            return floordiv(fold(argument), divisor)
        case Mod(argument, divisor):
            return _reduced(fold(argument), divisor)
        case _:
            return Affine(0, ((atom, 1),))


def _reduced(index: Affine, divisor: int) -> Affine:
    """index mod divisor, where  (a mod m) mod d  is  a mod d  if d divides m."""
    total = const(index.constant)
    for atom, coefficient in index.terms:
        if isinstance(atom, Mod) and atom.divisor * coefficient % divisor == 0:
            total = total + atom.argument * coefficient
        else:
            total = total + Affine(0, ((atom, coefficient),))
    return modulo(total, divisor)


def _count(index: Affine) -> int:
    """Divisions, and then terms."""
    return sum(100 * (not isinstance(atom, Var)) + 1 for atom, _ in index.terms)


def fold_address(element: Element, shape: Sequence[int]) -> Affine:
    """The offset of an element in a row-major array, folded."""
    total, step = const(0), 1
    for index, extent in zip(reversed(element.index), reversed(shape), strict=True):
        total, step = total + index * step, step * extent
    return fold(total)


def multiple_of(index: Affine, known: Multiples) -> int:
    """A number that always divides the index; 0 if it is always 0."""
    return gcd(index.constant, *(c * _multiple_of_atom(a, known) for a, c in index.terms))


def _multiple_of_atom(atom: Atom, known: Multiples) -> int:
    match atom:
        case Var(name):
            return known.get(name, 1)
        case Mod(argument, divisor):
            return gcd(multiple_of(argument, known), divisor)
        case _:
            return 1


def drop_remainders(index: Affine, lanes: int, known: Multiples) -> Affine:
    """The index with lane numbers taken out of divisions by multiples of the lanes.

    floor((4 t + 3)/64) -> floor(4 t/64), (4 t + 3) mod 64 -> 4 t mod 64 + 3    for 4 lanes
    """
    total = const(index.constant)
    for atom, coefficient in index.terms:
        new = Affine(0, ((atom, 1),))
        if isinstance(atom, FloorDiv | Mod):
            argument = drop_remainders(atom.argument, lanes, known)
            rest = argument.constant % lanes
            if atom.divisor % lanes or multiple_of(argument - rest, known) % lanes:
                rest = 0
            if isinstance(atom, FloorDiv):
                new = floordiv(argument - rest, atom.divisor)
            else:
                new = modulo(argument - rest, atom.divisor) + rest
        total = total + new * coefficient
    return total
