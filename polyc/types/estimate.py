"""What sizes are taken for where that is a matter of speed, and never of meaning."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from polyc.types.parameters import expand
from polyc.types.ranges import STEP, SizeRange, assumed_ranges, concluded
from polyc.types.sizes import Extent, Size, assumed_range, evaluate, names_in

MOST_DOUBLINGS = 8
"""How often a typical size is doubled to reach what is needed of it."""

FAR_ABOVE = 8
"""How many times the least possible a size is taken for that cannot be what is typical."""

TYPICAL = 128
"""What kernels are chosen for where nobody says: tokens, rows."""

LENGTH = 512
"""What an extent that a call decides is taken for in a long call, at least.

A transformer is called with 128 tokens, and with 4096. Who looks at the first alone takes all rows
of the scores as one tile, which no cache holds in the second. Tiles and orders for 512 are no
slower at 128; at 1024 they gain where rows are not a power of two apart (`mapping/cpu/layout.py`),
and what a tile hands on can stay near (`promote/near.py`): a half of the time together (Zen 3).
"""

SIGNAL = 16000
"""The same for what windows go over that lie far apart: a second of speech."""

IMAGE = 224
"""The same for height and width."""

BATCH = 1
"""The same for what is computed independently of one another: the first dimension of several."""


def estimate(extent: Extent) -> int:
    """The extent for the sizes that kernels are chosen for: a matter of speed, never of meaning."""
    if not isinstance(extent, Size):
        return extent
    value = extent.at({name: _typical(name) for name in extent.names})
    assert not isinstance(value, Size)
    return value


def long_extent(extent: Extent) -> int:
    """The extent in a long call: tiles and orders of loops have to suit it as well."""
    return max(estimate(extent), LENGTH) if isinstance(extent, Size) else extent


def hinted(extent: Extent) -> int:
    """The extent at the hints themselves, where `estimate` has at least two of a loop."""
    if not isinstance(extent, Size):
        return extent
    value = extent.at({name: _hinted(name) for name in extent.names})
    assert not isinstance(value, Size)
    return value


def _hinted(name: str) -> int:
    size = assumed_range(name)
    if size.hint is not None:
        return _as_needed(name, size.hint, frozenset())
    return _typical(name) if size.same is None else max(hinted(size.same), size.lower)


def typical_sizes(inputs: Iterable[tuple[Sequence[Extent], np.dtype]]) -> dict[str, int]:
    """What the sizes in the shapes of a model's inputs are taken for, by name: from their places.

        x[batch, 3, height, width]     batch 1, height and width 224
        ids[batch, length]             batch 1, length 128
        ids[batch, 77]                 batch 1: integers in rows are tokens of a text
        x[rows, 64]                    rows 128

    inputs: shapes and types. Where several places of a name say something, it is the least.
    """
    found: dict[str, int] = {}
    for shape, dtype in inputs:
        is_open = [isinstance(extent, Size) for extent in shape]
        for place, extent in enumerate(shape):
            beside = [p for p in (place - 1, place + 1) if 0 < p < len(shape) and is_open[p]]
            if place == 0:
                is_text = dtype.kind in "iu" and len(shape) == 2
                is_batch = is_text or len(shape) > 2 or any(is_open[1:])
                typical = BATCH if is_batch else TYPICAL
            else:
                typical = IMAGE if len(shape) > 2 and beside else TYPICAL
            for name in names_in([extent]):
                found[name] = min(typical, found.get(name, typical))
    return found


def with_hints(
    ranges: Sequence[SizeRange],
    typical: Mapping[str, int],
    needs: Sequence[Size],
    extents: Collection[Size] = (),
) -> list[SizeRange]:
    """The ranges, each with a hint: what it has, or what is typical and in the range.

    If some branch needs more, it is larger: kernels that no call of the hinted sizes executes would
    be chosen for nothing. So it is for a signal, as some of the `extents` tell.

        floor(length/64) - 5 is needed     ->   length: 512, not 128
        floor(length/256) + 1 windows      ->   length: 16000
    """
    hints = {size.name: _inside(size, typical.get(size.name, TYPICAL)) for size in ranges}
    for size in (size for size in ranges if size.hint is None):
        if hints[size.name] == TYPICAL and _is_signal(size.name, hints, extents):
            hints[size.name] = _inside(size, SIGNAL)
        own = [n for n in needs if size.name in n.names and n.names <= hints.keys()]
        larger = (_inside(size, hints[size.name] << k) for k in range(MOST_DOUBLINGS))
        for value in larger:
            if all(evaluate(need, hints | {size.name: value}) >= 0 for need in own):
                hints[size.name] = value
                break
    return [replace(size, hint=hints[size.name]) for size in ranges]


def _is_signal(name: str, hints: Mapping[str, int], extents: Collection[Size]) -> bool:
    """Whether there would be a single one of windows that a signal has many of."""
    long = {**hints, name: SIGNAL}
    of_it = [e for e in extents if name in e.names and e.names <= hints.keys()]
    return any(evaluate(e, hints) <= 1 and evaluate(e, long) >= FAR_ABOVE for e in of_it)


def _inside(size: SizeRange, typical: int) -> int:
    """The hint of a size, or what is typical as far as it may be that.

    Where the least possible is more than that, as of a signal that a window of 512 goes over,
    several times as much: with the least itself all loops over windows would run once.
    """
    if size.hint is not None:
        return size.hint
    likely = typical if typical >= size.lower else size.lower * FAR_ABOVE
    return max(size.lower, min(likely, size.upper or likely))


@concluded
def _typical(name: str, others: frozenset[str] = frozenset()) -> int:
    """The hint; a loop that may run more often than once is not planned to run once.

    A state is planned to have room for a call: what it grows by is at most half of its capacity.
    others: sizes whose values are being found by this one's.
    """
    size = assumed_range(name)
    if size.name.startswith(STEP):
        return 0  # which every loop has
    if size.same is not None:  # of a loop over all rows of a batch of 1 there are more than one
        at_hint = hinted(size.same)
        return max(at_hint if at_hint > 1 else estimate(size.same), size.lower)
    told = TYPICAL if size.hint is None else size.hint
    least, most = max(size.lower, 2), size.upper or max(TYPICAL, told)
    for state in assumed_ranges():
        if state.upper and isinstance(state.next, Size) and size.name in state.next.names:
            left = state.upper // 2
            if size.name == state.name:
                left = state.upper - estimate(state.next - Size.of(size.name))
            least, most = min(least, max(left, size.lower)), min(most, max(left, size.lower))
    value = max(least, min(told, most))
    return _as_needed(size.name, value, others)


def _as_needed(name: str, value: int, others: frozenset[str]) -> int:
    """The value of a size, moved to where what is needed of it holds for those of other sizes.

    total is past + seq         ->   total: 256, where past and seq are 128
    h is 3*floor(h/3)           ->   h: 126
    """
    for sign, bound in _needed_of(name):
        if isinstance(bound, Size) and not others.isdisjoint(bound.names - {name}):
            continue  # that size follows from this one
        known = {
            n: value if n == name else _typical(n, others | {name})
            for n in (bound.names if isinstance(bound, Size) else ())
        }
        limit = bound.at(known) if isinstance(bound, Size) else bound
        assert isinstance(limit, int)
        value = max(value, limit) if sign > 0 else min(value, limit)
    return value


def _needed_of(name: str) -> Iterator[tuple[int, Extent]]:
    """Sums of sizes that a size is needed to reach (1), or not to exceed (-1)."""
    for size in assumed_ranges():
        for need in map(expand, size.needs):
            sign = dict(need.terms).get((name,), 0) if isinstance(need, Size) else 0
            if abs(sign) != 1:
                continue
            bound = (need - Size.of(name) * sign) * -sign
            terms = bound.terms if isinstance(bound, Size) else ()
            if all(count > 0 for product, count in terms if product):
                yield sign, bound
