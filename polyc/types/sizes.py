"""Sizes that are known only when a model runs: what they may be, and what a call says they are.

A dimension of an input is a number or the name of such a size: x: float32[batch, 3, height, width].
What follows from it is a polynomial: the rows of x, flattened, are 3 batch height.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import starmap
from typing import TypeAlias

from polyc.types.derived import Derived, Operation, show_larger
from polyc.types.follows import deciding, depth
from polyc.types.groups import group_by_shared
from polyc.types.polynomials import (
    Term,
    add,
    counts_in,
    divide_terms,
    least_sum,
    least_value,
    multiply,
)
from polyc.types.ranges import LEAST, STEP, SizeRange, assumed_ranges, concluded, stated_range
from polyc.types.unknown import Unknown

MOST_ADDED = 6
"""Names in a sum that has no name of its own: detectors join three scales, of h and of w each."""


@dataclass(frozen=True, eq=False)
class Size(Unknown):
    """A polynomial in names of sizes, each of them at least 1; never a plain number.

    Arithmetic gives an `Extent`: an int where no name is left. A comparison is decided if it holds,
    or fails, for all values that the names may have; else it raises `NotFixed`, as does whatever
    wants a number. A size of one name equals this name.
    """

    terms: tuple[Term, ...]

    @staticmethod
    def of(name: str) -> Size:
        return Size((((name,), 1),))

    @property
    def factors(self) -> frozenset[str]:
        """The names that are multiplied and added, those of derived sizes among them."""
        return frozenset(name for product, _ in self.terms for name in product)

    @property
    def names(self) -> frozenset[str]:
        """The names whose values decide its value."""
        plain = frozenset(f for f in self.factors if not isinstance(f, Derived))
        return plain.union(*(names_in(f.operands) for f in self.factors if isinstance(f, Derived)))

    @property
    def is_affine(self) -> bool:
        """Whether no two names are multiplied: what an integer set can say."""
        return all(len(product) <= 1 for product, _ in self.terms)

    def at(self, values: Mapping[str, Extent]) -> Extent:
        """The size with what is known in place of names."""
        total: Extent = 0
        for product, coefficient in self.terms:
            factors = [_at(name, values) for name in product]
            total = total + math.prod(factors, start=coefficient)
        return total

    def __add__(self, other: Extent) -> Extent:
        return _size(add(self.terms, _terms(other)))

    def __mul__(self, other: Extent) -> Extent:
        return _size(multiply(self.terms, _terms(other)))

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Extent:
        return self * -1

    def __sub__(self, other: Extent) -> Extent:
        return self + other * -1

    def __rsub__(self, other: Extent) -> Extent:
        return -self + other

    def __floordiv__(self, divisor: Extent) -> Extent:
        quotient = divide(self, divisor)
        if quotient is not None:
            return quotient
        if isinstance(divisor, Size) or divisor <= 0:
            raise self._unknown(f"its quotient by {divisor}")
        return _floor(self, divisor)

    def __mod__(self, divisor: Extent) -> int:
        if divide(self, divisor) is None:
            raise self._unknown(f"its remainder by {divisor}")
        return 0

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Size):
            return self.terms == other.terms
        return isinstance(other, str) and self.terms == Size.of(other).terms

    def __hash__(self) -> int:
        return hash(str(self))

    def __lt__(self, other: Extent) -> bool:
        return self._isbelow(other, 0)

    def __le__(self, other: Extent) -> bool:
        return self._isbelow(other, 1)

    def __gt__(self, other: Extent) -> bool:
        return not self <= other

    def __ge__(self, other: Extent) -> bool:
        return not self < other

    def __bool__(self) -> bool:
        return self > 0 or self < 0

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        shown = ""
        for product, coefficient in starmap(show_larger, self.terms):
            factors = [*([str(abs(coefficient))] if abs(coefficient) != 1 or not product else [])]
            sign = " - " if coefficient < 0 else " + "
            shown += (sign if shown else sign.strip(" +")) + "*".join([*factors, *product])
        return shown

    __repr__ = __str__

    def _isbelow(self, other: Extent, limit: int) -> bool:
        """Whether self - other < limit; NotFixed, with both cases, if its bounds do not say so."""
        difference = self - other
        low, high = bounds(difference)
        if high >= limit > low:
            cases = (difference - limit,), (limit - 1 - difference,)
            raise self._unknown(f"how it compares with {other}", cases)
        return high < limit


Extent: TypeAlias = "int | Size"
"""How many there are of something."""


def least(a: Extent, b: Extent) -> Extent:
    """The smaller of two; a derived size, if that differs from call to call."""
    low, high = bounds(a - b)
    if high <= 0:
        return a
    if low >= 0:
        return b
    return Size.of(Derived("min", *sorted((a, b), key=str)))


def greatest(a: Extent, b: Extent) -> Extent:
    """The larger of two."""
    return -least(-a, -b)


def add_up(extents: Iterable[Extent]) -> Extent:
    """The sum, by names for sums of the first of many.

    a + b + c + d + e + f, g, h   ->   sum(a + b + c + d + e + f, g) + h

    The rows of 90 tensors, one below the other, would be 90 sizes in whatever is said of the last.
    """
    total: Extent = 0
    for extent in extents:
        longer = total + extent
        many = isinstance(longer, Size) and len(longer.factors) > MOST_ADDED
        total = Size.of(Derived("sum", total, extent)) if many else longer
    return total


def _floor(dividend: Size, divisor: int) -> Extent:
    """The quotient rounded down, in a form that is the same for equal quotients where it can be.

    (2 h + 5)//2       ->  h + 2
    (-h)//2            ->  -floor((h + 1)/2)
    (h//2 + 1)//2      ->  floor((h + 2)/4)
    """
    whole: dict[tuple[str, ...], int] = {}
    rest: dict[tuple[str, ...], int] = {}
    for product, coefficient in dividend.terms:
        count = abs(coefficient) // divisor * (-1 if coefficient < 0 else 1)
        if not product:
            count = coefficient // divisor
        whole[product], rest[product] = count, coefficient - count * divisor
    outside, inside = _size(whole), _size(rest)
    if not isinstance(inside, Size):
        return outside
    if inside.terms[0][1] < 0:  # rounded up, of what is positive
        return outside - (-inside + (divisor - 1)) // divisor
    common = math.gcd(divisor, *(c for product, c in inside.terms if product))
    if common > 1:
        parts = {product: c // common for product, c in inside.terms}
        return outside + _size(parts) // (divisor // common)
    for name in (p[0] for p, c in inside.terms if len(p) == 1 and c == 1):
        if isinstance(name, Derived) and name.operation == "floor":
            first, by = name.operands
            others = inside - Size.of(name)
            return outside + (first + others * by) // (by * divisor)
    return outside + Size.of(Derived("floor", inside, divisor))


def _at(name: str, values: Mapping[str, Extent]) -> Extent:
    """A name's value, or what is known of it."""
    if name in values or not isinstance(name, Derived):
        return values.get(name, Size.of(name))
    first, second = (e.at(values) if isinstance(e, Size) else e for e in name.operands)
    return operate(name.operation, first, second)


def operate(operation: Operation, first: Extent, second: Extent) -> Extent:
    """What an operation gives for two extents."""
    if operation == "sum":
        return add_up((first, second))
    return first // second if operation == "floor" else least(first, second)


def evaluate(extent: Extent, sizes: Mapping[str, int]) -> int:
    """The value of an extent, all of whose names are given."""
    return int(extent.at(sizes)) if isinstance(extent, Size) else extent


def names_in(shape: Iterable[Extent]) -> frozenset[str]:
    """The names of all sizes in a shape."""
    return frozenset(n for extent in shape if isinstance(extent, Size) for n in extent.names)


def spell_shape(shape: Iterable[Extent]) -> tuple[int | str, ...]:
    """A shape as users see it: what is no number by its name."""
    return tuple(d if isinstance(d, int) else str(d) for d in shape)


def divide(dividend: Extent, divisor: Extent) -> Extent | None:
    """The quotient, if there is one without a remainder: 32 past + 32 seq by past + seq is 32."""
    quotient = divide_terms(dict(_terms(dividend)), dict(_terms(divisor)))
    return None if quotient is None else _size(quotient)


@concluded
def bounds(extent: Extent) -> tuple[float, float]:
    """Bounds of the value, within the ranges that are assumed, and what else is.

    h - 2*floor(h/2)                   ->   0, 1
    4*floor((h + 6)/8), where h >= 2   ->   4, inf (a multiple of 4, and at least (h - 1)/2)
    """
    if not isinstance(extent, Size):
        return extent, extent
    facts = [fact for size in assumed_ranges() for fact in size.needs]
    low, high = _lower_by(extent, facts), -_lower_by(-extent, facts)
    # A value is the constant and a multiple of what divides all coefficients.
    step = math.gcd(*(count for product, count in extent.terms if product))
    rest = dict(extent.terms).get((), 0)
    low = low if math.isinf(low) else rest + math.ceil((low - rest) / step) * step
    return low, high if math.isinf(high) else rest + math.floor((high - rest) / step) * step


def _lower_by(extent: Extent, facts: Iterable[Size]) -> float:
    """A lower bound: that of what is left when facts that cancel a term are taken away.

    2*h - 3, where h - 2 >= 0          ->   1 + 2*(h - 2), which is at least 1
    h - 3, where floor(h/4) - 1 >= 0   ->   h + 1 - 4*floor(h/4) + 4*(floor(h/4) - 1), at least 1
    """
    facts = tuple(facts)
    found, terms = max(lower_bound(extent), _lower_by_names(extent, facts)), dict(_terms(extent))
    for fact in facts:
        counts = {1, *(count for count in counts_in(fact.terms, terms) if count > 1)}
        found = max(found, *(lower_bound(extent - fact * count) for count in counts))
    return found


def _lower_by_names(extent: Extent, facts: Iterable[Size]) -> float:
    """A lower bound by the least value of each name, also of products; -inf where it is none."""
    if not isinstance(extent, Size):
        return extent
    lows = {name: _ends(name)[0] for name in extent.factors}
    return least_value(extent.terms, lows, (fact.terms for fact in facts))


@concluded
def lower_bound(extent: Extent) -> float:
    """A lower bound: that of the terms, or of what they are where sizes follow from others.

    c*floor(a/d) is at least c/d*(a - d + 1) if c is positive, and c/d*a if not.
    """
    found, scale = least_sum(_terms(extent), _ends), 1
    while isinstance(extent, Size):
        name, coefficient = _find_derived(extent)
        if not coefficient:
            break
        meaning = _meaning(name)
        assert isinstance(meaning, Size)
        operation = _operation(meaning)
        if operation is None:  # a product
            extent = extent.at({name: meaning})
        elif operation.operation == "sum":
            extent = extent + (sum(operation.operands) - Size.of(name)) * coefficient
        elif operation.operation == "min":
            parts = _part(extent)
            if len(parts) > 1:
                return max(found, sum(map(lower_bound, parts)) / scale)
            rest = extent - Size.of(name) * coefficient
            ends = [lower_bound(rest + end * coefficient) / scale for end in operation.operands]
            return max(found, *ends) if coefficient < 0 else max(found, min(ends))
        else:
            dividend, divisor = operation.operands
            assert isinstance(divisor, int)
            end = dividend - (divisor - 1) if coefficient > 0 else dividend
            extent = (extent - Size.of(name) * coefficient) * divisor + end * coefficient
            scale *= divisor
        found = max(found, least_sum(_terms(extent), _ends) / scale)
    return found


def _operation(meaning: Size) -> Derived | None:
    """The operation that a size is the result of; None of a product."""
    (name, *others), _ = meaning.terms[0]
    return name if isinstance(name, Derived) and not others else None


def _find_derived(extent: Size) -> tuple[str, int]:
    """A name that follows from others and its coefficient, which is 0 if there is none."""
    names = {p[0]: c for p, c in extent.terms if len(p) == 1 and _meaning(p[0]) is not None}
    # One that follows from another of them goes first.
    name = max(names, key=depth, default="")
    return name, names.get(name, 0)


def _meaning(name: str) -> Extent | None:
    """What a size is by others, if it follows from some; without a look at its bounds."""
    if (known := stated_range(name)) is not None:
        return known.same
    return Size.of(name) if isinstance(name, Derived) else None


def _part(extent: Size) -> list[Extent]:
    """Parts that vary by themselves: with two minima there are two cases of each, not four of both.

    min(a, 9) + 2*a + min(b, 9)   ->   min(a, 9) + 2*a, min(b, 9)
    """
    terms = ((t, frozenset().union(*map(deciding, t[0]))) for t in extent.terms)
    return [_size(dict(part)) for part, _ in group_by_shared(terms)]


def _terms(extent: Extent) -> tuple[Term, ...]:
    if isinstance(extent, Size):
        return extent.terms
    return (((), int(extent)),) if extent else ()


def _size(terms: Mapping[tuple[str, ...], int]) -> Extent:
    """The extent of these terms: a number, if it is one."""
    kept = tuple(sorted((p, c) for p, c in terms.items() if c))
    if all(not product for product, _ in kept):
        return kept[0][1] if kept else 0
    # Names first, and the constant last, as it is written.
    return Size(tuple(sorted(kept, key=lambda term: (-len(term[0]), term[0]))))


def _ends(name: str) -> tuple[float, float]:
    return assumed_range(name).ends(math.inf)


def assumed_range(name: str) -> SizeRange:
    """What a size may be; at least 1 where nothing was said, and a step's number at least 0."""
    known = stated_range(name)
    if known is None and isinstance(name, Derived):
        return _derived_range(name)
    return known or SizeRange(name, 0 if name.startswith(STEP) else 1)


@concluded
def _derived_range(name: Derived) -> SizeRange:
    """The range of a size that follows from others, by theirs."""
    # What else is needed may speak of this size itself.
    (low, high), (other_low, other_high) = (
        (lower_bound(e), -lower_bound(-e)) for e in name.operands
    )
    if name.operation == "floor":
        low, high = (b if math.isinf(b) else b // other_low for b in (low, high))
    elif name.operation == "sum":
        low, high = low + other_low, high + other_high
    else:
        low, high = min(low, other_low), min(high, other_high)
    first, last = (None if math.isinf(b) else int(b) for b in (low, high))
    return SizeRange(name, LEAST if first is None else first, last, same=Size.of(name))
