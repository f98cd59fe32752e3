"""Tensors that consist of sizes, out to ONNX: by nodes that compute them of other tensors' shapes.

When a model is read such tensors are evaluated, and the nodes that computed them vanish
(`inference/sizes.py`). A reader of ONNX knows no sizes, so they are computed anew:

    x: float32[n, 3, h],  t = (n, -1, 3*floor(h/2))

    ->  s = Shape(x);  n = Gather(s, [0]);  h = Gather(s, [2])
        r = Mod(h, [2]);  q = Div(Sub(h, r), [2]);  p = Mul(q, [3])
        t = Reshape(Concat(n, [-1], p), [3])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np
from onnx import helper

from polyc.errors import UnsupportedOp
from polyc.graph.bodies import Names
from polyc.graph.compose import Composer
from polyc.graph.ir import Graph, Node, Tensor
from polyc.types.derived import Derived
from polyc.types.sizes import Extent, Size


def write_sizes(graph: Graph) -> tuple[Node, ...]:
    """The graph's nodes, in order, and others that compute what none of them does: its sizes.

    Those are in all operator sets from 13 on. Raises UnsupportedOp for a size that no tensor has or
    holds, as a step's number is.
    """
    sizes = _write(graph)
    return _in_order(sizes, graph.nodes) if sizes else graph.nodes


def read_for_sizes(graph: Graph) -> tuple[str, ...]:
    """The tensors of which nodes that `write_sizes` adds read sizes; inputs are not listed."""
    names = dict.fromkeys(name for node in _write(graph) for name in node.inputs)
    return tuple(name for name in names if name in graph.producers)


def _write(graph: Graph) -> list[Node]:
    writer = _Writer(graph)
    for tensor in graph.tensors.values():
        if _is_lost(graph, tensor):
            writer.write(tensor)
    return writer.nodes


def _in_order(sizes: Sequence[Node], nodes: Sequence[Node]) -> tuple[Node, ...]:
    """All of these, each behind what it reads; `nodes` are so already, but for sizes."""
    producers = {o: node for node in (*sizes, *nodes) for o in node.outputs if o}
    ordered: dict[int, Node] = {}
    waiting, begun = [*reversed(sizes), *reversed(nodes)], set[int]()
    while waiting:
        node = waiting[-1]
        before = [producers[name] for name in node.inputs if name in producers]
        missing = [one for one in before if id(one) not in ordered]
        if not missing:
            ordered.setdefault(id(node), waiting.pop())
        elif id(node) in begun:
            raise UnsupportedOp(f"{node.op} {node.name!r} needs a size that only it has")
        begun.add(id(node))
        waiting += reversed(missing)
    return tuple(ordered.values())


def _is_lost(graph: Graph, tensor: Tensor) -> bool:
    is_written = tensor.name in graph.producers or tensor.name in graph.inputs
    return tensor.entries is not None and tensor.value is None and not is_written


class _Writer:
    """Nodes for sizes. Each size is a list of one number, int64[1], and is computed once."""

    def __init__(self, graph: Graph) -> None:
        named = {name for node in graph.nodes for name in (node.name, *node.outputs)}
        self._compose = Composer(Names({*graph.tensors, *named}))
        self._sources = dict(reversed([*_list_sources(graph)]))
        self._written: dict[str, str] = {}
        self._lists: dict[str, str] = {}

    @property
    def nodes(self) -> list[Node]:
        return self._compose.nodes

    def write(self, tensor: Tensor) -> None:
        """Nodes whose last one writes the tensor."""
        assert tensor.entries is not None
        c = self._compose
        parts = [self._extent(entry) for entry in tensor.entries.flat]
        flat = c("Concat", *parts, axis=0) if parts else c.integers()
        if tensor.dtype != np.int64:
            flat = c("Cast", flat, to=helper.np_dtype_to_tensor_dtype(tensor.dtype))
        shape = c.integers(*tensor.entries.shape)
        self.nodes.append(Node(tensor.name, "Reshape", (flat, shape), (tensor.name,)))

    def _extent(self, extent: Extent) -> str:
        """The name of a list with the extent alone."""
        key = str(extent)
        if key not in self._written:
            self._written[key] = (
                self._sum(extent) if isinstance(extent, Size) else self._compose.integers(extent)
            )
        return self._written[key]

    def _sum(self, size: Size) -> str:
        """2*h*w - 3   ->   Add(Mul(Mul([2], h), w), [-3])"""
        terms = []
        for product, count in size.terms:
            factors = [self._extent(count)] if count != 1 or not product else []
            terms.append(self._join("Mul", [*factors, *map(self._factor, product)]))
        return self._join("Add", terms)

    def _join(self, op: str, parts: list[str]) -> str:
        return reduce(lambda one, other: self._compose(op, one, other), parts)

    def _factor(self, name: str) -> str:
        if name not in self._written:
            self._written[name] = (
                self._derived(name) if isinstance(name, Derived) else self._source(name)
            )
        return self._written[name]

    def _derived(self, name: Derived) -> str:
        first, second = map(self._extent, name.operands)
        if name.operation == "min":
            return self._compose("Min", first, second)
        if name.operation == "sum":
            return self._compose("Add", first, second)
        # Div rounds towards zero; Mod has the sign of what divides, which is positive.
        rest = self._compose("Mod", first, second)
        return self._compose("Div", self._compose("Sub", first, rest), second)

    def _source(self, name: str) -> str:
        if name not in self._sources:
            raise UnsupportedOp(
                f"the size {name} is that of no tensor, so that no node of ONNX gives it; "
                "split off the nodes that it comes from"
            )
        source, op, at = self._sources[name]
        key = f"{op} {source}"
        if key not in self._lists:
            shape = (self._compose.integers(-1),) if op == "Reshape" else ()
            self._lists[key] = self._compose(op, source, *shape)
        return self._compose("Gather", self._lists[key], self._compose.integers(at), axis=0)


def _list_sources(graph: Graph) -> Iterator[tuple[str, tuple[str, str, int]]]:
    """Names of sizes: the tensor that has one, the operator that lists those, and where it stands.

    They are a tensor's elements, by Reshape, or its extents, by Shape: of inputs, and of what nodes
    write for the sizes that a call finds.
    """
    for name in (*graph.inputs, *(o for node in graph.nodes for o in node.outputs if o)):
        tensor = graph.tensors[name]
        entries = () if tensor.entries is None else tensor.entries.flat
        for op, sizes in (("Reshape", entries), ("Shape", tensor.shape)):
            for at, size in enumerate(sizes):
                if isinstance(size, Size) and size == min(size.names):
                    yield min(size.names), (name, op, at)
