"""CompiledModel end to end, on programs whose kernels are written by hand."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc.build.bundle import HOLDS, MANIFEST_FILE
from polyc.build.manifest import FORMAT
from polyc.errors import (
    BuildError,
    InvalidModel,
    RuntimeFailure,
    ShapeError,
    UnsupportedOp,
)
from polyc.files.table import write_table
from polyc.graph.ir import Graph
from polyc.printing import driver
from polyc.run.calls import ALIGNMENT, Binder
from polyc.types.spec import TensorSpec
from tests.programs import (
    GATHER_C,
    SCALE_C,
    compiled,
    gather_program,
    install_pipeline,
    options,
    scale_program,
)
from tests.sampling import thorough

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def pipeline(monkeypatch):
    return install_pipeline(monkeypatch, compiled(scale_program(), SCALE_C))


def graph(name: str = "g") -> Graph:
    return Graph(name, (), {}, (), ())


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where what all tests of one model compile is found again."""
    return tmp_path_factory.mktemp("model")


@pytest.fixture
def model(pipeline, home):
    return polyc.compile(graph(), options=options(home))


@pytest.fixture
def gather(pipeline, tmp_path):
    pipeline.result = compiled(gather_program(), GATHER_C)
    return polyc.compile(graph("gather"), options=options(tmp_path))


def test_inputs_by_position_by_name_and_as_lists(model):
    for y in (model(X), model(x=X), model.run({"x": X})["y"], model(X.tolist())):
        np.testing.assert_array_equal(y, X * 6)


def test_results_that_are_not_small_start_at_a_cache_line():
    specs = [TensorSpec("y", np.dtype(np.float32), (rows, 1025)) for rows in (1, 8, 9)]
    for _ in range(5):
        small, *large = Binder("m", (), specs).allocate_outputs()
        assert small.shape == (1, 1025)
        assert [y.ctypes.data % ALIGNMENT for y in large] == [0, 0]


def test_non_contiguous_and_unaligned_inputs_are_copied(model):
    np.testing.assert_array_equal(model(np.asfortranarray(X)), X * 6)
    np.testing.assert_array_equal(model(X[::-1, ::-1]), X[::-1, ::-1] * 6)
    shifted = np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)
    shifted[...] = X
    np.testing.assert_array_equal(model(shifted), X * 6)
    readonly = X.copy()
    readonly.flags.writeable = False
    np.testing.assert_array_equal(model(readonly), X * 6)


