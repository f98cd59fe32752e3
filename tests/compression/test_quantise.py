"""Trained networks in bytes: as accurate as floats, for polyc and for another engine."""

from __future__ import annotations

import tracemalloc
from functools import cache, partial

import numpy as np
import onnx
import onnxruntime
import pytest

import polyc
from polyc import CompressionReport, Graph, ops
from polyc.compression.balance import balance
from polyc.compression.layers import find_layers
from polyc.compression.onnx_form import compile_plain, read_plain
from polyc.errors import InvalidData, InvalidModel, InvalidOption, UnsupportedOp
from tests import networks
from tests.compression.digits import (
    BATCH,
    NETWORKS,
    SAMPLED,
    accuracy,
    cnn,
    compiled,
    samples,
    separable,
    transformer,
)
from tests.sampling import thorough

MOST_LOST = 0.005
"""Half a point of accuracy."""


@cache
def quantised(name: str) -> onnx.ModelProto:
    return polyc.quantise(NETWORKS[name](), samples(), threads=1)


def in_bytes(proto: onnx.ModelProto) -> polyc.CompiledModel:
    return polyc.compile(proto, threads=1)


def session(proto: onnx.ModelProto):
    """The model in ONNX Runtime, of one input and one output.

    Where a CPU has no VNNI its sums of two products saturate, unless it is asked for all bits.
    """
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    opened = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    (given,), (wanted,) = opened.get_inputs(), opened.get_outputs()
    return lambda x: opened.run([wanted.name], {given.name: x})[0]


@pytest.mark.parametrize("name", SAMPLED)
def test_trained_networks_stay_accurate(name):
    wanted = accuracy(compiled(name))
    assert wanted > 0.9
    assert accuracy(in_bytes(quantised(name))) >= wanted - MOST_LOST
    assert accuracy(session(quantised(name))) >= wanted - MOST_LOST


@pytest.mark.parametrize("name", SAMPLED)
def test_what_is_written_is_standard_and_multiplies_integers(name):
    proto = quantised(name)
    onnx.checker.check_model(proto, full_check=True)
    assert {o.domain for o in proto.opset_import} == {""}
    assert "sums up integers" in str(in_bytes(proto).explain())
    weights = [t for t in proto.graph.initializer if np.prod(t.dims) > 256]
    assert weights
    assert all(t.data_type == onnx.TensorProto.INT8 for t in weights)


PRODUCTS = {"cnn": 4, "separable": 6, "transformer": 18}


