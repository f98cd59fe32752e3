"""Operators that onnx's reference computes in float32 in any case, or not as the standard says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from onnx import GraphProto, NodeProto, helper
from onnx.reference import ReferenceEvaluator

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _gelu(x: np.ndarray, approximate: bytes = b"none") -> np.ndarray:
    if approximate == b"tanh":
        return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + _erf(x / math.sqrt(2)))


def _lrn(
    x: np.ndarray, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> np.ndarray:
    before, after = (size - 1) // 2, size // 2
    padded = np.pad(x * x, [(0, 0), (before, after), *[(0, 0)] * (x.ndim - 2)])
    sums = sum(padded[:, k : k + x.shape[1]] for k in range(size))
    return x / (bias + alpha / size * sums) ** beta


def _normalize(x: np.ndarray, axes: Sequence[int] = (0, 2, 3)) -> np.ndarray:
    """The first and second moment made 0 and 1."""
    mean = x.mean(tuple(axes), keepdims=True)
    variance = (x * x).mean(tuple(axes), keepdims=True) - mean * mean
    return (x - mean) / (np.sqrt(variance) + 1e-9)


def _space(x: np.ndarray) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


def run_loop(node: NodeProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Loop with a number of steps and a condition that stays true; the reference joins what steps
    give along their first axis in place of a new one."""
    body = GraphProto()
    body.CopyFrom(helper.get_attribute_value(node.attribute[0]))
    step, go_on, *states = (i.name for i in body.input)
    body.input.extend(helper.make_tensor_value_info(n, 1, None) for n in feeds)
    evaluator = ReferenceEvaluator(helper.make_model(body))
    held = [feeds[name] for name in node.input[2:]]
    given: list[list[np.ndarray]] = []
    for k in range(int(feeds[node.input[0]])):
        own = {step: np.array(k), go_on: np.array(True), **dict(zip(states, held, strict=True))}
        _, *results = evaluator.run(None, {**feeds, **own})
        held = results[: len(held)]
        given.append(results[len(held) :])
    return [*held, *map(np.stack, zip(*given, strict=True))]


PRECISE: dict[str, Callable[..., np.ndarray]] = {
    "Erf": _erf,
    "Gelu": _gelu,
    "GlobalLpPool": lambda x, p=2: (np.abs(x) ** p).sum(_space(x), keepdims=True) ** (1 / p),
    "GlobalMaxPool": lambda x: x.max(_space(x), keepdims=True),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "LRN": _lrn,
    "MeanVarianceNormalization": _normalize,
}
"""Operator -> what it gives, of its inputs and attributes, in float64."""
