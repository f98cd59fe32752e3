"""Which tensors become bytes, which of them share a scale, and who reads the bytes.

    conv1 ── relu ──●── conv2 ──●── add ── relu ──●── max pool ──● …        ●: quantised, restored
                    └───────────────┘

A tensor is stored in bytes if a product reads it, or if it is what a convolution gives: engines
multiply bytes in a convolution only if it also gives bytes. What only moves elements hands bytes
on as they are, so that what it reads and what it gives share a scale. Any other node reads restored
bytes if all that it gives becomes bytes again, such as the sum at the end of a residual block; else
it goes on reading floats, such as a norm behind a sum, which costs no accuracy then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from polyc.compression.layers import Layer, only_readers
from polyc.graph.ir import Graph, Node
from polyc.graph.simplify.bytes_kept import MOVES

PARTS = frozenset({"Gather", "Slice", "Split"})
"""Operators that move some of the elements: what they give may have a better scale of its own."""

ONE_TO_ONE = MOVES - PARTS - {"Concat", "Pad"}
"""Those that move all elements of one tensor: the result wants the scale of what they read."""


@dataclass
class Places:
    """Tensors that become bytes, by the name of their group, which shares one scale.

    symmetric, signed: groups without a zero point, and of signed bytes whatever else is wanted.
    replaced: tensors whose every reader reads restored bytes. readers: for nodes, the tensors that
    they read as restored bytes.
    """

    groups: dict[str, str] = field(default_factory=dict)
    symmetric: set[str] = field(default_factory=set)
    signed: set[str] = field(default_factory=set)
    replaced: set[str] = field(default_factory=set)
    readers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def members(self) -> dict[str, list[str]]:
        """The tensors of each group."""
        table = defaultdict(list)
        for name, group in self.groups.items():
            table[group].append(name)
        return table


def find_places(graph: Graph, layers: Collection[Layer]) -> Places:
    """Where bytes stand, so that these layers multiply them."""
    finder = _Finder(graph)
    for layer in layers:
        for name in layer.activations:
            finder.want(name)
        if layer.node.op == "Conv":
            finder.want(layer.end)
            finder.places.replaced.add(layer.end)
    finder.hand_on()
    for layer in layers:
        if not layer.weight:
            a, b = layer.activations
            finder.places.symmetric |= {finder.root(a), finder.root(b)}
            finder.places.signed.add(finder.root(b))
    finder.find_readers({layer.name: layer for layer in layers})
    places = finder.places
    places.groups = {name: finder.root(name) for name in places.groups}
    places.symmetric = {finder.root(name) for name in places.symmetric}
    places.signed = {finder.root(name) for name in places.signed}
    return places


class _Finder:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.places = Places()

    def want(self, name: str) -> None:
        self.places.groups.setdefault(name, name)

    def root(self, name: str) -> str:
        """The member of a group that stands for it."""
        groups = self.places.groups
        while groups[name] != name:
            name = groups[name]
        return name

    def hand_on(self) -> None:
        """Let what only moves elements take bytes, from the last node to the first."""
        for node in reversed(self.graph.nodes):
            if node.domain or not any(o in self.places.groups for o in node.outputs):
                continue
            sources = self._sources(node)
            if node.op in PARTS:
                sources = [s for s in sources if s in self.places.groups]
            for name in sources:
                self.want(name)
                for result in node.outputs:
                    if result in self.places.groups:
                        self.places.groups[self.root(name)] = self.root(result)

    def _sources(self, node: Node) -> list[str]:
        """The tensors that a node moves elements of, as bytes if it is to."""
        if node.op in ONE_TO_ONE | PARTS:
            names = list(node.inputs[:1])
        elif node.op == "Concat":
            names = list(dict.fromkeys(node.inputs))
        else:
            return []
        plain = all(self.graph.value(name) is None for name in names)
        alone = node.op == "Split" or not any(node.outputs[1:])
        return names if plain and alone else []

    def find_readers(self, layers: dict[str, Layer]) -> None:
        groups = self.places.groups
        for node in self.graph.nodes:
            given = [name for name in node.inputs if name in groups]
            if node.name in layers:
                read = set(layers[node.name].activations)
            else:
                read = set(given) if all(map(self._ends_as_bytes, node.outputs)) else set()
            if read:
                self.places.readers[node.name] |= read

    def _ends_as_bytes(self, name: str) -> bool:
        """Whether a result becomes bytes, behind what is done with each number in registers."""
        if name in self.places.groups:
            return True
        for reader in only_readers(self.graph, name):
            if reader.op not in ("Relu", "Clip"):
                return False
            if reader.outputs[0] in self.places.groups:
                return True
        return False
