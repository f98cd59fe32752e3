"""Drop nodes that do nothing, and merge pairs that one node can do.

| before                                   | after           | where                              |
| ---------------------------------------- | --------------- | ---------------------------------- |
| Identity(x), Dropout(x)                  | x               | Dropout: inference, mask unread    |
| Cast(x)                                  | x               | to x's own type                    |
| Cast(Cast(x, B), C)                      | Cast(x, C)      | B holds each value of x, see below |
| Transpose(x)                             | x               | perm is the identity               |
| Transpose(Transpose(x))                  | Transpose(x)    | perms composed                     |
| Reshape, Flatten, Squeeze, Unsqueeze     | x               | the shape stays                    |
| the same four, one after another         | Reshape(x)      | at most one that moves is unknown |
| Expand(x), Tile(x), Slice(x), Pad(x)     | x               | nothing is added or cut            |
| Concat(x), Split(x), Sum(x), Max(x), ... | x               | one operand, one result            |
| Concat(a, empty, b)                      | Concat(a, b)    | extent 0 in the joined dimension   |
| Concat(Split(x))                         | x               | all parts, in order                |
| ReduceMax(x) over nothing                | x               | no axes and noop_with_empty_axes   |
| ReduceMax(x) over extents of 1           | x or Squeeze(x) | Max, Min, Prod                     |
| MaxPool(x), AveragePool(x)               | x               | a window of one element            |
| Clip(x)                                  | x               | without bounds                     |

All are exact to the bit. ReduceSum and ReduceMean over extents of 1 stay: as a sum that starts from
0.0 they turn -0.0 into 0.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from polyc.graph.ir import Graph, Node
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule, drop

_OPEN_END = 2**31 - 1
"""A Slice that ends here or beyond runs to the end of any dimension."""


def drop_identities(graph: Graph) -> Rewritten:
    """Apply the table above; a graph output keeps its name by renaming what it is equal to.

    t = Relu(x); y = Identity(t); return y   ->   y = Relu(x); return y
    """
    return apply_rule(graph, "identities", _rule)


def _rule(scope: Scope, node: Node) -> Change | None:
    rule = _RULES.get(node.op)
    return rule(scope, node) if rule is not None and node.domain in ("", "ai.onnx") else None


def _identity(scope: Scope, node: Node) -> Change | None:
    # Between two names that are both fixed, such as an input and an output, the copy has to stay.
    if not scope.can_redirect(node.outputs[0], node.inputs[0]):
        return None
    return drop(node, node.inputs[0], "its readers read what it copies")


def _dropout(scope: Scope, node: Node) -> Change | None:
    mode = node.inputs[2] if len(node.inputs) > 2 else ""
    training = scope.value(mode)
    if (mode and training is None) or (training is not None and training.any()):
        return None
    if len(node.outputs) > 1 and scope.is_read(node.outputs[1]):
        return None
    return drop(node, node.inputs[0], "at inference it does nothing")


def _cast(scope: Scope, node: Node) -> Change | None:
    source, target = scope.tensor(node.inputs[0]), scope.tensor(node.outputs[0])
    if source.dtype == target.dtype:
        return drop(node, source.name, f"the type is {source.dtype} already")
    inner = scope.producer(source.name)
    if inner is None or inner.op != "Cast":
        return None
    origin = scope.tensor(inner.inputs[0])
    if not _is_transparent(origin.dtype, source.dtype, target.dtype):
        return None
    text = f"Cast '{inner.name}' skipped: {source.dtype} holds every value of {origin.dtype}"
    if origin.dtype == target.dtype:
        return Change(text, aliases={node.outputs[0]: origin.name})
    return Change(text, (replace(node, inputs=(origin.name,)),))


def _is_transparent(a: np.dtype, b: np.dtype, c: np.dtype) -> bool:
    """Whether casting a -> b -> c is casting a -> c for every value, NaN and infinities included.

    b must hold every value of a. Beyond that only the step from floating b to integer c could
    differ: out of range it is undefined, where integer a -> integer c wraps.
    """
    if any(t.kind not in "biuf" for t in (a, b, c)) or not _holds(b, a):
        return False
    return _holds(c, a) or c.kind in "bf" or (a.kind in "biu" and b.kind in "biu")


def _holds(wide: np.dtype, narrow: np.dtype) -> bool:
    """Whether each value of one type is a value of the other (NumPy lets int64 -> float64)."""
    if wide == narrow or narrow.kind == "b":
        return True
    if wide.kind == "f":
        if narrow.kind == "f":
            return wide.itemsize >= narrow.itemsize
        digits = np.iinfo(narrow).bits - (narrow.kind == "i")
        return int(np.finfo(wide).nmant) + 1 >= digits
    return bool(np.can_cast(narrow, wide, "safe"))


def _transpose(scope: Scope, node: Node) -> Change | None:
    rank = scope.tensor(node.inputs[0]).rank
    perm = permutation_of(node, rank)
    if perm == tuple(range(rank)):
        return drop(node, node.inputs[0], "its permutation moves nothing")
    inner = scope.producer(node.inputs[0])
    if inner is None or inner.op != "Transpose":
        return None
    # z[k] = y[perm[k]] and y[k] = x[first[k]]  ->  z[k] = x[first[perm[k]]]
    first = permutation_of(inner, rank)
    merged = tuple(first[k] for k in perm)
    if merged == tuple(range(rank)):
        text = f"Transposes '{inner.name}' and '{node.name}' cancel"
        return Change(text, aliases={node.outputs[0]: inner.inputs[0]})
    attributes = {**node.attributes, "perm": merged}
    text = f"Transpose '{inner.name}' merged into '{node.name}'"
    return Change(text, (replace(node, inputs=inner.inputs, attributes=attributes),))


def permutation_of(node: Node, rank: int) -> tuple[int, ...]:
    """The dimensions of a Transpose's input in the order that its result has them in."""
    return tuple(int(p) for p in node.get("perm", range(rank)[::-1]))


