"""The benchmark on small problems: engines agree, and the command writes its figures."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from bench import micro
from bench.__main__ import app
from bench.engines import ENGINES
from bench.measure import Team, measure_problem
from bench.problems import Problem, choose_problems
from bench.results import Results
from bench.roofline import floor_seconds
from bench.zoo.bert import Bert, bert
from bench.zoo.mobilenet import MobileNet, Stage, mobilenet
from polyc.target.machine import detect_target
from polyc.target.rates import write_rates
from tests.sampling import sampled

pytest.importorskip("onnxruntime")

SMALL = (
    Problem("gemm", "gemm", partial(micro.gemm, 24, 24, 24), np.matmul),
    Problem("conv", "conv", partial(micro.conv, micro.ConvShape("c", 6, 4, 9, 3, 2, 2))),
    Problem("attention", "x", partial(micro.attention, 2, 7, 5), micro.numpy_attention),
    Problem("softmax", "x", partial(micro.softmax, 5, 19), micro.numpy_softmax),
    Problem("layernorm", "x", partial(micro.layer_norm, 5, 19), micro.numpy_layer_norm),
    Problem("rows", "x", partial(micro.total, 9, [1]), partial(micro.numpy_total, axes=(1,))),
    Problem("all", "x", partial(micro.total, 9, [0, 1]), partial(micro.numpy_total, axes=(0, 1))),
    Problem("relu", "x", micro.relu, partial(np.maximum, np.float32(0))),
    Problem("gelu", "x", partial(micro.gelu, 9)),
    Problem("silu", "x", partial(micro.silu, 9), micro.numpy_silu),
    Problem("muladd", "x", partial(micro.muladd, 9), micro.numpy_muladd),
    Problem("bert", "x", partial(bert, Bert(7, 1, 2, 12, 20, 30))),
    Problem("mobilenet", "x", partial(mobilenet, MobileNet(37, 8, (Stage(6, 8, 1, 1),), 22, 9))),
)


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        made = Team([e for e in ENGINES.values() if not e.missing()], 1)
        yield made
        made.close()


OFTEN = {"gemm", "conv", "gelu"}
"""The others differ in what is computed, not in how it is measured and compared."""


@pytest.mark.parametrize(
    "problem", sampled(SMALL, often=lambda p: p.name in OFTEN), ids=lambda p: p.name
)
def test_engines_agree(team, problem):
    (row,) = measure_problem(problem, [team], 0, partial(floor_seconds, detect_target()))
    without_numpy = {"gelu", "bert", "mobilenet"}
    assert {e for e in row.failed if not e.startswith("numpy")} == set()
    assert ("numpy" in row.failed) == (problem.name in without_numpy)
    assert set(row.median) == set(row.opened) - set(row.failed)
    assert {"polyc", "onnxruntime"} <= set(row.median)
    assert row.error
    assert max(row.error.values()) < 1e-5
    assert row.kernels
    assert all(k["seconds"] > 0 for k in row.kernels)
    assert row.floor > 0


@pytest.mark.thorough
def test_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path / "cache"))
    target = detect_target()
    write_rates(tmp_path / "cache", target, target.rates)
    example = micro.gemm(8, 8, 8)
    onnx.save(example.model, tmp_path / "mine.onnx")
    np.savez(tmp_path / "mine.npz", **example.feeds)
    arguments = ["run", str(tmp_path / "mine.onnx"), "--threads", "1", "--threads", "2"]
    arguments += ["--engines", "polyc,onnxruntime", "--seconds", "0", "--kernels"]
    done = CliRunner().invoke(app, [*arguments, "--json", str(tmp_path / "r.json")])
    assert done.exit_code == 0, done.output
    assert "### files, 2 threads" in done.output
    rows = Results.read(tmp_path / "r.json").rows
    assert [(r.problem, r.threads, len(r.median)) for r in rows] == [("mine", 1, 2), ("mine", 2, 2)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "no-such-problem"], "no problem is called"),
        (["run", "gone.onnx"], "there is no file"),
        (["run", "gemm-64", "--engines", "polyc,abacus"], "no engine is called"),
    ],
)
def test_wrong_usage(arguments, message):
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.thorough
def test_choosing():
    assert [p.name for p in choose_problems(["gemm-64", "sums"])][:2] == [
        "gemm-64",
        "sum-rows-4096",
    ]
    everything = choose_problems([])
    assert len({p.name for p in everything}) == len(everything) > 30
    groups = {p.group for p in everything}
    assert groups >= {"gemm", "conv", "attention", "rows", "sums", "elementwise", "exported"}
    assert "engine" in CliRunner().invoke(app, ["list"]).output
