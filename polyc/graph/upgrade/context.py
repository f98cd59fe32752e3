"""What an upgrade rule may look at, and the small moves that rules are made of.

A rule takes a node in the form that was valid before one version of the operator set and returns
nodes in the form of that version: `rule(node, context) -> [node, ...]`, where a new constant is a
`Constant` node. Nothing is changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from polyc.errors import UnsupportedOp
from polyc.graph.ir import Node, Tensor


@dataclass(frozen=True)
class Context:
    """The names that the model uses, and the tensor types that are known before the upgrade."""

    names: frozenset[str]
    types: Mapping[str, Tensor]

    def fresh(self, node: Node, suffix: str) -> str:
        """A tensor name that the model does not use: y, axes -> "y.axes"."""
        name = f"{next(filter(None, node.outputs), node.name)}.{suffix}"
        while name in self.names:
            name += "_"
        return name

    def type_of(self, node: Node, index: int) -> Tensor:
        """The type of one input; UnsupportedOp where shape inference did not find it."""
        name = node.inputs[index]
        if name not in self.types:
            refuse(node, f"the type of its input {name!r} is not known")
        return self.types[name]


Rule = Callable[[Node, Context], list[Node]]
Rules = Mapping[str, tuple[tuple[int, Rule], ...]]
"""Operator -> (version that changed it, rule into that version), oldest first."""


def refuse(node: Node, reason: str) -> NoReturn:
    """Raise UnsupportedOp: this old form of the operator has no newest form."""
    raise UnsupportedOp(
        f"node {node.name!r} ({node.op}) cannot be brought to the newest form of its operator: "
        f"{reason}; export the model again with a newer opset"
    )


def constant(name: str, value: np.ndarray) -> Node:
    """A node that holds `value` under `name`."""
    return Node(name, "Constant", (), (name,), {"value": value})


def helper(node: Node, op: str, inputs: tuple[str, ...], output: str, **attributes: Any) -> Node:
    """A node that computes `output` on behalf of `node`."""
    return Node(f"{node.name}.{op}", op, inputs, (output,), attributes)


def with_attributes(node: Node, **attributes: Any) -> Node:
    """The node with these attributes set or overwritten."""
    return replace(node, attributes={**node.attributes, **attributes})


def without_attributes(node: Node, *names: str) -> Node:
    """The node without these attributes."""
    kept = {k: v for k, v in node.attributes.items() if k not in names}
    return replace(node, attributes=kept)


def input_at(node: Node, index: int) -> str:
    """The name of an input, empty where it is absent."""
    return node.inputs[index] if index < len(node.inputs) else ""


def trim(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names without absent ones at the end: (a, "", b, "") -> (a, "", b)."""
    while names and not names[-1]:
        names = names[:-1]
    return names


def integers(value: Any) -> np.ndarray:
    """An int64 vector: 3 -> [3]; (1, 2) -> [1, 2]."""
    return np.atleast_1d(np.asarray(value, np.int64))


def floats(value: Any) -> np.ndarray:
    """A float32 vector: (1.0, 2.0) -> [1, 2]."""
    return np.atleast_1d(np.asarray(value, np.float32))


def drop(*names: str) -> Rule:
    """The rule for attributes that lost their meaning: Abs(x; consumed_inputs) -> Abs(x)."""
    return lambda node, context: [without_attributes(node, *names)]


def rename(old: str, fresh: str) -> Rule:
    """The rule for an attribute with a new name: Pad(x; paddings) -> Pad(x; pads)."""

    def rule(node: Node, context: Context) -> list[Node]:
        if old not in node.attributes:
            return [node]
        value = node.attributes[old]
        return [with_attributes(without_attributes(node, old), **{fresh: value})]

    return rule


def default(**values: Any) -> Rule:
    """The rule for a default that changed: what the old default was is written out."""
    return lambda node, context: [replace(node, attributes={**values, **node.attributes})]


def to_inputs(**conversions: Callable[[Any], np.ndarray]) -> Rule:
    """The rule for attributes that became inputs: Squeeze(x; axes=0) -> Squeeze(x, [0]).

    The order of `conversions` is the order of the inputs; an absent attribute is an absent input.
    """

    def rule(node: Node, context: Context) -> list[Node]:
        constants = [
            constant(context.fresh(node, name), convert(node.attributes[name]))
            if name in node.attributes
            else None
            for name, convert in conversions.items()
        ]
        names = tuple(c.outputs[0] if c else "" for c in constants)
        moved = without_attributes(node, *conversions)
        inputs = trim((*node.inputs, *names))
        return [*(c for c in constants if c), replace(moved, inputs=inputs)]

    return rule


def in_turn(*rules: Rule) -> Rule:
    """Several rules of one version; each but the last returns a single node."""

    def rule(node: Node, context: Context) -> list[Node]:
        for first in rules[:-1]:
            (node,) = first(node, context)
        return rules[-1](node, context)

    return rule
