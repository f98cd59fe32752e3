"""TreeEnsemble: nodes and leaves in lists of their own, which name each other by number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyc.graph.compose import Composer
from polyc.graph.expand.learned.forests import MEMBER, SUM, Forest, Weights, compose_scores, grow
from polyc.graph.expand.learned.scores import transform, transform_one
from polyc.graph.expand.learned.tables import as_rows, refuse, require_below, require_length
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import given, require_rank

_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""By number as in the standard; ONNX Runtime has LOGISTIC before SOFTMAX."""


def expand_tree_ensemble(node: Node, inputs: Sequence[Tensor | None]) -> Body:
    """x[rows, features] -> [rows, targets]: the weights of the leaves reached, put together."""
    c, x = Composer(), given(inputs[0])
    require_rank(x, "X", 2, 2)
    name, features = as_rows(c, node.inputs[0], x)
    forest, weights = _read_tables(node, x.dtype)
    function = node.get("aggregate_function", SUM)
    total = compose_scores(c, name, features, forest, weights, function).total
    kind = _TRANSFORMS[node.get("post_transform", 0)]
    change = transform if weights.targets > 1 else transform_one
    return c.body(node.inputs, (change(c, kind, total),))


def _read_tables(node: Node, dtype: np.dtype) -> tuple[Forest, Weights]:
    _check_tables(node)
    get = node.attributes
    split, mode = np.asarray(get["nodes_splits"]), np.asarray(get["nodes_modes"]).astype(int)
    n, leaves = len(split), len(get["leaf_weights"])
    ids = [np.array(get[f"nodes_{way}nodeids"]) for way in ("true", "false")]
    ends = [np.array(get[f"nodes_{way}leafs"]).astype(bool) for way in ("true", "false")]
    ways = [np.where(end, n + i, i) for i, end in zip(ids, ends, strict=True)]
    roots = np.array(get["tree_roots"])
    # A tree that is one leaf is written as a node with two ways to it.
    alone = (ends[0] & ends[1] & (ids[0] == ids[1]))[roots]
    roots = np.where(alone, n + ids[0][roots], roots)
    missing = np.array(node.get("nodes_missing_value_tracks_true") or np.zeros(n)).astype(bool)
    values = np.asarray(node.get("membership_values", np.zeros(0)), dtype)
    columns = (np.array(get["nodes_featureids"]), split, mode, missing)
    forest = grow(node, columns, (ways[0], ways[1]), leaves, roots, _read_members(values, mode))
    target = np.array(get["leaf_targetids"])
    targets = int(node.get("n_targets", 1))
    return forest, Weights(targets, np.arange(leaves), target, np.asarray(get["leaf_weights"]))


def _check_tables(node: Node) -> None:
    """Raise InvalidModel unless the tables have a row for each node, and name only those there are.

    Attributes are in their ranges, so that no number is negative.
    """
    get = {k: np.asarray(v) for k, v in node.attributes.items()}
    n, leaves = get["nodes_splits"].size, get["leaf_weights"].size
    for name in sorted(get):
        if name.startswith("nodes_") or name in ("leaf_targetids", "leaf_weights"):
            require_length(node, name, get[name].size, leaves if name.startswith("leaf") else n)
        if get[name].ndim > 1:
            raise refuse(node, f"{name} has shape {list(get[name].shape)}, and should be a list")
    require_below(node, "tree_roots", get["tree_roots"], n)
    require_below(node, "nodes_modes", get["nodes_modes"], MEMBER + 1)
    targets = int(get.get("n_targets", 1))
    require_below(node, "leaf_targetids", get["leaf_targetids"], targets)
    for way in ("true", "false"):
        ends = get[f"nodes_{way}leafs"].astype(bool)
        numbers = get[f"nodes_{way}nodeids"]
        require_below(node, f"leaves of nodes_{way}nodeids", numbers[ends], leaves)
        require_below(node, f"nodes of nodes_{way}nodeids", numbers[~ends], n)


def _read_members(values: np.ndarray, mode: np.ndarray) -> np.ndarray:
    """The sets, each ended by a NaN, in the order of the nodes that have one."""
    sets = np.split(values, np.flatnonzero(np.isnan(values)) + 1)[:-1]
    width = max((len(s) - 1 for s in sets), default=0)
    table = np.full((len(mode), width), np.nan, values.dtype)
    for k, members in zip(np.flatnonzero(mode == MEMBER), sets, strict=False):
        table[k, : len(members) - 1] = members[:-1]
    return table
