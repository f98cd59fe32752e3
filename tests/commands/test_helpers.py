"""Feeds, timing and comparison behind the commands."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyc.commands import bench
from polyc.commands.bench import measure_in_turn, settle, take_turn
from polyc.commands.feeds import read_feeds, write_results
from polyc.errors import InvalidModel, RuntimeFailure
from polyc.run.feeds import random_feeds
from polyc.run.reference import expose_intermediates, relative_error, run_reference
from polyc.types.spec import TensorSpec

SPECS = (
    TensorSpec("x", np.dtype(np.float32), (2, 3)),
    TensorSpec("a=b", np.dtype(np.int64), ()),
    TensorSpec("m", np.dtype(np.bool_), (0, 4)),
)


def test_random_feeds_fit_their_specs():
    feeds = random_feeds(SPECS, 0)
    for spec in SPECS:
        assert (feeds[spec.name].dtype, feeds[spec.name].shape) == (spec.dtype, spec.shape)
    assert feeds["a=b"] in (0, 1)


def test_files_replace_random_inputs(tmp_path):
    np.save(tmp_path / "k.npy", np.int64(7))
    feeds = read_feeds(SPECS, [f"a=b={tmp_path}/k.npy"], 0)
    assert feeds["a=b"] == 7
    assert set(feeds) == {"x", "a=b", "m"}
    with pytest.raises(InvalidModel, match="--input names z"):
        read_feeds(SPECS, [f"z={tmp_path}/k.npy"], 0)


def test_results_stay_in_their_folder(tmp_path):
    results = {n: np.array([k]) for k, n in enumerate(["../../up", "a/b", "a_b", ""])}
    files = write_results(tmp_path / "out", results)
    assert len(set(files)) == 4
    assert all(f.parent == tmp_path / "out" for f in files)
    assert [int(np.load(f)[0]) for f in files] == [0, 1, 2, 3]


def test_a_turn_warms_up_and_counts():
    calls = []

    def call():
        calls.append(1)
        time.sleep(0.008)

    samples = take_turn(call)
    assert len(samples) == len(calls) - 1 >= 3
    assert all(0.008 <= s < 1 for s in samples)


def test_quick_calls_are_timed_together():
    calls = []
    samples = take_turn(lambda: calls.append(1))
    assert len(calls) > 20 * len(samples)
    assert 0 < min(samples) < 1e-5


def test_calls_take_turns():
    order: list[str] = []

    def slow(name):
        order.append(name)
        time.sleep(0.01)

    times = measure_in_turn({n: lambda n=n: slow(n) for n in "ab"}, budget=0, least=2)
    assert re.fullmatch("(a{4,}b{4,}){2}", "".join(order))
    assert {n: len(t.seconds) for n, t in times.items()} == {n: order.count(n) - 2 for n in "ab"}
    assert all(0.01 <= t.best <= t.median for t in times.values())


@pytest.mark.parametrize(("busy", "settles"), [(3, True), (10**6, False)])
def test_settling_waits_for_threads_that_are_busy(monkeypatch, busy, settles):
    """Time stands in: for `busy` looks the process uses as much of a core as passes."""
    passed = []

    def sleep(seconds):
        passed.append(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "perf_counter", lambda: sum(passed))
    monkeypatch.setattr(time, "process_time", lambda: sum(passed[:busy]))
    assert settle() == settles
    assert len(passed) == busy + 1 if settles else sum(passed) >= bench.RESTLESS


def test_what_the_reference_cannot_run_is_an_error():
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    node = helper.make_node("NoSuchOperator", ["x"], ["y"])
    model = helper.make_model(helper.make_graph([node], "g", info[:1], info[1:]))
    with pytest.raises(RuntimeFailure, match="reference evaluator cannot run model 'g'"):
        run_reference(model, {"x": np.zeros(2, np.float32)})


@pytest.mark.parametrize(
    ("ours", "reference", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.2], [1.0, 2.0], 0.1),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([0.0, 1.0], [np.nan, 1.0], np.inf),
        ([np.inf, 1.0], [-np.inf, 1.0], np.inf),
        ([np.nan, 1.0], [0.0, 1.0], np.inf),
        ([np.nan], [np.nan], 0.0),
        ([], [], 0.0),
        ([1, 2], [1, 2], 0.0),
        ([1, 2], [1, 3], np.inf),
        ([[1.0]], [1.0], np.inf),
    ],
)
def test_relative_error(ours, reference, error):
    assert relative_error(np.array(ours), np.array(reference)) == pytest.approx(error)


@pytest.mark.parametrize("version", [7, 9, 13, 15])
def test_batch_norms_of_the_reference_use_the_given_statistics(version):
    generator = np.random.default_rng(0)
    x = generator.standard_normal((2, 3, 4, 4)).astype(np.float32)
    scale, shift, mean, variance = generator.uniform(0.5, 2, (4, 3)).astype(np.float32)
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n in "xy"]
    weights = [
        numpy_helper.from_array(v, n)
        for n, v in zip("abcd", (scale, shift, mean, variance), strict=True)
    ]
    node = helper.make_node("BatchNormalization", list("xabcd"), ["y"], epsilon=0.25)
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], weights)
    opset = [helper.make_opsetid("", version)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    a, b, m, v = (w[:, None, None] for w in (scale, shift, mean, variance))
    expected = a * (x - m) / np.sqrt(v + 0.25) + b
    np.testing.assert_allclose(run_reference(model, {"x": x})["y"], expected, rtol=1e-5, atol=1e-6)


def test_every_node_becomes_an_output():
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in ("x", "y")]
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Sqrt", ["a"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", infos[:1], [infos[1], infos[0]])
    model = expose_intermediates(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    )
    assert [o.name for o in model.graph.output] == ["a", "y", "x"]
    x = np.array([-4, 9, 0, 1], np.float32)
    values = run_reference(model, {"x": x})
    np.testing.assert_array_equal(values["a"], np.abs(x))
    np.testing.assert_array_equal(values["y"], [2, 3, 0, 1])
