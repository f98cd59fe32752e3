"""Numbers made text, and rows made maps: what a call does for classifiers whose labels are names.

The reference evaluator lacks ZipMap and CategoryMapper, and takes as long for a label as kernels
do for all that is before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyc.errors import RuntimeFailure
from polyc.graph.ir import Node
from polyc.graph.onnx.nodes import TEXT

ML_DOMAIN = "ai.onnx.ml"


def find_naming(node: Node) -> Callable[[Node, np.ndarray], Any] | None:
    """What computes such a node of ai.onnx.ml; None if that is the reference evaluator's."""
    if node.op == "LabelEncoder":
        given = {name for name in node.attributes if name.startswith(("keys_", "values_"))}
        return _name_numbers if given == {"keys_int64s", "values_strings"} else None
    return {"CategoryMapper": _number_names, "ZipMap": _zip_map}.get(node.op)


def _name_numbers(node: Node, x: np.ndarray) -> np.ndarray:
    """int64[...] -> the text of each key, or a default one"""
    keys, names = node.attributes["keys_int64s"], node.attributes["values_strings"]
    _require_equal(node, len(keys), len(names))
    table = dict(zip(reversed(keys), reversed(names), strict=True))
    default = node.get("default_string", "_Unused")
    found = [table.get(number, default) for number in x.reshape(-1).tolist()]
    return np.array(found, TEXT).reshape(x.shape)


def _number_names(node: Node, x: np.ndarray) -> np.ndarray:
    """text[...] -> the number of each category, or a default one"""
    numbers, names = node.get("cats_int64s", ()), node.get("cats_strings", ())
    _require_equal(node, len(numbers), len(names))
    table = dict(zip(names, numbers, strict=True))
    default = node.get("default_int64", -1)
    found = [table.get(name, default) for name in x.reshape(-1).tolist()]
    return np.array(found, np.int64).reshape(x.shape)


def _zip_map(node: Node, x: np.ndarray) -> list[dict[Any, float]]:
    """[rows, classes] -> for each row a map from labels to numbers; of one row there is one"""
    labels = node.get("classlabels_strings") or node.get("classlabels_int64s") or ()
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    _require_equal(node, len(labels), rows.shape[1])
    return [dict(zip(labels, row, strict=True)) for row in rows.tolist()]


def _require_equal(node: Node, labels: int, count: int) -> None:
    if labels != count:
        raise RuntimeFailure(
            f"{node.op} {node.name!r}: it has {labels} labels for {count} numbers; correct them"
        )
