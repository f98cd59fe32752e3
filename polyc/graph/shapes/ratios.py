"""Sizes in floating-point arithmetic, as models compute them: exact, and taken for what is meant.

    Cast(Floor(Mul(Cast(h), 0.5)))   ->   floor(h/2)

A float tensor that consists of sizes has `Ratio`s for entries. Its node stays in the graph; the
ratios serve to find the integers that are made of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from polyc.errors import NotFixed
from polyc.types.sizes import Extent, Size, bounds, divide, greatest, least

LARGEST_DIVISOR = 64
"""Of a float that is taken for a simple fraction."""


@dataclass(frozen=True)
class Ratio:
    """A size divided by a positive number, or by a size."""

    above: Extent
    below: Extent = 1

    @property
    def is_known(self) -> bool:
        return not (isinstance(self.above, Size) or isinstance(self.below, Size))

    def __add__(self, other: Ratio) -> Ratio:
        return Ratio(self.above * other.below + other.above * self.below, self.below * other.below)

    def __neg__(self) -> Ratio:
        return Ratio(-self.above, self.below)

    def __sub__(self, other: Ratio) -> Ratio:
        return self + -other

    def __bool__(self) -> bool:
        return bool(self.above)

    def __mul__(self, other: Ratio) -> Ratio:
        return Ratio(self.above * other.above, self.below * other.below)

    def __truediv__(self, other: Ratio) -> Ratio:
        above, below = self.above * other.below, other.above * self.below
        if isinstance(below, int) and below:
            return Ratio(above, below) if below > 0 else Ratio(-above, -below)
        quotient, inverse = divide(above, below), divide(below, above)
        if quotient is not None:
            return Ratio(quotient)
        if isinstance(inverse, int) and inverse > 0:
            return Ratio(1, inverse)
        if bounds(below)[0] > 0:
            return Ratio(above, below)
        raise NotFixed(f"{above} divided by {below} is no fraction", "give the sizes in dims")

    def of(self, extent: Extent) -> Extent | None:
        """That many times an extent; None if it is not a whole number for all sizes.

        old * (new/old)   ->   new
        """
        return divide(extent * self.above, self.below)

    def floor(self) -> Extent:
        return self.above // self.below

    def ceil(self) -> Extent:
        return -(-self.above // self.below)

    def truncate(self) -> Extent:
        """What a conversion to an integer gives, and a division of integers.

        (n - 64)/32, where n may be less   ->   max(floor(n/32) - 2, min(floor((n + 31)/32) - 2, 0))
        """
        low, high = bounds(self.above)
        down, up = self.floor(), self.ceil()
        if low >= 0 or down == up:
            return down
        return up if high <= 0 else greatest(down, least(up, 0))


def by_numerators(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """What compares two numbers, for ratios as well: these are taken over one denominator.

    h/2 <= w/3   ->   3 h <= 2 w
    """

    def compare(a: Any, b: Any) -> Any:
        if isinstance(a, Ratio) and isinstance(b, Ratio):
            return function(a.above * b.below, b.above * a.below)
        return function(a, b)

    return compare


def choose_by_numerators(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """What gives one of two numbers, for ratios as well.

    min(h/2, w/3)   ->   min(3 h, 2 w)/6
    """
    choose = by_numerators(function)

    def apply(a: Any, b: Any) -> Any:
        return Ratio(choose(a, b), a.below * b.below) if isinstance(a, Ratio) else choose(a, b)

    return apply


def as_ratio(value: Any) -> Ratio:
    """A number or a size; NotFixed for a float that is the nearest to no simple fraction."""
    if isinstance(value, Ratio):
        return value
    if isinstance(value, int | Size):
        return Ratio(value)
    simple = Fraction(value).limit_denominator(LARGEST_DIVISOR) if np.isfinite(value) else None
    if simple is None or np.float32(float(simple)) != np.float32(value):
        raise NotFixed(f"{value} is no simple fraction", "give the sizes in dims")
    return Ratio(simple.numerator, simple.denominator)
