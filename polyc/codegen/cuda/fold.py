"""Addresses with what cancels taken out: the digits of a number make up the number.

    3136*floor(e/3136) + 49*floor((e mod 3136)/49) + (e mod 49)   ->   e

Kernels walk many loops as one (`mapping/cuda/coordinates.py`), so that the indices of an array are
digits of a long index, and its address is often that index again. Within a vector loop, a division
by a multiple of the lanes gives the same for all lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyc.loopnest.index import (
    Affine,
    Atom,
    Choice,
    Compare,
    Condition,
    FloorDiv,
    Logic,
    Mod,
    Var,
    choice,
    const,
    floordiv,
    linear,
    modulo,
)
from polyc.loopnest.multiples import Multiples, multiple_of
from polyc.loopnest.nodes import Element


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
            return _quotient(fold(argument), divisor)
        case Mod(argument, divisor):
            return _reduced(fold(argument), divisor)
        case Choice(condition, then, otherwise):
            return choice(fold_condition(condition), fold(then), fold(otherwise))
        case _:
            return Affine(0, ((atom, 1),))


def fold_condition(condition: Condition) -> Condition:
    """The condition with its indices folded."""
    match condition:
        case Compare(operator, left):
            return Compare(operator, fold(left))
        case Logic(operator, arguments):
            return Logic(operator, tuple(map(fold_condition, arguments)))


def _quotient(index: Affine, divisor: int) -> Affine:
    """floor(index / divisor) by the quotient that all shifts and signs of it share.

    floor((c - 2 k)/9)  ->  floor((7 k + c)/9) - k          floor((2 - k)/3)  ->  -floor(k/3)

    So what addresses and conditions have in common is computed once, of numbers that are not
    negative where loops begin at 0.
    """
    whole, rest = _split(index, divisor)
    if not _is_shorter_negated(rest, divisor):
        return whole + floordiv(rest, divisor)
    more, rest = _split(_negated(rest, divisor), divisor)
    return whole - more - floordiv(rest, divisor)


def _remainder(index: Affine, divisor: int) -> Affine:
    """index mod divisor, of what `_quotient` divides."""
    _, rest = _split(index, divisor)
    if not _is_shorter_negated(rest, divisor):
        return modulo(rest, divisor)
    _, rest = _split(_negated(rest, divisor), divisor)
    return const(divisor - 1) - modulo(rest, divisor)


def _split(index: Affine, divisor: int) -> tuple[Affine, Affine]:
    """(q, r) with  index = divisor * q + r,  no coefficient of r outside of 0 … divisor - 1."""
    whole = linear(index.constant // divisor, {a: c // divisor for a, c in index.terms})
    return whole, linear(index.constant % divisor, {a: c % divisor for a, c in index.terms})


def _negated(index: Affine, divisor: int) -> Affine:
    """b with  floor(index / divisor) = -floor(b / divisor)."""
    return const(divisor - 1) - index


def _is_shorter_negated(rest: Affine, divisor: int) -> bool:
    _, other = _split(_negated(rest, divisor), divisor)
    return sum(c for _, c in other.terms) < sum(c for _, c in rest.terms)


def _reduced(index: Affine, divisor: int) -> Affine:
    """index mod divisor, where  (a mod m) mod d  is  a mod d  if d divides m."""
    total = const(index.constant)
    for atom, coefficient in index.terms:
        if isinstance(atom, Mod) and atom.divisor * coefficient % divisor == 0:
            total = total + atom.argument * coefficient
        else:
            total = total + Affine(0, ((atom, coefficient),))
    return _remainder(total, divisor)


def _count(index: Affine) -> int:
    """Divisions, and then terms."""
    return sum(100 * (not isinstance(atom, Var)) + 1 for atom, _ in index.terms)


def fold_address(element: Element, shape: Sequence[int]) -> Affine:
    """The offset of an element in a row-major array, folded."""
    total, step = const(0), 1
    for index, extent in zip(reversed(element.index), reversed(shape), strict=True):
        total, step = total + index * step, step * extent
    return fold(total)


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
