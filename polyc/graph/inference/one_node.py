"""One node: the types of what it writes, and the values where they are known when compiling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polyc.budget import UNLIMITED, Budget
from polyc.errors import UnsupportedOp
from polyc.graph.inference.evaluate import evaluate_node
from polyc.graph.inference.folding import MAX_FOLDED, Folds
from polyc.graph.inference.sizes import evaluate_sizes
from polyc.graph.ir import Node, Tensor
from polyc.graph.shapes import infer_node
from polyc.types.sizes import Size

# Their values differ from run to run.
_RANDOM = frozenset(
    {
        "Bernoulli",
        "Dropout",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)


def infer_or_fold(
    node: Node,
    inputs: Sequence[Tensor | None],
    folds: Folds,
    budget: Budget = UNLIMITED,
) -> tuple[Tensor, ...]:
    """The outputs of a node: with values where they are known when compiling, else types only."""
    types = infer_node(node, inputs)
    for tensor in types:
        budget.require(least_bytes(tensor), f"{node.op} {node.name!r}: its output {tensor.name!r}")
    if (entries := evaluate_sizes(node, inputs, types)) is not None:
        return tuple(map(with_entries, types, entries))
    if (value := _absorb(node, inputs, types[0])) is not None:
        return (replace(types[0], value=value),)
    if not _is_foldable(node, inputs, types, folds):
        return types
    try:
        values = evaluate_node(node, [None if t is None else t.value for t in inputs])
    except UnsupportedOp:
        # No value is no harm: the node stays in the graph and is compiled like any other.
        return types
    return tuple(replace(t, value=v) for t, v in zip(types, values, strict=True))


def least_bytes(tensor: Tensor) -> int:
    """Bytes of a tensor; where sizes are known only at run time, as if they were 1."""
    known = math.prod(d for d in tensor.shape if isinstance(d, int))
    return known * tensor.dtype.itemsize


def _is_foldable(
    node: Node, inputs: Sequence[Tensor | None], types: Sequence[Tensor], folds: Folds
) -> bool:
    constant = all(t is None or t.is_constant for t in inputs)
    if not constant or node.op in _RANDOM or _is_weight(node, types):
        return False
    free = node.op in ("ConstantOfShape", "Constant", "Identity")
    small = free or all(t.size <= MAX_FOLDED for t in types)
    return small and folds.admit(node, inputs, types)


_ABSORBING = {"And": False, "Or": True}


def _absorb(node: Node, inputs: Sequence[Tensor | None], output: Tensor) -> np.ndarray | None:
    """What a node gives for one constant input, whatever the other is: x and False, x or True.

    tf2onnx asks so of the ends of each slice whether a step is negative.
    """
    value = _ABSORBING.get(node.op)
    if value is None or not output.is_static or output.size > MAX_FOLDED:
        return None
    known = (t.value for t in inputs if t is not None and t.value is not None)
    if any(one.size and (one == value).all() for one in known):
        return np.full(output.extents, value)
    return None


def _is_weight(node: Node, types: Sequence[Tensor]) -> bool:
    """Whether a node restores weights: what reads them may want them as they are."""
    return node.op == "DequantizeLinear" and types[0].rank > 1


def with_entries(tensor: Tensor, entries: np.ndarray) -> Tensor:
    """The tensor with these elements: a constant, if they are all numbers."""
    if tensor.dtype.kind == "f" or any(isinstance(entry, Size) for entry in entries.flat):
        return replace(tensor, entries=entries)
    return replace(tensor, value=entries.astype(tensor.dtype))
