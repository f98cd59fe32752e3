"""TreeEnsembleClassifier and TreeEnsembleRegressor: nodes that are named by tree and number.

Their branches and leaves stand in one list; what leaves count is in another one, which names them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyc.graph.compose import Composer
from polyc.graph.expand.learned.forests import (
    AVERAGE,
    EQUAL,
    MAX,
    MIN,
    NOT_EQUAL,
    SUM,
    Forest,
    Scores,
    Weights,
    compose_presence,
    compose_scores,
    grow,
)
from polyc.graph.expand.learned.scores import (
    add_opposite,
    as_floats,
    find_largest,
    is_positive,
    name_classes,
    transform,
    transform_one,
)
from polyc.graph.expand.learned.tables import (
    as_rows,
    read_labels,
    read_list,
    refuse,
    require_below,
    require_length,
)
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given

Operands = Sequence[Tensor | None]

_MODES = {"BRANCH_LEQ": 0, "BRANCH_LT": 1, "BRANCH_GTE": 2, "BRANCH_GT": 3, "BRANCH_EQ": EQUAL,
          "BRANCH_NEQ": NOT_EQUAL, "LEAF": -1}  # fmt: skip
_FUNCTIONS = {"AVERAGE": AVERAGE, "SUM": SUM, "MIN": MIN, "MAX": MAX}
_COLUMNS = ("treeids", "nodeids", "featureids", "modes", "truenodeids", "falsenodeids")


def expand_tree_regressor(node: Node, inputs: Operands) -> Body:
    """x[rows, features] -> float32[rows, targets]"""
    c = Composer()
    x, features = as_rows(c, node.inputs[0], given(inputs[0]))
    x, dtype = _as_compared(c, x, given(inputs[0]).dtype)
    targets = int(node.get("n_targets", 1))
    forest, weights = read_ensemble(node, "target", targets, dtype)
    function = _FUNCTIONS[node.get("aggregate_function", "SUM")]
    scores = compose_scores(c, x, features, forest, weights, function)
    total, base = scores.total, read_list(node, "base_values", dtype)
    if len(base):
        require_length(node, "base_values", len(base), targets)
        total = c("Add", total, c.constant(base))
    changed = len(base) or function in (MIN, MAX)
    if changed and targets > 1 and not all(scores.certain):
        # A target without weights is 0 for ONNX Runtime, whatever is added to it.
        total = c("Where", compose_presence(c, scores), total, c.constant(0, dtype))
    total = as_floats(c, total, dtype)
    change = transform if targets > 1 else transform_one
    return c.body(node.inputs, (change(c, node.get("post_transform", "NONE"), total),))


def expand_tree_classifier(node: Node, inputs: Operands) -> Body:
    """x[rows, features] -> the label of each row's class, float32[rows, classes]"""
    c = Composer()
    x, features = as_rows(c, node.inputs[0], given(inputs[0]))
    x, dtype = _as_compared(c, x, given(inputs[0]).dtype)
    labels = read_labels(node, "classlabels_int64s")
    forest, weights = read_ensemble(node, "class", len(labels), dtype)
    scores = compose_scores(c, x, features, forest, weights, SUM)
    base = read_list(node, "base_values", dtype)
    if len(base) and not (len(base) == 1 and len(labels) == 2):
        require_length(node, "base_values", len(base), len(labels))
    if len(labels) == 1:
        number, shares = _choose_one(c, node, scores, base)
    elif len(labels) == 2:
        number, shares = _choose_of_two(c, node, scores, weights, base)
    else:
        number, shares = _choose_of_many(c, node, scores, base)
    return c.body(node.inputs, (name_classes(c, _listed(node, labels, weights), number), shares))


