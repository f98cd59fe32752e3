"""Products with constant weights of few bits in blocks: they are multiplied as they are stored.

    MatMul(x, DequantizeLinear(w, scales, zeros; axis 0 of 2, block_size))
    ->
    BlockProduct(x, packed w, scales, zeros)          (`scop/lower/products/blocks.py`)

Also where the weights lie transposed and a Transpose or Gemm's `transB` says so. Otherwise they
would be restored, to eight times their size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyc.graph.ir import INTERNAL, Graph, Node, Tensor
from polyc.graph.shapes.dims import normalize_axis
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule
from polyc.types.element_types import FLOAT32, UINT8

BITS = {"uint4": (4, 0), "int4": (4, 8), "uint8": (8, 0), "int8": (8, 128)}
"""Element type -> its bits, and what makes its numbers unsigned."""

WORD = 4
"""Bytes that a block is a multiple of."""

_PLAIN = {"alpha": 1.0, "beta": 1.0, "transA": 0}


def keep_block_weights(graph: Graph) -> Rewritten:
    """Apply the rule above; sums are scaled block by block, and may round differently."""
    return apply_rule(graph, "block_weights", _rule)


@dataclass(frozen=True)
class _Blocks:
    """rows: of the matrix; numbers: uint8[n, blocks, block]; scales: float32[n, blocks]; zeros:
    uint8[n, blocks].
    """

    bits: int
    rows: int
    numbers: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray


def _rule(scope: Scope, node: Node) -> Change | None:
    if node.domain or node.op not in ("Gemm", "MatMul"):
        return None
    if any(node.get(name, value) != value for name, value in _PLAIN.items()):
        return None
    x, result = scope.tensor(node.inputs[0]), scope.tensor(node.outputs[0])
    blocks = _find_blocks(scope, node.inputs[1], bool(node.get("transB", 0)))
    if blocks is None or x.dtype != FLOAT32 or x.rank < 1:
        return None
    _, count, block = blocks.numbers.shape
    packed = blocks.numbers
    if blocks.bits == 4:
        packed = packed[..., ::2] | packed[..., 1::2] << 4
    name = node.inputs[1]
    operands = [
        scope.constant(f"{name}_packed", packed),
        scope.constant(f"{name}_scales", blocks.scales),
    ]
    if not (blocks.zeros == 1 << (blocks.bits - 1)).all():
        operands.append(scope.constant(f"{name}_zeros", blocks.zeros))
    made, nodes, source = list(operands), [], x.name
    missing = count * block - blocks.rows
    if missing:
        pads = scope.constant(f"{name}_pads", np.array([0] * (2 * x.rank - 1) + [missing]))
        filled = scope.result(f"{x.name}_filled", x.dtype, (*x.shape[:-1], count * block))
        nodes.append(Node(f"{node.name}_filled", "Pad", (x.name, pads.name), (filled.name,)))
        made += [pads, filled]
        source = filled.name
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    product = scope.result(f"{result.name}_product", result.dtype, result.shape)
    inputs = (source, *(tensor.name for tensor in operands))
    attributes = {"bits": blocks.bits, "integers": 0}
    outputs = (product.name,) if bias else node.outputs
    nodes.append(Node(node.name, "BlockProduct", inputs, outputs, attributes, INTERNAL))
    if bias:
        made.append(product)
        nodes.append(Node(f"{node.name}_bias", "Add", (product.name, bias), node.outputs))
    text = f"the weights of {node.op} '{node.name}' keep their {blocks.bits} bits"
    return Change(text, tuple(nodes), tuple(made))


def _find_blocks(scope: Scope, name: str, transposed: bool) -> _Blocks | None:
    """The weights of a matrix [k, n], or its transpose; None if they are something else."""
    source = scope.producer(name)
    if source is not None and source.op == "Transpose" and not source.domain:
        if [*source.get("perm", (1, 0))] != [1, 0]:
            return None
        source, transposed = scope.producer(source.inputs[0]), not transposed
    if source is None or source.op != "DequantizeLinear" or source.domain:
        return None
    tensors = [scope.tensor(i) if i else None for i in source.inputs]
    numbers, scales, zeros = (*tensors, None)[:3]
    assert numbers is not None
    assert scales is not None
    block = int(source.get("block_size", 0))
    known = all(t is None or t.value is not None for t in tensors)
    bits, middle = BITS.get(numbers.dtype.name, (0, 0))
    if not known or not bits or numbers.rank != 2 or block % (8 * WORD // bits) or not block:
        return None
    if scales.dtype != FLOAT32 or normalize_axis(int(source.get("axis", 1)), 2) != int(transposed):
        return None
    return _gather(bits, middle, block, transposed, numbers, scales, zeros)


def _gather(
    bits: int,
    middle: int,
    block: int,
    transposed: bool,
    numbers: Tensor,
    scales: Tensor,
    zeros: Tensor | None,
) -> _Blocks:
    """Values of constants, with columns outside, blocks of full size, and unsigned numbers."""

    def outside(tensor: Tensor) -> np.ndarray:
        assert tensor.value is not None
        return tensor.value if transposed else tensor.value.T

    whole = outside(numbers).astype(np.int16) + middle
    columns, rows = whole.shape
    count = -(-rows // block)
    full = np.zeros((columns, count * block), UINT8)
    full[:, :rows] = whole
    scale = outside(scales).astype(FLOAT32)
    zero = 0 if zeros is None else outside(zeros).astype(np.int16)
    unsigned = np.broadcast_to(np.asarray(zero + middle, UINT8), scale.shape)
    return _Blocks(bits, rows, full.reshape(columns, count, block), scale, unsigned)
