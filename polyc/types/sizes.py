"""Sizes that are known only when a model runs: what they may be, and what a call says they are.

A dimension of an input is a number or the name of such a size: x: float32[batch, 3, height, width].
What follows from it is a polynomial: the rows of x, flattened, are 3 batch height.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias

from polyc.errors import NotFixed
from polyc.names import fresh, identifier, show

ADDRESS_LIMIT = 1 << 47
"""Bytes of user address space on x86-64 and AArch64; nothing larger can be addressed."""

Term = tuple[tuple[str, ...], int]
"""A product of names, sorted, and its coefficient: (("n", "n"), 3) is 3 n^2."""


@dataclass(frozen=True, eq=False)
class Size:
    """A polynomial in names of sizes, each of them at least 1; never a plain number.

        Size.of("n") * 2 + 1

    Arithmetic gives an `Extent`: an int where no name is left. A comparison is decided if it holds,
    or fails, for all values that the names may have; else it raises `NotFixed`, as does whatever
    wants a number. A size of one name equals this name.
    """

    terms: tuple[Term, ...]

    @staticmethod
    def of(name: str) -> Size:
        return Size((((name,), 1),))

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for product, _ in self.terms for name in product)

    @property
    def is_affine(self) -> bool:
        """Whether no two names are multiplied: what an integer set can say."""
        return all(len(product) <= 1 for product, _ in self.terms)

    def at(self, values: Mapping[str, Extent]) -> Extent:
        """The size with what is known in place of names."""
        total: Extent = 0
        for product, coefficient in self.terms:
            factors = [values.get(name, Size.of(name)) for name in product]
            total = total + math.prod(factors, start=coefficient)
        return total

    def __add__(self, other: Extent) -> Extent:
        total = dict(self.terms)
        for product, coefficient in _terms(other):
            total[product] = total.get(product, 0) + coefficient
        return _size(total)

    def __mul__(self, other: Extent) -> Extent:
        total: dict[tuple[str, ...], int] = {}
        for one, a in self.terms:
            for two, b in _terms(other):
                product = tuple(sorted(one + two))
                total[product] = total.get(product, 0) + a * b
        return _size(total)

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
        if quotient is None:
            raise self._unknown(f"its quotient by {divisor}")
        return quotient

    def __rfloordiv__(self, dividend: Extent) -> Extent:
        raise self._unknown(f"{dividend} divided by it")

    def __mod__(self, divisor: Extent) -> int:
        if divide(self, divisor) is None:
            raise self._unknown(f"its remainder by {divisor}")
        return 0

    def __rmod__(self, dividend: Extent) -> int:
        raise self._unknown(f"the remainder of {dividend} by it")

    def __truediv__(self, divisor: object) -> float:
        raise self._unknown(f"its quotient by {divisor}")

    def __rtruediv__(self, dividend: object) -> float:
        raise self._unknown(f"{dividend} divided by it")

    def __pow__(self, exponent: object) -> Extent:
        raise self._unknown(f"its power {exponent}")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Size):
            return self.terms == other.terms
        return isinstance(other, str) and self.terms == Size.of(other).terms

    def __hash__(self) -> int:
        return hash(str(self))

    def __lt__(self, other: Extent) -> bool:
        return self._decide(lambda least, most: _yes_or_no(most < 0, least >= 0), other)

    def __le__(self, other: Extent) -> bool:
        return self._decide(lambda least, most: _yes_or_no(most <= 0, least > 0), other)

    def __gt__(self, other: Extent) -> bool:
        return not self <= other

    def __ge__(self, other: Extent) -> bool:
        return not self < other

    def __bool__(self) -> bool:
        return self > 0 or self < 0

    def __index__(self) -> int:
        raise self._unknown("its value")

    __int__ = __index__

    def __float__(self) -> float:
        raise self._unknown("its value")

    def __str__(self) -> str:
        shown = ""
        for product, coefficient in self.terms:
            factors = [*([str(abs(coefficient))] if abs(coefficient) != 1 or not product else [])]
            sign = " - " if coefficient < 0 else " + "
            shown += (sign if shown else sign.strip(" +")) + "*".join([*factors, *product])
        return shown

    __repr__ = __str__

    def _decide(self, answer: Callable[[float, float], bool | None], other: Extent) -> bool:
        """The answer from the bounds of self - other; NotFixed if that is no answer."""
        decided = answer(*bounds(self - other))
        if decided is None:
            raise self._unknown(f"how it compares with {other}")
        return decided

    def _unknown(self, what: str) -> NotFixed:
        return NotFixed(
            f"the size {self} is known only at run time, but {what} must be known",
            "give the model's inputs fixed sizes",
        )


Extent: TypeAlias = "int | Size"
"""How many there are of something."""


def evaluate(extent: Extent, sizes: Mapping[str, int]) -> int:
    """The value of an extent, all of whose names are given."""
    return int(extent.at(sizes)) if isinstance(extent, Size) else extent


def names_in(shape: Iterable[Extent]) -> set[str]:
    """The names of all sizes in a shape."""
    return {name for extent in shape if isinstance(extent, Size) for name in extent.names}


def spell_shape(shape: Iterable[Extent]) -> tuple[int | str, ...]:
    """A shape as users see it: what is no number by its name."""
    return tuple(d if isinstance(d, int) else str(d) for d in shape)


def divide(dividend: Extent, divisor: Extent) -> Extent | None:
    """The quotient, if there is one without a remainder: 32 past + 32 seq by past + seq is 32."""
    if not _terms(divisor):
        return None
    leading, coefficient = max(_terms(divisor), key=_rank)
    quotient: Extent = 0
    # Long division: whatever is left, its leading term must be a multiple of the divisor's.
    rest = dividend
    while terms := _terms(rest):
        product, factor = max(terms, key=_rank)
        names = list(product)
        for name in leading:
            if name not in names:
                return None
            names.remove(name)
        if factor % coefficient:
            return None
        term = _size({tuple(names): factor // coefficient})
        quotient, rest = quotient + term, rest - term * divisor
    return quotient


def _rank(term: Term) -> tuple[int, tuple[str, ...]]:
    """An order of terms that multiplication keeps: by degree, then by names."""
    return len(term[0]), term[0]


def bounds(extent: Extent) -> tuple[float, float]:
    """Bounds of the value: the sum of those of its terms, within the ranges that are assumed."""
    least = most = 0.0
    for product, coefficient in _terms(extent):
        ranges = [assumed_range(name) for name in product]
        low = coefficient * math.prod(r.lower for r in ranges)
        high = coefficient * math.prod(math.inf if r.upper is None else r.upper for r in ranges)
        least, most = least + min(low, high), most + max(low, high)
    return least, most


def _yes_or_no(yes: bool, no: bool) -> bool | None:
    return True if yes else False if no else None


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


@dataclass(frozen=True)
class SizeRange:
    """The values that a size may have, and the one that kernels are chosen for.

    lower, upper: the first and the last value; upper None: as large as memory allows. hint: by
    default some value of the range that is typical. next: what it is in the next call, where a
    state grows by it; in the range as well. same: what it is in terms of other sizes, if that is
    known; it is one of theirs then, and has no range of its own.
    """

    name: str
    lower: int = 1
    upper: int | None = None
    hint: int | None = None
    next: Extent | None = None
    same: Extent | None = None

    def admits(self, value: int) -> bool:
        return self.lower <= value and (self.upper is None or value <= self.upper)

    def __str__(self) -> str:
        return f"{show(self.name)} {self.lower} to {self.upper or 'any'}"


@dataclass(frozen=True)
class Step(SizeRange):
    """The number of a step of a loop around kernels: 0 to `steps` - 1, known like a size."""

    steps: Extent = 1

    @staticmethod
    def of(name: str, steps: Extent) -> Step:
        upper = None if isinstance(steps, Size) else steps - 1
        return Step(name, 0, upper, hint=0, steps=steps)


TYPICAL = 128
"""What kernels are chosen for where nobody says: tokens, rows, images."""

_ASSUMED: ContextVar[Mapping[str, SizeRange] | None] = ContextVar("_ASSUMED", default=None)


@contextmanager
def assume(ranges: Iterable[SizeRange]) -> Iterator[None]:
    """Inside, comparisons and estimates of sizes go by these ranges and hints."""
    token = _ASSUMED.set({**(_ASSUMED.get() or {}), **{r.name: r for r in ranges}})
    try:
        yield
    finally:
        _ASSUMED.reset(token)


@contextmanager
def forget_steps() -> Iterator[None]:
    """Inside, nothing is assumed of the numbers of steps."""
    known = _ASSUMED.get() or {}
    token = _ASSUMED.set({n: r for n, r in known.items() if not isinstance(r, Step)})
    try:
        yield
    finally:
        _ASSUMED.reset(token)


def assumed_range(name: str) -> SizeRange:
    """What a size may be; at least 1 where nothing was said, and a step's number at least 0."""
    least = 0 if name.startswith(STEP) else 1
    return (_ASSUMED.get() or {}).get(name) or SizeRange(name, least)