@pytest.mark.parametrize("name", SAMPLED)
def test_another_engine_multiplies_integers_as_well(name, tmp_path):
    """No product is left of floats in the graph that ONNX Runtime makes of it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / f"{name}.onnx")
    onnxruntime.InferenceSession(quantised(name).SerializeToString(), options)
    ops = [n.op_type for n in onnx.load(tmp_path / f"{name}.onnx").graph.node]
    assert not {"Conv", "Gemm", "MatMul", "FusedConv"} & set(ops), ops
    whole = {"QLinearConv", "QGemm", "MatMulIntegerToFloat", "QLinearMatMul"}
    assert sum(op in whole for op in ops) == PRODUCTS[name]


@pytest.mark.parametrize("name", SAMPLED)
def test_the_report_shows_each_layer(name):
    report = CompressionReport.of(quantised(name))
    products = [n.name for n in NETWORKS[name]().nodes if n.op in ("Conv", "Gemm", "MatMul")]
    assert [row.name for row in report.layers] == products
    assert all(row.stored == "int8" and row.own > 15 for row in report.layers)
    assert 0.3 < sum(row.share for row in report.layers) <= 1
    assert report.samples == report.compared == 8
    assert report.weights[1] < 0.5 * report.weights[0]
    ((_, snr),) = report.outputs
    assert snr > 25
    text = str(report)
    assert all(name in text for name in products)


@pytest.mark.thorough
@pytest.mark.parametrize("calibration", ["percentile", "mse", "entropy"])
def test_each_way_to_choose_ranges_stays_accurate(calibration):
    """`test_ranges` sees quickly what is chosen, `test_the_command` that it can be asked for."""
    proto = polyc.quantise(NETWORKS["cnn"](), samples(), calibration=calibration, threads=1)
    assert accuracy(in_bytes(proto)) >= accuracy(compiled("cnn")) - MOST_LOST


@pytest.mark.thorough
def test_signed_activations():
    proto = polyc.quantise(NETWORKS["cnn"](), samples(), activations="s8", threads=1)
    kinds = {t.data_type for t in proto.graph.initializer}
    assert onnx.TensorProto.UINT8 not in kinds
    assert accuracy(in_bytes(proto)) >= accuracy(compiled("cnn")) - MOST_LOST
    assert accuracy(session(proto)) >= accuracy(compiled("cnn")) - MOST_LOST


@pytest.mark.parametrize("make", [separable, thorough(transformer)])
def test_uneven_channels_do_not_collapse(make):
    """The same network with channels of like ranges and of unlike ones is as good in bytes."""
    graph = make(5.0)
    wanted = accuracy(polyc.compile(graph, threads=1))
    assert wanted > 0.9
    assert accuracy(in_bytes(polyc.quantise(graph, samples(), threads=1))) >= wanted - MOST_LOST
    plain = polyc.quantise(graph, samples(), balanced=False, threads=1)
    assert accuracy(in_bytes(plain)) < wanted - 2 * MOST_LOST


def test_what_is_balanced_computes_the_same():
    graph = read_plain(separable(5.0))
    layers = find_layers(graph).found
    feeds = [{"x": x} for x in samples(2)]
    even, notes = balance(graph, layers, feeds, partial(compile_plain, threads=1))
    assert len(notes) == 5
    (x,) = samples(1)
    wanted, given = (polyc.compile(g, threads=1)(x) for g in (graph, even))
    np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-4)


def test_corrected_biases_take_back_the_mean_of_what_a_layer_is_off_by():
    own = {}
    for corrected in (False, True):
        proto = polyc.quantise(cnn(), samples(), corrected=corrected, threads=1)
        own[corrected] = [row.own for row in CompressionReport.of(proto).layers]
        if corrected:
            assert "corrected: the biases of 4 layers" in str(CompressionReport.of(proto))
    assert all(b >= a - 0.01 for a, b in zip(own[False], own[True], strict=True))
    assert sum(own[True]) > sum(own[False]) + 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    "make",
    [
        thorough(networks.resnet),
        thorough(networks.inception),
        networks.mobilenet,
    ],
)
def test_batch_norms_residuals_and_concatenations(make):
    graph = make()
    x = networks.feeds(graph)
    proto = polyc.quantise(graph, [x], threads=1)
    assert "BatchNormalization" not in {n.op_type for n in proto.graph.node}
    ((_, snr),) = CompressionReport.of(proto).outputs
    assert snr > 25
    (given,) = x.values()
    ours, theirs = in_bytes(proto)(given), session(proto)(given)
    off = np.sqrt(((ours - theirs) ** 2).sum() / (theirs**2).sum())
    assert off < 0.01  # a byte may differ at ties
    assert [i.name for i in proto.graph.input] == list(graph.inputs)
    assert [o.name for o in proto.graph.output] == list(graph.outputs)


def test_a_bias_that_is_added_to_a_matrix_becomes_an_integer():
    w, b = (np.random.default_rng(k).standard_normal(s) for k, s in enumerate([(32, 24), (24,)]))
    graph = Graph.of(y=ops.input("x", (8, 32)) @ w.astype(np.float32) + b.astype(np.float32))
    x = np.random.default_rng(2).standard_normal((8, 32)).astype(np.float32)
    proto = polyc.quantise(graph, [x], threads=1)
    assert onnx.TensorProto.INT32 in {t.data_type for t in proto.graph.initializer}
    wanted = polyc.compile(graph, threads=1)(x)
    assert np.abs(in_bytes(proto)(x) - wanted).max() < 0.02 * np.abs(wanted).max()


def test_layers_that_are_kept():
    proto = polyc.quantise(NETWORKS["cnn"](), samples(1), keep=["Conv_2"], threads=1)
    rows = {row.name: row for row in CompressionReport.of(proto).layers}
    assert rows["Conv_2"].stored == "float32"
    assert rows["Conv_2"].why == "it was asked for"
    assert rows["Conv_0"].stored == "int8"


@pytest.mark.thorough
def test_sizes_known_only_at_run_time():
    w = np.random.default_rng(0).standard_normal((16, 32)).astype(np.float32)
    graph = Graph.of(y=ops.input("x", ("n", 16)) @ w)
    rng = np.random.default_rng(1)
    data = (rng.standard_normal((n, 16)).astype(np.float32) for n in (3, 1, 7))
    proto = polyc.quantise(graph, data, threads=1)
    assert CompressionReport.of(proto).layers[0].own > 30
    assert in_bytes(proto)(np.ones((5, 16), np.float32)).shape == (5, 32)


def test_samples_are_not_held():
    """10,000 samples, 640 MB together, pass through; a few are held at a time."""
    w = np.ones((64, 8), np.float32)
    graph = Graph.of(y=ops.relu(ops.input("x", (256, 64)) @ w))

    def stream():
        for _ in range(10_000):
            yield np.zeros((256, 64), np.float32)  # 64 KiB

    tracemalloc.start()
    try:
        proto = polyc.quantise(graph, stream(), threads=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert CompressionReport.of(proto).samples == 10_000
    assert peak < 100 << 20


def test_what_cannot_be_quantised_says_why():
    x = ops.input("x", (2, 3))
    with pytest.raises(UnsupportedOp, match="nothing to quantise"):
        polyc.quantise(Graph.of(y=ops.relu(x)), [np.zeros((2, 3), np.float32)])
    with pytest.raises(UnsupportedOp, match="quantised already"):
        polyc.quantise(quantised("cnn"), samples(1))
    with pytest.raises(InvalidOption, match=r"nowhere.*'Conv_0'"):
        polyc.quantise(NETWORKS["cnn"](), samples(1), keep=["nowhere"])
    with pytest.raises(InvalidOption, match="calibration is 'guess'"):
        polyc.quantise(NETWORKS["cnn"](), samples(1), calibration="guess")
    with pytest.raises(InvalidModel, match="no report"):
        CompressionReport.of(onnx.ModelProto())


def test_samples_that_do_not_fit_are_named():
    graph, good = NETWORKS["cnn"](), next(iter(samples(1)))
    bad = good.copy()
    bad[3, 0, 1, 1] = np.nan
    for data, told in (
        ([], "no samples"),
        ([good[:3]], "sample 0 does not fit"),
        ([good, bad], "sample 1 has NaN"),
        ([{"z": good}], "'z'; the model's inputs are 'x'"),
        ([(good, good)], "2 arrays, the model 1"),
        ("/nowhere", "cannot be read"),
    ):
        with pytest.raises(InvalidData, match=told):
            polyc.quantise(graph, data, threads=1)
    for data in (good, {"x": good}, 3):
        with pytest.raises(TypeError, match="data"):
            polyc.quantise(graph, data)


def test_a_tensor_that_overflows_is_named():
    x = ops.input("x", (2, 3))
    graph = Graph.of(y=ops.exp(x) @ np.ones((3, 4), np.float32))
    with pytest.raises(InvalidData, match="becomes NaN or infinite"):
        polyc.quantise(graph, [np.full((2, 3), 1e3, np.float32)], threads=1)


@pytest.mark.thorough
def test_the_command(tmp_path):
    from typer.testing import CliRunner

    from polyc.cli import app
    from polyc.graph.onnx.export import export_onnx

    onnx.save(export_onnx(NETWORKS["cnn"]()), tmp_path / "model.onnx")
    for k, x in enumerate(samples(2)):
        np.savez(tmp_path / f"{k}.npz", x=x)
    arguments = ["quantise", str(tmp_path / "model.onnx"), "--data", str(tmp_path)]
    arguments += ["-o", str(tmp_path / "small.onnx"), "--threads", "1", "--keep", "Conv_0"]
    arguments += ["--calibration", "entropy"]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "own dB" in done.output
    assert "samples: 2" in done.output
    proto = onnx.load(tmp_path / "small.onnx")
    assert [row.name for row in CompressionReport.of(proto).kept] == ["Conv_0"]
    assert in_bytes(proto)(next(iter(samples()))).shape == (BATCH, 10)
