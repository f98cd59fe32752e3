"""Contractions: sums of products of two operands, read through whatever views they are.

MatMul   y[b, i, j]  +=  a[b, i, k] * b[b, k, j]
Einsum   y[out…]     +=  a[labels…] * b[labels…]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import ascii_letters

import numpy as np

from polyc.graph.ir import Node
from polyc.graph.shapes.contraction import parse_einsum
from polyc.scop.expr import Expr, cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import FLOAT64, add, is_float, mul
from polyc.scop.lower.space import Ref, Space


def broadcast_indices(formulas: Sequence[str], shape: Sequence[int]) -> list[str]:
    """The last formulas, one for each dimension; "0" where the operand is stretched: (3, 1)."""
    last = formulas[len(formulas) - len(shape) :]
    return ["0" if n == 1 else i for i, n in zip(last, shape, strict=True)]


@lowers("MatMul")
def lower_matmul(ctx: Lowering, node: Node) -> None:
    """y[b…, i, j] = sum of a[b…, i, k] * b[b…, k, j] over k; a vector lacks its i or its j."""
    left, right = (ctx.unbroken(node, ctx.ref(name)) for name in node.inputs)
    contract_matrices(ctx, node, left, right, lambda end, total, at: total)


def contract_matrices(
    ctx: Lowering,
    node: Node,
    left: Ref,
    right: Ref,
    finish: Callable[[Space, Expr, Sequence[str]], Expr],
) -> None:
    """The product of MatMul; `finish` gets a space, the sum there and the indices of the output."""
    output = ctx.type(node.outputs[0]).extents
    rows = ["i"] if left.rank > 1 else []
    columns = ["j"] if right.rank > 1 else []
    batch = output[: len(output) - len(rows) - len(columns)]
    # a batch of one is left out, so that it is the plain product of two matrices
    outer = [f"b{d}" if n != 1 else "0" for d, n in enumerate(batch)]
    kept = {i: n for i, n in zip(outer, batch, strict=True) if n != 1}
    kept |= dict(zip([*rows, *columns], output[len(batch) :], strict=True))
    space = ctx.space(node, **kept, k=left.shape[-1])
    a = space.load(left, *broadcast_indices(outer, left.shape[:-2]), *rows, "k")
    b = space.load(right, *broadcast_indices(outer, right.shape[:-2]), "k", *columns)
    into = [*outer, *rows, *columns]
    at = [*outer, *(rows or ["0"]), *(columns or ["0"])]
    ctx.accumulate(
        node, space, list(kept), mul(a, b), "add", lambda end, t: finish(end, t, at), into=into
    )


@lowers("Gemm")
def lower_gemm(ctx: Lowering, node: Node) -> None:
    """y[i, j] = alpha * (sum of a[i, k] * b[k, j] over k) + beta * c[i, j]"""
    left, right = (ctx.unbroken(node, ctx.ref(name)) for name in node.inputs[:2])
    left = left.through("{ [i, k] -> [k, i] }", left.shape[::-1]) if node.get("transA") else left
    right = (
        right.through("{ [k, j] -> [j, k] }", right.shape[::-1]) if node.get("transB") else right
    )
    space = ctx.space(node, i=left.shape[0], j=right.shape[1], k=left.shape[1])
    product = mul(space.load(left, "i", "k"), space.load(right, "k", "j"))

    def finish(end: Space, total: Expr) -> Expr:
        result = _scaled(total, node.get("alpha", 1.0))
        if not ctx.has(node, 2):
            return result
        bias = ctx.ref(node.inputs[2])
        added = end.load(bias, *broadcast_indices(["i", "j"], bias.shape))
        return add(result, _scaled(added, node.get("beta", 1.0)))

    ctx.accumulate(node, space, ["i", "j"], product, "add", finish)


def _scaled(value: Expr, factor: float) -> Expr:
    """factor * value; an integer is scaled as a double, so that a factor of 0.5 counts."""
    if factor == 1:
        return value
    if is_float(value):
        return mul(factor, value)
    return cast(mul(factor, cast(value, FLOAT64)), value.dtype)


@dataclass(frozen=True)
class Operand:
    """A tensor with a label for each dimension; a repeated label reads the diagonal."""

    ref: Ref
    labels: tuple[str, ...]

    def load(self, space: Space) -> Expr:
        indices = [i if i in space.extents else "0" for i in self.labels]
        return space.load(self.ref, *broadcast_indices(indices, self.ref.shape))


@lowers("Einsum")
def lower_einsum(ctx: Lowering, node: Node) -> None:
    """Operands are contracted two by two, in the order that costs least: "ij,jk,kl->il"."""
    refs = [ctx.ref(name) for name in node.inputs]
    terms, output = parse_einsum(node.attributes["equation"], [ref.rank for ref in refs])
    name = _iterator_names([*terms, output])
    operands = [Operand(r, tuple(name[s] for s in t)) for r, t in zip(refs, terms, strict=True)]
    result = tuple(name[s] for s in output)
    for positions in _contraction_order(operands, result)[:-1]:
        chosen = [operands[p] for p in positions]
        operands = [o for p, o in enumerate(operands) if p not in positions]
        needed = {*result, *(label for o in operands for label in o.labels)}
        operands.append(_contract(ctx, node, chosen, needed))
    space, kept = _product_space(ctx, node, operands, result)
    summed = len(space.extents) > len(kept)
    if len(operands) == 1 and not summed:  # a transposition or a diagonal
        ctx.bind(node.outputs[0], _transposed(operands[0], space))
        return
    value = _product(operands, space)
    if not summed:
        ctx.assign(node, space, ctx.result(node), kept, value)
    else:
        ctx.accumulate(node, space, kept, value, "add")


def _contract(ctx: Lowering, node: Node, operands: Sequence[Operand], needed: set[str]) -> Operand:
    """The sum of the product over all labels that nothing needs later, in a temporary."""
    labels = dict.fromkeys(label for o in operands for label in o.labels)
    space, kept = _product_space(ctx, node, operands, [i for i in labels if i in needed])
    value = _product(operands, space)
    target = ctx.array(f"{node.outputs[0]}_part", value.dtype, [space.extents[i] for i in kept])
    if len(space.extents) == len(kept):
        ctx.assign(node, space, target, kept, value)
    else:
        ctx.reduce(node, space, target, kept, value, "add")
    return Operand(target, tuple(kept))


def _product_space(
    ctx: Lowering, node: Node, operands: Sequence[Operand], result: Sequence[str]
) -> tuple[Space, list[str]]:
    """The box over the result's labels, then the summed ones; an extent is what they broadcast to.

    The labels of the result are given beside it.
    """
    extents = dict.fromkeys(result, 1)
    for operand in operands:
        for label, n in zip(operand.labels, operand.ref.shape, strict=True):
            extents[label] = n if extents.get(label, 1) == 1 else extents[label]
    return ctx.space(node, **extents), list(result)


def _transposed(operand: Operand, space: Space) -> Ref:
    """The operand as a view with one index for each iterator of the space."""
    read = ", ".join(broadcast_indices(operand.labels, operand.ref.shape))
    view = f"{{ [{', '.join(space.iterators)}] -> [{read}] }}"
    return operand.ref.through(view, tuple(space.extents.values()))


def _product(operands: Sequence[Operand], space: Space) -> Expr:
    first, *rest = (operand.load(space) for operand in operands)
    product: Expr = first
    for factor in rest:
        product = mul(product, factor)
    return product


def _contraction_order(operands: Sequence[Operand], result: Sequence[str]) -> list[tuple[int, ...]]:
    """Positions to contract, step by step: NumPy's search for the fewest multiplications."""
    if len(operands) < 3:
        return [tuple(range(len(operands)))]
    labels = dict.fromkeys(label for o in operands for label in o.labels)
    letter = dict(zip(labels, ascii_letters, strict=False))
    terms = ["".join(letter[i] for i in o.labels) for o in operands]
    equation = f"{','.join(terms)}->{''.join(letter[i] for i in result)}"
    shapes = [np.broadcast_to(np.float32(0), o.ref.shape) for o in operands]
    path, _ = np.einsum_path(equation, *shapes, optimize="greedy")
    return [tuple(step) for step in path[1:]]


def _iterator_names(terms: Sequence[Sequence[str]]) -> dict[str, str]:
    """A C identifier for each label; those of an ellipsis are "...0", "...1"."""
    labels = dict.fromkeys(label for term in terms for label in term)
    return {s: s.replace("...", "ellipsis") for s in labels}
