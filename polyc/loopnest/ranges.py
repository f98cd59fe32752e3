"""What is known of the variables of a nest: ranges, and indices that are never negative.

    for t in 0 .. n - 15 step 16:      t in 0 .. n - 16,  and  n - 16 - t >= 0

With it bounds and conditions are decided, and minima and maxima go that one argument always wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import combinations

from polyc.loopnest.index import (
    Affine,
    Choice,
    Compare,
    Condition,
    Extremum,
    FloorDiv,
    Logic,
    Mod,
    Var,
    choice,
    const,
    decide,
    extremum,
)

UNKNOWN = 1 << 62
"""No bound."""

Ranges = Mapping[str, tuple[int, int]]
"""Variable -> its smallest and largest value."""


class Known(dict[str, tuple[int, int]]):
    """Ranges, with `facts`: indices that are not negative."""

    facts: tuple[Affine, ...] = ()

    @cached_property
    def sums(self) -> tuple[Affine, ...]:
        """The facts, and the sums of two: what follows for a tile within a tile."""
        return (*self.facts, *(a + b for a, b in combinations(self.facts, 2)))

    def and_range(self, name: str, least: int, most: int) -> Known:
        known = Known({**self, name: (least, most)})
        known.facts = self.facts
        return known

    def and_facts(self, *facts: Affine) -> Known:
        known = Known(self)
        known.facts = (*self.facts, *(each for fact in facts for each in _consequences(fact)))
        return known


def _consequences(fact: Affine) -> Iterator[Affine]:
    """A fact, and what it says of each of several indices of which it takes the least."""
    yield fact
    for atom, count in fact.terms:
        if isinstance(atom, Extremum) and (count > 0) == (atom.which == "min"):
            rest = fact - Affine(0, ((atom, count),))
            for argument in atom.arguments:
                yield from _consequences(rest + argument * count)


def interval(index: Affine, ranges: Ranges) -> tuple[int, int]:
    """Bounds of an index; what is not known widens them."""
    low, high = _interval(index, ranges)
    for fact in ranges.sums if isinstance(ranges, Known) else ():
        for count in _counts(fact, index):
            low = max(low, _interval(index - fact * count, ranges)[0])
            high = min(high, _interval(index + fact * count, ranges)[1])
    return low, high


def _counts(fact: Affine, index: Affine) -> set[int]:
    """How many times a fact may be of use: once, and so often that a term of the index is gone."""
    terms = dict(index.terms)
    shares = ((terms.get(atom, 0), coefficient) for atom, coefficient in fact.terms)
    return {1, *(abs(n // m) for n, m in shares if n and n % m == 0)}


def _interval(index: Affine, ranges: Ranges) -> tuple[int, int]:
    """Bounds of an index by itself; terms that are not plain variables of known range widen it."""
    low = high = index.constant
    for atom, coefficient in index.terms:
        match atom:
            case Var(name) if name in ranges:
                ends = ranges[name]
            case Extremum(which, arguments):
                parts = [_interval(a, ranges) for a in arguments]
                pick = min if which == "min" else max
                ends = (pick(p[0] for p in parts), pick(p[1] for p in parts))
            case FloorDiv(argument, divisor):
                low_end, high_end = _interval(argument, ranges)
                ends = (-UNKNOWN, UNKNOWN)
                if low_end > -UNKNOWN and high_end < UNKNOWN:
                    ends = (low_end // divisor, high_end // divisor)
            case Mod(_, divisor):
                ends = (0, divisor - 1)
            case _:
                ends = (-UNKNOWN, UNKNOWN)
        products = (coefficient * ends[0], coefficient * ends[1])
        low, high = low + min(products), high + max(products)
    return low, high


def simplify_index(index: Affine, ranges: Ranges) -> Affine:
    """The index with minima, maxima and choices removed that the ranges decide."""
    total = const(index.constant)
    for atom, coefficient in index.terms:
        new = Affine(0, ((atom, 1),))
        match atom:
            case Extremum():
                new = _simplify_extremum(atom, ranges)
            case Choice(condition, then, otherwise):
                condition = simplify_condition(condition, ranges)
                parts = (simplify_index(part, ranges) for part in (then, otherwise))
                new = choice(condition, *parts)
        total = total + new * coefficient
    return total


def _simplify_extremum(atom: Extremum, ranges: Ranges) -> Affine:
    """The extremum of the arguments that no other one always wins over."""
    arguments = [simplify_index(a, ranges) for a in atom.arguments]
    sign = 1 if atom.which == "min" else -1
    kept: list[Affine] = []
    for k, one in enumerate(arguments):
        others = (*kept, *arguments[k + 1 :])
        if all(interval((one - other) * sign, ranges)[0] < 0 for other in others):
            kept.append(one)
    return extremum(atom.which, tuple(kept))


def simplify_condition(condition: Condition, ranges: Ranges) -> Condition:
    """The condition with the comparisons removed that the ranges decide."""
    match condition:
        case Compare(operator, left):
            low, high = interval(left, ranges)
            if (operator == "ge" and low >= 0) or low == high == 0:
                return Logic("and", ())
            if high < 0 or (operator == "eq" and low > 0):
                return Logic("or", ())
            return condition
        case Logic(operator, arguments):
            kept = [simplify_condition(a, ranges) for a in arguments]
            neutral = operator == "and"
            kept = [a for a in kept if decide(a) is not neutral]
            if any(decide(a) is (not neutral) for a in kept):
                return Logic("or" if neutral else "and", ())
            return kept[0] if len(kept) == 1 else Logic(operator, tuple(kept))
