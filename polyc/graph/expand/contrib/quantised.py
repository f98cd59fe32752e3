"""Operators of bytes of com.microsoft: each is the standard's one between two quantisations.

    QLinearAdd(a, b)  =  quantise(restore(a) + restore(b))          restore: scale * (q - zero)

That is how they are defined, and how models say the same that are written with DequantizeLinear and
QuantizeLinear: what of it is computed in integers is decided of both alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyc.graph.compose import Composer
from polyc.graph.expand.contrib.attention import Itself, Operand, attend_to_itself
from polyc.graph.expand.contrib.channels import channels_first, channels_last
from polyc.graph.expand.contrib.embedding import embed
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require, require_rank, require_shape
from polyc.graph.shapes.dims import fixed

Operands = Sequence[Tensor | None]


class _Bytes:
    """The operands of a node, by place, with scales and zero points beside them."""

    def __init__(self, node: Node, inputs: Operands) -> None:
        self.c = Composer()
        self._node = node
        self._inputs = inputs

    def has(self, at: int) -> bool:
        return at < len(self._inputs) and self._inputs[at] is not None

    def number(self, at: int) -> str:
        """A scale or a zero point of a whole tensor, which may be a list of one."""
        tensor, name = given(self._inputs[at]), self._node.inputs[at]
        if not tensor.rank:
            return name
        role = f"input {at} of {self._node.op}"
        require_rank(tensor, role, 0, 1)
        require_shape(tensor, role, (1,))
        return self.c("Squeeze", name, self.c.integers(0))

    def restore(self, value: int, scale: int, zero: int) -> str:
        """The numbers that bytes stand for; the three are where operands are."""
        zeros = [self.number(zero)] if self.has(zero) else []
        return self.c("DequantizeLinear", self._node.inputs[value], self.number(scale), *zeros)

    def quantise(self, y: str, scale: int, zero: int, like: int) -> str:
        """Numbers as bytes, of the type of operand `like` if there is no zero point."""
        if self.has(zero):
            middle = self.number(zero)
        else:
            middle = self.c.constant(0, given(self._inputs[like]).dtype)
        return self.c("QuantizeLinear", y, self.number(scale), middle)

    def body(self, *outputs: str) -> Body:
        return self.c.body(self._node.inputs, outputs)


def expand_pairwise(node: Node, inputs: Operands) -> Body:
    """QLinearAdd and QLinearMul: (a, scale, zero, b, scale, zero, scale of y, zero of y)"""
    q = _Bytes(node, inputs)
    y = q.c(node.op.removeprefix("QLinear"), q.restore(0, 1, 2), q.restore(3, 4, 5))
    return q.body(q.quantise(y, 6, 7, 0))


def expand_activation(node: Node, inputs: Operands) -> Body:
    """QLinearSigmoid and QLinearLeakyRelu: (x, scale, zero, scale of y, zero of y)"""
    q = _Bytes(node, inputs)
    attributes = {"alpha": node.get("alpha", 0.01)} if node.op == "QLinearLeakyRelu" else {}
    y = q.c(node.op.removeprefix("QLinear"), q.restore(0, 1, 2), **attributes)
    return q.body(q.quantise(y, 3, 4, 0))


def expand_softmax(node: Node, inputs: Operands) -> Body:
    """QLinearSoftmax: (x, scale, zero, scale of y, zero of y)

    Before opset 13 it is over all axes from one on:  of [a, b, c] and axis 1, over b * c.
    """
    q, x = _Bytes(node, inputs), given(inputs[0])
    axis = int(node.get("axis", -1))
    require(-x.rank <= axis < x.rank, "axis", f"one of {x.rank}", axis, "name an axis of x")
    from_on = axis % x.rank
    if int(node.attributes["opset"]) >= 13 or from_on == x.rank - 1:
        return q.body(q.quantise(q.c("Softmax", q.restore(0, 1, 2), axis=axis), 3, 4, 0))
    flat = q.c("Flatten", q.restore(0, 1, 2), axis=from_on)
    shape = q.c("Shape", node.inputs[0])
    return q.body(q.quantise(q.c("Reshape", q.c("Softmax", flat, axis=-1), shape), 3, 4, 0))


def expand_pool(node: Node, inputs: Operands) -> Body:
    """QLinearAveragePool and QLinearGlobalAveragePool: (x, scale, zero, scale of y, zero of y)

    channels_last: x and y are [batch, height, width, channels].
    """
    q, rank = _Bytes(node, inputs), given(inputs[0]).rank
    last = bool(node.get("channels_last"))
    own = {k: v for k, v in node.attributes.items() if k != "channels_last"}
    x = q.restore(0, 1, 2)
    y = q.c(node.op.removeprefix("QLinear"), channels_first(q.c, x, rank) if last else x, **own)
    return q.body(q.quantise(channels_last(q.c, y, rank) if last else y, 3, 4, 0))


def expand_max_pool(node: Node, inputs: Operands) -> Body:
    """NhwcMaxPool: MaxPool of [batch, height, width, channels], of bytes as they are."""
    c, rank = Composer(), given(inputs[0]).rank
    y = c("MaxPool", channels_first(c, node.inputs[0], rank), **node.attributes)
    return c.body(node.inputs, (channels_last(c, y, rank),))


def expand_concat(node: Node, inputs: Operands) -> Body:
    """QLinearConcat: (scale of y, zero of y, then of each part: bytes, scale, zero)"""
    q = _Bytes(node, inputs)
    count, left = divmod(len(inputs) - 2, 3)
    expected = "2, and 3 for each part"
    require(count > 0 and not left, "number of inputs", expected, len(inputs), "complete a part")
    parts = [q.restore(k, k + 1, k + 2) for k in range(2, len(inputs), 3)]
    return q.body(q.quantise(q.c("Concat", *parts, axis=node.attributes["axis"]), 0, 1, 2))


def expand_mean(node: Node, inputs: Operands) -> Body:
    """QLinearReduceMean: (x, scale, zero, scale of y, zero of y)"""
    q = _Bytes(node, inputs)
    axes, keep = node.attributes["axes"], int(node.attributes["keepdims"])
    y = q.c("ReduceMean", q.restore(0, 1, 2), q.c.integers(*axes), keepdims=keep)
    return q.body(q.quantise(y, 3, 4, 0))


def expand_where(node: Node, inputs: Operands) -> Body:
    """QLinearWhere: (condition, x, scale, zero, y, scale, zero, scale of z, zero of z)"""
    q = _Bytes(node, inputs)
    z = q.c("Where", node.inputs[0], q.restore(1, 2, 3), q.restore(4, 5, 6))
    return q.body(q.quantise(z, 7, 8, 1))


def expand_gemm(node: Node, inputs: Operands) -> Body:
    """QGemm: (a, scale, zero, b, scale, zero, c, scale of y, zero of y)

    y = alpha A B + (alpha * scale of a * scale of b) * c, an int32, as bytes, or as floats without
    a scale of y. b may have a scale and a zero point for each column.
    """
    q, c_at, y_at = _Bytes(node, inputs), 6, 7
    c, alpha = q.c, float(node.get("alpha", 1.0))
    turned = {f"trans{k}": int(node.get(f"trans{k}", 0)) for k in "AB"}
    columns: dict[str, Any] = (
        {} if not _has_many(inputs[4]) else {"axis": 0 if turned["transB"] else 1}
    )
    step, middle = (node.inputs[k] if columns else q.number(k) for k in (4, 5))
    operands = [q.restore(0, 1, 2), c("DequantizeLinear", node.inputs[3], step, middle, **columns)]
    if q.has(c_at):
        unit = c("Mul", q.number(1), step)
        unit = unit if alpha == 1.0 else c("Mul", unit, c.constant(np.float32(alpha)))
        last: dict[str, Any] = {"axis": given(inputs[c_at]).rank - 1} if columns else {}
        operands.append(c("DequantizeLinear", node.inputs[c_at], unit, **last))
    y = c("Gemm", *operands, alpha=alpha, transA=turned["transA"], transB=turned["transB"])
    return q.body(q.quantise(y, y_at, y_at + 1, 0) if q.has(y_at) else y)


def _has_many(scale: Tensor | None) -> bool:
    """Whether there is one for each column."""
    tensor = given(scale)
    return tensor.rank > 0 and fixed(tensor.shape[-1], "the length of a scale") != 1


def expand_matmul_to_float(node: Node, inputs: Operands) -> Body:
    """MatMulIntegerToFloat: (a, b, scale of a, of b, zero of a, of b, bias) -> float"""
    c = Composer()
    names = (*node.inputs, "", "", "")
    y = _multiply(c, names[0], names[1], (names[2], names[3]), (names[4], names[5]))
    return c.body(node.inputs, (c("Add", y, names[6]) if names[6] else y,))


def expand_dynamic_matmul(node: Node, inputs: Operands) -> Body:
    """DynamicQuantizeMatMul: (x, b, scale of b, zero of b, bias), x quantised by what it holds"""
    c = Composer()
    x, b, scale, zero, bias = (*node.inputs, "", "")[:5]
    q, step, middle = c.several("DynamicQuantizeLinear", 3, x)
    y = _multiply(c, q, b, (step, scale), (middle, zero))
    return c.body(node.inputs, (c("Add", y, bias) if bias else y,))


def _multiply(c: Composer, a: str, b: str, scales: tuple[str, str], zeros: tuple[str, str]) -> str:
    """(a - zero of a) (b - zero of b) * scales, summed in int32"""
    total = c("MatMulInteger", a, b, *zeros)
    return c("Mul", c("CastLike", total, scales[0]), c("Mul", *scales))


def expand_attention(node: Node, inputs: Operands) -> Body:
    """QAttention: (x, W, bias, scale of x, of W, mask, zero of x, of W, past) -> y, present

    x[b, n, d] and W[d, q+k+v] of bytes; what follows their product is float, as in Attention.
    """
    c, x = Composer(), given(inputs[0])
    require_rank(x, "input", 3, 3)
    total = fixed(given(inputs[1]).shape[1], "columns of weights")
    require(total % 3 == 0, "columns of weights", "a multiple of 3", total, "give q, k and v alike")
    names = (*node.inputs, "", "", "")
    product = _multiply(c, names[0], names[1], (names[3], names[4]), (names[6], names[7]))
    joined = c("Add", product, names[2])
    itself = Itself(joined, x.extents[:2], (total // 3,) * 3, given(inputs[2]).dtype)
    mask, past = (Operand.of(node, inputs, k) for k in (5, 8))
    return attend_to_itself(c, node, itself, mask, past)


def expand_embedding(node: Node, inputs: Operands) -> Body:
    """QEmbedLayerNormalization: EmbedLayerNormalization of tables of bytes.

    (words, kinds, then tables of words, places and kinds, gamma, beta, mask; five scales; five
    zero points) -> y, the number of ones in each row of the mask
    """
    q = _Bytes(node, inputs)
    names = node.inputs

    def restore(k: int, value: str) -> str:
        return q.c("DequantizeLinear", value, q.number(8 + k), q.number(13 + k))

    def look_up(k: int, rows: str) -> str:
        return restore(k, q.c("Gather", names[2 + k], rows))

    gamma, beta = (restore(k, names[2 + k]) for k in (3, 4))
    rows = names[0], names[1], ""
    y, lengths, _ = embed(q.c, node, rows, names[7], look_up, (gamma, beta))
    return q.body(y, lengths)


QUANTISED: dict[str, Any] = {
    "DynamicQuantizeMatMul": expand_dynamic_matmul,
    "MatMulIntegerToFloat": expand_matmul_to_float,
    "NhwcMaxPool": expand_max_pool,
    "QAttention": expand_attention,
    "QEmbedLayerNormalization": expand_embedding,
    "QGemm": expand_gemm,
    "QLinearAdd": expand_pairwise,
    "QLinearAveragePool": expand_pool,
    "QLinearConcat": expand_concat,
    "QLinearGlobalAveragePool": expand_pool,
    "QLinearLeakyRelu": expand_activation,
    "QLinearMul": expand_pairwise,
    "QLinearReduceMean": expand_mean,
    "QLinearSigmoid": expand_activation,
    "QLinearSoftmax": expand_softmax,
    "QLinearWhere": expand_where,
}