def _reshape(scope: Scope, node: Node) -> Change | None:
    target = scope.tensor(node.outputs[0])
    if scope.tensor(node.inputs[0]).shape == target.shape:
        return drop(node, node.inputs[0], "the shape stays")
    inner = scope.producer(node.inputs[0])
    if inner is None or inner.op not in _RESHAPES:
        return None
    text = f"{inner.op} '{inner.name}' merged into {node.op} '{node.name}'"
    origin = inner.inputs[0]
    if scope.tensor(origin).shape == target.shape:
        return Change(text, aliases={node.outputs[0]: origin})
    # Reshape can copy dimensions and work out one, but only where no other is 0.
    kept = scope.tensor(origin).shape
    known = [d if isinstance(d, int) else 0 if d in kept[k : k + 1] else -1
             for k, d in enumerate(target.shape)]  # fmt: skip
    is_open = not target.is_static
    if known.count(-1) > 1 or (is_open and 0 in target.shape):
        return None
    shape = scope.constant(f"{target.name}_shape", np.array(known, np.int64))
    attributes = {"allowzero": 1} if 0 in target.shape else {}
    merged = Node(node.name, "Reshape", (origin, shape.name), node.outputs, attributes)
    return Change(text, (merged,), (shape,))


def _expand(scope: Scope, node: Node) -> Change | None:
    source, target = scope.tensor(node.inputs[0]), scope.tensor(node.outputs[0])
    counts = scope.value(node.inputs[1])
    known = source.is_static or node.op == "Expand" or (counts is not None and (counts == 1).all())
    if source.shape != target.shape or not known:
        return None
    return drop(node, source.name, "the shape stays")


def _slice(scope: Scope, node: Node) -> Change | None:
    source, target = scope.tensor(node.inputs[0]), scope.tensor(node.outputs[0])
    starts, ends, axes, steps = (
        scope.value(node.inputs[k]) if len(node.inputs) > k else None for k in range(1, 5)
    )
    strided = len(node.inputs) > 4 and node.inputs[4] != ""
    if source.shape != target.shape or (strided and (steps is None or (steps != 1).any())):
        return None
    if not source.is_static:
        # Equal names of symbolic extents are not trusted here: the bounds have to say "all".
        if starts is None or ends is None or (axes is None and len(node.inputs) > 3):
            return None
        if (starts != 0).any() or (ends < _OPEN_END).any():
            return None
    return drop(node, source.name, "it takes everything")


