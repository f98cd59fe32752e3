"""Compute at compile time what depends on no input of the graph."""

from __future__ import annotations

import numpy as np

from polyc.errors import UnsupportedOp
from polyc.graph.inference.evaluate import evaluate_node
from polyc.graph.inference.folding import MAX_HELD, Folds
from polyc.graph.ir import Dim, Graph, Node, Shape, Tensor
from polyc.graph.simplify.bytes_kept import is_kept
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule, is_repeatable

GROWTH_LIMIT_BYTES = 4 << 20
"""A result up to this size is folded whatever it was made from; a larger one may at most double
its inputs. Beyond it an Expand or a Tile is cheaper to read through than to store in the library.
"""


def fold_constants(graph: Graph) -> Rewritten:
    """Replace each repeatable node whose inputs are all constant by its value.

    y = Add(x, Mul(2, 3))    ->   y = Add(x, 6)
    s = Shape(x: [N, 3, 8])[1]   ->   s = 3

    Folding stops where the value would be much larger than what it is made from, or the work much.
    """
    weights = sum(stored_bytes(t.value) for t in graph.tensors.values() if t.value is not None)
    folds = Folds(max(MAX_HELD, 2 * weights))
    return apply_rule(graph, "constant_folding", lambda scope, node: _rule(folds, scope, node))


def stored_bytes(value: np.ndarray) -> int:
    """Bytes that an array takes: those of one element, if it is this one everywhere."""
    return value.itemsize if value.size and not any(value.strides) else value.nbytes


def is_worth_storing(nbytes: int, input_nbytes: int) -> bool:
    """Whether a constant of this size may replace the computation that makes it."""
    return nbytes <= max(GROWTH_LIMIT_BYTES, 2 * input_nbytes)


def _rule(folds: Folds, scope: Scope, node: Node) -> Change | None:
    if not is_repeatable(node):
        return None
    return _fold_known_shape(scope, node) or _fold_node(folds, scope, node)


def _fold_node(folds: Folds, scope: Scope, node: Node) -> Change | None:
    if (not node.inputs and node.op != "Constant") or is_kept(scope.graph, node):
        return None
    values = [scope.value(i) for i in node.inputs]
    if any(v is None for i, v in zip(node.inputs, values, strict=True) if i):
        return None
    results = [scope.tensor(o) for o in node.outputs if o]
    consumed = sum(stored_bytes(v) for v in values if v is not None)
    if not all(_may_store(t, consumed) for t in results):
        return None
    if not folds.admit(node, [scope.tensor(i) for i in node.inputs if i], results):
        return None
    try:
        computed = evaluate_node(node, values)
    except UnsupportedOp:
        return None
    named = zip(node.outputs, computed, strict=True)
    folded = tuple(Tensor(o, v.dtype, v.shape, v) for o, v in named if o)
    return Change(f"{node.op} '{node.name}' computed at compile time", tensors=folded)


def _may_store(result: Tensor, consumed: int) -> bool:
    if not result.is_static:
        return False
    return is_worth_storing(result.size * result.dtype.itemsize, consumed)


def _fold_known_shape(scope: Scope, node: Node) -> Change | None:
    """Shape, Size, and a Gather or Slice of a Shape, where the dimensions asked for are numbers."""
    known: np.ndarray | None = None
    if node.op == "Shape":
        known = _as_integers(_asked_of_shape(scope, node))
    elif node.op == "Size" and scope.tensor(node.inputs[0]).is_static:
        known = np.asarray(scope.tensor(node.inputs[0]).size, np.int64)
    elif node.op in ("Gather", "Slice"):
        known = _picked_of_shape(scope, node)
    if known is None:
        return None
    output = Tensor(node.outputs[0], known.dtype, known.shape, known)
    return Change(f"{node.op} '{node.name}' computed from known dimensions", tensors=(output,))


def _asked_of_shape(scope: Scope, node: Node) -> Shape:
    return scope.tensor(node.inputs[0]).shape[node.get("start", 0) : node.get("end")]


def _picked_of_shape(scope: Scope, node: Node) -> np.ndarray | None:
    source = scope.producer(node.inputs[0])
    values = {k: scope.value(i) for k, i in enumerate(node.inputs) if i and k}
    if source is None or source.op != "Shape":
        return None
    known = {k: v for k, v in values.items() if v is not None}
    if len(known) < len(values):
        return None
    dims = _asked_of_shape(scope, source)
    if node.op == "Slice":
        steps = known.get(4)
        if steps is not None and steps.tolist() != [1]:
            return None
        return _as_integers(dims[int(known[1][0]) : int(known[2][0])])
    indices = known[1]
    if any(not -len(dims) <= int(i) < len(dims) for i in indices.flat):
        return None
    picked = _as_integers(tuple(dims[int(i)] for i in indices.flat))
    return None if picked is None else picked.reshape(indices.shape)


def _as_integers(dims: tuple[Dim, ...]) -> np.ndarray | None:
    return np.array(dims, np.int64) if all(isinstance(d, int) for d in dims) else None
