"""A graph that is being written: nodes in order, the tensors between them, names for new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polyc.graph.ir import Graph, Node, Shape, Tensor
from polyc.names import fresh
from polyc.types.element_types import FLOAT32


class Sketch:
    """Nodes that are added to a graph one by one, each behind those that it reads."""

    def __init__(self, graph: Graph, nodes: Sequence[Node] = ()) -> None:
        self.graph = graph
        self.nodes = list(nodes)
        self.tensors = dict(graph.tensors)
        self._taken = {*graph.tensors, *(n.name for n in graph.nodes)}

    def name(self, base: str) -> str:
        """A name that neither a tensor nor a node has."""
        name = fresh(base, self._taken)
        self._taken.add(name)
        return name

    def constant(self, base: str, value: np.ndarray) -> str:
        """A constant under a fresh name."""
        name = self.name(base)
        value = np.asarray(value)
        self.tensors[name] = Tensor(name, value.dtype, value.shape, value)
        return name

    def call(
        self,
        op: str,
        inputs: Sequence[str],
        base: str,
        shape: Shape,
        dtype: np.dtype = FLOAT32,
        **attributes: Any,
    ) -> str:
        """Add a node; its result, which is called as the node is."""
        name = self.name(base)
        self.tensors[name] = Tensor(name, dtype, shape)
        self.nodes.append(Node(name, op, tuple(inputs), (name,), attributes))
        return name

    def choose(self, condition: str, a: str, b: str) -> str:
        """Add a node that gives a where a condition holds, and b else."""
        tensor = self.tensors[b]
        return self.call("Where", (condition, a, b), f"{b}_chosen", tensor.shape, tensor.dtype)

    def name_last(self, result: str) -> None:
        """Let the last node give a tensor that exists."""
        self.nodes[-1] = replace(self.nodes[-1], outputs=(result,))

    def moved(self, old: str, base: str) -> str:
        """A tensor like another one, under a fresh name."""
        name = self.name(base)
        self.tensors[name] = replace(self.tensors[old], name=name, value=None)
        return name

    def finish(self, outputs: Sequence[str] | None = None) -> Graph:
        """The graph, with other outputs if they are given."""
        return self.graph.rewrite(self.nodes, self.tensors, outputs)
