"""The values that sizes may have, and what is assumed of them while a model is compiled."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from polyc.names import show

if TYPE_CHECKING:
    from polyc.types.sizes import Extent, Size

PREFIX = "size_"
STEP = "step_"
"""What the names of sizes, and of steps, begin with in integer sets and in C; nothing else does."""

ADDRESS_LIMIT = 1 << 47
"""Bytes of user address space on x86-64 and AArch64; nothing larger can be addressed."""

ROWS_LIMIT = (1 << 63) // ADDRESS_LIMIT
"""So many rows, each as long as what can be addressed, are a number of 64 bits."""

LEAST = -ADDRESS_LIMIT
"""The first value of a size of which none is known: what is less counts no bytes of a process."""

N = TypeVar("N", int, float)


@dataclass(frozen=True)
class SizeRange:
    """The values that a size may have, and the one that kernels are chosen for.

    lower, upper: the first and the last value; lower LEAST: no bound is known, as of
    min(3 - 2*h, 0); upper None: as large as memory allows. hint: by
    default some value of the range that is typical. next: what it is in the next call, where a
    state grows by it; in the range as well. same: what it is in terms of other sizes, if it follows
    from them; a call does not say it then. needs: what is at least 0 in every call. most: the
    largest value of a size that kernels of the call find (`types/found.py`); None of all others.
    """

    name: str
    lower: int = 1
    upper: int | None = None
    hint: int | None = None
    next: Extent | None = None
    same: Extent | None = None
    needs: tuple[Size, ...] = ()
    most: Extent | None = None

    @property
    def is_told(self) -> bool:
        """Whether a call is told it when it begins."""
        return self.same is None and self.most is None

    def admits(self, value: int) -> bool:
        return self.lower <= value and (self.upper is None or value <= self.upper)

    def ends(self, unknown: N) -> tuple[int | N, int | N]:
        """The first and the last value, and plus or minus `unknown` where there is no bound."""
        lower = -unknown if self.lower <= LEAST else self.lower
        return lower, unknown if self.upper is None else self.upper

    def __str__(self) -> str:
        return f"{show(self.name)} {self.lower} to {self.upper or 'any'}"


@dataclass(frozen=True)
class Step(SizeRange):
    """The number of a step of a loop around kernels: 0 to `steps` - 1, known like a size."""

    steps: Extent = 1

    @staticmethod
    def of(name: str, steps: Extent) -> Step:
        upper = steps - 1 if isinstance(steps, int) else None
        return Step(name, 0, upper, hint=0, steps=steps)


@dataclass(frozen=True)
class Assumed:
    """What is assumed of sizes, by name, and what has been concluded from it so far.

    inside: what is assumed where these ranges are assumed as well; instead: where only they are.
    """

    ranges: Mapping[str, SizeRange] = field(default_factory=dict)
    concluded: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    inside: dict[tuple[SizeRange, ...], Assumed] = field(
        default_factory=dict, compare=False, repr=False
    )
    instead: dict[tuple[SizeRange, ...], Assumed] = field(
        default_factory=dict, compare=False, repr=False
    )

    @cached_property
    def in_order(self) -> tuple[SizeRange, ...]:
        return tuple(self.ranges[name] for name in sorted(self.ranges))


_NOTHING = Assumed()
_ASSUMED: ContextVar[Assumed] = ContextVar("_ASSUMED", default=_NOTHING)

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def assume(ranges: Iterable[SizeRange]) -> Iterator[None]:
    """Inside, comparisons and estimates of sizes go by these ranges and hints."""
    known, more = _ASSUMED.get(), tuple(ranges)
    # Many nodes are looked at under the same condition, and conclude the same from it.
    inside = known.inside.get(more) or Assumed({**known.ranges, **{r.name: r for r in more}})
    if known is not _NOTHING:
        known.inside[more] = inside
    with _assuming(inside):
        yield


@contextmanager
def assume_only(ranges: tuple[SizeRange, ...]) -> Iterator[None]:
    """Inside, nothing is assumed of sizes but these ranges."""
    known = _ASSUMED.get()
    if ranges not in known.instead:
        known.instead[ranges] = Assumed({size.name: size for size in ranges})
    with _assuming(known.instead[ranges]):
        yield


@contextmanager
def forget_steps() -> Iterator[None]:
    """Inside, nothing is assumed of the numbers of steps."""
    known = _ASSUMED.get().ranges
    with _assuming(Assumed({n: r for n, r in known.items() if not isinstance(r, Step)})):
        yield


@contextmanager
def _assuming(assumed: Assumed) -> Iterator[None]:
    known = _ASSUMED.get()
    token = _ASSUMED.set(known if known.ranges == assumed.ranges else assumed)
    try:
        yield
    finally:
        _ASSUMED.reset(token)


def assumed_ranges() -> tuple[SizeRange, ...]:
    """All that is assumed, by name."""
    return _ASSUMED.get().in_order


def stated_range(name: str) -> SizeRange | None:
    """What was said of a size, if anything was."""
    return _ASSUMED.get().ranges.get(name)


def concluded(function: Callable[P, T]) -> Callable[P, T]:
    """Decorates a function of positions and of what is assumed: it is asked once for both."""

    @wraps(function)
    def ask(*args: P.args, **kwargs: P.kwargs) -> T:
        assumed, key = _ASSUMED.get(), (function, *args)
        if not assumed.ranges:
            return function(*args, **kwargs)
        if key not in assumed.concluded:
            assumed.concluded[key] = function(*args, **kwargs)
        return assumed.concluded[key]

    return ask
