"""Measuring on a GPU, as far as that goes without one: on the emulator, and on figures made up."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import bench.cuda as command
from bench import micro
from bench.cuda import app, choose, choose_engines, show, write
from bench.engines import GPU_ENGINES, Task
from bench.gpu import polyc_engine
from bench.gpu.limits import Limits, measure_copy
from bench.gpu.problems import gemm, gpu_problems
from bench.gpu.queue import queue_calls
from bench.measure import _write_task
from bench.problems import Problem
from bench.results import Results, Row
from bench.roofline import Work, count_work
from polyc.options import options_from_environment
from polyc.target.cuda import CudaTarget, ask_driver
from tests.sampling import thorough

pytestmark = pytest.mark.cuda


@pytest.fixture
def emulated(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYC_CUDA", "emulate")
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path / "cache"))


def task(folder, problem: Problem) -> Task:
    return _write_task(problem, problem.make(), folder)


@pytest.mark.parametrize("opens", [thorough(polyc_engine.open), polyc_engine.open_graph])
def test_polyc_is_called_on_device_arrays(emulated, tmp_path, opens):
    work = task(tmp_path, Problem("gemm", "gemm", partial(micro.gemm, 24, 24, 24)))
    session = opens(work, 1)
    session.run()
    feeds = work.inputs()
    np.testing.assert_allclose(session.result(), feeds["a"] @ feeds["b"], rtol=1e-4, atol=1e-4)
    assert session.calls >= 1
    assert session.kernels()[0]["seconds"] > 0


@pytest.mark.parametrize("opens", ["open", "open_compiled"])
def test_torch_computes_the_same(monkeypatch, tmp_path, opens):
    torch = pytest.importorskip("torch")
    from bench.gpu import torch_engine

    monkeypatch.setattr(torch_engine, "DEVICE", "cpu")
    monkeypatch.setattr(torch, "compile", lambda function, mode: function)
    work = task(tmp_path, Problem("softmax", "rows", partial(micro.softmax, 5, 19)))
    session = getattr(torch_engine, opens)(work, 1)
    session.run()
    expected = work.outputs()[0]
    micro.numpy_softmax(work.inputs()["x"], expected)
    np.testing.assert_allclose(session.result(), expected, rtol=1e-5)


def test_the_copy_is_measured(emulated):
    assert measure_copy(options_from_environment(), 1 << 16) > 1e6


def test_problems_are_models_of_each_precision():
    problems = {p.name: p for p in gpu_problems()}
    assert len(problems) > 30
    assert {p.precision for p in problems.values()} == {"float32", "tf32", "bfloat16", "float16"}
    example = gemm(16, "bfloat16")
    onnx.checker.check_model(example.model, full_check=True)
    assert count_work(example.model) == Work(2 * 16**3, 2 * 2 * 16 * 16, 2 * 16 * 16)


def test_what_is_chosen():
    problems = list(gpu_problems())
    assert {p.group for p in choose(problems, ["gemm-*"])} == {
        f"gemm-{p}" for p in ("float32", "tf32", "bfloat16", "float16")
    }
    assert choose(problems, []) == problems
    with pytest.raises(ValueError, match="called 'chess'; the groups are gemm-float32"):
        choose(problems, ["chess"])
    assert [e.name for e in choose_engines("polyc-graph,polyc")] == ["polyc-graph", "polyc"]
    with pytest.raises(ValueError, match="no engine is called 'abacus'"):
        choose_engines("abacus")


def test_without_a_gpu_the_remedy_is_told(monkeypatch):
    if not ask_driver().missing:
        pytest.skip("there is a GPU")
    done = CliRunner().invoke(app, ["gemm-float32"])
    assert done.exit_code == 1
    assert "install NVIDIA's driver" in done.stderr
    monkeypatch.setenv("POLYC_CUDA", "emulate")
    done = CliRunner().invoke(app, [])
    assert "is no GPU to measure" in done.stderr


def test_figures_are_shown_and_written_by_device_and_date(tmp_path):
    limits = Limits({"float32": 60e12, "bfloat16": 900e12}, 4e12)
    floor = limits.floor_seconds(Work(2 * 1024**3, 1 << 23, 1 << 22), "float32")
    assert floor == pytest.approx(2 * 1024**3 / 60e12)
    median = {"polyc": 50e-6, "polyc-graph": 48e-6, "torch": 45e-6, "torch-compiled": 44e-6}
    row = Row(
        problem="gemm-float32-1024",
        group="gemm-float32",
        threads=1,
        flops=2 * 1024**3,
        reads=1,
        writes=1,
        floor=floor,
        median=median,
        best=median,
        samples={},
        error={},
        opened={},
        failed={},
    )
    assert row.best_peer == "torch-compiled"
    gpu = CudaTarget.named("sm_90")
    machine = {
        "target": str(gpu),
        "device": {"name": "NVIDIA H200 (x)"},
        "limits": {"flops": limits.flops, "copy": limits.copy},
        "driver": 13000,
        "nvcc": "13.0",
    }
    results = Results(machine, {"torch": "2.9"}, [row])
    text = show(results, kernels=False)
    assert "| polyc, graph |" in text
    assert "| 0.88 | 42950 | 72% |" in text
    assert "Copies 4,000 GB/s (measured); Tflop/s: float32 60, bfloat16 900" in text
    figures, table = write(results, text, tmp_path / "results")
    assert figures.name.startswith("nvidia-h200-x-20")
    assert Results.read(figures).rows[0] == row
    assert table.read_text() == text


@pytest.mark.thorough
def test_the_command_measures_and_writes(emulated, monkeypatch, tmp_path):
    gpu, limits = CudaTarget.named("sm_90"), Limits({"float32": 1e12}, 1e12)
    problem = Problem("gemm-24", "gemm", partial(micro.gemm, 24, 24, 24))
    machine = {"target": str(gpu), "device": {"name": "Some GPU"}, "driver": 13000, "nvcc": "13.0"}
    machine |= {"limits": {"flops": limits.flops, "copy": limits.copy}}
    monkeypatch.setattr(command, "gpu_problems", lambda: iter([problem]))
    monkeypatch.setattr(command, "find_gpu", lambda options: gpu)
    monkeypatch.setattr(command, "measure_limits", lambda target, options: limits)
    monkeypatch.setattr(command, "describe", lambda *given: machine)
    arguments = ["--engines", "polyc,polyc-graph", "--seconds", "0", "--output", str(tmp_path)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    (figures,) = tmp_path.glob("some-gpu-*.json")
    (row,) = Results.read(figures).rows
    assert set(row.median) == {"polyc", "polyc-graph"}
    assert row.failed == {}
    assert max(row.error.values()) < 1e-6
    assert "| gemm-24 |" in done.output


def test_short_calls_are_queued_together():
    calls, waits = [], []
    run, count = queue_calls(lambda: calls.append(1), lambda: waits.append(1))
    calls.clear(), waits.clear()
    run()
    assert len(calls) == count > 1
    assert len(waits) == 1


def test_every_engine_opens_by_a_function_that_is_there():
    assert command.GPU_ENGINES is GPU_ENGINES
    for engine in GPU_ENGINES.values():
        if not engine.missing():
            module = __import__(engine.module, fromlist=[engine.opens])
            assert callable(getattr(module, engine.opens))
