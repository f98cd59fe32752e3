"""Operators of com.microsoft that exporters and ONNX Runtime write, in terms of the standard's.

They are described in ONNX Runtime's docs/ContribOperators.md; attention is in `attention.py`, what
computes with bytes in `quantised.py`, what ONNX Runtime's optimiser writes in `fused.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from polyc.graph.compose import Composer
from polyc.graph.expand.contrib.attention import (
    expand_attention,
    expand_multi_head_attention,
    expand_rotary,
)
from polyc.graph.expand.contrib.embedding import expand_embedding
from polyc.graph.expand.contrib.fused import FUSED
from polyc.graph.expand.contrib.group_query import expand_group_query
from polyc.graph.expand.contrib.n_bits import (
    expand_gather_quantised,
    expand_matmul_bnb4,
    expand_matmul_n_bits,
)
from polyc.graph.expand.contrib.quantised import QUANTISED
from polyc.graph.expand.contrib.quantised_lstm import expand_dynamic_quantize_lstm
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require, require_rank
from polyc.graph.shapes.dims import fixed

Operands = Sequence[Tensor | None]
Expand = Callable[[Node, Operands], Body]

CONTRIB_DOMAIN = "com.microsoft"


def expand_gelu(node: Node, inputs: Operands) -> Body:
    """Gelu(x), BiasGelu(x, b), FastGelu(x, b): x Φ(x) of x + b; the fast one by tanh."""
    c = Composer()
    x = node.inputs[0]
    if len(node.inputs) > 1 and node.inputs[1]:
        x = c("Add", *node.inputs)
    form = "tanh" if node.op == "FastGelu" else "none"
    return c.body(node.inputs, (c("Gelu", x, approximate=form),))


def expand_quick_gelu(node: Node, inputs: Operands) -> Body:
    """x sigmoid(alpha x)"""
    c, dtype = Composer(), given(inputs[0]).dtype
    scaled = c("Mul", node.inputs[0], c.constant(node.get("alpha", 1.702), dtype))
    return c.body(node.inputs, (c("Mul", node.inputs[0], c("Sigmoid", scaled)),))


def expand_skip_norm(node: Node, inputs: Operands) -> Body:
    """LayerNormalization of x + skip + bias, and that sum; the simplified one by root mean squares.

    Outputs are y, mean, inverse deviation, sum.
    """
    c, simple = Composer(), node.op == "SkipSimplifiedLayerNormalization"
    x, skip, gamma, *more = node.inputs
    beta, bias = ("", *more, "")[:2] if simple else (*more, "", "")[:2]
    total = c("Add", x, skip)
    total = c("Add", total, bias) if bias else total
    y, mean, deviation = _normalise(c, node, total, gamma, beta, simple)
    return c.body(node.inputs, (y, mean, deviation, total))


def expand_simple_norm(node: Node, inputs: Operands) -> Body:
    """SimplifiedLayerNormalization: x / sqrt(mean of x² + epsilon) * scale, along the last axes."""
    c = Composer()
    x, scale = node.inputs[:2]
    y, _, deviation = _normalise(c, node, x, scale, "", True)
    return c.body(node.inputs, (y, deviation))


def _normalise(
    c: Composer, node: Node, x: str, gamma: str, beta: str, simple: bool
) -> tuple[str, str, str]:
    """y, mean, inverse deviation"""
    attributes = {"axis": node.get("axis", -1), "epsilon": node.get("epsilon", 1e-5)}
    if not simple:
        names = (x, gamma, beta) if beta else (x, gamma)
        y, mean, deviation = c.several("LayerNormalization", 3, *names, **attributes)
        return y, mean, deviation
    last = c.integers(-1)
    square = c("ReduceMean", c("Mul", x, x), last)
    epsilon = c("CastLike", c.constant(np.float32(attributes["epsilon"])), x)
    deviation = c("Reciprocal", c("Sqrt", c("Add", square, epsilon)))
    return c("RMSNormalization", x, gamma, **attributes), square, deviation


def expand_fused_matmul(node: Node, inputs: Operands) -> Body:
    """alpha A B, each transposed, or with its batch dimension behind the rows, where it is said."""
    c, operands = Composer(), []
    for k, side in enumerate("AB"):
        name, rank = node.inputs[k], given(inputs[k]).rank
        order = list(range(rank))
        if node.get(f"transBatch{side}"):  # [m, batch…, k] -> [batch…, m, k]
            order = [*order[1:-1], order[0], order[-1]]
        if node.get(f"trans{side}") and rank > 1:
            order[-2:] = order[:-3:-1]
        moved = order != list(range(rank))
        operands.append(c("Transpose", name, perm=tuple(order)) if moved else name)
    y = c("MatMul", *operands)
    alpha = node.get("alpha", 1.0)
    if alpha != 1.0:
        y = c("Mul", y, c.constant(alpha, given(inputs[0]).dtype))
    return c.body(node.inputs, (y,))


def expand_bias_split(node: Node, inputs: Operands) -> Body:
    """BiasSplitGelu: of x + b, the first half times Gelu of the second."""
    c, x = Composer(), given(inputs[0])
    require_rank(x, "X", 3, 3)
    width = fixed(x.shape[-1], "the last dimension of X")
    require(width % 2 == 0, "last dimension of X", "even", width, "two halves are multiplied")
    total = c("Add", *node.inputs[:2])
    left, right = c.several("Split", 2, total, axis=-1, num_outputs=2)
    return c.body(node.inputs, (c("Mul", left, c("Gelu", right)),))


CONTRIB: dict[str, Expand] = {
    "Attention": expand_attention,
    "BiasGelu": expand_gelu,
    "BiasSplitGelu": expand_bias_split,
    "DynamicQuantizeLSTM": expand_dynamic_quantize_lstm,
    "EmbedLayerNormalization": expand_embedding,
    "FastGelu": expand_gelu,
    "FusedMatMul": expand_fused_matmul,
    "GatherBlockQuantized": expand_gather_quantised,
    "Gelu": expand_gelu,
    "GroupQueryAttention": expand_group_query,
    "MatMulBnb4": expand_matmul_bnb4,
    "MatMulNBits": expand_matmul_n_bits,
    "MultiHeadAttention": expand_multi_head_attention,
    "QuickGelu": expand_quick_gelu,
    "RotaryEmbedding": expand_rotary,
    "SimplifiedLayerNormalization": expand_simple_norm,
    "SkipLayerNormalization": expand_skip_norm,
    "SkipSimplifiedLayerNormalization": expand_skip_norm,
    "TransposeMatMul": expand_fused_matmul,
    **FUSED,
    **QUANTISED,
}
"""Operator of com.microsoft -> the nodes that it stands for."""
