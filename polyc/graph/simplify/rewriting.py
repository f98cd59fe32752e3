"""What every rewrite shares: its result, and one walk that applies a local rule to each node.

A *rewrite* is a pure function `Graph -> Rewritten`. Most of them are a *rule* that looks at one
node and the nodes above it, and says what takes the node's place:

    rule(scope, node) -> Change | None

`apply_rule` walks the nodes once, in topological order, and keeps count of readers as it goes, so
that a rule sees the graph as rewritten so far and a walk costs time linear in the graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from polyc.graph.ir import Graph, Node, Shape, Tensor
from polyc.types.element_types import COMPILED, is_float

SMALL_CONSTANT_BYTES = 1 << 16
"""A constant up to this size may be copied or compared freely; 64 KiB hash in well under 1 ms."""

_RANDOM = frozenset(
    {"Bernoulli", "Dropout", "Multinomial"}
    | {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}
)
_PLAIN_ATTRIBUTES = (int, float, str, bytes, list, tuple, np.ndarray, np.generic, np.dtype)


@dataclass(frozen=True)
class RewriteNote:
    """One thing that a rewrite did, as a sentence that names the nodes; shown by `explain()`."""

    rewrite: str
    text: str

    def __str__(self) -> str:
        return f"{self.rewrite}: {self.text}"


@dataclass(frozen=True)
class Rewritten:
    """A graph after a rewrite, and what was done to it; no notes means an unchanged graph."""

    graph: Graph
    notes: tuple[RewriteNote, ...] = ()


Rewrite = Callable[[Graph], Rewritten]


@dataclass(frozen=True)
class Change:
    """What takes a node's place.

    Each output of the node that is read must be written by one of `nodes`, be given a value in
    `tensors`, or be a key of `aliases`, which names the tensor that its readers read from now on.
    """

    text: str
    nodes: tuple[Node, ...] = ()
    tensors: tuple[Tensor, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)


class Scope:
    """The graph in the middle of a walk: rewritten above the current node, as it was below."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._tensors = dict(graph.tensors)
        self._outputs = frozenset(graph.outputs)
        self._reads = Counter(graph.outputs)
        for node in graph.nodes:
            self._reads.update(node.inputs)
        self._producers: dict[str, Node] = {}
        self._emitted: list[Node] = []
        self._dead: set[int] = set()
        self._aliases: dict[str, str] = {}
        self._renames: dict[str, str] = {}
        self._suffixes: Counter[str] = Counter()

    # What a rule may ask.

    def tensor(self, name: str) -> Tensor:
        return self._tensors[name]

    def value(self, name: str) -> np.ndarray | None:
        """The value of a constant, or None for an absent name or a tensor computed at run time."""
        return self._tensors[name].value if name else None

    def producer(self, name: str) -> Node | None:
        """The node that writes a tensor; None for inputs, constants and absent names."""
        return self._producers.get(name)

    def is_read(self, name: str) -> bool:
        return bool(name) and self._reads[name] > 0

    def is_read_once(self, name: str) -> bool:
        """Whether one use, by a node or as an output of the graph, is all there is."""
        return self._reads[name] == 1

    def can_redirect(self, old: str, new: str) -> bool:
        """Whether `old` can vanish in favour of `new`, so that no Identity is needed between."""
        free = new in self._producers and new not in self._outputs and new not in self._renames
        return old not in self._outputs or free or self._tensors[new].is_constant

    def fresh_name(self, base: str) -> str:
        """A name that no tensor has: base_1, base_2, ..."""
        while True:
            self._suffixes[base] += 1
            name = f"{base}_{self._suffixes[base]}"
            if name not in self._tensors:
                return name

    def constant(self, base: str, value: np.ndarray) -> Tensor:
        """A constant under a fresh name."""
        return Tensor(self.fresh_name(base), value.dtype, value.shape, value)

    def result(self, base: str, dtype: np.dtype, shape: Shape) -> Tensor:
        """A tensor computed at run time, under a fresh name."""
        return Tensor(self.fresh_name(base), dtype, shape)

    # What the walk does.

    def resolve(self, node: Node) -> Node:
        """The node with its inputs as earlier changes have redirected them."""
        if not any(i in self._aliases for i in node.inputs):
            return node
        return replace(node, inputs=tuple(self._aliases.get(i, i) for i in node.inputs))

    def emit(self, node: Node) -> None:
        self._emitted.append(node)
        self._producers.update((o, node) for o in node.outputs if o)

    def substitute(self, node: Node, change: Change) -> None:
        """Put a change in the place of `node`; nodes above that nobody reads any more die."""
        self._tensors.update((t.name, t) for t in change.tensors)
        for added in change.nodes:
            self._reads.update(added.inputs)
            self.emit(added)
        for old, new in change.aliases.items():
            self._redirect(old, new)
        self._release(node)

    def finish(self) -> Graph:
        """The graph of the nodes that are alive, each rename applied."""
        alive = [n for n in self._emitted if id(n) not in self._dead]
        if self._renames:
            alive = [_rename(n, self._renames) for n in alive]
        return self.graph.rewrite(alive, self._tensors)

    def _redirect(self, old: str, new: str) -> None:
        # An output of the graph keeps its name: a constant takes that name, a result is renamed to
        # it, and only a tensor whose own name is fixed as well needs an Identity.
        if old in self._outputs:
            if self._tensors[new].is_constant:
                self._tensors[old] = replace(self._tensors[new], name=old)
            elif self.can_redirect(old, new):
                self._renames[new] = old
            else:
                self.emit(Node(f"{old}_copy", "Identity", (new,), (old,)))
        self._aliases[old] = new
        self._reads[new] += self._reads.pop(old, 0)

    def _release(self, node: Node) -> None:
        pending = list(node.inputs)
        while pending:
            name = pending.pop()
            self._reads[name] -= 1
            producer = self._producers.get(name)
            if producer is None or any(self._reads[o] > 0 for o in producer.outputs if o):
                continue
            if id(producer) not in self._dead:
                self._dead.add(id(producer))
                pending.extend(producer.inputs)


