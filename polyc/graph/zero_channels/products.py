"""Products by constant weights: where channels begin, and where they end.

    y[o] = sum over i, taps of W[o, i, tap] x[i, …] + b[o]

A row of zeros makes y[o] the number b[o]. Channel i of x is not needed if W[:, i] is zero, if x[i]
is zero, or if it is another number that W[:, i] makes a part of the bias of, where no frame of
zeros is around x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polyc.graph.ir import Node
from polyc.graph.zero_channels.walk import Count, Cut, Shift, Walk
from polyc.types.element_types import is_float

FEW = 8
"""Parts of weights that are looked at one by one; for more of them all is read, once."""


@dataclass(frozen=True)
class Product:
    """A product by constant weights.

    rows, columns: dimensions of the weights for channels of the result and of the operand; result,
    operand: these dimensions there. bias: what is added to each channel, None if that is not one
    known number; last: the dimension of channels of the operand that is added, if there is one,
    None if that has one number for all. moves: whether a constant channel of the operand is one
    number for each channel of the result, which a bias takes.
    """

    weights: np.ndarray
    rows: int
    columns: int
    result: int
    operand: int
    bias: np.ndarray | None
    last: int | None
    moves: bool


def read_product(walk: Walk, node: Node) -> Product | None:
    """A node as such a product; None if it is none."""
    weights = walk.value(node.inputs[1])
    if weights is None or not is_float(weights.dtype) or weights.size == 0:
        return None
    if node.op in ("Conv", "ConvTranspose"):
        return _read_conv(walk, node, weights)
    x, y = walk.tensor(node.inputs[0]), walk.tensor(node.outputs[0])
    if weights.ndim != 2 or x.rank < 2 or node.get("transA", 0):
        return None
    rows = 0 if node.get("transB", 0) else 1
    bias: np.ndarray | None = np.zeros(weights.shape[rows])
    last: int | None = 0
    plain = node.op == "Gemm" and node.get("alpha", 1.0) == node.get("beta", 1.0) == 1.0
    if len(node.inputs) > 2 and node.inputs[2]:
        added = walk.value(node.inputs[2])
        if added is None:
            return Product(weights, rows, 1 - rows, y.rank - 1, x.rank - 1, None, None, False)
        last = added.ndim - 1 if added.ndim and added.shape[-1] > 1 else None
        bias = None
        if added.size in (1, weights.shape[rows]) and added.size == (added.shape or (1,))[-1]:
            of_one = added.astype(np.float64).ravel() * node.get("beta", 1.0)
            bias = np.broadcast_to(of_one, weights.shape[rows])
        plain = plain and bias is not None and last is not None
    return Product(weights, rows, 1 - rows, y.rank - 1, x.rank - 1, bias, last, plain)


def _read_conv(walk: Walk, node: Node, weights: np.ndarray) -> Product | None:
    if node.get("group", 1) != 1 or weights.ndim < 3:
        return None
    rows = 0 if node.op == "Conv" else 1
    bias: np.ndarray | None = np.zeros(weights.shape[rows])
    if len(node.inputs) > 2 and node.inputs[2]:
        added = walk.value(node.inputs[2])
        if added is None:
            return Product(weights, rows, 1 - rows, 1, 1, None, 0, False)
        bias = added.astype(np.float64)
    moves = node.op == "Conv" and not is_padded(node)
    return Product(weights, rows, 1 - rows, 1, 1, bias, 0, moves)


def is_padded(node: Node) -> bool:
    """Whether a window may lie beyond its operand."""
    return any(node.get("pads", ())) or node.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID")


def handle_product(walk: Walk, place: int, node: Node) -> bool:
    """Conv and ConvTranspose of one group, Gemm, MatMul."""
    product = read_product(walk, node)
    if product is None:
        return node.op == "Conv" and _handle_depthwise(walk, place, node)
    _read_operand(walk, place, node, product)
    if len(node.inputs) > 2 and node.inputs[2] and walk.value(node.inputs[2]) is None:
        walk.need_all(node.inputs[2])
        return True  # the bias is no constant, and decides which channels the result has
    w = product.weights
    made = walk.atoms.make(product.result, w.shape[product.rows])
    if product.bias is not None:
        zero = np.zeros(len(made.atoms), bool)
        zero[find_zeros(w, product.rows)] = True
        made = made.where(zero, product.bias)
    walk.channels[node.outputs[0]] = walk.makers[place] = made
    walk.cuts.append(Cut(place, 1, product.rows, made.atoms))
    if product.last is not None:
        walk.cuts.append(Cut(place, 2, product.last, made.atoms))
    return True


def _read_operand(walk: Walk, place: int, node: Node, product: Product) -> None:
    """Which channels of its operand a product needs."""
    name = node.inputs[0]
    x = walk.channels.get(name)
    if x is None or x.axis != product.operand:
        walk.need_all(name)
        return
    w, others = product.weights, tuple(set(range(product.weights.ndim)) - {product.columns})
    idle = np.zeros(len(x.atoms), bool)
    idle[find_zeros(w, product.columns)] = True
    known = x.known & ~idle
    if known.any():
        known &= np.isfinite(w).all(axis=others)
    idle |= known & (x.values == 0)
    numbers = np.flatnonzero(known & (x.values != 0))
    if product.moves and len(numbers):
        columns = np.moveaxis(np.take(w, numbers, product.columns), product.rows, 0)
        sums = columns.reshape(len(columns), len(numbers), -1).sum(axis=2, dtype=np.float64)
        terms = sums * x.values[numbers]
        fits = np.isfinite(terms).all(axis=0)
        idle[numbers[fits]] = True
        walk.shifts.append(Shift(place, 2, terms[:, fits], x.atoms[numbers[fits]]))
    walk.atoms.need(x.atoms[~idle])
    walk.cuts.append(Cut(place, 1, product.columns, x.atoms))


def _handle_depthwise(walk: Walk, place: int, node: Node) -> bool:
    """A convolution of each channel by itself."""
    x, w = walk.tensor(node.inputs[0]), walk.value(node.inputs[1])
    group = int(node.get("group", 1))
    if w is None or w.ndim < 3 or w.shape[:2] != (group, 1) or x.shape[1] != group:
        return False
    bias = np.zeros(group)
    if len(node.inputs) > 2 and node.inputs[2]:
        added = walk.value(node.inputs[2])
        if added is None:
            return False
        bias = added.astype(np.float64)
    given = walk.at(node.inputs[0], 1)
    if given is None:
        return False
    zero = np.zeros(group, bool)
    zero[find_zeros(w, 0)] = True
    taps = w.reshape(group, -1).astype(np.float64)
    flat = given.known & ((given.values == 0) | (not is_padded(node)))
    flat &= np.isfinite(taps).all(axis=1)
    sums = np.where(flat & ~zero, taps.sum(axis=1) * given.values, 0.0)
    walk.channels[node.outputs[0]] = given.where(zero | flat, sums + bias)
    walk.cuts += [Cut(place, 1, 0, given.atoms), Cut(place, 2, 0, given.atoms)]
    walk.counts.append(Count(place, "group", -1, 0, given.atoms))
    return True


def find_zeros(weights: np.ndarray, axis: int) -> np.ndarray:
    """The places along a dimension at which all weights are zero.

    One number is asked of each first: weights are large, and zeros rare.
    """
    first = np.moveaxis(weights, axis, 0)
    while first.ndim > 1:
        first = first[:, 0]
    maybe = np.flatnonzero(first == 0)
    if len(maybe) > FEW:  # in the order in which they lie
        others = tuple(set(range(weights.ndim)) - {axis})
        return np.flatnonzero(~weights.astype(bool).any(axis=others))
    return np.array([i for i in maybe if not np.take(weights, i, axis).any()], np.int64)


def has_zeros(walk: Walk, node: Node) -> bool:
    """Whether a node is a product with a row or a column of zeros, where channels may end."""
    if node.domain or node.op not in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
        return False
    weights = walk.value(node.inputs[1])
    if weights is None or weights.ndim < 2 or weights.size == 0:
        return False
    return any(len(find_zeros(weights, axis)) for axis in (0, 1))
