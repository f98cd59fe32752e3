"""One operator at a time: build its graph, lower it, interpret it, compare with a reference."""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase
from onnx.reference import ReferenceEvaluator

from polyc.graph.ir import Graph, Node, Tensor
from polyc.scop.lower import lower_graph
from polyc.scop.scop import Scop
from tests.exact.runs import exactly
from tests.scop.interpreter import interpret

Arrays = Sequence[np.ndarray | None]

SHAPE_INPUTS: dict[str, tuple[int, ...]] = {
    "AffineGrid": (1,), "ConstantOfShape": (0,), "CenterCropPad": (1,), "Col2Im": (1, 2),
    "CumProd": (1,), "CumSum": (1,), "Dropout": (1, 2), "Expand": (1,),
    "MaxUnpool": (2,), "OneHot": (1,), "Pad": (1, 3), "Range": (0, 1, 2),
    "Reshape": (1,), "Resize": (1, 2, 3), "Slice": (1, 2, 3, 4), "Split": (1,), "Squeeze": (1,),
    "Tile": (1,), "TopK": (1,), "Trilu": (1,), "Unsqueeze": (1,), "Upsample": (1,),
    **{f"Reduce{kind}": (1,) for kind in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2",
                                          "LogSum", "LogSumExp", "SumSquare")},
}  # fmt: skip
"""Inputs that decide shapes, and so must be constants."""

DTYPES = frozenset(
    np.dtype(t) for t in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
)


def check_node(
    op: str,
    inputs: Arrays,
    attributes: Mapping[str, Any] | None = None,
    n_outputs: int = 1,
    constant_inputs: Collection[int] = (),
    expected: Sequence[np.ndarray] | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> Scop:
    """Assert that a node's lowering computes what the reference does, in type, shape and value.

    An absent optional input is None; `constant_inputs` (with `SHAPE_INPUTS`) are known at compile
    time. `expected` replaces onnx's reference evaluator. Gives the scop, for tests of its form.
    """
    attributes = dict(attributes or {})
    if expected is None:
        expected = reference(op, inputs, attributes, n_outputs)
    constants = {*constant_inputs, *SHAPE_INPUTS.get(op, ())}
    graph = node_graph(op, inputs, attributes, expected, constants)
    return check_graph(graph, inputs, expected, rtol, atol)


def check_graph(
    graph: Graph, inputs: Arrays, expected: Sequence[np.ndarray], rtol: float, atol: float
) -> Scop:
    """Lower, interpret and compare; `inputs` hold those of the graph among others named x0, x1…"""
    scop = lower_graph(graph)
    given = {f"x{k}": value for k, value in enumerate(inputs)}
    feeds = {a: given[i] for a, i in zip(scop.inputs, graph.inputs, strict=True)}
    results = interpret(scop, feeds)
    for name, wanted in zip(scop.outputs, expected, strict=True):
        result = results[name]
        assert scop.arrays[name].kind == "output"
        assert result.dtype == wanted.dtype, f"{name}: {result.dtype}, expected {wanted.dtype}"
        assert result.shape == wanted.shape, f"{name}: {result.shape}, expected {wanted.shape}"
        np.testing.assert_allclose(result, wanted, rtol, atol, err_msg=f"{graph}\n{scop}")
    if _is_chosen():
        report = exactly(graph, feeds=dict(zip(graph.inputs, feeds.values(), strict=True)))
        assert report.agrees, f"{report}\n{graph}\n{scop}"
    return scop


EXACT = os.environ.get("POLYC_TEST_EXACT", "1/40")
"""The share of the cases that are also compiled and run exactly: of "1/1" all."""


def _is_chosen() -> bool:
    """Whether the test that is under way is in the share."""
    part, count = map(int, EXACT.split("/"))
    name = os.environ.get("PYTEST_CURRENT_TEST", "")
    return zlib.crc32(name.encode()) % count == part - 1


def reference(
    op: str, inputs: Arrays, attributes: Mapping[str, Any], n_outputs: int = 1
) -> list[np.ndarray]:
    """What onnx's reference evaluator gives for one node of the newest operator set."""
    names = [f"x{k}" if value is not None else "" for k, value in enumerate(inputs)]
    outputs = [f"y{k}" for k in range(n_outputs)]
    node = helper.make_node(op, names, outputs, **attributes)
    declared = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for n, v in zip(names, inputs, strict=True)
        if v is not None
    ]
    results = [onnx.ValueInfoProto(name=n) for n in outputs]
    model = helper.make_model(helper.make_graph([node], op, declared, results))
    feeds = {n: v for n, v in zip(names, inputs, strict=True) if n}
    with np.errstate(all="ignore"):
        return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, feeds)]


