"""Types for a whole graph, and the values of what does not depend on its inputs.

One walk in topological order. Models compute many of their shapes: Shape, Gather, Concat, then a
Reshape by the result. Those values are needed here, so such nodes are evaluated on the way and
vanish from the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from polyc.errors import InvalidModel, NeedsValues, NotFixed, UnsupportedOp
from polyc.graph.bodies import Names
from polyc.graph.evaluate import evaluate_node
from polyc.graph.expand import expand_node
from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.shapes import infer_node
from polyc.graph.shapes.creation import resolve_shape_span

MAX_FOLDED = 2**20
"""Elements of the largest evaluated result: the attention mask of 1,024 tokens. Shapes have tens.

Larger constants are weights; transforming them is the business of the graph rewrites.
"""

MAX_READ = 2**28
"""Elements of the largest operand of an evaluated node: what NumPy sums in a fraction of a second.

A filled tensor takes no memory whatever its size, so nothing else bounds the work on it.
"""

# Their values differ from run to run.
_RANDOM = frozenset(
    {
        "Bernoulli",
        "Dropout",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)
# The reference evaluator walks their windows in Python, and no shape comes from a window.
_WINDOWED = frozenset({"AveragePool", "Conv", "ConvTranspose", "LpPool", "MaxPool"})


def infer_graph(
    name: str,
    nodes: Sequence[Node],
    known: Mapping[str, Tensor],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> Graph:
    """A graph whose tensors all have types, without the nodes whose value is known already.

    Nodes that stand for others, such as Attention, are replaced by them (`graph/expand.py`).

        s = Shape(x); r = Gather(s, 0); y = Reshape(x, [r, -1])    x: float32[2,3,4]
        ->  y = Reshape(x, (2, -1))                                y: float32[2,12]

    `nodes` are in topological order; `known` has the types of the inputs and the constants. A
    graph output may be a constant: then no node writes it and its tensor has a value. Raises
    InvalidModel for a name read before it is written or written twice, else as `infer_node`.
    """
    table = dict(known)
    kept: list[Node] = []
    written = {name for n in nodes for name in (n.name, *n.outputs)}
    names = Names({*table, *written})
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        operands = _find_operands(node, table)
        try:
            parts = expand_node(node, operands, names)
            if parts is not None:
                waiting += reversed(parts)
                continue
            results = infer_or_fold(node, operands)
        except NotFixed as unknown:
            raise _name_inputs(unknown, kept, inputs) from unknown
        _require_fresh(node, table)
        table.update((t.name, t) for t in results if t.name)
        if not all(t.is_constant for t in results if t.name):
            kept.append(node)
    _require_known(name, (*inputs, *outputs), table)
    whole = Graph(name, tuple(kept), table, tuple(inputs), tuple(outputs))
    return whole.rewrite(kept)


def _name_inputs(unknown: NotFixed, nodes: Iterable[Node], inputs: Sequence[str]) -> UnsupportedOp:
    """The error, with the inputs that the missing value is computed from, if it is a value's."""
    found = find_sources(unknown.tensor, nodes, inputs)
    return NeedsValues(str(unknown), found) if found else unknown


def find_sources(tensor: str, nodes: Iterable[Node], inputs: Sequence[str]) -> tuple[str, ...]:
    """The graph inputs that a tensor depends on, in their order."""
    producers = {o: n for n in nodes for o in n.outputs if o}
    waiting, seen = [tensor], {tensor}
    while waiting:
        producer = producers.get(waiting.pop())
        for name in producer.inputs if producer else ():
            if name and name not in seen:
                seen.add(name)
                waiting.append(name)
    return tuple(name for name in inputs if name in seen)


def infer_or_fold(node: Node, inputs: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
    """The outputs of a node: with values where they are known when compiling, else types only."""
    types = infer_node(node, inputs)
    if node.op in ("Shape", "Size") and inputs[0] is not None:
        value = _read_extents(node, inputs[0])
        return types if value is None else (replace(types[0], value=value),)
    if not _is_foldable(node, inputs, types):
        return types
    try:
        values = evaluate_node(node, [None if t is None else t.value for t in inputs])
    except UnsupportedOp:
        # No value is no harm: the node stays in the graph and is compiled like any other.
        return types
    return tuple(replace(t, value=v) for t, v in zip(types, values, strict=True))


def _is_foldable(node: Node, inputs: Iterable[Tensor | None], types: Iterable[Tensor]) -> bool:
    operands = [t for t in inputs if t is not None]
    constant = all(t.is_constant for t in operands)
    if not constant or node.op in _RANDOM or node.op in _WINDOWED:
        return False
    if node.op in ("ConstantOfShape", "Constant", "Identity"):
        return True
    small = all(t.size <= MAX_FOLDED for t in types)
    return small and all(t.size <= MAX_READ for t in operands)


def _read_extents(node: Node, data: Tensor) -> np.ndarray | None:
    """What Shape or Size says of a tensor, None if it asks for a symbolic size."""
    if node.op == "Size":
        return np.array(data.size, np.int64) if data.is_static else None
    span = resolve_shape_span(data.rank, node.get("start", 0), node.get("end"))
    dims = [data.shape[i] for i in span]
    return np.array(dims, np.int64) if all(isinstance(d, int) for d in dims) else None


def _find_operands(node: Node, table: Mapping[str, Tensor]) -> list[Tensor | None]:
    for name in node.inputs:
        if name and name not in table:
            raise InvalidModel(
                f"{node.op} {node.name!r} reads {name!r}, which is no input, no constant and no "
                "output of an earlier node; sort the nodes topologically or add the tensor"
            )
    return [table[name] if name else None for name in node.inputs]


def _require_fresh(node: Node, table: Mapping[str, Tensor]) -> None:
    written = [o for o in node.outputs if o]
    for name in written:
        if name in table or written.count(name) > 1:
            raise InvalidModel(
                f"{node.op} {node.name!r} writes {name!r} a second time; rename one of the outputs"
            )


def _require_known(graph: str, names: Iterable[str], table: Mapping[str, Tensor]) -> None:
    for name in names:
        if name not in table:
            raise InvalidModel(
                f"graph {graph!r}: no node, input or constant provides {name!r}; "
                "correct the graph's list of inputs and outputs"
            )
