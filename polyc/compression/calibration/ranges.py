"""What samples say about the range of a tensor: extremes, or a histogram that grows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from polyc.compression.calibration.scales import Scale

Method = Literal["min-max", "percentile", "mse", "entropy"]

BINS = 4096
"""Bins of a histogram, half of them on either side of zero."""

KEPT = 0.9999
"""The share of numbers that `percentile` keeps inside of the range."""

FRACTIONS = np.linspace(1.0, 0.1, 91)
"""Parts of the whole range that `mse` and `entropy` try."""

ROUNDS = 2
"""How often they look at either end again, given the other."""


@dataclass
class Extremes:
    """The least and the largest number seen."""

    low: float = np.inf
    high: float = -np.inf

    def add(self, low: float, high: float) -> None:
        self.low, self.high = min(self.low, low), max(self.high, high)

    def join(self, other: Extremes) -> None:
        self.add(other.low, other.high)


@dataclass
class Histogram:
    """Counts of numbers by bins of one width around zero; the width doubles when it has to.

    Widths are powers of two, so that bins of one histogram are unions of those of another, and
    joining two is exact.
    """

    extremes: Extremes = field(default_factory=Extremes)
    exponent: int | None = None
    counts: np.ndarray = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def add(self, values: np.ndarray) -> None:
        if not values.size:
            return
        low, high = float(values.min()), float(values.max())
        self.extremes.add(low, high)
        if not np.isfinite([low, high]).all():
            return
        largest = max(-low, high)
        if largest > 0:
            self._widen(int(np.frexp(largest)[1]))
        if self.exponent is None:
            self.counts[BINS // 2] += values.size
            return
        bins = np.floor(values * (1 / self.width)).astype(np.int64) + BINS // 2
        np.clip(bins, 0, BINS - 1, out=bins)
        self.counts += np.bincount(bins.ravel(), minlength=BINS)

    def join(self, other: Histogram) -> None:
        self.extremes.join(other.extremes)
        if other.exponent is not None:
            self._widen(other.exponent)
        self.counts += _merged(other.counts, self._steps(other))

    @property
    def width(self) -> float:
        """Of a bin: all of them reach from -2^exponent to 2^exponent."""
        return float(2.0 ** ((self.exponent or 0) + 1) / BINS)

    @property
    def centres(self) -> np.ndarray:
        return (np.arange(BINS) - BINS // 2 + 0.5) * self.width

    def _steps(self, other: Histogram) -> int:
        if self.exponent is None or other.exponent is None:
            return 0
        return self.exponent - other.exponent

    def _widen(self, exponent: int) -> None:
        if self.exponent is None:
            self.exponent = exponent
        elif exponent > self.exponent:
            self.counts = _merged(self.counts, exponent - self.exponent)
            self.exponent = exponent


def _merged(counts: np.ndarray, steps: int) -> np.ndarray:
    """Counts by bins that are 2^steps times as wide, around the same zero."""
    for _ in range(min(steps, BINS.bit_length())):
        pairs = counts.reshape(-1, 2).sum(axis=1)
        counts = np.zeros_like(counts)
        counts[BINS // 4 : 3 * BINS // 4] = pairs
    return counts


Fit = Callable[[float, float], Scale]
"""The scale that a range gives."""


def choose_range(seen: Histogram, method: Method, fit: Fit) -> tuple[float, float]:
    """The range that a method keeps of what was seen; numbers outside will be its ends."""
    low, high = min(seen.extremes.low, 0.0), max(seen.extremes.high, 0.0)
    if method == "min-max" or low == high:
        return low, high
    if method == "percentile":
        return _percentile(seen, low, high)
    cost = _squares if method == "mse" else _divergence
    # Ends of their own: an outlier at one of them says nothing of the other.
    lowest, highest = low, high
    for _ in range(ROUNDS):
        high = min(highest * FRACTIONS, key=lambda end: cost(seen, fit(low, end)))
        low = min(lowest * FRACTIONS, key=lambda end: cost(seen, fit(end, high)))
    return float(low), float(high)


def _percentile(seen: Histogram, low: float, high: float) -> tuple[float, float]:
    """The range without the rarest numbers, half of them at either end."""
    total, edges = seen.counts.sum(), (np.arange(BINS + 1) - BINS // 2) * seen.width
    below = np.cumsum(seen.counts)
    outside = total * (1 - KEPT) / 2
    first = int(np.searchsorted(below, outside, side="right"))
    last = int(np.searchsorted(below, total - outside, side="left"))
    return max(low, min(float(edges[first]), 0.0)), min(high, max(float(edges[last + 1]), 0.0))


def _squares(seen: Histogram, scale: Scale) -> float:
    """The mean of squares of what quantising changes."""
    changed = seen.centres - scale.round_trip(seen.centres)
    within = scale.scale**2 / 12  # of numbers that are somewhere in a bin, not at its centre
    error = np.maximum(changed**2, np.where(np.abs(changed) < scale.scale, within, 0))
    return float((seen.counts * error).sum() / seen.counts.sum())


def _divergence(seen: Histogram, scale: Scale) -> float:
    """How far the distribution of bytes is from that of numbers (Kullback and Leibler's measure).

    Numbers outside of the range count at its ends; each byte's share is spread evenly over the bins
    that it stands for and that hold anything. Zeros, which are most of what a Relu gives and always
    exact, count for nothing.
    """
    low, high = scale.limits
    zero = int(scale.zero)
    bytes_ = np.clip(np.rint(seen.centres / scale.scale) + zero, low, high).astype(np.int64) - low
    inside = np.abs(seen.centres - scale.round_trip(seen.centres)) <= scale.scale
    counts = seen.counts.astype(np.float64)
    counts[BINS // 2] = 0
    kept = np.where(inside, counts, 0)
    # The reference has what lies outside in the outermost bins; what bytes are made of has it not.
    reference = kept.copy()
    places = np.flatnonzero(inside)
    if not places.size or not kept.any():
        return np.inf
    reference[places[0]] += counts[: places[0]].sum()
    reference[places[-1]] += counts[places[-1] + 1 :].sum()
    shares = np.bincount(bytes_, weights=kept, minlength=high - low + 1)
    bins = np.bincount(bytes_, weights=(reference > 0) & inside, minlength=high - low + 1)
    spread = np.where(reference > 0, shares[bytes_] / np.maximum(bins[bytes_], 1), 0.0)
    p, q = reference / reference.sum(), spread / spread.sum()
    some = p > 0
    return float((p[some] * np.log(p[some] / np.maximum(q[some], 1e-12))).sum())
