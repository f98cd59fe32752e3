"""DynamicQuantizeLSTM of com.microsoft: an LSTM whose products are of integers.

    x Wᵀ  =  (sum of (q - zero of x) * (W - zero of W)) * (scale of x) * (scale of W)

The weights are integers in the model. x, all steps of it, and h, in each step, are quantised to
bytes as DynamicQuantizeLinear does it: by the smallest and the largest element that they have then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from polyc.graph.compose import Composer
from polyc.graph.expand.recurrent import Own, compose_layer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require, require_rank

Operands = Sequence[Tensor | None]

BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


def expand_dynamic_quantize_lstm(node: Node, inputs: Operands) -> Body:
    """(X, W, R, B, lengths, h, c, P, then scale and zero point of W, and of R)

    W: [directions, inputs, 4 * hidden], R: [directions, hidden, 4 * hidden] of bytes; scales and
    zero points: one a direction, or one a column of it.
    """
    c = Composer()
    names = (*node.inputs, *[""] * (12 - len(node.inputs)))
    operands = [*inputs, *[None] * (12 - len(inputs))]
    turned = [_turn(c, names[k], operands[k], "WR"[k - 1]) for k in (1, 2)]
    quantised = {
        turned[0][0]: (names[8], names[9]),
        turned[1][0]: (names[10], names[11]),
    }
    for k, role in ((8, "W_scale"), (10, "R_scale")):
        require(operands[k] is not None, role, "given", "absent", "add the scale of the weights")

    def product(c: Composer, own: Own, matrix: str) -> Callable[[str], str]:
        scale, zero = (own(name) if name else "" for name in quantised[matrix])
        columns = c("Transpose", own(matrix), perm=(1, 0))

        def times(x: str) -> str:
            q, step, middle = c.several("DynamicQuantizeLinear", 3, x)
            total = c("MatMulInteger", q, columns, middle, zero)
            return c("Mul", c("CastLike", total, step), c("Mul", step, scale))

        return times

    plain = replace(
        node, op="LSTM", domain="", inputs=(names[0], turned[0][0], turned[1][0], *names[3:8])
    )
    types = [operands[0], turned[0][1], turned[1][1], *operands[3:8]]
    return c.body(node.inputs, compose_layer(c, plain, types, product))


def _turn(c: Composer, name: str, weights: Tensor | None, role: str) -> tuple[str, Tensor]:
    """W[d, i, g] -> W[d, g, i], as LSTM has it."""
    tensor = given(weights)
    require_rank(tensor, role, 3, 3)
    require(tensor.dtype in BYTES, f"type of {role}", "int8 or uint8", tensor.dtype, "quantise it")
    directions, rows, columns = tensor.shape
    turned = c("Transpose", name, perm=(0, 2, 1))
    return turned, Tensor(turned, tensor.dtype, (directions, columns, rows))