Rule = Callable[[Scope, Node], Change | None]


def apply_rule(graph: Graph, rewrite: str, rule: Rule) -> Rewritten:
    """Offer each node to a rule, once, in topological order; one note per change."""
    scope = Scope(graph)
    notes = []
    for original in graph.nodes:
        node = scope.resolve(original)
        change = rule(scope, node)
        if change is None:
            scope.emit(node)
        else:
            scope.substitute(node, change)
            notes.append(RewriteNote(rewrite, change.text))
    return Rewritten(scope.finish(), tuple(notes)) if notes else Rewritten(graph)


def is_repeatable(node: Node) -> bool:
    """Whether equal inputs give equal outputs: a standard operator, not random, no subgraph."""
    if node.domain not in ("", "ai.onnx") or node.op in _RANDOM:
        return False
    return all(isinstance(v, _PLAIN_ATTRIBUTES) for v in node.attributes.values())


def drop(node: Node, source: str, why: str) -> Change:
    """`y = node(source, ...)` -> y is `source`, because the node does nothing."""
    return Change(f"{node.op} '{node.name}' dropped: {why}", aliases={node.outputs[0]: source})


def is_filled(value: np.ndarray | None, number: float) -> bool:
    """Whether a numeric constant holds this number everywhere; +0.0 and -0.0 are told apart."""
    if value is None or value.dtype not in COMPILED or not value.size:
        return False
    if not np.array_equal(value, np.full_like(value, number)):
        return False
    return not is_float(value.dtype) or bool((np.signbit(value) == np.signbit(number)).all())


def _rename(node: Node, renames: Mapping[str, str]) -> Node:
    return replace(
        node,
        inputs=tuple(renames.get(i, i) for i in node.inputs),
        outputs=tuple(renames.get(o, o) for o in node.outputs),
    )