def _listed(node: Node, labels: list[int] | list[str], weights: Weights) -> list[int] | list[str]:
    """The labels by the number of the class: for ONNX Runtime 0 and 1 are labels, too."""
    if len(labels) == 1 and isinstance(labels[0], str):
        raise refuse(node, "its only class has text for a label, and scores tell two classes apart")
    several = len(labels) == 1 or (len(labels) == 2 and len(np.unique(weights.target)) > 1)
    return [0, 1] if several and isinstance(labels[0], int) else labels


def _as_compared(c: Composer, x: str, dtype: np.dtype) -> tuple[str, np.dtype]:
    """Doubles stay; all else is compared as float32, as ONNX Runtime does."""
    if dtype == np.float64:
        return x, dtype
    return as_floats(c, x, dtype), np.dtype(np.float32)


def read_ensemble(node: Node, what: str, targets: int, dtype: np.dtype) -> tuple[Forest, Weights]:
    """The tables of nodes, and of what leaves count for each "class" or "target"."""
    lists = {name: np.asarray(node.get(f"nodes_{name}", ())) for name in _COLUMNS}
    split = read_list(node, "nodes_values", dtype)
    count = len(lists["nodeids"])
    if not count:
        raise refuse(node, "it has no nodes")
    missing = np.asarray(node.get("nodes_missing_value_tracks_true") or np.zeros(count), int)
    for name, column in {**lists, "values": split, "missing_value_tracks_true": missing}.items():
        require_length(node, f"nodes_{name}", len(column), count)
    keys = (lists["treeids"].astype(np.int64) << 31) + lists["nodeids"]
    mode = np.array([_MODES[name] for name in lists["modes"]])
    order = np.argsort(mode < 0, kind="stable")  # leaves come last
    places = _Places(node, keys, order)
    inner = order[mode[order] >= 0]
    above = lists["treeids"].astype(np.int64) << 31
    ways = [
        places.find(f"nodes_{way}nodeids", above[inner], lists[f"{way}nodeids"][inner])
        for way in ("true", "false")
    ]
    _, first = np.unique(lists["treeids"], return_index=True)
    roots = places.numbers[np.sort(first)]
    columns = (lists["featureids"][inner], split[inner], mode[inner], missing[inner].astype(bool))
    leaves = count - len(inner)
    forest = grow(node, columns, (ways[0], ways[1]), leaves, roots)
    return forest, _read_weights(node, what, targets, dtype, places, forest)