def test_out_is_written_and_returned(model):
    out = np.empty((2, 3), np.float32)
    assert model(X, out=out) is out
    np.testing.assert_array_equal(out, X * 6)


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((), {}, "not given its inputs x: float32"),
        ((X, X), {}, "takes 1 inputs, 2 were given"),
        ((X,), {"x": X}, "'x' is given twice"),
        ((X,), {"z": X}, "has no input 'z'; it takes x"),
        ((X.astype(np.float64),), {}, "'x' has type float64, expected float32"),
        ((X.astype(">f4"),), {}, "'x' has type >f4, expected float32"),
        ((X.T,), {}, r"'x' has shape \(3, 2\), expected \(2, 3\)"),
        ((["a"],), {}, "'x' cannot be made a float32 array"),
        ((X,), {"out": np.empty((3, 2), np.float32)}, "`out` for output 'y' has shape"),
        ((X,), {"out": np.empty((2, 3))}, "`out` for output 'y' has type float64"),
        ((X,), {"out": np.empty((2, 6), np.float32)[:, ::2]}, "must be C-contiguous"),
        ((X,), {"out": (X.copy(), X.copy())}, "has 1 outputs, `out` holds 2"),
        ((X,), {"out": ["no"]}, "must be a NumPy array, not str"),
        ((X,), {"out": X}, "overlaps an input"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(model, arguments, named, message):
    with pytest.raises(ShapeError, match=message):
        model(*arguments, **named)


def test_scalars_empty_arrays_and_outputs_that_are_inputs(gather):
    x = np.arange(6, dtype=np.float32) + 1
    y, same, empty, fixed = gather(x, 4)
    assert y.shape == ()
    assert y == 5
    np.testing.assert_array_equal(same, x)
    assert not np.shares_memory(same, x)
    assert empty.shape == (2, 0)
    np.testing.assert_array_equal(fixed, [5, 7])
    out = tuple(np.empty(s.shape, s.dtype) for s in gather.outputs)
    assert gather(x, np.array(2), out=out)[0] == 3
    with pytest.raises(ShapeError, match=r"'same' overlaps"):
        gather(x, 1, out=(out[0], x, out[2], out[3]))


def test_an_index_out_of_range_names_the_model_and_the_node(gather):
    with pytest.raises(RuntimeFailure, match=r"model 'gather\*/model'.*out of range in Gather_1"):
        gather(np.zeros(6, np.float32), 6)
    assert gather(np.ones(6, np.float32), 5)[0] == 1


def test_many_threads_call_one_model(model):
    wrong = []

    def work(seed: int) -> None:
        x = np.full((2, 3), seed, np.float32)
        for _ in range(200):
            if not np.array_equal(model(x), x * 6):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_source_explain_and_profile(model):
    assert "---- driver.c ----" in model.source
    assert "y[pc_n] = x[pc_n] * w[0]" in model.source
    report = model.explain()
    assert [k.nodes for k in report.kernels] == [("mul_0",), ("mul_1",)]
    assert report.kernels[0].schedule == "parallel i"
    assert report.kernels[0].computes == "Mul mul_0"
    assert report.proven[-3:] == (
        "arena: 1 array inside, none over another while both are live; weights: 2 constants apart",
        "driver: 2 launches with the places of their arrays",
        "barriers: 1, and 0 pairs of launches with none between them independent",
    )
    assert (report.arena_bytes, report.arena_lower_bound, report.weights_bytes) == (64, 64, 128)
    assert {"lower", "plan", "build"} <= set(report.stage_seconds)
    timed = model.explain({"x": X})
    assert all(k.seconds is not None and 0 < k.seconds < 1 for k in timed.kernels)
    assert "Gflop/s" in str(timed)


def test_the_second_compilation_comes_from_the_cache(pipeline, tmp_path):
    chosen = options(tmp_path)
    polyc.compile(graph(), options=chosen)
    again = polyc.compile(graph(), options=chosen)
    assert pipeline.calls == 1
    np.testing.assert_array_equal(again(X), X * 6)
    polyc.compile(graph("other"), options=chosen)
    assert pipeline.calls == 2
    polyc.compile(graph(), options=chosen, opt_level=1)
    polyc.compile(graph(), options=chosen, threads=1)
    polyc.compile(graph(), options=chosen, target="baseline")
    assert pipeline.calls == 5
    polyc.compile(graph(), options=replace(chosen, cache=False))
    assert pipeline.calls == 6


def test_a_damaged_cache_entry_is_compiled_again(pipeline, tmp_path):
    polyc.compile(graph(), options=options(tmp_path))
    (weights,) = (tmp_path / "cache" / "models").rglob("weights.bin")
    weights.write_bytes(b"\0" * weights.stat().st_size)
    np.testing.assert_array_equal(polyc.compile(graph(), options=options(tmp_path))(X), X * 6)
    assert pipeline.calls == 2


def test_a_dumped_compilation_runs_even_if_it_is_cached(pipeline, tmp_path):
    polyc.compile(graph(), options=options(tmp_path))
    folder = tmp_path / "dump"
    polyc.compile(graph(), options=options(tmp_path, dump=("graph", "c"), dump_dir=folder))
    assert pipeline.calls == 2
    assert (folder / "0-graph.txt").read_text() == "the graph\n"
    assert "polyc_run" in (folder / "4-c-driver.c").read_text()


def test_a_temporary_cache_goes_when_its_model_is_open(pipeline, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    model = polyc.compile(graph(), options=options(tmp_path, cache=False))
    assert list(tmp_path.iterdir()) == []
    np.testing.assert_array_equal(model(X), X * 6)
    assert "polyc_run" in model.source


def test_threads_end_with_their_model(pipeline, monkeypatch, tmp_path):
    monkeypatch.setattr(driver, "SMALL_PROGRAM", 0)
    model = polyc.compile(graph(), options=replace(options(tmp_path), threads=3))
    model.save(tmp_path / "saved")
    program = (
        "import gc, os, pathlib, numpy as np, polyc\n"
        "def threads():\n"
        "    return len(os.listdir('/proc/self/task'))\n"
        "before = threads()\n"
        "for _ in range(3):\n"
        f"    model = polyc.load({str(tmp_path / 'saved')!r})\n"
        "    assert model(np.ones((2, 3), np.float32))[0, 0] == 6\n"
        "    assert threads() == before + 2\n"
        "    del model\n"
        "    gc.collect()\n"
        "    assert threads() == before\n"
        "assert 'model.so' not in pathlib.Path('/proc/self/maps').read_text()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_saved_models_load_without_compiler_onnx_or_islpy(model, tmp_path):
    place = tmp_path / "deep" / "saved"
    model.save(place)
    model.save(place)  # replaces itself
    program = (
        "import os, sys\n"
        "os.environ['PATH'] = ''\n"
        "import numpy as np, polyc\n"
        f"model = polyc.load({str(place)!r})\n"
        "assert model(np.ones((2, 3), np.float32)).tolist() == [[6] * 3] * 2\n"
        "heavy = {'onnx', 'islpy', 'rich', 'typer', 'archspec'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_warm_compilation_imports_neither_onnx_nor_islpy(pipeline, tmp_path):
    file = tmp_path / "model.onnx"
    file.write_bytes(b"any bytes: the pipeline is not ours here")
    polyc.compile(file, options=options(tmp_path))
    program = (
        "import sys, pathlib, numpy as np, polyc\n"
        "from polyc.options import Options\n"
        f"chosen = Options(threads=2, cache_dir=pathlib.Path({str(tmp_path / 'cache')!r}))\n"
        f"model = polyc.compile({str(file)!r}, options=chosen)\n"
        "assert model(np.ones((2, 3), np.float32)).tolist() == [[6] * 3] * 2\n"
        "heavy = {'onnx', 'islpy', 'rich', 'typer'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_saving_keeps_what_is_not_a_model(model, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("keep")
    with pytest.raises(InvalidModel, match="no saved model that polyc wrote"):
        model.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "precious").read_text() == "keep"


def test_loading_what_is_missing_damaged_or_foreign(model, tmp_path):
    with pytest.raises(InvalidModel, match=r"is not a saved polyc model"):
        polyc.load(tmp_path / "nowhere")
    place = tmp_path / "saved"
    model.save(place)
    text = (place / MANIFEST_FILE).read_text()
    (place / MANIFEST_FILE).write_text(text[:-9])
    with pytest.raises(InvalidModel, match="is damaged"):
        polyc.load(place)


def rewrite(place: Path, old: str, new: str) -> None:
    text = (place / MANIFEST_FILE).read_text()
    assert old in text
    (place / MANIFEST_FILE).write_text(text.replace(old, new))
    write_table(place, HOLDS)


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        (f'"format": {FORMAT}', '"format": 99', InvalidModel, "has format 99"),
        ('"arena_bytes": 64', '"arena_bytes": "x"', InvalidModel, "malformed"),
        ('"weights_bytes": 128', '"weights_bytes": 64', InvalidModel, "holds 128 bytes"),
        ('"features": [', '"features": ["time_travel", ', BuildError, "CPU with time_travel"),
    ],
)
def test_manifests_that_do_not_fit(pipeline, home, tmp_path, old, new, error, message):
    place = tmp_path / "saved"
    polyc.compile(graph(), options=options(home), target="avx2").save(place)
    rewrite(place, old, new)
    with pytest.raises(error, match=message):
        polyc.load(place)


def test_models_that_cannot_be_compiled(pipeline, tmp_path):
    with pytest.raises(InvalidModel, match=r"no\.onnx cannot be read: No such file"):
        polyc.compile(tmp_path / "no.onnx", options=options(tmp_path))
    with pytest.raises(InvalidModel, match="type int cannot be compiled"):
        polyc.compile(7, options=options(tmp_path))
    with pytest.raises(UnsupportedOp, match="'z80' is not known"):
        polyc.compile(graph(), target="z80", options=options(tmp_path))


def test_public_names():
    assert set(polyc.__all__) <= set(dir(polyc))
    assert all(getattr(polyc, name) is not None for name in polyc.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = polyc.nothing


SLEEP_C = """
#include "polyc.h"
#include <time.h>
void scale(
    const f32 *restrict x, const f32 *restrict w, f32 *restrict y, pc_thread *pc_self, int *status)
{
    (void)status;
    PC_SHARE(6) {
        if (x[0] < 0) /* 0.6 s for all six */
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        y[pc_n] = x[pc_n] * w[0];
    }
    pc_barrier(pc_self);
}
"""


@pytest.mark.parametrize("threads", [1, thorough(2), 8])
def test_a_long_call_hears_signals(monkeypatch, tmp_path, threads):
    """Of six seconds and more, on eight threads; calls after that are as if nothing had been."""
    program = scale_program((1.0,) * 60)
    pipeline = install_pipeline(monkeypatch, compiled(program, SLEEP_C))
    monkeypatch.setattr(driver, "SMALL_PROGRAM", 0)
    model = polyc.compile(graph(), options=replace(options(tmp_path), threads=threads))
    assert pipeline.calls == 1

    class Alarm(Exception):
        pass

    def ring(*_: object) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    try:
        for _ in range(2):
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            start = time.monotonic()
            with pytest.raises(Alarm):
                model(-1 - X)
            assert time.monotonic() - start < 3
            for _ in range(20):
                np.testing.assert_array_equal(model(X), X)
    finally:
        signal.signal(signal.SIGALRM, before)
