"""One walk through a graph that finds its channels, and what would have to be cut with them.

A handler of an operator says which channels its result has and what is known of them, what it needs
of its operands' channels, and which constants and attributes count them. Whatever no handler
understands needs all channels of what it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.zero_channels.atoms import Atoms, Channels


@dataclass(frozen=True)
class Cut:
    """An operand of a node that is a constant, or absent, and counts channels along a dimension."""

    node: int
    operand: int
    axis: int
    atoms: np.ndarray


@dataclass(frozen=True)
class Count:
    """A number that counts channels: an attribute, or an entry of a constant operand."""

    node: int
    attribute: str
    operand: int
    entry: int
    atoms: np.ndarray


@dataclass(frozen=True)
class Shift:
    """What channels that are known add to a product when they go: one number for each result.

    terms: float64[results, channels]; operand: of the node's bias, which may be absent.
    """

    node: int
    operand: int
    terms: np.ndarray
    atoms: np.ndarray


@dataclass
class Walk:
    """What a walk has found so far.

    makers: nodes that compute channels, by their place; parts: channels that one node writes, of
    which one must stay.
    """

    graph: Graph
    atoms: Atoms = field(default_factory=Atoms)
    channels: dict[str, Channels] = field(default_factory=dict)
    makers: dict[int, Channels] = field(default_factory=dict)
    parts: list[Channels] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    counts: list[Count] = field(default_factory=list)
    shifts: list[Shift] = field(default_factory=list)

    def tensor(self, name: str) -> Tensor:
        return self.graph.tensors[name]

    def value(self, name: str) -> np.ndarray | None:
        return self.graph.value(name)

    def need_all(self, name: str) -> None:
        """All channels of a tensor stay."""
        if name in self.channels:
            self.atoms.need(self.channels[name].atoms)

    def at(self, name: str, axis: int) -> Channels | None:
        """A tensor's channels along a dimension; such as must stay, where it has others or none.

        None where their number is not known.
        """
        found = self.channels.get(name)
        if found is not None and found.axis == axis:
            return found
        self.need_all(name)
        extent = self.tensor(name).shape[axis]
        if not isinstance(extent, int):
            return None
        made = self.atoms.make(axis, extent)
        self.atoms.need(made.atoms)
        return made


Handler = Callable[[Walk, int, Node], bool]
"""Whether it understands a node; if not, all that the node reads is needed, and nothing is said of
its results."""


def walk_graph(graph: Graph, handlers: dict[str, Handler]) -> Walk:
    """The channels of all tensors of a graph."""
    walk = Walk(graph)
    for place, node in enumerate(graph.nodes):
        handler = None if node.domain else handlers.get(node.op)
        if handler is None or not handler(walk, place, node):
            for name in node.inputs:
                walk.need_all(name)
    for name in graph.outputs:
        walk.need_all(name)
    for made in (*walk.makers.values(), *walk.parts):  # a tensor without elements is nobody's gain
        if not walk.atoms.kept(made.atoms).any():
            walk.atoms.need(made.atoms[:1])
    return walk
