"""Fourier transforms as products with matrices of cosines and sines: DFT and STFT.

    re'[k]  =  sum over n of re[n] cos(2πnk/N) + im[n] sin(2πnk/N)

A length with factors is taken apart, N = a b, by Cooley and Tukey (1965): transforms of length a,
a turn by constants, transforms of length b. That is N (a + b) multiplications in place of N².
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyc.budget import require_table
from polyc.graph.compose import Composer
from polyc.graph.ir import INTERNAL, Body, Node, Tensor
from polyc.graph.shapes.checks import constant_int, given, require, require_at_least, require_rank
from polyc.graph.shapes.dims import fixed, normalize_axis

Operands = Sequence[Tensor | None]

DIRECT = 48
"""Lengths up to this one are one product: their matrix is small, and it is one kernel."""


LENGTH = "a length that is transformed, which is taken apart by its factors,"


class Signal:
    """A complex tensor whose last dimension is transformed; `im` is empty where it is real.

    lead: how many dimensions are in front of it; count: its extent.
    """

    def __init__(self, lead: int, count: int, re: str, im: str = "") -> None:
        self.lead, self.count, self.re, self.im = lead, count, re, im


def expand_dft(node: Node, inputs: Operands) -> Body:
    """DFT of x[…, n, …, 1 or 2] along an axis: real, complex, inverse, one-sided."""
    c = Composer()
    x = given(inputs[0])
    require_rank(x, "input", least=2)
    shape = x.shape
    length, axis = (*inputs[1:], None, None)[:2]
    where = -2 if axis is None else constant_int(axis, "axis")
    place = normalize_axis(where, x.rank)
    require(place < x.rank - 1, "axis", "not the last one", where, "it holds re and im")
    inverse, half = bool(node.get("inverse", 0)), bool(node.get("onesided", 0))
    backwards = inverse and half
    there = fixed(shape[place], LENGTH)
    count = 2 * (there - 1) if backwards else there
    count = count if length is None else constant_int(length, "dft_length")
    require(count >= 1, "dft_length", "at least 1", count, "a transform needs elements")
    require_table(count, f"{node.op} {node.name!r}")
    re, *im = _split(c, node.inputs[0], x)
    rule, way_out = "parts of the input", "one-sided is real to complex, or back by the inverse"
    require(not half or bool(im) == inverse, rule, 1 + inverse, shape[-1], way_out)
    order = [k for k in range(x.rank - 1) if k != place] + [place]
    turned = (c("Transpose", part, perm=tuple(order)) for part in (re, *im))
    signal = Signal(x.rank - 2, there, *turned)
    signal = _fit(c, signal, count // 2 + 1 if backwards else count)
    signal = _mirror(c, signal, count) if backwards else signal
    result = _transform(c, signal, inverse, x.dtype)
    if inverse:
        result = _each(c, result, count, "Mul", c.constant(1 / count, x.dtype))
    result = _fit(c, result, count // 2 + 1) if half and not inverse else result
    back = tuple(int(k) for k in np.argsort(order))
    parts = (result.re,) if backwards else (result.re, result.im)
    return c.body(node.inputs, (_stack(c, [c("Transpose", p, perm=back) for p in parts]),))


def expand_stft(node: Node, inputs: Operands) -> Body:
    """Transforms of windows of signal[batch, n, 1 or 2], `frame_step` apart.

    A real signal may be [batch, n] as well, which is what exporters of PyTorch write.
    """
    c = Composer()
    x = given(inputs[0])
    require_rank(x, "signal", 2, 3)
    step = constant_int(given(inputs[1]), "frame_step")
    window, length = (*inputs[2:], None, None)[:2]
    if length is not None:
        size = constant_int(length, "frame_length")
    else:
        size = fixed(x.shape[1] if window is None else window.shape[0], LENGTH)
    require(step >= 1 and size >= 1, "frames", "a step and a length", (step, size), "correct them")
    way_out = "give as much as a frame has"
    require_at_least(x.shape[1], size, "length of signal", x.shape[1], way_out)
    whole = _split(c, node.inputs[0], x) if x.rank == 3 else [node.inputs[0]]
    windows = (c("Windows", p, domain=INTERNAL, size=size, step=step) for p in whole)
    signal = Signal(2, size, *windows)
    half = bool(node.get("onesided", 1))
    way_out = "a complex signal has no symmetry: set onesided to 0"
    require(not (half and signal.im), "parts of the signal", 1, x.shape[-1], way_out)
    if window is not None:
        signal = _each(c, signal, size, "Mul", node.inputs[2])
    result = _transform(c, signal, False, x.dtype)
    result = _fit(c, result, size // 2 + 1) if half else result
    return c.body(node.inputs, (_stack(c, (result.re, result.im)),))


def _split(c: Composer, x: str, type: Tensor) -> list[str]:
    """x[…, 1 or 2] as its parts."""
    count = fixed(type.shape[-1], "the last dimension, which holds re and im,")
    require(count in (1, 2), "last dimension", "1 or 2", count, "real or complex")
    return [c("Gather", x, c.constant(np.int64(k)), axis=-1) for k in range(count)]


def _stack(c: Composer, parts: Sequence[str]) -> str:
    last = c.integers(-1)
    return c("Concat", *(c("Unsqueeze", p, last) for p in parts), axis=-1)


def _each(
    c: Composer, signal: Signal, count: int, op: str, *others: str, **attributes: Any
) -> Signal:
    """The same operator on both parts, and what the last extent is then."""
    parts = [p and c(op, p, *others, **attributes) for p in (signal.re, signal.im)]
    return Signal(signal.lead, count, *parts)


def _fit(c: Composer, signal: Signal, count: int) -> Signal:
    """The first `count` elements, zeros where there are fewer."""
    last = c.integers(-1)
    if signal.count > count:
        return _each(c, signal, count, "Slice", c.integers(0), c.integers(count), last)
    if signal.count < count:
        return _each(c, signal, count, "Pad", c.integers(0, count - signal.count), "", last)
    return signal


def _mirror(c: Composer, signal: Signal, count: int) -> Signal:
    """The spectrum of a real signal from its first half: X[N - k] is the conjugate of X[k]."""
    rest = count - signal.count
    if rest <= 0:
        return signal
    bounds = c.integers(rest), c.integers(0), c.integers(-1), c.integers(-1)
    re, im = (c("Slice", p, *bounds) for p in (signal.re, signal.im))
    return Signal(
        signal.lead,
        count,
        c("Concat", signal.re, re, axis=-1),
        c("Concat", signal.im, c("Neg", im), axis=-1),
    )


def _transform(c: Composer, signal: Signal, inverse: bool, dtype: np.dtype) -> Signal:
    """The transform along the last dimension, not scaled."""
    count, lead = signal.count, signal.lead
    first = next((k for k in range(math.isqrt(count), 1, -1) if count % k == 0), 1)
    if count <= DIRECT or first == 1:
        require_table(count * count, f"a Fourier transform of length {count}")
        whole = np.outer(np.arange(count), np.arange(count)) % count
        return _turn(c, signal, whole / count, inverse, dtype, "MatMul")
    second = count // first
    swap = (*range(lead), lead + 1, lead)
    same = [0] * lead
    # n = second * n1 + n2, k = k1 + first * k2
    grid = _regroup(c, signal, lead + 1, second, [*same, first, second])
    grid = _each(c, grid, first, "Transpose", perm=swap)
    grid = _transform(c, grid, inverse, dtype)
    turns = np.outer(np.arange(second), np.arange(first)) / count
    grid = _turn(c, grid, turns, inverse, dtype, "Mul")
    grid = _each(c, grid, second, "Transpose", perm=swap)
    grid = _transform(c, grid, inverse, dtype)
    grid = _each(c, grid, first, "Transpose", perm=swap)
    return _regroup(c, grid, lead, count, [*same, count])


def _regroup(c: Composer, signal: Signal, lead: int, count: int, shape: Sequence[int]) -> Signal:
    """Under another shape, in which 0 stands for a dimension as it is."""
    seen = _each(c, signal, count, "Reshape", c.integers(*shape))
    return Signal(lead, count, seen.re, seen.im)


def _turn(
    c: Composer, signal: Signal, turns: np.ndarray, inverse: bool, dtype: np.dtype, op: str
) -> Signal:
    """The product, by `op`, with exp(-2πi turns), or its conjugate for the inverse."""
    angles = (-2 if inverse else 2) * math.pi * turns
    cosines, sines = c.constant(np.cos(angles), dtype), c.constant(np.sin(angles), dtype)
    re, im = c(op, signal.re, cosines), c("Neg", c(op, signal.re, sines))
    if signal.im:
        re = c("Add", re, c(op, signal.im, sines))
        im = c("Add", im, c(op, signal.im, cosines))
    return Signal(signal.lead, signal.count, re, im)