def node_graph(
    op: str,
    inputs: Arrays,
    attributes: Mapping[str, Any],
    expected: Sequence[np.ndarray],
    constants: Collection[int],
) -> Graph:
    """The graph of one node: inputs x0, x1…, results y0, y1… of the expected types."""
    tensors = {}
    for k, value in enumerate(inputs):
        if value is not None:
            known = value if k in constants else None
            tensors[f"x{k}"] = Tensor(f"x{k}", value.dtype, value.shape, known)
    for k, value in enumerate(expected):
        tensors[f"y{k}"] = Tensor(f"y{k}", value.dtype, value.shape)
    arguments = tuple(f"x{k}" if v is not None else "" for k, v in enumerate(inputs))
    outputs = tuple(f"y{k}" for k in range(len(expected)))
    node = Node(f"{op}_0", op, arguments, outputs, plain_attributes(attributes))
    free = tuple(n for k, n in enumerate(arguments) if n and k not in constants)
    return Graph(op, (node,), tensors, free, outputs)


def plain_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as the importer gives them: text for bytes, arrays for tensors."""

    def plain(value: Any) -> Any:
        match value:
            case bytes():
                return value.decode()
            case onnx.TensorProto():
                return numpy_helper.to_array(value)
            case _:
                return value

    return {name: plain(value) for name, value in attributes.items()}


@cache
def all_cases() -> tuple[TestCase, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # onnx computes its expected infinities by overflow
        return tuple(collect_testcases(None))


def backend_cases(*ops: str, skip: Collection[str] = (), largest: int = 20_000) -> list[TestCase]:
    """onnx's own test cases of the operators: one node, types that polyc compiles, small data."""
    chosen = []
    for case in all_cases():
        nodes = case.model.graph.node
        if len(nodes) != 1 or nodes[0].op_type not in ops or nodes[0].domain:
            continue
        inputs, outputs = case.data_sets[0]
        values = [*inputs, *outputs]
        plain = all(isinstance(v, np.ndarray | np.generic) and v.dtype in DTYPES for v in values)
        if plain and case.name not in skip and sum(v.size for v in values) <= largest:
            chosen.append(case)
    return chosen


def check_case(case: TestCase) -> Scop:
    """Assert that a backend test case gives its expected outputs."""
    (node,) = case.model.graph.node
    given, outputs = case.data_sets[0]
    names = [i.name for i in case.model.graph.input]
    feeds = dict(zip(names, map(np.asarray, given), strict=True))
    inputs = [feeds.get(name) for name in node.input]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    named = dict(zip([o.name for o in case.model.graph.output], outputs, strict=True))
    expected = [np.asarray(named[o]) for o in node.output if o]
    constants = set(SHAPE_INPUTS.get(node.op_type, ()))
    graph = node_graph(node.op_type, inputs, attributes, expected, constants)
    if not all(node.output):
        graph = _with_outputs(graph, tuple(node.output))
    return check_graph(graph, inputs, expected, rtol=max(case.rtol, 1e-5), atol=1e-6)


def _with_outputs(graph: Graph, outputs: tuple[str, ...]) -> Graph:
    """The same one-node graph, with the absent outputs left out by position."""
    (node,) = graph.nodes
    named = iter(node.outputs)
    placed = tuple(next(named) if o else "" for o in outputs)
    renamed = Node(node.name, node.op, node.inputs, placed, node.attributes)
    return Graph(graph.name, (renamed,), graph.tensors, graph.inputs, graph.outputs)
