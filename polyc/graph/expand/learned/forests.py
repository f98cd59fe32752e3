"""Decision trees: all are walked side by side, one level a step, and their leaves' weights joined.

A leaf is a node whose two ways lead to itself, so that each walk is as long as the longest. What
the leaves give is a table with a row for each of them; where all leaves of a tree count for one
target, as in gradient boosting, trees are put in order of their targets, and the table is a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from polyc.budget import require_table
from polyc.errors import TooLarge
from polyc.graph.compose import Composer
from polyc.graph.expand.learned.tables import refuse
from polyc.graph.ir import Node
from polyc.graph.shapes.checks import require_at_least
from polyc.graph.steps import Loop
from polyc.types.sizes import Extent

EQUAL, NOT_EQUAL, MEMBER = 4, 5, 6
AVERAGE, SUM, MIN, MAX = range(4)

_COMPARISONS = ("LessOrEqual", "Less", "GreaterOrEqual", "Greater", "Equal", "Equal")
_WRITTEN_OUT = 12
"""Levels up to which a walk is written out; deeper ones are a loop with some levels a step."""
_LEVELS_A_STEP = 8
_MOST_LEVELS = 4096


@dataclass(frozen=True)
class Forest:
    """Nodes, behind them leaves, and one leaf more that no way leads to: tables by number.

    feature, split, mode, missing: what a node compares, and whether what is missing goes the first
    way; ways: where it leads if that holds, and if not; members[node, k]: the set that a node of
    mode 6 compares with, NaN where it has fewer; nodes: how many there are before the leaves;
    roots: where each tree begins; depth: the longest way from a root.
    """

    feature: np.ndarray
    split: np.ndarray
    mode: np.ndarray
    missing: np.ndarray
    ways: tuple[np.ndarray, np.ndarray]
    members: np.ndarray
    nodes: int
    roots: np.ndarray
    depth: int

    @property
    def leaves(self) -> int:
        return len(self.ways[0]) - self.nodes


@dataclass(frozen=True)
class Weights:
    """What leaves count: leaf[k] adds weight[k] to target[k], of so many targets."""

    targets: int
    leaf: np.ndarray
    target: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class Scores:
    """What trees give together: total[rows, targets].

    leaf[rows, trees]: those that were reached; certain[k]: whether each row has a weight for a
    target, or none has; where that depends on the leaves, `there` is what they have weights for.
    """

    total: str
    leaf: str
    certain: tuple[bool | None, ...]
    there: np.ndarray


def grow(
    node: Node,
    columns: Sequence[np.ndarray],
    ways: tuple[np.ndarray, np.ndarray],
    leaves: int,
    roots: np.ndarray,
    members: np.ndarray | None = None,
) -> Forest:
    """The forest of nodes with these features, splits, modes and ways for what is missing.

    A way to number k of `leaves` leads to the number of nodes + k. Raises InvalidModel for ways
    that go in circles, and TooLarge for trees of thousands of levels.
    """
    nodes = len(columns[0])
    own = np.arange(nodes, nodes + leaves + 1)
    both = (np.concatenate([ways[0], own]), np.concatenate([ways[1], own]))
    feature, split, mode, missing = (
        np.concatenate([column, np.zeros(leaves + 1, column.dtype)]) for column in columns
    )
    sets = np.full((nodes, 0), np.nan, split.dtype) if members is None else members
    sets = np.concatenate([sets, np.full((leaves + 1, sets.shape[1]), np.nan, sets.dtype)])
    depth = _measure_depth(node, both, roots, nodes)
    return Forest(feature, split, mode, missing, both, sets, nodes, roots, depth)


def _measure_depth(
    node: Node, ways: tuple[np.ndarray, np.ndarray], roots: np.ndarray, nodes: int
) -> int:
    """The longest way from a root to a leaf; trees may share what is below, but not in circles."""
    table = np.stack(ways)
    reached = np.zeros(table.shape[1], bool)
    level = np.unique(roots)
    while len(level):
        reached[level] = True
        below = np.unique(table[:, level[level < nodes]])
        level = below[~reached[below]]
    inner = np.flatnonzero(reached[:nodes])
    waiting = np.bincount(table[:, inner].ravel(), minlength=table.shape[1])
    level, depth, left = inner[waiting[inner] == 0], 0, len(inner)
    while len(level):
        depth, left = depth + 1, left - len(level)
        below, times = np.unique(table[:, level], return_counts=True)
        waiting[below] -= times
        level = below[(waiting[below] == 0) & (below < nodes)]
    if left:
        raise refuse(node, f"its trees go in circles: {left} nodes lead to themselves")
    if depth > _MOST_LEVELS:
        raise TooLarge(
            f"{node.op} {node.name!r} has a tree of {depth} levels, and the limit is "
            f"{_MOST_LEVELS}; train shallower trees"
        )
    return depth


def list_owners(forest: Forest) -> np.ndarray | None:
    """The tree that each leaf belongs to, or -1 if to none; None where trees share leaves."""
    table = np.stack(forest.ways)
    owner = np.full(table.shape[1], -1)
    level, trees = forest.roots, np.arange(len(forest.roots))
    if len(np.unique(level)) < len(level):
        return None
    while len(level):
        if ((owner[level] >= 0) & (owner[level] != trees)).any():
            return None
        owner[level] = trees
        level, trees = level[level < forest.nodes], trees[level < forest.nodes]
        level, trees = table[:, level].ravel(), np.tile(trees, 2)
        new = np.unique(np.stack([level, trees]), axis=1)
        level, trees = new[0], new[1]
        seen = owner[level] == trees
        level, trees = level[~seen], trees[~seen]
    return owner[forest.nodes :]


_JOINS = {MIN: np.minimum, MAX: np.maximum}
"""How several weights of a leaf for one target are put together; else they are added."""


def compose_scores(
    c: Composer, x: str, features: Extent, forest: Forest, weights: Weights, function: int
) -> Scores:
    """x[rows, features]  ->  the weights of the leaves that each row reaches, put together"""
    used = int(forest.feature.max(initial=0)) + 1
    way_out = "features are counted from 0: correct the numbers of features in the nodes"
    require_at_least(features, used, "features of X that trees compare", features, way_out)
    owner = list_owners(forest) if weights.targets > 1 else None
    own = None if owner is None else _targets_of_trees(forest, weights, owner)
    if weights.targets == 1 or own is not None:
        return _score_by_trees(c, x, forest, weights, function, own)
    require_table(forest.leaves * weights.targets, "what the leaves of trees count")
    there = np.zeros((forest.leaves, weights.targets), bool)
    there[weights.leaf, weights.target] = True
    table = np.full(there.shape, _neutral(function, weights.weight.dtype))
    _JOINS.get(function, np.add).at(table, (weights.leaf, weights.target), weights.weight)
    leaf = _walk(c, x, forest, forest.roots)
    parts = c("Gather", c.constant(table), leaf)
    total = _reduce(c, parts, function, len(forest.roots), 1, weights.weight.dtype)
    return Scores(total, leaf, _what_is_certain(forest, there, owner), there)


def _score_by_trees(
    c: Composer, x: str, forest: Forest, weights: Weights, function: int, own: np.ndarray | None
) -> Scores:
    """Of trees that count for one target each: own[tree], or the only one."""
    dtype, trees = weights.weight.dtype, len(forest.roots)
    own = np.zeros(trees, int) if own is None else own
    counts = np.bincount(own, minlength=weights.targets)
    rows = np.full((weights.targets, counts.max()), forest.nodes + forest.leaves - 1)
    for target in range(weights.targets):
        rows[target, : counts[target]] = forest.roots[own == target]
    table = np.full(forest.leaves, _neutral(function, dtype))
    _JOINS.get(function, np.add).at(table, weights.leaf, weights.weight)
    leaf = _walk(c, x, forest, rows.ravel())
    parts = c("Gather", c.constant(table), leaf)
    if weights.targets > 1:
        parts = c("Reshape", parts, c.integers(0, *rows.shape))
    keep = weights.targets == 1
    total = _reduce(c, parts, function, trees, 1 if keep else 2, dtype, keep)
    there = counts > 0
    return Scores(total, leaf, tuple(there.tolist()), np.zeros((0, 0), bool))


def _targets_of_trees(forest: Forest, weights: Weights, owner: np.ndarray) -> np.ndarray | None:
    """The target that each tree counts for; None if some count for several, or less alike."""
    if not np.array_equal(np.sort(weights.leaf), np.flatnonzero(owner >= 0)):
        return None
    trees = owner[weights.leaf]
    least = np.full(len(forest.roots), weights.targets)
    most = np.full(len(forest.roots), -1)
    np.minimum.at(least, trees, weights.target)
    np.maximum.at(most, trees, weights.target)
    if not np.array_equal(least, most):
        return None
    counts = np.bincount(least, minlength=weights.targets)
    return least if counts.max() * weights.targets <= 2 * len(forest.roots) else None


def _neutral(function: int, dtype: np.dtype) -> np.ndarray:
    limits = np.finfo(dtype)
    return np.array({MIN: limits.max, MAX: limits.min}.get(function, 0.0), dtype)


def _what_is_certain(
    forest: Forest, there: np.ndarray, owner: np.ndarray | None
) -> tuple[bool | None, ...]:
    """Of each target, whether all rows have a weight for it, or none; None if that depends."""
    trees = len(forest.roots)
    own = np.zeros(forest.leaves, int) if owner is None else owner
    count = np.bincount(own[own >= 0], minlength=trees)
    certain: list[bool | None] = []
    for column in there.T:
        full = np.bincount(own[(own >= 0) & column], minlength=trees) == count
        always = column[:-1].all() if owner is None else full[count > 0].any()
        certain.append(True if always else None if column.any() else False)
    return tuple(certain)


def compose_presence(c: Composer, scores: Scores) -> str:
    """bool[rows, targets]: for which targets the leaves of a row have weights"""
    if None not in scores.certain:
        return c.constant(np.array([scores.certain]))
    there = c("Gather", c.constant(scores.there, np.int32), scores.leaf)
    return c("Greater", c("ReduceMax", there, c.integers(1), keepdims=0), c.constant(np.int32(0)))


def _reduce(
    c: Composer,
    parts: str,
    function: int,
    trees: int,
    axis: int,
    dtype: np.dtype,
    keep: bool = False,
) -> str:
    op = {MIN: "ReduceMin", MAX: "ReduceMax"}.get(function, "ReduceSum")
    total = c(op, parts, c.integers(axis), keepdims=int(keep))
    return c("Div", total, c.constant(trees, dtype)) if function == AVERAGE else total


def _walk(c: Composer, x: str, forest: Forest, roots: np.ndarray) -> str:
    """x[rows, features]  ->  int64[rows, roots]: the number of the leaf that is reached"""
    rows = c.extents(c.extent(x, 0), len(roots))
    at = c("Expand", c.constant(roots, np.int64), rows)
    descend = _Descent(c, x, forest)
    if forest.depth <= _WRITTEN_OUT:
        for _ in range(forest.depth):
            at = descend(at)
    else:
        steps = -(-forest.depth // _LEVELS_A_STEP)
        loop = Loop(c, c.constant(np.int64(steps)), [at])
        at = loop.states[0]
        for _ in range(-(-forest.depth // steps)):
            at = descend(at)
        ((at,), _) = loop.finish([at], [], [])
    return c("Sub", at, c.constant(np.int64(forest.nodes)))


class _Descent:
    """From each node to the next one: at[rows, trees] -> at[rows, trees]"""

    def __init__(self, c: Composer, x: str, forest: Forest) -> None:
        self._compose, self._x = c, x
        self._kinds = np.unique(forest.mode[: forest.nodes])
        self._feature, self._mode = (
            c.constant(table, np.int64) for table in (forest.feature, forest.mode)
        )
        self._split, self._members = c.constant(forest.split), c.constant(forest.members)
        self._ways = [c.constant(way, np.int64) for way in forest.ways]
        self._missing = c.constant(forest.missing) if forest.missing.any() else ""

    def __call__(self, at: str) -> str:
        c = self._compose
        value = c("GatherElements", self._x, c("Gather", self._feature, at), axis=1)
        holds = ""
        for kind in self._kinds:
            test = self._test(int(kind), value, at)
            if holds:
                here = c("Equal", c("Gather", self._mode, at), c.constant(np.int64(kind)))
                test = c("Where", here, test, holds)
            holds = test
        if self._missing:
            tracks = c("Gather", self._missing, at)
            holds = c("Or", holds, c("And", c("IsNaN", value), tracks))
        then, otherwise = (c("Gather", way, at) for way in self._ways)
        return c("Where", holds, then, otherwise)

    def _test(self, kind: int, value: str, at: str) -> str:
        """What nodes of one kind ask of a feature's value."""
        c = self._compose
        if kind != MEMBER:
            test = c(_COMPARISONS[kind], value, c("Gather", self._split, at))
            return c("Not", test) if kind == NOT_EQUAL else test
        sets = c("Gather", self._members, at)
        same = c("Equal", c("Unsqueeze", value, c.integers(2)), sets)
        most = c("ReduceMax", c("Cast", same, to=TensorProto.INT32), c.integers(2), keepdims=0)
        return c("Greater", most, c.constant(np.int32(0)))
