"""Polynomials in names, as terms: what Size computes with.

3*n*n + 2*m - 1   ->   {("n", "n"): 3, ("m",): 2, (): -1}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from polyc.types.derived import Derived

Product: TypeAlias = tuple[str, ...]
"""Names that are multiplied, sorted."""

Term: TypeAlias = tuple[Product, int]
"""A product of names and its coefficient: (("n", "n"), 3) is 3 n^2."""


def add(one: Iterable[Term], other: Iterable[Term]) -> dict[Product, int]:
    total = dict(one)
    for product, coefficient in other:
        total[product] = total.get(product, 0) + coefficient
    return total


def multiply(one: Iterable[Term], other: Iterable[Term]) -> dict[Product, int]:
    total: dict[Product, int] = {}
    others = tuple(other)
    for first, a in one:
        for second, b in others:
            product = tuple(sorted(first + second))
            total[product] = total.get(product, 0) + a * b
    return total


def divide_terms(
    dividend: Mapping[Product, int], divisor: Mapping[Product, int]
) -> dict[Product, int] | None:
    """The quotient, if there is one without a remainder; of terms that are not 0."""
    if not divisor:
        return None
    leading = max(divisor, key=_rank)
    quotient: dict[Product, int] = {}
    # Long division: whatever is left, its leading term must be a multiple of the divisor's.
    rest = dict(dividend)
    while rest:
        product = max(rest, key=_rank)
        names = list(product)
        for name in leading:
            if name not in names:
                return None
            names.remove(name)
        if rest[product] % divisor[leading]:
            return None
        term = tuple(names), rest[product] // divisor[leading]
        quotient = add(quotient.items(), [term])
        left = add(rest.items(), multiply(divisor.items(), [(term[0], -term[1])]).items())
        rest = {p: c for p, c in left.items() if c}
    return quotient


def _rank(product: Product) -> tuple[int, Product]:
    """An order of products that multiplication keeps: by degree, then by names."""
    return len(product), product


def _raised(least: Mapping[str, float], facts: Iterable[Iterable[Term]]) -> dict[str, float]:
    """The least values of names, where facts about single names, which are not negative, say more.

    a >= 0, where 2*a - 1 >= 0   ->   a >= 1
    """
    found = dict(least)
    for fact in facts:
        terms = dict(fact)
        constant = terms.pop((), 0)
        for (name, *others), count in terms.items() if len(terms) == 1 else ():
            if name in found and not others and count > 0:
                found[name] = max(found[name], -(constant // count))
    return found


def least_value(
    terms: Iterable[Term], lows: Mapping[str, float], facts: Iterable[Iterable[Term]]
) -> float:
    """The value where each name has its least, if it has one and the sum grows with all; else -inf.

    4*a*b - 2*a - 2*b + 1, where a >= 1 and b >= 1, is 4*a'*b' + 2*a' + 2*b' + 1
    """
    least = _raised(lows, facts)
    total: dict[Product, int] = {}
    for product, coefficient in terms:
        moved: dict[Product, int] = {(): coefficient}
        for name in product:
            if math.isinf(least[name]):
                return -math.inf
            moved = multiply(moved.items(), [((name,), 1), ((), int(least[name]))])
        total = add(total.items(), moved.items())
    grows = all(count >= 0 for product, count in total.items() if product)
    return total.get((), 0) if grows else -math.inf


def least_sum(terms: Iterable[Term], ends_of: Callable[[str], tuple[float, float]]) -> float:
    """The sum of the least values of the terms, each by itself; `ends_of` gives those of a name.

    h >= 1 and m <= 0   ->   h*m <= 0, and h*m has no lower bound
    """
    total = 0.0
    for product, coefficient in terms:
        ends: tuple[float, float] = (coefficient, coefficient)
        for name in product:
            others = ends_of(name)
            # Nothing is as large as the bound that is infinite: 0 times that is 0.
            corners = [one * other if one and other else 0.0 for one in ends for other in others]
            ends = min(corners), max(corners)
        total += ends[0]
    return total


def counts_in(fact: Iterable[Term], terms: Mapping[Product, int]) -> Iterable[int]:
    """How often a fact may be in a sum: a product as often as there, a quotient for what is finer.

    floor(h/40), of 3*h or of 3*floor(h/20)   ->   120, 6
    -floor(h/40), of -3*h                     ->   120
    """
    for product, coefficient in fact:
        yield terms.get(product, 0) // coefficient
        for name in (n for n in product[:1] if isinstance(n, Derived) and n.operation == "floor"):
            for (other, *_), times in ((p, c) for p, c in terms.items() if p):
                floors = isinstance(other, Derived) and other.operation == "floor"
                finer = other.operands[1] if isinstance(other, Derived) and floors else 1
                yield times * int(name.operands[1]) // (int(finer) * coefficient)
