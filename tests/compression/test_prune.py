"""Weights that become zero, and channels that go."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import polyc
from polyc import CompressionReport, Graph, ops
from polyc.errors import InvalidOption, UnsupportedOp
from tests import networks
from tests.compression.digits import NETWORKS, SAMPLED, accuracy, cnn, compiled, samples


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def weights(proto: onnx.ModelProto) -> list[np.ndarray]:
    found = [numpy_helper.to_array(t) for t in proto.graph.initializer]
    return [w for w in found if w.ndim > 1 and w.dtype == np.float32]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_the_smallest_weights_of_each_layer_become_zero(share):
    proto = polyc.prune(cnn(), share)
    for thin, whole in zip(weights(proto), weights(polyc.prune(cnn(), 0)), strict=True):
        gone = thin == 0
        assert gone.mean() == pytest.approx(share, abs=0.01)
        np.testing.assert_array_equal(thin[~gone], whole[~gone])
        if share:
            assert np.abs(whole[gone]).max() <= np.abs(thin[~gone]).min()
    rows = CompressionReport.of(proto).layers
    assert all(f"{share:.0%} of its weights are zero" == row.why for row in rows)


def test_channels_that_do_nothing_go_and_nothing_changes():
    w, b, v = drawn(3, 16, 3, 3).swapaxes(0, 1), drawn(16), drawn(8, 16, 1, 1)
    w[[2, 5, 11, 12]] = 0
    b[[2, 5, 11, 12]] = 0
    h = ops.relu(ops.conv(ops.input("x", (2, 3, 9, 9)), w, b))
    h = ops.max_pool(ops.hard_swish(h), kernel_shape=(2, 2))
    graph = Graph.of(y=ops.conv(h, v))
    proto = polyc.prune(graph, 0.25, structured=True)
    assert sorted(w.shape for w in weights(proto)) == [(8, 12, 1, 1), (12, 3, 3, 3)]
    x = drawn(2, 3, 9, 9)
    wanted = polyc.compile(graph, threads=1)(x)
    np.testing.assert_allclose(polyc.compile(proto, threads=1)(x), wanted, rtol=1e-4, atol=1e-4)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    np.testing.assert_allclose(session.run(None, {"x": x})[0], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SAMPLED)
def test_trained_networks_become_smaller(name):
    proto = polyc.prune(NETWORKS[name](), 0.15, samples(2), structured=True, threads=1)
    onnx.checker.check_model(proto, full_check=True)
    report = CompressionReport.of(proto)
    assert report.weights[1] < report.weights[0]
    assert accuracy(polyc.compile(proto, threads=1)) > accuracy(compiled(name)) - 0.15
    pruned = [row for row in report.layers if row.stored == "pruned"]
    assert pruned
    assert all("channels are left" in row.why for row in pruned)


def test_channels_that_others_read_stay():
    """Those of a residual stream, of a concatenation, and what is an output."""
    proto = polyc.prune(networks.resnet(), 0.5, structured=True)
    onnx.checker.check_model(proto, full_check=True)
    rows = {row.name: row for row in CompressionReport.of(proto).layers}
    assert 0 < sum(row.stored == "pruned" for row in rows.values()) < len(rows)
    assert weights(proto)[-1].shape == (22, 13)
    with pytest.raises(UnsupportedOp, match="no channels that only layers read"):
        polyc.prune(Graph.of(y=ops.input("x", (2, 3)) @ drawn(3, 4)), 0.5, structured=True)


def test_what_makes_no_sense_is_refused():
    for share in (-0.1, 1.0, float("nan")):
        with pytest.raises(InvalidOption, match="share is"):
            polyc.prune(cnn(), share)
    with pytest.raises(InvalidOption, match="keep names 'nowhere'"):
        polyc.prune(cnn(), 0.5, keep=["nowhere"])
    with pytest.raises(UnsupportedOp, match="no weights to prune"):
        polyc.prune(Graph.of(y=ops.relu(ops.input("x", (2, 3)))), 0.5)


@pytest.mark.thorough
def test_a_pruned_network_in_bytes():
    small = polyc.prune(cnn(), 0.1, keep=["Conv_0"])
    proto = polyc.quantise(small, samples(), threads=1)
    assert accuracy(polyc.compile(proto, threads=1)) > accuracy(compiled("cnn")) - 0.02


def test_the_command_writes_a_model_whose_zeros_are_left_out(tmp_path):
    from typer.testing import CliRunner

    from polyc.cli import app

    x = ops.input("x", (32, 61))
    graph = Graph.of(y=ops.relu(x @ drawn(61, 40)) @ drawn(40, 24))
    whole, small = tmp_path / "whole.onnx", tmp_path / "small.onnx"
    whole.write_bytes(polyc.prune(graph, 0).SerializeToString())
    arguments = ["prune", str(whole), "--share", "0.9", "--keep", "MatMul_2", "-o", str(small)]
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "90% of its weights are zero" in done.output
    assert "it was asked for" in done.output
    model = polyc.compile(small, threads=1)
    assert "_end = pc_min(pc_cast" in model.source
    told = str(model.explain())
    assert "sparse_sums: 'MatMul_0' multiplies by the 244 of 2,440 weights" in told
    assert "that are not zero (10%), in 40 rows with positions and counts" in told
    feeds = {"x": drawn(32, 61)}
    session = onnxruntime.InferenceSession(small.read_bytes())
    np.testing.assert_allclose(model(**feeds), session.run(None, feeds)[0], rtol=1e-4, atol=1e-4)
