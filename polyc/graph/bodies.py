"""Graphs inside of graphs, put in the place of the node that stands for them.

y = F(x)   with   F(a) = { t = Exp(a); b = Neg(t) }   ->   F.t = Exp(x); y = Neg(F.t)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from polyc.graph.ir import Body, Node

CAPTURED = "captured"
"""The attribute of a node that names its further inputs as its bodies do."""


@dataclass
class Names:
    """The names that a graph uses so far; `fresh` finds another one."""

    taken: set[str] = field(default_factory=set)
    _counts: dict[str, int] = field(default_factory=dict, repr=False)
    _firsts: dict[str, str] = field(default_factory=dict, repr=False)

    def fresh(self, name: str) -> str:
        """The name itself, or name_, name__2, name__3: the thousandth is not much longer."""
        free, first = name, self._firsts.get(name, name)
        while free in self.taken:
            count = self._counts[first] = self._counts.get(first, 0) + 1
            free = f"{first}_" if count == 1 else f"{first}__{count}"
            self._firsts[free] = first
        self.taken.add(free)
        return free


def instantiate(call: Node, body: Body, names: Names) -> tuple[Node, ...]:
    """The body's nodes under fresh names, from the call's inputs to the call's outputs.

    An input that the call leaves out is absent in the body too. What none of the outputs that are
    asked for depends on is left out.
    """
    pairs = list(zip(body.outputs, call.outputs, strict=False))
    nodes = _needed(body.nodes, {name for name, wanted in pairs if wanted})
    missing = [""] * (len(body.inputs) - len(call.inputs))
    table = dict(zip(body.inputs, (*call.inputs, *missing), strict=False))
    written = {name for n in nodes for name in n.outputs}
    copied: list[tuple[str, str]] = []
    for name, wanted in pairs:
        if wanted and name in written and name not in table:
            table[name] = wanted
        elif wanted:  # an input, a tensor from around, or an output that is listed twice
            copied.append((name, wanted))
    renamed, table = _rename(nodes, table, call.name, names)
    copies = [
        Node(names.fresh(f"{call.name}.copy"), "Identity", (table.get(name, name),), (wanted,))
        for name, wanted in copied
    ]
    return (*renamed, *copies)


def _needed(nodes: Sequence[Node], wanted: set[str]) -> list[Node]:
    """The nodes that some wanted name depends on, in order."""
    kept = []
    for node in reversed(nodes):
        if not wanted.isdisjoint(o for o in node.outputs if o):
            kept.append(node)
            wanted |= set(reads(node))
    return kept[::-1]


def reads(node: Node) -> Iterator[str]:
    """The names that a node and the bodies of its attributes read."""
    yield from node.inputs
    for value in node.attributes.values():
        if isinstance(value, Body):
            yield from value.outputs
            for inner in value.nodes:
                yield from reads(inner)


def reads_around(node: Node) -> tuple[str, ...]:
    """What the bodies of a node read of the graph around it, each name once."""
    own, found = {"", *_written_inside(node)}, dict[str, None]()
    for value in node.attributes.values():
        if isinstance(value, Body):
            inside = (name for inner in value.nodes for name in reads(inner))
            found |= dict.fromkeys(name for name in (*inside, *value.outputs) if name not in own)
    return tuple(found)


def _written_inside(node: Node) -> Iterator[str]:
    """Inputs of the bodies of a node, and what their nodes write; a model has no name twice."""
    for value in node.attributes.values():
        if isinstance(value, Body):
            yield from value.inputs
            for inner in value.nodes:
                yield from inner.outputs
                yield from _written_inside(inner)


def rename_reads(body: Body, table: Mapping[str, str]) -> Body:
    """The body with other names for what it reads of the graph around it."""

    def renamed(node: Node) -> Node:
        attributes = {
            key: rename_reads(value, table) if isinstance(value, Body) else value
            for key, value in node.attributes.items()
        }
        inputs = tuple(table.get(name, name) for name in node.inputs)
        return replace(node, inputs=inputs, attributes=attributes)

    outputs = tuple(table.get(name, name) for name in body.outputs)
    return Body(body.inputs, tuple(map(renamed, body.nodes)), outputs)


def open_bodies(node: Node) -> Node:
    """A node with what its bodies read of the graph around them as further inputs.

    So rewrites of the graph see that, and may rename it; `close_bodies` makes of it what ONNX has.

        y = If(c; then: Relu(h), else: Neg(h))   ->   y = If(c, h; then: …, else: …, captured: h)
    """
    captured = reads_around(node)
    if not captured:
        return node
    attributes = {**node.attributes, CAPTURED: captured}
    return replace(node, inputs=(*node.inputs, *captured), attributes=attributes)


def close_bodies(node: Node) -> Node:
    """The node as ONNX has it, whose bodies read what its further inputs are."""
    captured = node.get(CAPTURED, ())
    if not captured:
        return node
    count = len(node.inputs) - len(captured)
    table = dict(zip(captured, node.inputs[count:], strict=True))
    attributes = {
        name: rename_reads(value, table) if isinstance(value, Body) else value
        for name, value in node.attributes.items()
        if name != CAPTURED
    }
    return replace(node, inputs=node.inputs[:count], attributes=attributes)


def _rename(
    nodes: Iterable[Node], given: Mapping[str, str], prefix: str, names: Names
) -> tuple[list[Node], dict[str, str]]:
    """The nodes with a fresh name for all that they write unless one is given, and the names."""
    table = dict(given)

    def inner(name: str) -> str:  # bodies in bodies are renamed as often as they are deep
        return names.fresh(name if name.startswith(f"{prefix}.") else f"{prefix}.{name}")

    def fresh(name: str) -> str:
        if name and name not in table:
            table[name] = inner(name)
        return table.get(name, name)

    def inside(value: Any) -> Any:
        if not isinstance(value, Body):
            return value
        inputs = tuple(map(fresh, value.inputs))
        nodes, known = _rename(value.nodes, table, prefix, names)
        return Body(inputs, tuple(nodes), tuple(known.get(o, o) for o in value.outputs))

    renamed = []
    for node in nodes:
        inputs = tuple(table.get(name, name) for name in node.inputs)
        attributes = {key: inside(value) for key, value in node.attributes.items()}
        outputs = tuple(map(fresh, node.outputs))
        name = inner(node.name)
        renamed.append(
            replace(node, name=name, inputs=inputs, outputs=outputs, attributes=attributes)
        )
    return renamed, table
