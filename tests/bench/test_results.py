"""Rows, their file, the tables, the picture, and the guard."""

from __future__ import annotations

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from bench.__main__ import app
from bench.compare import compare_results
from bench.plot import plot_results
from bench.results import Results, Row, summarise
from bench.table import show_results

KERNELS = (
    {
        "kernel": "k0",
        "nodes": ["a", "b"],
        "schedule": "rows | 3",
        "flops": 4e6,
        "bytes": 100,
        "seconds": 1e-3,
        "predicted": 1.5e-3,
    },
    {"kernel": "k1", "nodes": [], "schedule": "", "flops": 0, "bytes": 0, "seconds": 3e-3},
)


def row(problem: str, ours: float | None, peer: float | None = 2e-3, threads: int = 1) -> Row:
    times = {"polyc": [ours] * 3} if ours else {}
    times |= {"numpy": [9e-3], "openvino": [peer, peer]} if peer else {}
    work = (10**6, 400, 100, 5e-4)
    told = summarise(times)
    return Row(problem, "gemm", threads, *work, **told, error={}, opened={}, failed={})


def results(*rows: Row) -> Results:
    rates = {"flops": 1e11, "l1": 9e10, "l2": 5e10, "l3": 4e10, "read": 2e10, "read_all": 3e10}
    return Results({"target": "cpu", "rates": rates}, {"numpy": "2"}, rows)


def test_ratio_and_share():
    one = row("a", 1e-3)
    assert one.best_peer == "openvino"
    assert one.ratio == pytest.approx(2)
    assert one.share() == pytest.approx(0.5)
    assert row("a", None).ratio is None
    assert row("a", 1e-3, None).ratio is None
    assert one.samples == {"polyc": 3, "numpy": 1, "openvino": 2}


def test_the_file_holds_everything(tmp_path):
    file = tmp_path / "r.json"
    written = results(replace(row("a", 1e-3), kernels=KERNELS), row("b", 2e-3, threads=2))
    written.write(file)
    assert Results.read(file) == written
    file.write_text('{"format": 0}')
    with pytest.raises(ValueError, match="holds no results"):
        Results.read(file)


def test_tables():
    failing = replace(
        row("b", 2e-3),
        error={"numpy": 1e-2},
        failed={"numpy": "UnsupportedOp: has no Erf; it knows Add", "torch": "KeyError: 'Erf'"},
    )
    text = show_results(
        results(replace(row("a", 1e-3), kernels=KERNELS), failing, row("c", 1e-4, None, 2)), True
    )
    assert "### gemm, 1 thread\n" in text
    assert "### gemm, 2 threads\n" in text
    assert "| problem | polyc | NumPy | OpenVINO | peer / polyc | Gflop/s | of limit |" in text
    assert "| a | 1 ms | 9 ms | 2 ms | 2.00 | 1 | 50% |" in text
    assert "| c | 100 us | - | 10 | 500% |" in text
    assert "geometric mean 1.414, least 1.00" in text
    assert "- b, 1: polyc is 1e-02 from numpy" in text
    assert "- b: no figure of NumPy (UnsupportedOp: has no Erf)" in text
    assert "| k0 | a, b | rows / 3 | 1 ms | 1.5 ms | 25.0% | 4 | 0 |" in text
    assert "predicted: half of them within 50%" in text
    assert text.index("| k1 |") < text.index("| k0 |")


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    plot_results(results(row("a", 1e-3), row("b", 2e-3, None, 2)), tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 1000


def test_changes():
    before = results(row("a", 1e-3), row("b", 1e-3), row("gone", 1e-3), row("never", None))
    after = results(row("a", 1.04e-3), row("b", 1.2e-3), row("new", 1e-3), row("never", 1e-3))
    changes = {c.problem: c for c in compare_results(before, after)}
    assert {p for p, c in changes.items() if c.slower(0.05)} == {"b", "gone"}
    assert set(changes) == {"a", "b", "gone"}
    assert str(changes["b"]) == "b, 1 thread: +20.0%"
    assert str(changes["gone"]) == "gone, 1 thread: no figure any more"


def test_a_slow_machine_cancels_in_relative_changes():
    before, after = results(row("a", 1e-3, 2e-3)), results(row("a", 2e-3, 4e-3))
    assert next(compare_results(before, after)).slower(0.05)
    assert not next(compare_results(before, after, relative=True)).slower(0.001)


def test_the_guard_is_an_exit_code(tmp_path):
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    results(row("a", 1e-3)).write(tmp_path / "a.json")
    results(row("a", 1.1e-3)).write(tmp_path / "b.json")
    call = CliRunner().invoke
    assert call(app, ["compare", *files, "--tolerance", "0.2"]).exit_code == 0
    worse = call(app, ["compare", *files])
    assert worse.exit_code == 1
    assert "SLOWER a, 1 thread: +10.0%" in worse.output
    assert call(app, ["compare", files[1], files[0]]).exit_code == 0
    other = results(row("a", 1e-3))
    replace(other, machine={**other.machine, "target": "gpu"}).write(tmp_path / "b.json")
    assert call(app, ["compare", *files]).exit_code == 2
    assert call(app, ["compare", *files, "--relative"]).exit_code == 0
    assert call(app, ["compare", files[0], "gone.json"]).exit_code == 2
