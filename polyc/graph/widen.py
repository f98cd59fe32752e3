"""Arithmetic on narrow types, such as float16: done in their wide type, rounded where it is stored.

    y = Softmax(x)                x, y: float16
    ->
    x_wide = Cast(x)              float32
    y_wide = Softmax(x_wide)      float32: also what the operator keeps in between, its sums first
    y = Narrow(y_wide)            float16

Casts are fused into what reads their result, and Narrows into what computes their argument. Where
a Narrow and a Cast of its result meet in one expression both go: a chain of operators that becomes
one statement rounds once, at its end. So a value may keep more than its type has, and never less;
the standard's own rounding after each operator is what is left where every result is stored. A
Cast that the model asks for always rounds.
"""

from __future__ import annotations

from dataclasses import replace

from onnx.helper import np_dtype_to_tensor_dtype

from polyc.graph.bodies import Names
from polyc.graph.ir import Graph, Node, Tensor
from polyc.types.element_types import is_narrow, wide

_MOVING = (
    "BitCast Carried Cast CastLike Choose Compress Concat Constant ConstantOfShape DepthToSpace "
    "Dropout Expand Flatten Gather GatherElements GatherND Identity OneHot Pad Repeat Reshape "
    "ReverseSequence Shape Size Slice SpaceToDepth Split Squeeze TensorScatter Tile Transpose "
    "Trilu Unsqueeze Where"
)
MOVING = frozenset(_MOVING.split())
"""Operators that only move, choose or convert elements: these stay as they are."""


QUANTISED = {"QuantizeLinear": (2,), "DequantizeLinear": (0, 2)}
"""Operators that convert some inputs themselves; QuantizeLinear its result as well."""

PRODUCTS = frozenset({"Gemm", "MatMul"})
"""Operators that may read a weight once, so that its size is what they wait for."""

WEIGHTS = 256
"""Elements from which on it matters how a constant is stored."""


def widen(graph: Graph, weights_of: frozenset[str] | None = None) -> Graph:
    """The graph with all arithmetic in wide types; inputs and outputs keep their types.

    weights_of: operators whose large constants stay narrow, to be converted by a Cast where they
    are read; None stands for all. The others' are converted here.
    """
    if not any(is_narrow(t.dtype) for t in graph.tensors.values()):
        return graph
    widening = _Widening(graph, weights_of)
    for node in graph.nodes:
        widening.add(node)
    return graph.rewrite(widening.nodes, widening.tensors)


def _moves(node: Node) -> bool:
    if node.op in ("ScatterElements", "ScatterND"):
        return str(node.get("reduction", "none")) == "none"
    return node.op in MOVING


class _Widening:
    """The nodes so far; `wide`: (narrow tensor, whether it is a constant) -> what stands for it."""

    def __init__(self, graph: Graph, weights_of: frozenset[str] | None) -> None:
        self.weights_of = weights_of
        self.tensors = dict(graph.tensors)
        self.nodes: list[Node] = []
        self.producers: dict[str, str] = {}
        self.wide: dict[tuple[str, bool], str] = {}
        self._names = Names(set(graph.tensors))

    def add(self, node: Node) -> None:
        """Append the node, in wide types if it computes.

        The conversions of its results bear its name: to who reads a report they are part of it.
        """
        self.producers.update((name, node.name) for name in node.outputs)
        if _moves(node):
            self.nodes.append(node)
            return
        keep = self.weights_of is None or node.op in self.weights_of
        own = QUANTISED.get(node.op, ())
        inputs = tuple(
            name if k in own else self._read(name, keep) for k, name in enumerate(node.inputs)
        )
        rounded = () if node.op == "QuantizeLinear" else node.outputs
        results = {name: self._fresh(name) for name in rounded if self._is_narrow(name)}
        outputs = tuple(results.get(name, name) for name in node.outputs)
        self.nodes.append(replace(node, inputs=inputs, outputs=outputs))
        for name, result in results.items():
            self.nodes.append(Node(node.name, "Narrow", (result,), (name,)))

    def _read(self, name: str, keep: bool) -> str:
        """The wide tensor of a name: a constant if it is one that need not be kept, else a Cast."""
        if not self._is_narrow(name):
            return name
        tensor = self.tensors[name]
        converted = tensor.value is not None and not (keep and tensor.size >= WEIGHTS)
        if (name, converted) not in self.wide:
            fresh = self.wide[name, converted] = self._fresh(name)
            result = self.tensors[fresh]
            if converted and tensor.value is not None:
                self.tensors[fresh] = replace(result, value=tensor.value.astype(result.dtype))
            else:
                attributes = {"to": int(np_dtype_to_tensor_dtype(result.dtype))}
                label = self.producers.get(name, f"{name}.cast")
                self.nodes.append(Node(label, "Cast", (name,), (fresh,), attributes))
        return self.wide[name, converted]

    def _is_narrow(self, name: str) -> bool:
        return bool(name) and is_narrow(self.tensors[name].dtype)

    def _fresh(self, name: str) -> str:
        """A tensor like this one, of its wide type."""
        tensor, fresh = self.tensors[name], self._names.fresh(f"{name}_wide")
        self.tensors[fresh] = Tensor(fresh, wide(tensor.dtype), tensor.shape)
        return fresh
