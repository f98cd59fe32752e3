"""TfIdfVectorizer on numbers: how often each n-gram of a pool is in a row.

An n-gram is sought at each position, with 0 to a number of elements skipped between its items.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from onnx import TensorProto

from polyc.budget import require_table
from polyc.errors import UnsupportedOp
from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require, require_rank
from polyc.graph.shapes.dims import fixed_all


def expand_tf_idf(node: Node, inputs: Sequence[Tensor | None]) -> Body:
    """x[length] or x[rows, length] of integers -> float32[…, largest of ngram_indexes + 1]"""
    c, x = Composer(), given(inputs[0])
    require_rank(x, "X", 1, 2)
    *lead, length = fixed_all(x.shape, "a dimension of X")
    if "pool_int64s" not in node.attributes:
        raise UnsupportedOp(f"TfIdfVectorizer {node.name!r} has no pool of integers; give one")
    pool, indexes = np.array(node.get("pool_int64s")), np.array(node.attributes["ngram_indexes"])
    starts = [*node.attributes["ngram_counts"], len(pool)]
    grams_there = _count_grams(starts)
    way_out = "ngram_counts say where those of each length begin"
    fits = grams_there is not None and grams_there == len(indexes)
    require(fits, "n-grams in the pool", len(indexes), grams_there, way_out)
    counts, order, position = [], [], 0
    for n in range(1, len(starts)):
        grams = pool[starts[n - 1] : starts[n]].reshape(-1, n)
        mine = indexes[position : position + len(grams)]
        position += len(grams)
        wanted = node.attributes["min_gram_length"] <= n <= node.attributes["max_gram_length"]
        skips = range(1 if n == 1 else node.attributes["max_skip_count"] + 1)
        for skip in skips if wanted and len(grams) else ():
            places = length - (n - 1) * (skip + 1)
            if places > 0:
                counts.append(_count(c, node.inputs[0], grams.astype(x.dtype), places, skip + 1))
                order.append(mine)
    size = int(indexes.max(initial=0)) + 1
    require_table(size * (len(indexes) + math.prod(lead)), f"{node.op} {node.name!r}")
    result = c.constant(np.zeros((*lead, size)), np.float32)
    if counts:
        found = c("Cast", c("Concat", *counts, axis=-1), to=TensorProto.FLOAT)
        where = np.concatenate(order)[:, None] == np.arange(size)
        result = c("MatMul", found, c.constant(where, np.float32))
    return c.body(node.inputs, (_weigh(c, node, result, size),))


def _count_grams(starts: Sequence[int]) -> int | None:
    """How many n-grams a pool has, whose words of n = 1, 2, … begin there; None if that is no pool.

    (0, 4, 10): 4 words of one item, 3 of two -> 7
    """
    lengths = [end - start for start, end in pairwise(starts)]
    whole = all(m >= 0 and m % n == 0 for n, m in enumerate(lengths, start=1))
    return sum(m // n for n, m in enumerate(lengths, start=1)) if whole else None


def _count(c: Composer, x: str, grams: np.ndarray, places: int, step: int) -> str:
    """How often each row of grams[g, n] is in x, elements `step` apart: int32[…, g]"""
    at = np.arange(places)[:, None] + step * np.arange(grams.shape[1])
    windows = c("Gather", x, c.constant(at, np.int64), axis=-1)  # […, places, n]
    same = c("Equal", c("Unsqueeze", windows, c.integers(-2)), c.constant(grams))
    all_same = c("ReduceMin", c("Cast", same, to=TensorProto.INT32), c.integers(-1), keepdims=0)
    return c("ReduceSum", all_same, c.integers(-2), keepdims=0)


def _weigh(c: Composer, node: Node, counts: str, size: int) -> str:
    """Counts (TF), a weight where there is any (IDF), or counts times weights (TFIDF)."""
    mode = node.get("mode", "TF")
    weights = np.array(node.get("weights") or np.ones(size), np.float32)
    require(weights.size >= size, "length of weights", size, weights.size, "give one each")
    table = c.constant(weights[:size])
    if mode == "TF":
        return counts
    if mode == "TFIDF":
        return c("Mul", counts, table)
    zero = c.constant(np.float32(0))
    return c("Where", c("Greater", counts, zero), table, zero)
