"""Bytes that are restored, moved or compared, and quantised as they were: they stay bytes.

    QuantizeLinear(MaxPool(DequantizeLinear(q, s, z)), s, z)    ->   MaxPool(q)
    QuantizeLinear(DequantizeLinear(q, s, z), s, z)             ->   q

Exact: (q - z) s, divided by s, is q - z within 2^-14, as |q - z| < 2^8 and each operation rounds by
one part in 2^24; so it rounds to q - z. For s > 0 restoring keeps the order, so that a maximum is
where it was; where a window has nothing but padding, minus infinity becomes the least byte.
"""

from __future__ import annotations

import numpy as np

from polyc.graph.ir import Graph, Node
from polyc.graph.simplify.bytes_kept import MOVES
from polyc.graph.simplify.rewriting import Change, Rewritten, Scope, apply_rule, drop

SMALLEST, LARGEST = 2.0**-126, 2.0**100
"""Scales of which no multiple by a byte is rounded to a subnormal number, or to infinity."""


def move_bytes(graph: Graph) -> Rewritten:
    """Apply the table above."""
    return apply_rule(graph, "bytes_moved", _rule)


def _rule(scope: Scope, node: Node) -> Change | None:
    if node.op != "QuantizeLinear" or node.domain or not _is_plain(scope, node):
        return None
    restored = scope.producer(node.inputs[0])
    if restored is None:
        return None
    source = _restored_from(scope, node, node.inputs[0])
    if source is not None:
        if not scope.can_redirect(node.outputs[0], source):
            return None
        return drop(node, source, "its input was restored by the same scale")
    moves = restored.op in MOVES - {"Pad"} and not restored.domain
    if not moves or len(restored.outputs) > 1 or not scope.is_read_once(node.inputs[0]):
        return None
    count = len(restored.inputs) if restored.op == "Concat" else 1
    sources = [_restored_from(scope, node, name) for name in restored.inputs[:count]]
    known = [name for name in sources if name is not None]
    if len(known) < count:
        return None
    inputs = (*known, *restored.inputs[count:])
    moved = Node(restored.name, restored.op, inputs, node.outputs, restored.attributes)
    return Change(f"{restored.op} '{restored.name}' takes bytes as they are", (moved,))


def _is_plain(scope: Scope, node: Node) -> bool:
    """Whether a node has one known scale, of float32, and integers of a byte."""
    scale = scope.value(node.inputs[1])
    zero = scope.value(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else np.zeros(())
    quantised = node.outputs[0] if node.op == "QuantizeLinear" else node.inputs[0]
    dtype = scope.tensor(quantised).dtype
    return (
        scale is not None
        and zero is not None
        and scale.dtype == np.float32
        and scale.size == zero.size == 1
        and dtype in (np.uint8, np.int8)
        and not node.get("precision", 0)
        and bool(SMALLEST <= scale.item() <= LARGEST)
    )


def _restored_from(scope: Scope, node: Node, name: str) -> str | None:
    """The bytes that a tensor is restored from by what a node quantises by."""
    restored = scope.producer(name)
    if restored is None or restored.op != "DequantizeLinear" or not _is_plain(scope, restored):
        return None
    if scope.tensor(restored.inputs[0]).dtype != scope.tensor(node.outputs[0]).dtype:
        return None
    if scope.tensor(name).dtype != np.float32:
        return None
    same = _parameters(scope, node) == _parameters(scope, restored)
    return restored.inputs[0] if same else None


def _parameters(scope: Scope, node: Node) -> list[float]:
    """The scale and the zero point."""
    given = [scope.value(name) for name in node.inputs[1:] if name]
    return [float(value.item()) for value in given if value is not None and value.item()]
