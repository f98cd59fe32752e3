"""Sequences and optionals: structure, not data, so that none is left when a graph is compiled.

s = SequenceConstruct(a, b); t = SequenceInsert(s, c, 0); y = ConcatFromSequence(t; axis=0)
->  y = Concat(c, a, b; axis=0)

A sequence is the list of the names of its elements, an optional one name or nothing. How many
elements an input has, a call says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyc.errors import ShapeError
from polyc.graph.bodies import Names, instantiate
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.shapes.checks import RuleBroken, constant_int, constant_ints, require
from polyc.graph.shapes.dims import fixed, normalize_axis

MOST_ELEMENTS = 2**12
"""Elements of the longest sequence: each of them is a tensor with a name."""

Structure = tuple[str, ...] | None
"""The elements of a sequence; None for an optional that holds nothing."""


@dataclass(frozen=True)
class Tables:
    """What is known where a node stands: types of tensors, structures of what is none."""

    table: Mapping[str, Tensor]
    structures: MutableMapping[str, Structure]
    names: Names

    def sequence(self, node: Node) -> tuple[str, ...]:
        """The elements of a node's first input."""
        elements = self.structures.get(node.inputs[0])
        way_out = "connect a sequence that is there"
        require(elements is not None, "the first input", "a sequence", "none", way_out)
        assert elements is not None
        return elements

    def position(self, node: Node, index: int, length: int) -> int | None:
        """The position that an input gives, from -length to length - 1; None if it is absent."""
        if index >= len(node.inputs) or not node.inputs[index]:
            return None
        value = constant_int(self.tensor(node, index), "position")
        return normalize_axis(value, length, "position")

    def tensor(self, node: Node, index: int) -> Tensor:
        """The type of an input that must be a tensor."""
        known = self.table.get(node.inputs[index])
        if known is None:
            way_out = "connect one that an earlier node computes"
            raise RuleBroken(f"input {index}", "a tensor", repr(node.inputs[index]), way_out)
        return known

    def constant(self, hint: str, value: np.ndarray) -> tuple[Node, str]:
        name = self.names.fresh(hint)
        return Node(name, "Constant", (), (name,), {"value": value}), name


Rule = Callable[[Node, Tables], Sequence[Node]]


def resolve_container(
    node: Node,
    table: Mapping[str, Tensor],
    structures: MutableMapping[str, Structure],
    names: Names,
) -> Sequence[Node] | None:
    """The nodes on tensors that a node on containers stands for; None for any other node.

    What the node gives that is no tensor is entered in `structures`. Raises NotFixed where a
    position is data, ShapeError where there is nothing at it.
    """
    tables = Tables(table, structures, names)
    rule = RULES.get(node.op) if not node.domain else None
    if node.op == "Identity" and node.inputs[0] in structures:
        structures[node.outputs[0]] = structures[node.inputs[0]]
        return ()
    if rule is None:
        return None
    try:
        return rule(node, tables)
    except RuleBroken as broken:
        raise ShapeError(f"{node.op} {node.name!r}: {broken}") from broken


def construct(node: Node, t: Tables) -> Sequence[Node]:
    """SequenceConstruct, SequenceEmpty: the inputs, in order."""
    require(all(node.inputs), "the elements", "tensors", node.inputs, "leave out what is absent")
    t.structures[node.outputs[0]] = node.inputs
    return ()


def insert(node: Node, t: Tables) -> Sequence[Node]:
    """A new element in front of the one at a position, where n is behind the last, as is none."""
    elements = list(t.sequence(node))
    count = position = len(elements)
    if len(node.inputs) > 2 and node.inputs[2]:
        position = constant_int(t.tensor(node, 2), "position")
    inside, way_out = -count <= position <= count, "insert inside or at the end"
    require(inside, "position", f"{-count} to {count}", position, way_out)
    t.tensor(node, 1)
    elements.insert(position, node.inputs[1])
    t.structures[node.outputs[0]] = tuple(elements)
    return ()


def erase(node: Node, t: Tables) -> Sequence[Node]:
    """All but the element at a position, by default the last one."""
    elements = list(t.sequence(node))
    require(bool(elements), "the sequence", "an element", "none", "erase from one that has some")
    position = t.position(node, 1, len(elements))
    del elements[-1 if position is None else position]
    t.structures[node.outputs[0]] = tuple(elements)
    return ()


def take(node: Node, t: Tables) -> Sequence[Node]:
    """SequenceAt: the element at a position."""
    elements = t.sequence(node)
    position = t.position(node, 1, len(elements))
    assert position is not None, "the checker asks for a position"
    return [replace(node, op="Identity", inputs=(elements[position],))]


def measure(node: Node, t: Tables) -> Sequence[Node]:
    """SequenceLength"""
    length = np.array(len(t.sequence(node)), np.int64)
    return [replace(node, op="Constant", inputs=(), attributes={"value": length})]


