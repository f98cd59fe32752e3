"""PolyBench's loops in plain C, races between engines, and their table."""

from __future__ import annotations

import copy
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import polyc
from bench.polybench import compilers
from bench.polybench import race as races
from bench.polybench.__main__ import app
from bench.polybench.compilers import OURS, REFERENCE, Engine, NotThere, find_engines
from bench.polybench.kernels import PROBLEMS
from bench.polybench.plain_c import print_plain
from bench.polybench.problem import Problem, by_size
from bench.polybench.race import Race, Row, measure, race
from bench.polybench.table import show_rows, summarise
from tests.bench.test_polybench import ODD, everywhere

RNG = np.random.default_rng(5)

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")


def check_plain(problem: Problem, given: dict, folder: Path) -> None:
    """The plain loops, compiled, and Python do the same, up to contraction into FMA."""
    mine, theirs = copy.deepcopy(given), copy.deepcopy(given)
    find_engines(1)[REFERENCE].open(problem, given, 1, folder / "plain")(mine)
    with np.errstate(all="ignore"):
        problem.kernel.python(**theirs)
    for name, reference in theirs.items():
        if isinstance(reference, np.ndarray):
            np.testing.assert_allclose(mine[name], reference, rtol=1e-9, atol=1e-9, err_msg=name)


@needs_gcc
@pytest.mark.parametrize("name", everywhere)
def test_plain_c_does_what_python_does(name, tmp_path):
    problem = PROBLEMS[name]
    check_plain(problem, problem.make(*ODD[: len(problem.sizes["mini"])]), tmp_path)


@polyc.kernel
def everything(double, x, k, y, z, b, exp, down):
    n, m = x.shape
    for i in range(n - 1, -1, -1):
        for j in range(1, m, 2):
            int32 = x[i, j] - (x[i, 0] - y[i, j])
            int32 -= x[i, j] / (y[i, j] * double)
            x[i, j] = int32 if not (x[i, j] < 0.5 or j > i) else -(x[i, j] + 1)
            y[i, j] = 0.5 * y[i, j] + math.exp(-abs(x[i, j])) + max(i, j, 3) + min(y[i, j], 0.25)
            k[j] //= 3 - 2 * (j % 2)
            k[j] += (i - 4) // 3 * 2 + (j - 9) % 4 - (k[j] << 1) + int(x[i, j] * 10)
            z[j] = z[j] / 2 + k[j] / 4 + z[j] ** 2 - math.floor(x[i, j]) % 3
            if x[i, j] > 0 and i != 2:
                b[j] = not b[j]
            elif i <= down:
                b[j] = x[i, j] >= y[i, j]
            else:
                exp[i] = i * double


def data(n: int, m: int) -> dict:
    return {
        "double": 1.5,
        "x": RNG.random((n, m)) + 0.1,
        "k": RNG.integers(-9, 9, m).astype(np.int32),
        "y": RNG.random((n, m)) + 0.1,
        "z": RNG.random(m),
        "b": RNG.random(m) < 0.5,
        "exp": np.zeros(n),
        "down": 1,
    }


@needs_gcc
def test_all_that_the_subset_has_is_printed_with_python_s_meaning(tmp_path):
    problem = Problem("everything", everything, by_size(*[(5, 7)] * 5), data, ("x",))
    check_plain(problem, data(5, 8), tmp_path)


def test_plain_c_is_what_one_would_write():
    text = print_plain(PROBLEMS["trisolv"].kernel.function, PROBLEMS["trisolv"].make(9)).text
    assert (
        "void trisolv(double L[restrict 9][9], double x[restrict 9], double b[restrict 9]) {"
        in (text.splitlines())
    )
    assert "            x[i] -= L[i][j] * x[j];" in text.splitlines()
    assert "        for (int64_t j = 0; j < i; j++) {" in text.splitlines()


@pytest.mark.thorough
@needs_gcc
def test_a_race_has_a_figure_for_each_engine_and_a_line_for_all():
    done = CliRunner().invoke(
        app, ["--size", "mini", "--kernel", "trisolv", "--rounds", "1", "--cpu-time"]
    )
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    row = next(line for line in lines if line.startswith("| trisolv |"))
    cells = [c.strip() for c in row.strip("|").split("|")]
    assert all(float(c) > 0 for c in (*cells[1:4], cells[-1]))
    assert lines[-1].startswith("geomean best compiler / polyc ")
    assert lines[-1].endswith(", over 1")
    done = CliRunner().invoke(app, ["--everyday", "--size", "mini", "--kernel", "erode"])
    assert done.exit_code == 0, done.output
    assert "| erode |" in done.stdout


def test_arguments_that_mean_nothing_are_refused():
    for arguments in (
        ["--kernel", "fft"],
        ["--size", "huge"],
        ["--engine", "icc"],
        ["--threads", "2", "--cpu-time"],
    ):
        assert CliRunner().invoke(app, arguments).exit_code == 2


def engines(ours, reference):
    return {
        name: Engine(name, lambda problem, given, threads, folder, call=call: call)
        for name, call in ((OURS, ours), (REFERENCE, reference))
    }


def test_what_crashes_differs_or_is_not_there_has_no_figure(monkeypatch):
    kernel = PROBLEMS["trisolv"].kernel.python

    def right(given):
        kernel(**given)

    def wrong(given):
        kernel(**given)
        given["x"][3] *= 1.001

    def raising(given):
        raise ValueError("nothing works")

    def missing(problem, given, threads, folder):
        raise NotThere("not today")

    for ours, reason in ((wrong, "x differs"), (raising, "ValueError: nothing works")):
        monkeypatch.setattr(races, "find_engines", lambda n, ours=ours: engines(ours, right))
        row = measure("trisolv", Race("mini", rounds=1))
        assert reason in row.failed[OURS]
        assert row.ratio is None
        assert set(row.seconds) == {REFERENCE}
    absent = {**engines(right, right), OURS: Engine(OURS, missing)}
    monkeypatch.setattr(races, "find_engines", lambda n: absent)
    assert measure("trisolv", Race("mini", rounds=1)).failed == {OURS: "not today"}


def test_a_process_that_dies_is_a_row_that_failed():
    row = race("no such kernel", Race("mini"))
    assert "died" in row.failed[OURS]
    assert row.ratio is None


def test_failures_are_counted_and_named():
    both = (OURS, REFERENCE)
    rows = [
        Row("gemm", {OURS: 1.0, REFERENCE: 4.0, "NumPy": 0.1}, {}, both),
        Row("lu", {OURS: 2.0, REFERENCE: 2.0}, {}, both),
        Row("adi", {REFERENCE: 2.0}, {OURS: "ValueError: no"}, both),
    ]
    assert rows[0].ratio == 4
    assert (
        summarise(rows) == "geomean best compiler / polyc 2.00, worst 1.00, over 2; failed 1: adi"
    )
    text = show_rows(rows, [*both, "NumPy"])
    assert "| adi | failed | 2 | - | failed |" in text
    assert "adi: polyc failed: ValueError: no" in text


def test_polly_is_asked_for_threads(monkeypatch):
    monkeypatch.setattr(compilers.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(compilers, "_accepts", lambda compiler, flags: "-polly" in flags)
    assert {"clang -Ofast", "Polly"} <= set(find_engines(2))
    flags = find_engines(2)["Polly"].open.args[1]
    assert "-polly-num-threads=2" in flags
    monkeypatch.setattr(compilers, "_accepts", lambda compiler, flags: False)
    assert "Polly" not in find_engines(1)
