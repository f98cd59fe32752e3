"""Attributes that are tables: read as arrays, once it is known that they have the right lengths.

Models come from strangers: what does not fit is an InvalidModel that names the attribute.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polyc.errors import InvalidModel
from polyc.graph.compose import Composer
from polyc.graph.ir import Node, Tensor
from polyc.graph.shapes.checks import require_rank
from polyc.types.sizes import Extent

MAX_CLASSES = 2**16
"""Classes and targets that there may be; ONNX Runtime has the same limit."""


def refuse(node: Node, fault: str) -> InvalidModel:
    """What is to be raised for a node with such a fault."""
    return InvalidModel(f"{node.op} {node.name!r}: {fault}; correct it")


def read_list(node: Node, name: str, dtype: Any) -> np.ndarray:
    """A list attribute, or the tensor that may be given in its place; empty if neither is there."""
    values, tensor = node.get(name), node.get(f"{name}_as_tensor")
    if tensor is None:
        return np.asarray([] if values is None else values, dtype)
    if values is not None and len(values):
        raise refuse(node, f"it has {name} as a list and as a tensor, and only one may be given")
    if tensor.ndim > 1 or tensor.dtype.kind != "f":
        shape = f"{tensor.dtype}{list(tensor.shape)}"
        raise refuse(node, f"{name}_as_tensor is {shape}, and should be a list of floats")
    return np.asarray(tensor, dtype).reshape(-1)


def require_length(node: Node, name: str, found: int, wanted: int) -> None:
    """Raise InvalidModel unless a table has as many entries as wanted."""
    if found != wanted:
        raise refuse(node, f"{name} has {found} entries, and there are {wanted}")


def require_below(node: Node, name: str, numbers: np.ndarray, count: int) -> None:
    """Raise InvalidModel for a number that names nothing; ranges have excluded negative ones."""
    if numbers.size and not 0 <= int(numbers.max()) < count:
        raise refuse(node, f"{name} go up to {int(numbers.max())}, but there are {count}")


def read_labels(node: Node, numbers: str) -> list[int] | list[str]:
    """The labels of the classes: strings, or integers in the attribute of this name."""
    strings, integers = node.get("classlabels_strings"), node.get(numbers)
    if strings and integers:
        raise refuse(node, f"it has classlabels_strings and {numbers}, and only one may be given")
    labels = list(strings or integers or ())
    if not labels:
        raise refuse(node, f"it has neither classlabels_strings nor {numbers}")
    if len(labels) > MAX_CLASSES:
        raise refuse(node, f"there are {len(labels)} classes, and the limit is {MAX_CLASSES}")
    return labels


def as_rows(c: Composer, name: str, x: Tensor) -> tuple[str, Extent]:
    """x[features] or x[rows, features]  ->  x[rows, features], and how many features there are"""
    require_rank(x, "X", 1, 2)
    if x.rank == 1:
        return c("Unsqueeze", name, c.integers(0)), x.extents[0]
    return name, x.extents[1]