class _Places:
    """Where nodes are, by tree and number: numbers[k] of the k-th of the list."""

    def __init__(self, node: Node, keys: np.ndarray, order: np.ndarray) -> None:
        self._node = node
        self.numbers = np.empty(len(order), np.int64)
        self.numbers[order] = np.arange(len(order))
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]
        twice = np.flatnonzero(self._sorted[1:] == self._sorted[:-1])
        if len(twice):
            raise refuse(node, f"{_show(int(self._sorted[twice[0]]))} is there twice")

    def find(self, name: str, trees: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """The numbers of nodes of these trees (shifted by 31 bits) and ids."""
        keys = trees + ids
        at = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        wrong = np.flatnonzero((self._sorted[at] != keys) | (ids < 0))
        if len(wrong):
            k = wrong[0]
            named = f"node {int(ids[k])} of tree {int(trees[k]) >> 31}"
            raise refuse(self._node, f"{name} names {named}, which is not there")
        return self.numbers[self._order[at]]


def _show(key: int) -> str:
    return f"node {key & (2**31 - 1)} of tree {key >> 31}"


def _read_weights(
    node: Node, what: str, targets: int, dtype: np.dtype, places: _Places, forest: Forest
) -> Weights:
    """What leaves count, in the order of the lists; ONNX Runtime passes over that of branches."""
    trees, ids, target = (
        np.asarray(node.get(f"{what}_{name}", ()), np.int64)
        for name in ("treeids", "nodeids", "ids")
    )
    weight = read_list(node, f"{what}_weights", dtype)
    for name, column in {"treeids": trees, "ids": target, "weights": weight}.items():
        require_length(node, f"{what}_{name}", len(column), len(ids))
    require_below(node, f"{what}_ids", target, targets)
    leaf = places.find(f"{what}_nodeids", trees << 31, ids) - forest.nodes
    of_leaves = leaf >= 0
    empty = forest.leaves - 1 - len(np.unique(leaf[of_leaves]))
    if empty:
        raise refuse(node, f"{empty} leaves have no entry in {what}_nodeids")
    return Weights(targets, leaf[of_leaves], target[of_leaves], weight[of_leaves])


def _choose_one(c: Composer, node: Node, scores: Scores, base: np.ndarray) -> tuple[str, str]:
    """Of one class: 1 where its score is positive, else 0."""
    total, dtype = scores.total, base.dtype
    if len(base):
        total = c("Add", total, c.constant(base))
    number = is_positive(c, total, 0.0, dtype)
    return number, transform_one(c, node.get("post_transform", "NONE"), as_floats(c, total, dtype))


def _choose_of_two(
    c: Composer, node: Node, scores: Scores, weights: Weights, base: np.ndarray
) -> tuple[str, str]:
    """Of two classes: the number, 0 or 1, and the scores of both.

    Weights for one class alone are those of the second one, whatever class they name: shares of 1
    if none is negative. So ONNX Runtime has it, which looks for weights of class 1 in each row.
    """
    columns = [c("Slice", scores.total, *map(c.integers, (k, k + 1, 1))) for k in (0, 1)]
    there = "" if scores.certain == (True, True) else compose_presence(c, scores)
    certain = scores.certain[1]
    if certain is not None:
        return _choose_with(c, node, columns, weights, base, certain, there)
    (number, shares), (other, without) = (
        _choose_with(c, node, columns, weights, base, second, there) for second in (True, False)
    )
    second = c("Slice", there, *map(c.integers, (1, 2, 1)))
    number = c("Where", c("Squeeze", second, c.integers(1)), number, other)
    return number, c("Where", second, shares, without)


def _choose_with(
    c: Composer,
    node: Node,
    columns: list[str],
    weights: Weights,
    base: np.ndarray,
    second: bool,
    there: str,
) -> tuple[str, str]:
    """`_choose_of_two` for rows whose leaves have weights for the second class, or have none.

    there: bool[rows, classes], for which there are weights; empty where that is so for both.
    """
    kind, dtype = node.get("post_transform", "NONE"), weights.weight.dtype
    one, two = columns
    if len(base) == 1:
        one = c("Add", one, c.constant(base[0]))
    elif len(base) == 2 and second:
        two = c("Add", one, c.constant(base[1]))
        one = c("Neg", two)
    elif len(base) == 2:
        one = c("Add", one, c.constant(base[0]))
    single = len(np.unique(weights.target)) == 1
    shares = bool(single and (weights.weight >= 0).all())
    number = is_positive(c, two if second else one, 0.5 if shares else 0.0, dtype)
    if second or len(base) == 2:
        both = c("Concat", one, two, axis=1)
        # A score without weights is 0 for ONNX Runtime, whatever is added to it.
        both = c("Where", there, both, c.constant(0, dtype)) if there else both
        return number, transform(c, kind, as_floats(c, both, dtype))
    return number, add_opposite(c, kind, as_floats(c, one, dtype), shares)


def _choose_of_many(c: Composer, node: Node, scores: Scores, base: np.ndarray) -> tuple[str, str]:
    """Of more classes: that of the largest score, of those that have one."""
    total, dtype = scores.total, base.dtype
    candidates = total
    if len(base):
        candidates = total = c("Add", total, c.constant(base))
    elif not all(scores.certain):
        there = compose_presence(c, scores)
        candidates = c("Where", there, total, c.constant(-np.inf, dtype))
    shares = transform(c, node.get("post_transform", "NONE"), as_floats(c, total, dtype))
    return find_largest(c, candidates), shares
