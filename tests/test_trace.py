"""Named steps and dumps."""

from __future__ import annotations

import time

import pytest

from polyc.trace import Trace, make_trace
from tests.programs import options


def test_visits_of_a_step_add_up_and_errors_count_too():
    trace = Trace()
    for _ in range(2):
        with trace.step("a"):
            time.sleep(0.01)
    with pytest.raises(ValueError, match="no"), trace.step("b"):
        raise ValueError("no")
    assert 0.02 <= trace.seconds["a"] < 1
    assert list(trace.seconds) == ["a", "b"]


def test_time_counts_for_the_innermost_step_only():
    trace = Trace()
    with trace.step("outer"):
        for _ in trace.track("loop", range(2), 2):
            with trace.step("inner"):
                time.sleep(0.02)
        time.sleep(0.01)
    assert trace.seconds["inner"] >= 0.04
    assert trace.seconds["loop"] < 0.02
    assert 0.01 <= trace.seconds["outer"] < 0.03


@pytest.mark.parametrize("progress", [False, True])
def test_track_passes_the_items_on(progress, capsys):
    trace = Trace(progress=progress)
    assert list(trace.track("s", (k for k in range(3)), 3)) == [0, 1, 2]
    assert list(trace.track("s", [4, 5], 2)) == [4, 5]
    assert "s" in trace.seconds
    assert capsys.readouterr().out == ""


def test_only_the_stages_asked_for_are_dumped(tmp_path, capsys):
    trace = make_trace(options(tmp_path, dump=("scop",), dump_dir=tmp_path / "d"))
    assert trace.wants("scop")
    trace.dump("scop", 42, "conv/1\n")
    trace.dump("c", "not this")
    assert [f.name for f in (tmp_path / "d").iterdir()] == ["1-scop-conv_1_.txt"]
    assert (tmp_path / "d" / "1-scop-conv_1_.txt").read_text() == "42\n"
    Trace(frozenset({"c"})).dump("c", "int x;")
    assert capsys.readouterr().err == "==== 4-c ====\nint x;\n"