def assumed_ranges() -> tuple[SizeRange, ...]:
    """All that is assumed, by name."""
    known = _ASSUMED.get() or {}
    return tuple(known[name] for name in sorted(known))


def estimate(extent: Extent) -> int:
    """The extent for the sizes that kernels are chosen for: a matter of speed, never of meaning."""
    if not isinstance(extent, Size):
        return extent
    value = extent.at({name: _typical(assumed_range(name)) for name in extent.names})
    assert not isinstance(value, Size)
    return value


def _typical(size: SizeRange) -> int:
    """The hint; a loop that may run more often than once is not planned to run once.

    A state is planned to have room for a call: what it grows by is at most half of its capacity.
    """
    if size.name.startswith(STEP):
        return 0  # which every loop has
    least, most = max(size.lower, 2), size.upper or TYPICAL
    for state in assumed_ranges():
        if state.upper and isinstance(state.next, Size) and size.name in state.next.names:
            left = state.upper // 2
            if size.name == state.name:
                left = state.upper - estimate(state.next - Size.of(size.name))
            least, most = min(least, max(left, size.lower)), min(most, max(left, size.lower))
    return max(least, min(TYPICAL if size.hint is None else size.hint, most))


PREFIX = "size_"
STEP = "step_"
"""What the names of sizes, and of steps, begin with in integer sets and in C; nothing else does."""


def identify(names: Iterable[str]) -> dict[str, str]:
    """An identifier for each name of a size: "batch size" -> "size_batch_size"."""
    taken = {"size_t"}  # a type of C's
    found: dict[str, str] = {}
    for name in names:
        found[name] = fresh(PREFIX + (identifier(name) or "d"), taken)
        taken.add(found[name])
    return found


@dataclass(frozen=True)
class Parameter(SizeRange):
    """A size by its identifier, `name`; `shown` is what the model calls it."""

    shown: str = ""

    @staticmethod
    def of(size: SizeRange, identifiers: Mapping[str, str]) -> Parameter:
        """The size under its identifier, as are those in what it will be."""
        names = {old: Size.of(new) for old, new in identifiers.items()}
        after = size.next.at(names) if isinstance(size.next, Size) else size.next
        name = identifiers[size.name]
        return Parameter(name, size.lower, size.upper, size.hint, after, shown=size.name)
