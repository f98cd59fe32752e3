"""Random numbers: RandomUniform, RandomNormal, Bernoulli, Multinomial, Dropout in training.

They come from a counter-based generator (`RandomBits`), so that each is a function of its place,
of a key, and of the node. With a seed the key is the seed: the same numbers in each call. Without
one it is an input that each call fills anew. The standard leaves open which numbers a seed gives.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto, helper

from polyc.graph.compose import Composer
from polyc.graph.ir import INTERNAL, Body, Node, Tensor
from polyc.graph.run_time import RANDOM_KEY
from polyc.graph.shapes.checks import constant_scalar, given, require_rank
from polyc.graph.shapes.dims import fixed
from polyc.graph.shapes.signature import element_type

Operands = Sequence[Tensor | None]
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


class Draws:
    """The numbers that one node draws, in a shape that a tensor says."""

    def __init__(self, c: Composer, node: Node, shape: str) -> None:
        self.c, self.shape, self.count = c, shape, 0
        seed = node.get("seed")
        self.key, self.name = RANDOM_KEY, node.name
        if seed is not None:
            bits = np.array([seed], np.float64).view(np.uint32)
            self.key, self.name = c.constant(bits), ""

    def bits(self) -> str:
        """uint32, each of its values as likely as any."""
        stream = zlib.crc32(f"{self.name}/{self.count}".encode())
        self.count += 1
        return self.c("RandomBits", self.key, self.shape, domain=INTERNAL, stream=stream)

    def uniform(self, dtype: np.dtype) -> str:
        """0 to 1, without 1: as many random bits as the type's significand has."""
        c, kind = self.c, FLOAT64 if dtype == FLOAT64 else FLOAT32
        code = int(helper.np_dtype_to_tensor_dtype(kind))

        def top(width: int) -> str:
            shift = c.constant(np.array(32 - width, np.uint32))
            return c("Cast", c("BitShift", self.bits(), shift, direction="RIGHT"), to=code)

        if kind == FLOAT32:
            return c("Mul", top(24), c.constant(2.0**-24, kind))
        high = c("Mul", top(27), c.constant(2.0**26, kind))
        return c("Mul", c("Add", high, top(26)), c.constant(2.0**-53, kind))

    def normal(self, dtype: np.dtype) -> str:
        """Box and Muller (1958): sqrt(-2 log u) cos(2 pi v) for u in (0, 1]."""
        c, kind = self.c, FLOAT64 if dtype == FLOAT64 else FLOAT32
        u = c("Sub", c.constant(1.0, kind), self.uniform(dtype))
        radius = c("Sqrt", c("Mul", c("Log", u), c.constant(-2.0, kind)))
        turn = c("Mul", self.uniform(dtype), c.constant(2 * math.pi, kind))
        return c("Mul", radius, c("Cos", turn))

    def cast(self, x: str, dtype: np.dtype) -> str:
        if dtype in (FLOAT32, FLOAT64):
            return x
        return self.c("Cast", x, to=int(helper.np_dtype_to_tensor_dtype(dtype)))


def expand_random(node: Node, inputs: Operands) -> Body:
    """RandomUniform(; low, high), RandomNormal(; mean, scale), of a shape or that of an input."""
    c = Composer()
    like = given(inputs[0]) if node.op.endswith("Like") else None
    shape = c.integers(*node.get("shape")) if like is None else c("Shape", node.inputs[0])
    code = node.get("dtype")
    dtype = FLOAT32 if like is None or like.dtype.kind != "f" else like.dtype
    dtype = dtype if code is None else element_type(int(code))
    draws = Draws(c, node, shape)
    if node.op.startswith("RandomUniform"):
        low, high = node.get("low", 0.0), node.get("high", 1.0)
        x, scale, offset = draws.uniform(dtype), high - low, low
    else:
        x, scale, offset = draws.normal(dtype), node.get("scale", 1.0), node.get("mean", 0.0)
    kind = FLOAT64 if dtype == FLOAT64 else FLOAT32
    moved = c("Add", c("Mul", x, c.constant(scale, kind)), c.constant(offset, kind))
    return c.body(node.inputs, (draws.cast(moved, dtype),))


def expand_bernoulli(node: Node, inputs: Operands) -> Body:
    """1 with the probability that x says, else 0.

    The function body that the standard has for it compares the other way round, against its text.
    """
    c, x = Composer(), given(inputs[0])
    draws = Draws(c, node, c("Shape", node.inputs[0]))
    drawn = draws.cast(draws.uniform(x.dtype), x.dtype)
    code = node.get("dtype") or int(helper.np_dtype_to_tensor_dtype(x.dtype))
    return c.body(node.inputs, (c("Cast", c("Less", drawn, node.inputs[0]), to=int(code)),))


def expand_multinomial(node: Node, inputs: Operands) -> Body:
    """Classes drawn from rows of logarithms of probabilities, x[batch, classes].

    A class is the number of partial sums that do not exceed a uniform number.
    """
    c, x = Composer(), given(inputs[0])
    require_rank(x, "input", 2, 2)
    classes = fixed(x.shape[1], "the number of classes")
    size = int(node.get("sample_size", 1))
    code = int(node.get("dtype", TensorProto.INT32))
    sums = c("CumSum", c("Softmax", node.inputs[0], axis=1), c.constant(np.int64(1)))
    kind = FLOAT64 if x.dtype == FLOAT64 else FLOAT32
    draws = Draws(c, node, c.extents(c.extent(node.inputs[0], 0), size))
    drawn = c("Unsqueeze", draws.cast(draws.uniform(kind), x.dtype), c.integers(2))
    passed = c("LessOrEqual", c("Unsqueeze", sums, c.integers(1)), drawn)
    counted = c("ReduceSum", c("Cast", passed, to=code), c.integers(2), keepdims=0)
    last = c("Cast", c.constant(np.int64(classes - 1)), to=code)
    return c.body(node.inputs, (c("Min", counted, last),))


def is_training(node: Node, inputs: Operands) -> bool:
    """Whether a Dropout may drop anything or says so; NotFixed if that is data."""
    if node.op != "Dropout" or len(inputs) < 3 or inputs[2] is None:
        return False
    return _keeps_all(inputs) or bool(constant_scalar(inputs[2], "training_mode"))


def _keeps_all(inputs: Operands) -> bool:
    """Whether a Dropout drops nothing in training either: its ratio is 0."""
    ratio = inputs[1]
    return ratio is not None and ratio.value is not None and not np.any(ratio.value)


def expand_dropout(node: Node, inputs: Operands) -> Body:
    """Each element is 0 with the probability `ratio`, else x / (1 - ratio); and which are not 0.

    With a ratio of 0 it is what it is at inference, and draws nothing.
    """
    c, x = Composer(), given(inputs[0])
    if _keeps_all(inputs):
        return c.body(node.inputs, c.several("Dropout", 2, node.inputs[0]))
    draws = Draws(c, node, c("Shape", node.inputs[0]))
    kind = FLOAT64 if x.dtype == FLOAT64 else FLOAT32
    code = int(helper.np_dtype_to_tensor_dtype(kind))
    ratio = node.inputs[1] or c.constant(0.5, kind)
    ratio = c("Cast", ratio, to=code)
    kept = c("GreaterOrEqual", draws.uniform(x.dtype), ratio)
    scale = draws.cast(
        c("Div", c.constant(1.0, kind), c("Sub", c.constant(1.0, kind), ratio)), x.dtype
    )
    zero = c.constant(np.zeros(()), x.dtype)
    scaled = c("Where", kept, c("Mul", node.inputs[0], scale), zero)
    return c.body(node.inputs, (scaled, kept))
