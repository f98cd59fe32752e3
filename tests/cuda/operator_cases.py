"""An example of each operator that is compiled: one of onnx's own, or one by hand without one.

Many small graphs become one model, because starting a compiler costs more than any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import compose, helper, numpy_helper
from onnx.backend.test.case.test_case import TestCase

from polyc.graph.expand.control.unroll import CONTROL_FLOW
from polyc.graph.expand.expand import COMPOSED, DISTRIBUTIONS
from polyc.graph.shapes.internal import INTERNAL_TYPES
from polyc.scop.lower.context import LOWERINGS
from tests.scop.check import SHAPE_INPUTS, all_cases, backend_cases

INTERNAL = {"Computed", "Count", "Narrow", "ScatterTrue", *INTERNAL_TYPES}
"""Nodes of the graph that no model has."""

BY_CALL = {*DISTRIBUTIONS, "AlignRegions", "Bernoulli", "Compress", "Multinomial"}
BY_CALL |= {"NonMaxSuppression", "NonZero", "Trim", "Unique"}
"""Operators that only a call completes: of a size that is data, or of numbers drawn anew."""

OPERATORS = tuple(sorted({**LOWERINGS, **COMPOSED, **CONTROL_FLOW}.keys() - BY_CALL - INTERNAL))
"""What has a rule of its own, a lowering or the nodes that it stands for, and needs no call."""

OTHER_DOMAINS = {"ai.onnx.preview.training": 1, "ai.onnx.ml": 5}
"""Where operators besides those of the standard's own domain are from, and in which version."""


@dataclass(frozen=True)
class Example:
    """A graph with an operator in it, and by name what goes in and must come out."""

    graph: onnx.GraphProto
    feeds: Mapping[str, np.ndarray]
    expected: Mapping[str, np.ndarray]
    rtol: float = 1e-4

    @property
    def size(self) -> int:
        return sum(v.size for v in (*self.feeds.values(), *self.expected.values()))


def find_example(op: str) -> Example | None:
    """The example of an operator: of onnx's, the one with most elements; None if there is none."""
    if op in BY_HAND:
        return BY_HAND[op]
    cases = backend_cases(op) or _other_cases(op)
    newest = max((_version(case) for case in cases), default=1)
    examples = [_of_onnx(case) for case in cases if _version(case) == newest]
    return max(examples, key=lambda e: (e.size, e.graph.name), default=None)


def merge(examples: Sequence[Example]) -> tuple[onnx.ModelProto, Example]:
    """All of them as one model, and as one example, in which the k-th graph's names begin ck_."""
    whole = onnx.GraphProto(name="examples")
    feeds, expected = {}, {}
    for k, example in enumerate(examples):
        prefix = f"c{k}_"
        graph = compose.add_prefix_graph(example.graph, prefix)
        for field in ("node", "input", "output", "initializer"):
            getattr(whole, field).extend(getattr(graph, field))
        feeds |= {prefix + name: array for name, array in example.feeds.items()}
        expected |= {prefix + name: array for name, array in example.expected.items()}
    imports = [helper.make_opsetid("", onnx.defs.onnx_opset_version())]
    imports += [helper.make_opsetid(*domain) for domain in OTHER_DOMAINS.items()]
    model = helper.make_model(whole, opset_imports=imports)
    return model, Example(whole, feeds, expected)


def _version(case: TestCase) -> int:
    """Of the operator set that a case is written in."""
    return case.model.opset_import[0].version


def _other_cases(op: str) -> list[TestCase]:
    """onnx's cases of an operator of another domain."""
    found = (case for case in all_cases() if len(case.model.graph.node) == 1)
    nodes = ((case, case.model.graph.node[0]) for case in found)
    return [case for case, n in nodes if n.op_type == op and n.domain in OTHER_DOMAINS]


def _of_onnx(case: TestCase) -> Example:
    """A case of onnx, with what decides shapes as initializers."""
    given, outputs = case.data_sets[0]
    graph = onnx.GraphProto()
    graph.CopyFrom(case.model.graph)
    feeds = dict(zip([i.name for i in graph.input], map(np.asarray, given), strict=True))
    (node,) = graph.node
    known = {node.input[k] for k in SHAPE_INPUTS.get(node.op_type, ()) if k < len(node.input)}
    kept = [i for i in graph.input if i.name not in known]
    del graph.input[:]
    graph.input.extend(kept)
    initializers = (numpy_helper.from_array(feeds.pop(n), n) for n in sorted(known & set(feeds)))
    graph.initializer.extend(initializers)
    expected = dict(zip([o.name for o in graph.output], map(np.asarray, outputs), strict=True))
    return Example(graph, feeds, expected, max(case.rtol, 1e-4))


def _by_hand(op: str, y: np.ndarray, *inputs: np.ndarray, **attributes: object) -> Example:
    feeds = {f"x{k}": x for k, x in enumerate(inputs)}
    node = helper.make_node(op, list(feeds), ["y"], **attributes)
    declared = [_declare(name, array) for name, array in feeds.items()]
    return Example(helper.make_graph([node], op, declared, [_declare("y", y)]), feeds, {"y": y})


def _declare(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, array.shape)


def _doubling(steps: int, x: np.ndarray) -> Example:
    """A loop that doubles x in each step."""
    scalar = np.zeros((), np.int64)
    inside = [("step", scalar), ("again", scalar.astype(bool)), ("total", x)]
    after = [("still", scalar.astype(bool)), ("doubled", x)]
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["again"], ["still"]),
            helper.make_node("Add", ["total", "total"], ["doubled"]),
        ],
        "body",
        [_declare(*v) for v in inside],
        [_declare(*v) for v in after],
    )
    loop = helper.make_node("Loop", ["steps", "", "x"], ["y"], body=body)
    known = [numpy_helper.from_array(np.array(steps, np.int64), "steps")]
    graph = helper.make_graph([loop], "Loop", [_declare("x", x)], [_declare("y", x)], known)
    return Example(graph, {"x": x}, {"y": x * 2**steps})


def _global_norm(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.square(x, dtype=np.float64).sum((2, 3), keepdims=True)).astype(x.dtype)


_X = np.random.default_rng(0).uniform(-9, 9, (2, 3, 5, 7)).astype(np.float32)

BY_HAND = {
    "Cast": _by_hand("Cast", _X.astype(np.int32), _X, to=onnx.TensorProto.INT32),
    "CastLike": _by_hand("CastLike", _X.astype(np.int64), _X, np.zeros(1, np.int64)),
    "GlobalLpPool": _by_hand("GlobalLpPool", _global_norm(_X), _X, p=2),
    "Loop": _doubling(3, _X),
    "MaxRoiPool": _by_hand(
        "MaxRoiPool", _X.max((2, 3), keepdims=True), _X,
        np.array([[0, 0, 0, 6, 4], [1, 0, 0, 6, 4]], np.float32), pooled_shape=[1, 1],
    ),
}  # fmt: skip
"""For operators of which onnx has no case in the newest operator set with types compiled here."""