def _pad(scope: Scope, node: Node) -> Change | None:
    amounts = scope.value(node.inputs[1])
    if amounts is None or amounts.any():
        return None
    return drop(node, node.inputs[0], "it pads by nothing")


def _split(scope: Scope, node: Node) -> Change | None:
    return drop(node, node.inputs[0], "it has one part") if len(node.outputs) == 1 else None


def _single_operand(scope: Scope, node: Node) -> Change | None:
    return drop(node, node.inputs[0], "it has one operand") if len(node.inputs) == 1 else None


def _concat(scope: Scope, node: Node) -> Change | None:
    if len(node.inputs) == 1:
        return drop(node, node.inputs[0], "it has one operand")
    rank = scope.tensor(node.outputs[0]).rank
    axis = int(node.get("axis")) % rank
    split = scope.producer(node.inputs[0])
    if split is not None and split.op == "Split" and split.outputs == node.inputs:
        if int(split.get("axis", 0)) % rank == axis:
            return drop(node, split.inputs[0], f"it joins what Split '{split.name}' parts")
        return None
    filled = tuple(i for i in node.inputs if scope.tensor(i).shape[axis] != 0)
    if not filled or len(filled) == len(node.inputs):
        return None
    text = f"empty operands of Concat '{node.name}' dropped"
    return Change(text, (replace(node, inputs=filled),))


def _reduce(scope: Scope, node: Node) -> Change | None:
    source = scope.tensor(node.inputs[0])
    name = node.inputs[1] if len(node.inputs) > 1 else ""
    value = scope.value(name)
    if name and value is None:
        return None
    axes = [] if value is None else [int(a) for a in value.flat]
    if not axes:
        if node.get("noop_with_empty_axes", 0):
            return drop(node, source.name, "it reduces over nothing")
        axes = list(range(source.rank))
    # Of one value, a maximum, minimum or product is that value; a sum turns -0.0 into 0.0.
    if node.op not in _EXACT_ON_ONE_VALUE or any(source.shape[a] != 1 for a in axes):
        return None
    if node.get("keepdims", 1):
        return drop(node, source.name, "it reduces over extents of 1")
    text = f"{node.op} '{node.name}' became Squeeze: it reduces over extents of 1"
    return Change(text, (Node(node.name, "Squeeze", node.inputs, node.outputs),))


def _pool(scope: Scope, node: Node) -> Change | None:
    if len(node.outputs) > 1 and scope.is_read(node.outputs[1]):
        return None
    window = (*node.get("kernel_shape"), *node.get("strides", ()))
    if any(k != 1 for k in window) or any(node.get("pads", ())):
        return None
    return drop(node, node.inputs[0], "its window is one element")


def _clip(scope: Scope, node: Node) -> Change | None:
    return None if any(node.inputs[1:]) else drop(node, node.inputs[0], "it has no bounds")


_RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")
_EXACT_ON_ONE_VALUE = ("ReduceMax", "ReduceMin", "ReduceProd")
_REDUCTIONS = (*_EXACT_ON_ONE_VALUE, "ReduceMean", "ReduceSum")
_RULES: dict[str, Callable[[Scope, Node], Change | None]] = {
    "Identity": _identity,
    "Dropout": _dropout,
    "Cast": _cast,
    "Transpose": _transpose,
    **dict.fromkeys(_RESHAPES, _reshape),
    "Expand": _expand,
    "Tile": _expand,
    "Slice": _slice,
    "Pad": _pad,
    "Split": _split,
    "Concat": _concat,
    **dict.fromkeys(("Sum", "Max", "Min", "Mean"), _single_operand),
    **dict.fromkeys(_REDUCTIONS, _reduce),
    "MaxPool": _pool,
    "AveragePool": _pool,
    "Clip": _clip,
}
