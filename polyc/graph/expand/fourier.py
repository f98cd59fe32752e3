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
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import constant_int, given, require, require_rank
from polyc.graph.shapes.dims import fixed_all, normalize_axis

Operands = Sequence[Tensor | None]

DIRECT = 48
"""Lengths up to this one are one product: their matrix is small, and it is one kernel."""


class Signal:
    """A complex tensor whose last dimension is transformed; `im` is empty where it is real."""

    def __init__(self, shape: Sequence[int], re: str, im: str = "") -> None:
        self.shape, self.re, self.im = tuple(shape), re, im


def expand_dft(node: Node, inputs: Operands) -> Body:
    """DFT of x[…, n, …, 1 or 2] along an axis: real, complex, inverse, one-sided."""
    c = Composer()
    x = given(inputs[0])
    require_rank(x, "input", least=2)
    shape = fixed_all(x.shape, "a dimension of input")
    length, axis = (*inputs[1:], None, None)[:2]
    where = -2 if axis is None else constant_int(axis, "axis")
    place = normalize_axis(where, x.rank)
    require(place < x.rank - 1, "axis", "not the last one", where, "it holds re and im")
    inverse, half = bool(node.get("inverse", 0)), bool(node.get("onesided", 0))
    backwards = inverse and half
    count = 2 * (shape[place] - 1) if backwards else shape[place]
    count = count if length is None else constant_int(length, "dft_length")
    require(count >= 1, "dft_length", "at least 1", count, "a transform needs elements")
    require_table(count, f"{node.op} {node.name!r}")
    signal = _split(c, node.inputs[0], shape)
    rule, way_out = "parts of the input", "one-sided is real to complex, or back by the inverse"
    require(not half or bool(signal.im) == inverse, rule, 1 + inverse, shape[-1], way_out)
    order = [k for k in range(x.rank - 1) if k != place] + [place]
    signal = _each(c, signal, [signal.shape[k] for k in order], "Transpose", perm=tuple(order))
    signal = _fit(c, signal, count // 2 + 1 if backwards else count)
    signal = _mirror(c, signal, count) if backwards else signal
    result = _transform(c, signal, inverse, x.dtype)
    if inverse:
        scale = c.constant(1 / count, x.dtype)
        result = Signal(result.shape, c("Mul", result.re, scale), c("Mul", result.im, scale))
    result = _fit(c, result, count // 2 + 1) if half and not inverse else result
    back = tuple(int(k) for k in np.argsort(order))
    result = _each(c, result, [result.shape[k] for k in back], "Transpose", perm=back)
    parts = (result.re,) if backwards else (result.re, result.im)
    return c.body(node.inputs, (_stack(c, parts),))


def expand_stft(node: Node, inputs: Operands) -> Body:
    """Transforms of windows of signal[batch, n, 1 or 2], `frame_step` apart."""
    c = Composer()
    x = given(inputs[0])
    require_rank(x, "signal", 3, 3)
    shape = fixed_all(x.shape, "a dimension of signal")
    step = constant_int(given(inputs[1]), "frame_step")
    window, length = (*inputs[2:], None, None)[:2]
    size = shape[1] if window is None else fixed_all(window.shape, "the length of window")[0]
    size = size if length is None else constant_int(length, "frame_length")
    fits = step >= 1 and 1 <= size <= shape[1]
    require(fits, "frames", "a step, and at most the signal's length", (step, size), "correct them")
    frames_there = (shape[1] - size) // step + 1
    require_table(frames_there * size, f"{node.op} {node.name!r}")
    starts = np.arange(frames_there) * step
    frames = c.constant(starts[:, None] + np.arange(size), np.int64)
    cut = c("Gather", node.inputs[0], frames, axis=1)
    signal = _split(c, cut, (shape[0], len(starts), size, shape[2]))
    half = bool(node.get("onesided", 1))
    way_out = "a complex signal has no symmetry: set onesided to 0"
    require(not (half and signal.im), "parts of the signal", 1, shape[2], way_out)
    if window is not None:
        signal = _each(c, signal, signal.shape, "Mul", node.inputs[2])
    result = _transform(c, signal, False, x.dtype)
    result = _fit(c, result, size // 2 + 1) if half else result
    return c.body(node.inputs, (_stack(c, (result.re, result.im)),))


def _split(c: Composer, x: str, shape: Sequence[int]) -> Signal:
    """x[…, 1 or 2] as its parts."""
    require(shape[-1] in (1, 2), "last dimension", "1 or 2", shape[-1], "real or complex")
    parts = [c("Gather", x, c.constant(np.int64(k)), axis=-1) for k in range(shape[-1])]
    return Signal(shape[:-1], *parts)


def _stack(c: Composer, parts: Sequence[str]) -> str:
    last = c.integers(-1)
    return c("Concat", *(c("Unsqueeze", p, last) for p in parts), axis=-1)


def _each(
    c: Composer, signal: Signal, shape: Sequence[int], op: str, *others: str, **attributes: Any
) -> Signal:
    """The same operator on both parts."""
    parts = [p and c(op, p, *others, **attributes) for p in (signal.re, signal.im)]
    return Signal(shape, *parts)


def _fit(c: Composer, signal: Signal, count: int) -> Signal:
    """The first `count` elements, zeros where there are fewer."""
    *lead, have = signal.shape
    last = c.integers(-1)
    if have > count:
        return _each(c, signal, (*lead, count), "Slice", c.integers(0), c.integers(count), last)
    if have < count:
        pads = c.integers(0, count - have)
        return _each(c, signal, (*lead, count), "Pad", pads, "", last)
    return signal


def _mirror(c: Composer, signal: Signal, count: int) -> Signal:
    """The spectrum of a real signal from its first half: X[N - k] is the conjugate of X[k]."""
    rest = count - signal.shape[-1]
    if rest <= 0:
        return signal
    bounds = c.integers(rest), c.integers(0), c.integers(-1), c.integers(-1)
    re, im = (c("Slice", p, *bounds) for p in (signal.re, signal.im))
    whole = (*signal.shape[:-1], count)
    return Signal(
        whole,
        c("Concat", signal.re, re, axis=-1),
        c("Concat", signal.im, c("Neg", im), axis=-1),
    )


def _transform(c: Composer, signal: Signal, inverse: bool, dtype: np.dtype) -> Signal:
    """The transform along the last dimension, not scaled."""
    *lead, count = signal.shape
    first = next((k for k in range(math.isqrt(count), 1, -1) if count % k == 0), 1)
    if count <= DIRECT or first == 1:
        require_table(count * count, f"a Fourier transform of length {count}")
        whole = np.outer(np.arange(count), np.arange(count)) % count
        return _turn(c, signal, whole / count, inverse, dtype, "MatMul")
    second = count // first
    rank = len(lead)
    swap = (*range(rank), rank + 1, rank)
    # n = second * n1 + n2, k = k1 + first * k2
    split = c.integers(*lead, first, second)
    grid = _each(c, signal, (*lead, first, second), "Reshape", split)
    grid = _each(c, grid, (*lead, second, first), "Transpose", perm=swap)
    grid = _transform(c, grid, inverse, dtype)
    turns = np.outer(np.arange(second), np.arange(first)) / count
    grid = _turn(c, grid, turns, inverse, dtype, "Mul")
    grid = _each(c, grid, (*lead, first, second), "Transpose", perm=swap)
    grid = _transform(c, grid, inverse, dtype)
    grid = _each(c, grid, (*lead, second, first), "Transpose", perm=swap)
    return _each(c, grid, signal.shape, "Reshape", c.integers(*signal.shape))


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
    return Signal(signal.shape, re, im)
