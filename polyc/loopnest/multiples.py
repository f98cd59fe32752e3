"""What the variables of a nest are multiples of, and what follows for divisions by constants.

for t in 0 .. 768 step 48:
  for l in 16 .. 32:                    t + l is 16 more than a multiple of 16, and up to 15:
    y[floor((t + l)/64)]                floor((t + 16)/64) for all of them
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from polyc.loopnest.index import (
    Affine,
    Atom,
    FloorDiv,
    Mod,
    Var,
    const,
    floordiv,
    modulo,
    weighted_sum,
)
from polyc.loopnest.index import substitute as put
from polyc.loopnest.nodes import For, extent_of

Multiples = Mapping[str, int]
"""Loop variable -> what it is always a multiple of, where that is more than 1."""


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


def with_loop(known: Multiples, loop: For) -> Multiples:
    """What is known inside of a loop."""
    return {**known, loop.var: gcd(multiple_of(loop.lower, known), loop.step)}


def divide_evenly(index: Affine, known: Multiples) -> Affine:
    """The index without floors of what divides evenly.

    32 floor(k/2)   ->   16 k         for k a multiple of 2
    """
    if not any(isinstance(atom, FloorDiv) for atom, _ in index.terms):
        return index
    parts = []
    for atom, coefficient in index.terms:
        if isinstance(atom, FloorDiv) and _is_even(atom, coefficient, known):
            parts.append((atom.argument, coefficient // atom.divisor))
        else:
            parts.append((Affine(0, ((atom, 1),)), coefficient))
    return weighted_sum(parts, index.constant)


def divide_apart(index: Affine, known: Multiples) -> Affine:
    """The index with numbers taken out of floors of what divides evenly.

    floor((k + 5)/2)   ->   floor(k/2) + 2         for k a multiple of 2
    """
    if not any(isinstance(atom, FloorDiv) for atom, _ in index.terms):
        return index
    parts = []
    for atom, coefficient in index.terms:
        part = Affine(0, ((atom, 1),))
        if isinstance(atom, FloorDiv):
            variable = atom.argument - atom.argument.constant
            if multiple_of(variable, known) % atom.divisor == 0:
                part = floordiv(variable, atom.divisor) + atom.argument.constant // atom.divisor
        parts.append((part, coefficient))
    return weighted_sum(parts, index.constant)


def _is_even(atom: FloorDiv, coefficient: int, known: Multiples) -> bool:
    """Whether the divisor divides what is rounded down, and its coefficient."""
    return coefficient % atom.divisor == 0 and multiple_of(atom.argument, known) % atom.divisor == 0


def divide_once(index: Affine, loop: For, known: Multiples) -> Affine:
    """The index with divisions that give the same in all iterations of a loop made before it.

    floor((t + l)/64)   ->   floor((t + 16)/64)
    (t + l) mod 64      ->   (t + 16) mod 64 + l - 16       for l in 16 .. 32, t a multiple of 16

    The loop has steps of 1 and a constant extent. Not all divisions are that can be.
    """
    total = const(index.constant)
    for atom, coefficient in index.terms:
        new = Affine(0, ((atom, 1),))
        if isinstance(atom, FloorDiv | Mod):
            new = _divide(atom, loop, known)
        total = total + new * coefficient
    return total


def _divide(atom: FloorDiv | Mod, loop: For, known: Multiples) -> Affine:
    argument = divide_once(atom.argument, loop, known)
    first = put(argument, {loop.var: loop.lower})
    further = argument - first  # how much more than in the first iteration
    extent = extent_of(loop) or 0
    step = dict(further.terms).get(Var(loop.var), 0)
    if step > 0 and further == (Affine(0, ((Var(loop.var), 1),)) - loop.lower) * step:
        whole = gcd(atom.divisor, multiple_of(first - first.constant, known))
        if first.constant % whole + step * (extent - 1) < whole:
            if isinstance(atom, FloorDiv):
                return floordiv(first, atom.divisor)
            return modulo(first, atom.divisor) + further
    if isinstance(atom, FloorDiv):
        return floordiv(argument, atom.divisor)
    return modulo(argument, atom.divisor)
