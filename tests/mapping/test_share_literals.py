"""Layers that differ in nothing but literals are one kernel: scheduled, proven, compiled once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import polyc
from polyc import Graph, ops
from polyc.analysis.launches.verify import verify_launches
from polyc.backends import prove
from polyc.backends.common import CompiledKernel
from polyc.errors import IllegalSchedule
from polyc.graph.builder import Value
from polyc.options import Options
from polyc.pipeline import cluster_model, run_pipeline
from polyc.target.machine import Target
from polyc.trace import Trace
from tests import networks
from tests.programs import options

AVX512 = Target.named("avx512")
HELD = "_literals"


def quantise(value: Value, scale: float, zero: int) -> Value:
    """To bytes and back, as between any two operators of a quantised network."""
    numbers = np.float32(scale), np.uint8(zero)
    return ops.dequantize_linear(ops.quantize_linear(value, *numbers), *numbers)


def layers(count: int) -> Graph:
    """Products and row sums whose results are quantised, each with numbers of its own."""
    rng = np.random.default_rng(0)
    h = quantise(ops.input("add", (13, 37)), 0.02, 128)
    for k in range(count):
        weights = rng.standard_normal((37, 37), dtype=np.float32) / 6
        h = quantise(ops.matmul(h, weights), 0.01 + 0.001 * k, 100 + k)
        h = quantise(ops.softmax(h), 0.004 + 0.0001 * k, k)
    return Graph.of(y=h)


def scaled(*factors: float) -> Graph:
    """Outputs of one form, of an input each: exp(x f) + 3.5."""
    inputs = [ops.input(f"x{k}", (9, 21)) for k in range(len(factors))]
    results = (ops.exp(x * np.float32(f)) + 3.5 for x, f in zip(inputs, factors, strict=True))
    return Graph.of(**{f"y{k}": y for k, y in enumerate(results)})


def compile_all(graph: Graph) -> list[CompiledKernel]:
    emitted: list[CompiledKernel] = []
    run_pipeline(graph, AVX512, Options(), Trace(), emit=emitted.append)
    return emitted


def held(graph: Graph) -> dict[str, list[float]]:
    """The arrays of literals, and what they hold."""
    arrays = cluster_model(graph, AVX512, Options(), Trace()).scop.arrays
    return {n: a.value.tolist() for n, a in arrays.items() if HELD in n and a.value is not None}


def test_kernels_do_not_grow_with_layers() -> None:
    few, many = compile_all(layers(3)), compile_all(layers(7))
    assert len(few) == len(many)
    assert sum(len(k.source) for k in many) < 1.1 * sum(len(k.source) for k in few)


def test_each_layer_computes_with_its_own_numbers(tmp_path: Path) -> None:
    graph = layers(4)
    model = polyc.compile(graph, threads=2, options=options(tmp_path))
    got = model.run(networks.feeds(graph))["y"]
    expected = networks.reference(graph)
    assert np.abs(got - expected).max() < 2 * 0.0045, "a step of the last scale, or none"
    assert np.mean(got != expected) < 0.02
    assert polyc.verify(graph, exact=True, options=options(tmp_path))


def test_what_all_have_in_common_stays_a_literal() -> None:
    graph = scaled(0.5, 0.7)
    assert sorted(held(graph).values()) == [[0.5], [pytest.approx(0.7)]]
    sources = [k.source for k in compile_all(graph) if HELD in k.source]
    assert len(sources) == 1
    assert "3.5f" in sources[0]


@pytest.mark.parametrize("factors", [(0.5,), (0.5, 0.5), ()])
def test_a_kernel_without_another_like_it_keeps_its_literals(factors: tuple[float, ...]) -> None:
    graph = scaled(*factors) if factors else Graph.of(y=ops.input("x", (0, 3)) * 0.5)
    assert held(graph) == {}


def test_zeros_of_two_signs_and_nan_are_numbers_of_their_own(tmp_path: Path) -> None:
    factors = (0.0, -0.0, float("nan"), float("inf"), 1e-45)
    graph = scaled(*factors)
    contents = [np.array(content, np.float32).tobytes() for content in held(graph).values()]
    assert contents == [np.array([f], np.float32).tobytes() for f in factors]
    feeds = {f"x{k}": np.full((9, 21), 2, np.float32) for k in range(len(factors))}
    got = polyc.compile(graph, options=options(tmp_path)).run(feeds)
    for k, factor in enumerate(factors):
        expected = np.exp(np.float32(2) * np.float32(factor)) + np.float32(3.5)
        np.testing.assert_array_equal(got[f"y{k}"], np.full((9, 21), expected))


def test_equal_numbers_share_an_element() -> None:
    """A scale divides and multiplies: one element; its zero point is added and subtracted."""
    contents = held(layers(3)).values()
    assert contents
    assert all(len(set(content)) == len(content) for content in contents)


def test_what_an_index_is_held_below_stays_where_it_is(tmp_path: Path) -> None:
    """Bounds are proven by it; the positions of these two differ in nothing else."""
    kinds = {"i": TensorProto.INT64, "x": TensorProto.FLOAT, "u": TensorProto.FLOAT}
    feeds: dict[str, np.ndarray] = {}
    nodes, results = [], []
    for k, extent in enumerate((16, 9)):
        order = np.random.default_rng(k).permutation(extent)[:4].astype(np.int64)
        feeds[f"i{k}"] = np.stack([order, order[::-1], order], axis=1) - 3
        feeds[f"x{k}"] = np.arange(3 * extent, dtype=np.float32).reshape(extent, 3)
        feeds[f"u{k}"] = -np.ones((4, 3), np.float32)
        names = [f"x{k}", f"i{k}", f"u{k}"]
        nodes.append(helper.make_node("ScatterElements", names, [f"y{k}"], axis=0))
        results.append(helper.make_tensor_value_info(f"y{k}", TensorProto.FLOAT, (extent, 3)))
    inputs = [helper.make_tensor_value_info(n, kinds[n[0]], x.shape) for n, x in feeds.items()]
    graph = helper.make_graph(nodes, "scatters", inputs, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    found = polyc.compile(model, options=Options(cache_dir=tmp_path)).run(feeds)
    wanted = ReferenceEvaluator(model).run(None, feeds)
    for one, expected in zip(found.values(), wanted, strict=True):
        np.testing.assert_array_equal(one, expected)


def test_a_kernel_whose_schedule_was_given_stays_as_it_is() -> None:
    graph = scaled(0.5, 0.7, 0.9)
    kernel = cluster_model(graph, AVX512, Options(), Trace()).kernels[0]
    given = Options(schedules=((kernel.called, str(kernel.schedule)),))
    front = cluster_model(graph, AVX512, given, Trace())
    for one in front.kernels:
        assert any(HELD in name for name in one.arrays) == (not one.given)


def test_an_element_that_is_not_what_the_model_says_is_refused(monkeypatch) -> None:
    asked = []

    def note(*judge):
        asked.append(judge)
        return verify_launches(*judge)

    monkeypatch.setattr(prove, "verify_launches", note)
    run_pipeline(scaled(0.5, 0.7), AVX512, Options(), Trace())
    ((program, stated, arrays, *others),) = asked
    name = next(n for n in arrays if HELD in n)
    for wrong in (np.float32(0.6), -arrays[name].value[0]):
        damaged = replace(arrays[name], value=np.array([wrong]))
        with pytest.raises(IllegalSchedule, match="is not what the scop says"):
            verify_launches(program, stated, {**arrays, name: damaged}, *others)
    unknown = replace(arrays[name], value=None, kind="input")
    with pytest.raises(IllegalSchedule, match="is not what the scop says"):
        verify_launches(program, stated, {**arrays, name: unknown}, *others)
