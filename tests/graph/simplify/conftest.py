"""Graphs for tests of rewrites, and the reference that says what a graph computes."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.onnx.export import export_onnx
from polyc.graph.shapes import infer_node

Types = Mapping[str, tuple[str, tuple[int | str, ...]]]


@pytest.fixture(scope="session")
def build() -> Callable[..., Graph]:
    """build({"x": ("float32", (2, 3))}, [node, ...], ["y"], c=array): a graph, nothing folded."""
    return build_graph


@pytest.fixture(scope="session")
def evaluate() -> Callable[[Graph, Mapping[str, np.ndarray]], list[np.ndarray]]:
    """The outputs of a graph by the reference evaluator of the onnx package."""
    return evaluate_graph


@pytest.fixture(scope="session")
def run_onnxruntime() -> Callable[[Graph, Mapping[str, np.ndarray]], list[np.ndarray]]:
    """The outputs by onnxruntime, where the reference evaluator has gaps; its opset is older."""
    return run_session


@pytest.fixture(scope="session")
def assert_same() -> Callable[..., None]:
    """assert_same(before, after): equal interfaces and equal outputs, NaN and signs included."""
    return assert_same_outputs


def build_graph(
    inputs: Types, nodes: Sequence[Node], outputs: Sequence[str], **constants: np.ndarray
) -> Graph:
    table = {k: Tensor(k, np.dtype(dtype), shape) for k, (dtype, shape) in inputs.items()}
    table |= {k: Tensor(k, v.dtype, v.shape, v) for k, v in constants.items()}
    for node in nodes:
        operands = [table[i] if i else None for i in node.inputs]
        table |= {t.name: t for t in infer_node(node, operands) if t.name}
    return Graph("test", tuple(nodes), table, tuple(inputs), tuple(outputs))


def evaluate_graph(graph: Graph, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(export_onnx(graph)).run(list(graph.outputs), dict(feeds))


def run_session(graph: Graph, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = export_onnx(graph, opset=22).SerializeToString()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(list(graph.outputs), dict(feeds))


def assert_same_outputs(
    before: Graph,
    after: Graph,
    feeds: Mapping[str, np.ndarray] | None = None,
    rtol: float = 0,
    run: Callable[[Graph, Mapping[str, np.ndarray]], list[np.ndarray]] = evaluate_graph,
) -> None:
    feeds = random_feeds(before) if feeds is None else feeds
    assert after.inputs == before.inputs
    assert after.outputs == before.outputs
    assert_well_formed(after)
    expected, actual = run(before, feeds), run(after, feeds)
    for name, a, b in zip(before.outputs, expected, actual, strict=True):
        assert a.dtype == b.dtype == after.tensor(name).dtype
        np.testing.assert_allclose(b, a, rtol=rtol, atol=rtol, err_msg=name)
        if not rtol and a.dtype.kind == "f":
            numbers = ~np.isnan(a)
            np.testing.assert_array_equal(np.signbit(a[numbers]), np.signbit(b[numbers]))


def assert_well_formed(graph: Graph) -> None:
    """Topological order, one writer each, types as inferred, no tensor left over."""
    known = {n for n, t in graph.tensors.items() if t.is_constant} | set(graph.inputs)
    used = {*graph.inputs, *graph.outputs}
    for node in graph.nodes:
        used |= {*node.inputs, *node.outputs} - {""}
        assert known.issuperset(i for i in node.inputs if i), node
        assert known.isdisjoint(node.outputs), node
        known |= set(node.outputs) - {""}
        operands = [graph.tensor(i) if i else None for i in node.inputs]
        for tensor in infer_node(node, operands):
            if tensor.name:
                recorded = graph.tensor(tensor.name)
                assert (tensor.dtype, tensor.shape) == (recorded.dtype, recorded.shape), node
    assert known.issuperset(graph.outputs)
    assert used == set(graph.tensors)


def random_feeds(graph: Graph, symbol: int = 3) -> dict[str, np.ndarray]:
    """Normal floats, small integers, coin flips; every symbolic dimension gets one extent."""
    rng = np.random.default_rng(0)
    feeds = {}
    for name in graph.inputs:
        tensor = graph.tensor(name)
        shape = [d if isinstance(d, int) else symbol for d in tensor.shape]
        if tensor.dtype.kind == "f":
            feeds[name] = np.asarray(rng.standard_normal(shape), tensor.dtype)
        else:
            feeds[name] = np.asarray(rng.integers(0, 5, shape), tensor.dtype)
    return feeds
