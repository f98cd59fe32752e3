"""Scales and zero points: how a range of numbers becomes bytes.

    byte = saturate(round(x / scale) + zero)          x ~ (byte - zero) * scale

Zero is always one of the numbers that bytes stand for: padding and what a Relu cuts off stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Activations = Literal["u8", "s8"]

LEAST_SCALE = 2.0**-60
"""A scale is not smaller than this, so that the product of two is a normal float."""

MOST_BIAS = float(1 << 30)
"""The magnitude of a bias as an integer of 32 bits, at most."""


@dataclass(frozen=True)
class Scale:
    """A scale of float32, and the byte that stands for zero, whose type is that of the bytes."""

    scale: np.float32
    zero: np.ndarray

    @property
    def limits(self) -> tuple[int, int]:
        info = np.iinfo(self.zero.dtype)
        return int(info.min), int(info.max)

    def round_trip(self, x: np.ndarray) -> np.ndarray:
        """Numbers as they are after they have been bytes."""
        low, high = self.limits
        zero = int(self.zero)
        return (np.clip(np.rint(x / self.scale) + zero, low, high) - zero) * float(self.scale)


def activation_scale(
    low: float, high: float, kind: Activations, symmetric: bool = False, signed: bool = False
) -> Scale:
    """The scale for activations from `low` to `high`.

    symmetric: the zero point is 0; then unsigned bytes serve only what is never negative, if
    `signed` does not exclude them.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    if symmetric:
        if low == 0.0 and not signed:
            return _scale(high / 255, 0, np.uint8)
        return _scale(max(-low, high) / 127, 0, np.int8)
    step = max((high - low) / 255, LEAST_SCALE)
    zero = round(-low / step)
    if kind == "u8" and not signed:
        return _scale(step, zero, np.uint8)
    return _scale(step, zero - 128, np.int8)


def _scale(step: float, zero: int, dtype: type) -> Scale:
    return Scale(np.float32(max(step, LEAST_SCALE)), np.asarray(zero, dtype))


def weight_scales(channels: np.ndarray, bias: np.ndarray | None, x_scale: float) -> np.ndarray:
    """Scales of weights [channels, …], symmetric, so that each bias fits 32 bits.

    A bias is stored in units of x_scale times the weights' scale: a channel of tiny weights with a
    large bias gets a larger scale than its weights need.
    """
    magnitudes = np.abs(channels.reshape(len(channels), -1)).max(axis=1, initial=0.0)
    scales = magnitudes.astype(np.float64) / 127
    if bias is not None:
        scales = np.maximum(scales, np.abs(bias.astype(np.float64)) / (x_scale * MOST_BIAS))
    scales[scales == 0] = 1.0
    return np.maximum(scales, LEAST_SCALE).astype(np.float32)


def quantise_weights(channels: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Weights [channels, …] as signed bytes of -127 to 127."""
    divided = channels / scales.reshape(-1, *[1] * (channels.ndim - 1))
    return np.clip(np.rint(divided), -127, 127).astype(np.int8)
