"""An ONNX model that is evaluated by onnx's reference while it is built.

Every tensor's value is known as soon as its node is added, so a generator can look at shapes and
values to choose what to add next, and the expected outputs come for free.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPSET = 22

_FRAGILE = (
    "AveragePool Conv ConvTranspose Flatten GatherElements GlobalAveragePool GlobalMaxPool LpPool "
    "LRN MaxPool Pad"
)

BY_ONNXRUNTIME = frozenset(_FRAGILE.split())
"""Operators of which onnx's reference evaluator refuses or miscomputes some legal cases."""


@dataclass(frozen=True)
class Value:
    """A tensor of the graph and what it holds.

    `exact`: every correct implementation computes the same bits, so that a discontinuous function
    of it (a comparison, a rounding, the position of a maximum) has one right answer.
    """

    name: str
    array: np.ndarray
    exact: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def rank(self) -> int:
        return self.array.ndim

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype


class GraphBuilder:
    """Nodes, inputs and constants added one by one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[onnx.NodeProto] = []
        self.feeds: dict[str, np.ndarray] = {}
        self.constants: dict[str, np.ndarray] = {}
        self._count = 0

    def input(self, array: np.ndarray) -> Value:
        """A new graph input that will be fed this array."""
        name = self._name("x")
        self.feeds[name] = array
        return Value(name, array, exact=True)

    def constant(self, array: np.ndarray) -> Value:
        """A new initializer."""
        name = self._name("c")
        self.constants[name] = np.asarray(array)
        return Value(name, self.constants[name], exact=True)

    def node(
        self,
        op: str,
        inputs: Sequence[Value | None],
        *,
        exact: bool,
        n_outputs: int = 1,
        expected: Sequence[np.ndarray] | None = None,
        **attributes: Any,
    ) -> list[Value]:
        """Add a node; its outputs are exact if the operator is and all inputs are.

        `expected` replaces what onnx's reference evaluator gives.
        """
        names = [v.name if v is not None else "" for v in inputs]
        outputs = [self._name("t") for _ in range(n_outputs)]
        node = helper.make_node(op, names, outputs, f"{op}_{len(self.nodes)}", **attributes)
        given = {v.name: v.array for v in inputs if v is not None}
        arrays = evaluate(node, given) if expected is None else expected
        self.nodes.append(node)
        exact = exact and all(v is None or v.exact for v in inputs)
        return [Value(n, a, exact) for n, a in zip(outputs, arrays, strict=True)]

    def model(self, outputs: Sequence[Value]) -> onnx.ModelProto:
        """The graph as a model that gives these outputs."""
        graph = helper.make_graph(
            self.nodes,
            self.name,
            [_declare(n, a) for n, a in self.feeds.items()],
            [_declare(v.name, v.array) for v in outputs],
            [numpy_helper.from_array(a, n) for n, a in self.constants.items()],
        )
        imports = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)

    def _name(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"


def evaluate(node: onnx.NodeProto, given: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of one node, by onnx's reference evaluator or by onnxruntime, unoptimised."""
    graph = helper.make_graph(
        [node],
        "node",
        [_declare(n, a) for n, a in given.items()],
        [onnx.ValueInfoProto(name=n) for n in node.output],
    )
    imports = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    if node.op_type in BY_ONNXRUNTIME:
        return run_onnxruntime(model, given)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = ReferenceEvaluator(model).run(None, dict(given))
    return [np.asarray(r) for r in results]


def run_onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """What onnxruntime gives, on one thread and without its own rewriting."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, dict(feeds))


def _declare(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
    element = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, element, array.shape)
