"""Operators of ai.onnx.ml on numbers: TreeEnsemble, Binarizer, ArrayFeatureExtractor.

All trees are walked side by side, one level a step. A leaf is a node whose two ways lead to itself,
so that each walk is as long as the longest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import helper

from polyc.errors import InvalidModel, UnsupportedOp
from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require_rank

Operands = Sequence[Tensor | None]

ML_DOMAIN = "ai.onnx.ml"
_COMPARISONS = ("LessOrEqual", "Less", "GreaterOrEqual", "Greater", "Equal", "Equal")
_NOT_EQUAL, _MEMBER = 5, 6
_AVERAGE, _SUM, _MIN, _MAX = range(4)


@dataclass(frozen=True)
class Forest:
    """Nodes and, behind them, leaves: tables by number.

    members[node, k]: the set that a node of mode 6 compares with, NaN where it has fewer; depth:
    the longest way from a root.
    """

    feature: np.ndarray
    split: np.ndarray
    mode: np.ndarray
    missing: np.ndarray
    way: tuple[np.ndarray, np.ndarray]
    members: np.ndarray
    roots: np.ndarray
    depth: int


def expand_tree_ensemble(node: Node, inputs: Operands) -> Body:
    """x[rows, features] -> [rows, targets]: the weights of the leaves reached, put together."""
    c, x = Composer(), given(inputs[0])
    require_rank(x, "X", 2, 2)
    forest = read_forest(node, x.dtype)
    count = len(forest.roots)
    rows = c.extents(c.extent(node.inputs[0], 0), count)
    at = c("Expand", c.constant(forest.roots, np.int64), rows)
    for _ in range(forest.depth):
        at = _descend(c, node.inputs[0], at, forest)
    inner = len(node.attributes["nodes_splits"])
    weights, targets = node.attributes["leaf_weights"], node.attributes["leaf_targetids"]
    leaf = c("Sub", at, c.constant(np.int64(inner)))
    weight = c("Unsqueeze", c("Gather", c.constant(weights, x.dtype), leaf), c.integers(2))
    target = c("Unsqueeze", c("Gather", c.constant(targets, np.int64), leaf), c.integers(2))
    mine = c("Equal", target, c.constant(np.arange(node.get("n_targets")), np.int64))
    total = _aggregate(c, mine, weight, node.get("aggregate_function", _SUM), count, x.dtype)
    return c.body(node.inputs, (_transform(c, node, total),))


def read_forest(node: Node, dtype: np.dtype) -> Forest:
    """The attributes of a TreeEnsemble as tables."""
    get = node.attributes
    _check_tables(node)
    split, mode = np.asarray(get["nodes_splits"]), np.asarray(get["nodes_modes"]).astype(int)
    n, leaves = len(split), len(get["leaf_weights"])
    ids = [np.array(get[f"nodes_{way}nodeids"]) for way in ("true", "false")]
    ends = [np.array(get[f"nodes_{way}leafs"]).astype(bool) for way in ("true", "false")]
    own = np.arange(n, n + leaves)
    ways = [np.concatenate([np.where(e, n + i, i), own]) for i, e in zip(ids, ends, strict=True)]
    roots = np.array(get["tree_roots"])
    # A tree that is one leaf is written as a node with two ways to it.
    alone = (ends[0] & ends[1] & (ids[0] == ids[1]))[roots]
    roots = np.where(alone, n + ids[0][roots], roots)
    missing = np.array(node.get("nodes_missing_value_tracks_true") or np.zeros(n)).astype(bool)
    depth, reached = 0, set(roots[roots < n].tolist())
    while reached:
        depth += 1
        reached = {int(w[i]) for w in ways for i in reached if w[i] < n}
        if depth > n:
            raise UnsupportedOp(f"TreeEnsemble {node.name!r} has a cycle; export it again")
    values = np.asarray(node.get("membership_values", np.zeros(0)), dtype)
    return Forest(
        _extend(np.array(get["nodes_featureids"]), leaves), _extend(split, leaves),
        _extend(mode, leaves), _extend(missing, leaves), (ways[0], ways[1]),
        _read_members(values, mode, leaves), roots, depth,
    )  # fmt: skip


def _check_tables(node: Node) -> None:
    """Raise InvalidModel unless the tables have a row for each node, and name only those there are.

    Attributes are in their ranges, so that no number is negative.
    """
    get = {k: np.asarray(v) for k, v in node.attributes.items()}
    n, leaves = get["nodes_splits"].size, get["leaf_weights"].size
    lengths = {name: n for name in get if name.startswith("nodes_")} | {"leaf_targetids": leaves}
    for name, wanted in lengths.items():
        if get[name].shape != (wanted,):
            raise InvalidModel(
                f"TreeEnsemble {node.name!r}: {name} has shape {get[name].shape}, and there are "
                f"{wanted}; correct it"
            )
    below = [(get["tree_roots"], n, "tree_roots"),
             (get["nodes_modes"], _MEMBER + 1, "nodes_modes"),
             (get["leaf_targetids"], int(get.get("n_targets", 1)), "leaf_targetids")]  # fmt: skip
    for way in ("true", "false"):
        ends = get[f"nodes_{way}leafs"].astype(bool)
        numbers = get[f"nodes_{way}nodeids"]
        below += [(numbers[ends], leaves, f"leaves of nodes_{way}nodeids"),
                  (numbers[~ends], n, f"nodes of nodes_{way}nodeids")]  # fmt: skip
    for numbers, count, name in below:
        if numbers.size and not 0 <= int(numbers.max()) < count:
            raise InvalidModel(
                f"TreeEnsemble {node.name!r}: {name} go up to {int(numbers.max())}, but there are "
                f"{count}; correct it"
            )


def _extend(table: np.ndarray, leaves: int) -> np.ndarray:
    return np.concatenate([table, np.zeros(leaves, table.dtype)])


def _read_members(values: np.ndarray, mode: np.ndarray, leaves: int) -> np.ndarray:
    """The sets, each ended by a NaN, in the order of the nodes that have one."""
    sets = np.split(values, np.flatnonzero(np.isnan(values)) + 1)[:-1]
    width = max((len(s) - 1 for s in sets), default=0)
    table = np.full((len(mode) + leaves, width), np.nan, values.dtype)
    for k, members in zip(np.flatnonzero(mode == _MEMBER), sets, strict=False):
        table[k, : len(members) - 1] = members[:-1]
    return table


def _descend(c: Composer, x: str, at: str, forest: Forest) -> str:
    """From each node to the next one."""
    value = c("GatherElements", x, c("Gather", c.constant(forest.feature, np.int64), at), axis=1)
    split, modes = c("Gather", c.constant(forest.split), at), c.constant(forest.mode, np.int64)
    holds = ""
    for mode in np.unique(forest.mode):
        if mode == _MEMBER:
            sets = c("Gather", c.constant(forest.members), at)
            same = c("Equal", c("Unsqueeze", value, c.integers(2)), sets)
            number = c("Cast", same, to=int(helper.np_dtype_to_tensor_dtype(np.dtype(np.int32))))
            most = c("ReduceMax", number, c.integers(2), keepdims=0)
            test = c("Greater", most, c.constant(np.int32(0)))
        else:
            test = c(_COMPARISONS[mode], value, split)
            test = c("Not", test) if mode == _NOT_EQUAL else test
        here = c("Equal", c("Gather", modes, at), c.constant(np.int64(mode)))
        holds = c("Where", here, test, holds) if holds else test
    if forest.missing.any():
        tracks = c("Gather", c.constant(forest.missing), at)
        holds = c("Or", holds, c("And", c("IsNaN", value), tracks))
    then, otherwise = (c("Gather", c.constant(way, np.int64), at) for way in forest.way)
    return c("Where", holds, then, otherwise)


def _aggregate(
    c: Composer, mine: str, weight: str, function: int, trees: int, dtype: np.dtype
) -> str:
    """mine[rows, trees, targets], weight[rows, trees, 1] -> [rows, targets]"""
    limits = np.finfo(dtype)
    neutral = {_MIN: limits.max, _MAX: limits.min}.get(function, 0.0)
    op = {_MIN: "ReduceMin", _MAX: "ReduceMax"}.get(function, "ReduceSum")
    parts = c("Where", mine, weight, c.constant(neutral, dtype))
    total = c(op, parts, c.integers(1), keepdims=0)
    return c("Div", total, c.constant(float(trees), dtype)) if function == _AVERAGE else total


def _transform(c: Composer, node: Node, total: str) -> str:
    kind = node.get("post_transform", 0)
    if kind == 0:
        return total
    if kind == 1:
        return c("Softmax", total, axis=-1)
    if kind == 2:
        return c("Sigmoid", total)
    raise UnsupportedOp(
        f"TreeEnsemble {node.name!r}: post_transform {kind} is not supported; "
        "apply it behind the operator"
    )


def expand_binarizer(node: Node, inputs: Operands) -> Body:
    """1 where x is more than the threshold, else 0, in the type of x."""
    c, dtype = Composer(), given(inputs[0]).dtype
    above = c("Greater", node.inputs[0], c.constant(node.get("threshold", 0.0), dtype))
    code = int(helper.np_dtype_to_tensor_dtype(dtype))
    return c.body(node.inputs, (c("Cast", above, to=code),))


def expand_feature_extractor(node: Node, inputs: Operands) -> Body:
    """x[…, n], i -> x[…, i]: of a vector, one row."""
    c, x = Composer(), given(inputs[0])
    at = c("Reshape", node.inputs[1], c.integers(-1))
    data = c("Unsqueeze", node.inputs[0], c.integers(0)) if x.rank == 1 else node.inputs[0]
    return c.body(node.inputs, (c("Gather", data, at, axis=-1),))
