"""Quantisation, and what computes with quantised numbers."""

from __future__ import annotations

import numpy as np

from tests.fuzz.builder import Builder
from tests.fuzz.evaluate import Kind
from tests.fuzz.operators.registry import operator
from tests.fuzz.values import FLOAT8, FLOATS, INT4, Rejected, Value

BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
STORED = (*BYTES, np.dtype(np.int16), np.dtype(np.uint16), *INT4, *FLOAT8)


def _scales(b: Builder, x: Value, dtype: np.dtype) -> tuple[Value, tuple[int, ...], dict[str, int]]:
    """Scales for a tensor, an axis or blocks; their shape, and the attributes that say so."""
    way = b.integer(0, 2) if len(x.shape) and 0 not in x.shape else 0
    if b.traits.symbolic:
        way = 0
    attributes: dict[str, int] = {}
    shape: tuple[int, ...] = ()
    if way:
        axis = b.integer(0, len(x.shape) - 1)
        attributes["axis"] = axis
        shape = (x.shape[axis],)
        if way == 2:
            size = b.integer(1, x.shape[axis])
            attributes["block_size"] = size
            shape = (*x.shape[:axis], -(-x.shape[axis] // size), *x.shape[axis + 1 :])
    # Powers of two: quotients by them are not rounded, hence no tie hangs on rounding.
    scales = 2.0 ** b.rng.integers(-3, 1, shape)
    return b.constant(np.asarray(scales, dtype)), shape, attributes


@operator("QuantizeLinear", weight=1)
def quantize(b: Builder, op: str) -> object:
    """A tensor, along an axis, or in blocks."""
    x = b.pick((FLOATS[0], FLOATS[2]), lambda s: 0 not in s)
    _want_numbers(x)
    scale, shape, attributes = _scales(b, x, x.dtype)
    to = np.dtype(b.one_of(STORED))
    if to in FLOAT8:
        zero = b.constant(np.zeros(shape, to))
    else:
        zero = b.make(shape, to, low=0, high=5, constant=True)
    return b.add(op, [x, scale, zero], Kind.TYPED, **attributes)


@operator("DequantizeLinear", weight=1)
def dequantize(b: Builder, op: str) -> object:
    """Back from any of the narrow types."""
    x = b.pick(STORED, lambda s: 0 not in s)
    scale, shape, attributes = _scales(b, x, np.dtype(b.one_of((FLOATS[0], FLOATS[2]))))
    inputs = [x, scale]
    if b.chance(0.6) and x.dtype not in FLOAT8:
        inputs.append(b.make(shape, x.dtype, low=0, high=5, constant=True))
    return b.add(op, inputs, Kind.POINTWISE, **attributes)


@operator("DynamicQuantizeLinear", weight=0.5)
def dynamic_quantize(b: Builder, op: str) -> object:
    """With the scale that the tensor's range asks for."""
    x = b.pick(FLOATS[:1], lambda s: 0 not in s)
    _want_numbers(x)
    return b.add(op, [x], Kind.TYPED, outputs=3)


def _want_numbers(x: Value) -> None:
    """Raise Rejected for NaN and infinities, of which integers know nothing."""
    if not all(np.isfinite(run.shadows[0]).all() for run in x.runs):
        raise Rejected("not a number")


def _parameters(b: Builder, dtype: np.dtype, shape: tuple[int, ...] = ()) -> list[Value]:
    scale = b.constant(np.asarray(2.0 ** b.rng.integers(-4, 1, shape), np.float32))
    # Even: the reference adds it before it rounds, and ties go to even numbers.
    return [scale, b.constant(np.array(2 * b.integer(0, 3), dtype))]


@operator("QLinearMatMul", weight=0.5)
def qlinear_matmul(b: Builder, op: str) -> object:
    """Products of quantised matrices."""
    left, right, out = (np.dtype(b.one_of(BYTES)) for _ in "abc")
    x = b.pick((left,), lambda s: len(s) >= 2 and 0 not in s, (b.size() or 1, b.size() or 1))
    y = b.make((x.shape[-1], b.size() or 1), right)
    inputs = [x, *_parameters(b, left), y, *_parameters(b, right), *_parameters(b, out)]
    return b.add(op, inputs, Kind.TYPED)


@operator("QLinearConv", "ConvInteger", weight=0.5)
def quantised_conv(b: Builder, op: str) -> object:
    """Convolutions of bytes."""
    left = np.dtype(b.one_of(BYTES))
    right = left if op == "QLinearConv" and b.chance(0.5) else np.dtype(b.one_of(BYTES))
    c, group, k = b.integer(1, 4), 1, b.integer(1, 3)
    if b.chance(0.3):
        group = c
    side = b.integer(3, 9)
    x = b.pick((left,), lambda s: False, (b.integer(1, 2), c, side, side))
    out = group * b.integer(1, 3)
    w = b.make((out, c // group, k, k), right)
    window = {
        "kernel_shape": [k, k],
        "pads": [b.integer(0, k - 1)] * 4,
        "strides": [b.integer(1, 2)] * 2,
    }
    if op == "ConvInteger":
        inputs = [x, w]
        if b.chance(0.6):
            inputs += [b.make((), d, low=0, high=5) for d in (left, right)]
        return b.add(op, inputs, Kind.EXACT, group=group, **window)
    to = np.dtype(b.one_of(BYTES))
    inputs = [x, *_parameters(b, left), w, *_parameters(b, right), *_parameters(b, to)]
    if b.chance(0.5):
        inputs.append(b.make((out,), np.int32, low=-30, high=30, constant=True))
    return b.add(op, inputs, Kind.TYPED, group=group, **window)
