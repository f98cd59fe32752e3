"""When nodes are equal: what they must have in common to compute the same."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from polyc.graph.ir import Node, Tensor

_COMMUTATIVE = frozenset({"Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor"}) | frozenset(
    {"Equal", "Mul", "Or", "Xor"}
)


def key_of(node: Node) -> Hashable:
    """What two nodes must share to compute the same: also which optional results they have."""
    return _key(node, node.inputs)


def _key(node: Node, inputs: tuple[Any, ...]) -> Hashable:
    inputs = tuple(sorted(inputs)) if node.op in _COMMUTATIVE else inputs
    attributes = tuple(sorted((k, freeze(v)) for k, v in node.attributes.items()))
    return node.op, node.domain, inputs, attributes, tuple(map(bool, node.outputs))


def freeze(value: Any) -> Hashable:
    """An attribute as a hashable value that is equal exactly where the attribute's bits are."""
    if isinstance(value, np.ndarray):
        content = repr(value.tolist()) if value.dtype.hasobject else value.tobytes()
        return "array", str(value.dtype), value.shape, content
    if isinstance(value, list | tuple):
        return "list", tuple(map(freeze, value))
    # By text: 1, 1.0 and True are equal in Python, and so are 0.0 and -0.0.
    return type(value).__name__, repr(value)


class ValueNumbers:
    """Numbers for tensors that are equal where those are that their nodes read."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._known: dict[Hashable, int] = {}

    def enter(self, node: Node, table: Mapping[str, Tensor]) -> None:
        """Number what a node writes; its inputs that no node writes are numbered as well."""
        key = _key(node, tuple(self.find(name, table) for name in node.inputs))
        for place, name in enumerate(node.outputs):
            if name:
                self._numbers[name] = self._number(("result", key, place))

    def find(self, name: str, table: Mapping[str, Tensor]) -> int:
        """The number of a tensor; constants are equal by content."""
        if name not in self._numbers:
            value = table[name].value if name in table else None
            key = ("input", name) if value is None else ("constant", freeze(value))
            self._numbers[name] = self._number(key)
        return self._numbers[name]

    def _number(self, key: Hashable) -> int:
        return self._known.setdefault(key, len(self._known))