def split(node: Node, t: Tables) -> Sequence[Node]:
    """SplitToSequence: pieces of one size, of sizes that are listed, or single slices."""
    data = t.tensor(node, 0)
    axis = normalize_axis(node.get("axis", 0), data.rank)
    extent = fixed(data.shape[axis], f"dimension {axis} of {data.name!r}")
    listed = len(node.inputs) > 1 and bool(node.inputs[1])
    step = 1
    sizes: tuple[int, ...] | None = None
    if listed:
        sizes = constant_ints(t.tensor(node, 1), "split")
        if t.tensor(node, 1).rank == 0:
            (step,), sizes = sizes, None
            require(step > 0, "split", "a positive size", step, "correct it")
    count = -(-extent // step) if sizes is None else len(sizes)
    way_out = "split into fewer"
    require(count <= MOST_ELEMENTS, "elements of the sequence", f"at most {MOST_ELEMENTS}", count,
            way_out)  # fmt: skip
    sizes = sizes or tuple(min(step, extent - k) for k in range(0, extent, step))
    pieces = tuple(t.names.fresh(f"{node.outputs[0]}.{k}") for k in range(len(sizes)))
    t.structures[node.outputs[0]] = pieces
    if not pieces:
        return ()
    lengths, name = t.constant(f"{node.name}.split", np.array(sizes, np.int64))
    attributes = {"axis": axis}
    if listed or node.get("keepdims", 1):
        return [lengths, Node(node.name, "Split", (data.name, name), pieces, attributes)]
    parts = tuple(t.names.fresh(f"{p}.row") for p in pieces)
    axes, where = t.constant(f"{node.name}.axes", np.array([axis], np.int64))
    squeezes = [
        Node(p, "Squeeze", (part, where), (p,)) for part, p in zip(parts, pieces, strict=True)
    ]
    cut = Node(node.name, "Split", (data.name, name), parts, attributes)
    return [lengths, axes, cut, *squeezes]


def join(node: Node, t: Tables) -> Sequence[Node]:
    """ConcatFromSequence: along an axis that is there, or along a new one."""
    elements = t.sequence(node)
    way_out = "make sure that something is inserted before"
    require(bool(elements), "the sequence to join", "at least 1 element", 0, way_out)
    nodes: list[Node] = []
    if node.get("new_axis", 0):
        axes, where = t.constant(f"{node.name}.axes", np.array([node.get("axis")], np.int64))
        nodes.append(axes)
        rows = tuple(t.names.fresh(f"{node.name}.row") for _ in elements)
        nodes += [
            Node(r, "Unsqueeze", (e, where), (r,)) for e, r in zip(elements, rows, strict=True)
        ]
        elements = rows
    attributes = {"axis": node.get("axis")}
    return [*nodes, Node(node.name, "Concat", elements, node.outputs, attributes)]


def repeat(node: Node, t: Tables) -> Sequence[Node]:
    """SequenceMap: the body for each element of the first sequence; tensors are given to all."""
    body: Body = node.attributes["body"]
    nodes: list[Node] = []
    results: list[list[str]] = [[] for _ in node.outputs]
    others = [t.structures.get(name) for name in node.inputs[1:]]
    for k, element in enumerate(t.sequence(node)):
        rest = []
        for name, sequence in zip(node.inputs[1:], others, strict=True):
            enough = sequence is None or k < len(sequence)
            way_out = "give sequences of one length"
            require(enough, f"length of {name!r}", f"more than {k}", k, way_out)
            rest.append(name if sequence is None else sequence[k])
        outputs = tuple(t.names.fresh(f"{o}.{k}") for o in node.outputs)
        nodes += instantiate(
            Node(f"{node.name}.{k}", "SequenceMap", (element, *rest), outputs), body, t.names
        )
        for kept, output in zip(results, outputs, strict=True):
            kept.append(output)
    for name, kept in zip(node.outputs, results, strict=True):
        t.structures[name] = tuple(kept)
    return nodes


def wrap(node: Node, t: Tables) -> Sequence[Node]:
    """Optional: what it is given, or nothing."""
    if not node.inputs or not node.inputs[0]:
        t.structures[node.outputs[0]] = None
        return ()
    return unwrap(node, t)


def unwrap(node: Node, t: Tables) -> Sequence[Node]:
    """OptionalGetElement: an optional that is there is what it holds."""
    name = node.inputs[0]
    if name in t.structures:
        held = t.structures[name]
        require(held is not None, "the optional", "an element", "none", "ask whether it has one")
        t.structures[node.outputs[0]] = held
        return ()
    return [replace(node, op="Identity", attributes={})]


def look(node: Node, t: Tables) -> Sequence[Node]:
    """OptionalHasElement"""
    name = next(iter(node.inputs), "")
    there = bool(name) and t.structures.get(name, ()) is not None
    return [replace(node, op="Constant", inputs=(), attributes={"value": np.array(there)})]


RULES: dict[str, Rule] = {
    "SequenceConstruct": construct,
    "SequenceEmpty": construct,
    "SequenceInsert": insert,
    "SequenceErase": erase,
    "SequenceAt": take,
    "SequenceLength": measure,
    "SplitToSequence": split,
    "ConcatFromSequence": join,
    "SequenceMap": repeat,
    "Optional": wrap,
    "OptionalGetElement": unwrap,
    "OptionalHasElement": look,
}
"""Operator -> what it does to structures, and the nodes that are left of it."""
