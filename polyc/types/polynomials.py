"""Polynomials in names, as terms: what Size computes with.

3*n*n + 2*m - 1   ->   {("n", "n"): 3, ("m",): 2, (): -1}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

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
