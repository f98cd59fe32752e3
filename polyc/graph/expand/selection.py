"""TopK of many: few are found first, and they alone are ranked; more are sorted by merging.

    keys[i]  =  an integer for x[i], larger for what comes first     (its bits, for floats)
    t        =  the largest number that K keys or more reach         (bit by bit, from the first)
    place[p] =  the p-th i with keys[i] > t, or keys[i] = t while there is room
    y        =  TopK(x[place])                                       (`lower/movement/selection.py`)

To count keys for each bit takes a few passes over x, where the ranks of all elements take as many
as there are elements: detectors choose 100 of 8,400 boxes, or 1,000 of 120,000.

Where more than a quarter is wanted, blocks are ranked, and merged two and two, block by block:

    places  =  where the elements of each block are, in order
    in log2(blocks) steps:   places, keys  =  those of blocks of twice as many    (`Merged`)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from onnx import TensorProto
from onnx.helper import np_dtype_to_tensor_dtype

from polyc.graph.compose import Composer
from polyc.graph.ir import INTERNAL, Body, Node, Tensor
from polyc.graph.shapes import infer_node
from polyc.graph.shapes.checks import given, known_int
from polyc.graph.shapes.dims import normalize_axis
from polyc.graph.steps import Loop
from polyc.types.element_types import is_float
from polyc.types.sizes import bounds

MANY = 512
"""Elements from which on to choose some takes less than to rank all: there may be as many."""

FEW = 4
"""How many times as many there are, at least, as are chosen: these are ranked."""

BLOCK = 128
"""Elements that are ranked at once before they are merged."""

SORTED = 512
"""Elements from which on to merge blocks takes less than to rank all."""

MOST_SORTED = 1 << 30
"""Elements whose places, and those of what is merged with them, are integers of 32 bits."""


def expand_top_k(node: Node, inputs: Sequence[Tensor | None]) -> Body | None:
    """x[…, n, …], K -> values, indices [… K …]; None where all elements are ranked at once."""
    x, wanted = given(inputs[0]), given(inputs[1])
    infer_node(node, (x, wanted))  # K is no more than there are
    if x.is_constant or x.size == 0:
        return None
    count, axis = known_int(wanted, "K"), normalize_axis(int(node.get("axis", -1)), x.rank)
    extent = x.shape[axis]
    most = bounds(count)[1]
    if not most or math.isinf(most):
        return None
    few = bounds(extent)[1] >= max(MANY, FEW * most)
    if not few and not SORTED <= bounds(extent)[1] <= MOST_SORTED:
        return None
    c, data, largest = Composer(), node.inputs[0], bool(node.get("largest", 1))
    order = [k for k in range(x.rank) if k != axis] + [axis]
    back = [order.index(k) for k in range(x.rank)]
    moved = data if axis == x.rank - 1 else c("Transpose", data, perm=order)
    flat = c("Reshape", moved, c.extents(-1, c.extent(data, axis)))
    number = c("Reshape", node.inputs[1], c.integers(1))
    if few:
        places = _choose(c, flat, x.dtype, number, largest)
        chosen = c("GatherElements", flat, places, axis=1)
        kinds = {k: v for k, v in node.attributes.items() if k != "axis"}
        values, ranks = c.several("TopK", 2, chosen, number, axis=1, **kinds)
        places = c("GatherElements", places, ranks, axis=1)
    else:
        keys, kind = _keys(c, flat, x.dtype, largest)
        sorted_ = _sort(c, keys, kind, int(bounds(extent)[1]))
        zero, axes = c.integers(0), c.integers(1)
        places = c("Slice", sorted_, zero, number, axes)
        values = c("GatherElements", flat, places, axis=1)
    results = []
    for found in (values, places):
        lead = c("Shape", moved, start=0, end=-1)
        shaped = c("Reshape", found, c("Concat", lead, number, axis=0))
        results.append(shaped if moved == data else c("Transpose", shaped, perm=back))
    return c.body(tuple(dict.fromkeys(node.inputs)), results)


def _sort(c: Composer, keys: str, kind: np.dtype, most: int) -> str:
    """keys[rows, n] -> int64[rows, n]: where they are, in falling order; equal ones as they were.

    The last block is filled up with what comes last: the lowest key, behind others that have it.
    most: the largest n. Runs that are longer than what there is stay as they are.
    """
    n, block = c.extent(keys, 1), c.integers(BLOCK)
    blocks = c("Div", c("Add", n, c.integers(BLOCK - 1)), block)
    whole = c("Mul", blocks, block)
    lacking = c.extents(0, 0, 0, c("Sub", whole, n))
    keys = c("Pad", keys, lacking, c.constant(-_past(kind), kind))
    each = c("Reshape", keys, c.extents(-1, blocks, BLOCK))
    ranked, within = c.several("TopK", 2, each, block, axis=2)
    first = c("Reshape", c("Mul", c.count_up(blocks), block), c.integers(1, -1, 1))
    flat = c.extents(-1, whole)
    keys, places = (c("Reshape", t, flat) for t in (ranked, c("Add", within, first)))
    halves = [BLOCK << k for k in range((-(-most // BLOCK) - 1).bit_length())]
    loop = Loop(c, c.constant(np.int64(len(halves))), [keys, places])
    half = c("Gather", c.constant(halves, np.int32), c("Unsqueeze", loop.step, c.integers(0)))
    source = c("Merged", loop.states[0], half, domain=INTERNAL)
    merged = [c("GatherElements", state, source, axis=1) for state in loop.states]
    ((_, places), _) = loop.finish(merged, (), ())
    return c("Slice", places, c.integers(0), n, c.integers(1))


def _choose(c: Composer, x: str, dtype: np.dtype, count: str, largest: bool) -> str:
    """x[rows, n] -> int64[rows, count]: where the first ones in order are, by rising index."""
    keys, kind = _keys(c, x, dtype, largest)
    number = c("Cast", c("Squeeze", count, c.integers(0)), to=TensorProto.INT32)
    least = _reached_by(c, keys, kind, number)
    ahead, equal = (c(op, keys, least) for op in ("Greater", "Equal"))
    room = c("Sub", number, _count(c, ahead))
    among = c("CumSum", c("Cast", equal, to=TensorProto.INT32), c.constant(np.int64(1)))
    chosen = c("Or", ahead, c("And", equal, c("LessOrEqual", among, room)))
    totals = c("CumSum", c("Cast", chosen, to=TensorProto.INT64), c.constant(np.int64(1)))
    return c("Places", totals, count, domain=INTERNAL)


def _reached_by(c: Composer, keys: str, kind: np.dtype, count: str) -> str:
    """keys[rows, n] -> [rows, 1]: the largest number that so many of a row reach.

    It is found from its first bit on: a bit is set if enough keys reach what it then is. The sign
    is the first bit, turned round.
    """
    least, number = -_past(kind), 8 * kind.itemsize
    bits = c.constant([least, *(1 << k for k in range(number - 2, -1, -1))], kind)
    first = c("ConstantOfShape", c.extents(c.extent(keys, 0), 1), value=np.array([least], kind))
    loop = Loop(c, c.constant(np.int64(number)), [first])
    (found,) = loop.states
    tried = c("BitwiseXor", found, c("Gather", bits, loop.step))
    enough = _count(c, c("GreaterOrEqual", keys, tried))
    reached = c("GreaterOrEqual", enough, count)
    ((found,), _) = loop.finish([c("Where", reached, tried, found)], (), ())
    return found


def _count(c: Composer, flags: str) -> str:
    """flags[rows, n] -> int32[rows, 1]: how many are true."""
    return c("ReduceSum", c("Cast", flags, to=TensorProto.INT32), c.integers(1), keepdims=1)


def _keys(c: Composer, x: str, dtype: np.dtype, largest: bool) -> tuple[str, np.dtype]:
    """Signed integers that are larger for what comes first, and equal for what is equal.

    A NaN counts as the largest number, and -0 is 0. The bits of a negative float fall where it
    rises, those behind its sign.
    """
    kind = np.dtype(np.int64 if _width(dtype) > 4 else np.int32)
    if is_float(dtype):
        wide = np.dtype(np.float64 if kind == np.int64 else np.float32)
        x = c("Cast", x, to=np_dtype_to_tensor_dtype(wide))
        zero, most = c.constant(0, wide), c.constant(_past(kind) - 1, kind)
        x = c("Where", c("Equal", x, zero), zero, x)
        bits = c("BitCast", x, to=np_dtype_to_tensor_dtype(kind))
        turned = c("BitwiseXor", bits, most)
        keys = c("Where", c("Less", bits, c.constant(0, kind)), turned, bits)
        keys = c("Where", c("IsNaN", x), most, keys)
    elif dtype == np.uint64:
        bits = c("BitCast", x, to=TensorProto.INT64)
        keys = c("BitwiseXor", bits, c.constant(-_past(kind), kind))
    else:
        keys = c("Cast", x, to=np_dtype_to_tensor_dtype(kind))
    return keys if largest else c("BitwiseNot", keys), kind


def _past(kind: np.dtype) -> int:
    """One more than the largest integer of a type with a sign."""
    return 1 << (8 * kind.itemsize - 1)


def _width(dtype: np.dtype) -> int:
    """The bytes of the integers that order elements of a type: more for unsigned ones."""
    return dtype.itemsize + (dtype.kind == "u")
