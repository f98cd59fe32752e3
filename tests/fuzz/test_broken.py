"""The generator of broken cases, its judge and its processes, and a handful of cases.

`python -m tests.fuzz --broken` runs others. What it found, and what is mended, stands here: as a
seed, and as a small case where the seed leads to one.
"""

from __future__ import annotations

import pickle
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

from polyc.errors import InternalError, InvalidModel
from tests.fuzz.broken import judge as judging
from tests.fuzz.broken.bases import CONTROL
from tests.fuzz.broken.campaign import run
from tests.fuzz.broken.files import _change_json, damage
from tests.fuzz.broken.hostile import Dice
from tests.fuzz.broken.judge import Verdict, judge, make_model
from tests.fuzz.broken.octets import change_octets
from tests.fuzz.broken.pool import judge_all
from tests.fuzz.broken.structure import CHANGES, change_structure
from tests.fuzz.judge_badly import judge_badly
from tests.staged import model_of

SEEDS = range(24)


@pytest.fixture(scope="module")
def bases(tmp_path_factory) -> Path:
    """Models of our own only: those of the standard take ten seconds to collect."""
    file = tmp_path_factory.mktemp("bases") / "bases"
    models = [(name, model_of(text).SerializeToString()) for name, text in CONTROL.items()]
    file.write_bytes(pickle.dumps(models))
    return file


@pytest.mark.thorough
def test_a_handful_of_cases(bases):
    verdicts = dict(judge_all(SEEDS, bases, processes=1))
    assert sorted(verdicts) == list(SEEDS)
    assert {s: v for s, v in verdicts.items() if v.is_finding} == {}
    assert {v.outcome for v in verdicts.values()} >= {"refused"}


def test_a_seed_is_always_the_same_case(bases):
    made = [make_model(seed, bases) for seed in SEEDS]
    assert made == [make_model(seed, bases) for seed in SEEDS]
    assert len({m for m in made if m}) > len(SEEDS) // 2


@pytest.mark.parametrize("change", dict.fromkeys(CHANGES), ids=lambda c: c.__name__)
def test_each_change_changes_models_and_leaves_messages(change):
    model = model_of(CONTROL["branches"])
    before, seen = model.SerializeToString(), set()
    for seed in range(40):
        changed = onnx.ModelProto.FromString(before)
        change(changed, Dice(seed))
        seen.add(changed.SerializeToString())
    assert len(seen - {before}) >= 10


def test_changes_of_bytes():
    data = bytes(range(100))
    changed = {change_octets(data, b"other", Dice(seed)) for seed in range(50)}
    assert len(changed) > 45
    assert {len(c) < 100 for c in changed} == {True, False}
    assert change_octets(b"", b"", Dice(1)) is not None


def test_changes_of_structure_leave_messages():
    data, other = (model_of(CONTROL[name]).SerializeToString() for name in ("scanned", "open"))
    changed = {change_structure(data, other, Dice(seed)) for seed in range(30)}
    assert len(changed) > 15
    for message in changed:
        assert onnx.ModelProto.FromString(message).ByteSize() == len(message)


def test_damaged_files(tmp_path):
    kinds = set()
    for seed in range(60):
        file = tmp_path / f"{seed}.json"
        file.write_text('{"a": [1, {"b": "c"}], "d": null}')
        damage(file, Dice(seed))
        kinds.add("dir" if file.is_dir() else "link" if file.is_symlink() else
                  "file" if file.is_file() else "pipe" if file.exists() else "none")  # fmt: skip
    assert kinds == {"dir", "link", "file", "pipe", "none"}
    values = {str(_change_json({"a": [1, 2]}, Dice(seed))) for seed in range(40)}
    assert len(values) > 15


def _raise(error):
    def case(dice, folder):
        raise error

    return case


@pytest.mark.parametrize(
    ("error", "outcome", "is_finding"),
    [
        (InvalidModel("no"), "refused", False),
        (InternalError("a defect"), "InternalError", True),
        (TypeError("deep inside"), "TypeError", True),
        (ZeroDivisionError("no"), "ZeroDivisionError", True),
        (MemoryError(), "MemoryError", True),
        (RecursionError("no"), "RecursionError", True),
    ],
)
def test_what_counts_as_a_finding(monkeypatch, tmp_path, error, outcome, is_finding):
    monkeypatch.setattr(judging, "_kind", lambda dice: "calls")
    monkeypatch.setattr(judging, "_place", lambda error: "polyc/somewhere.py:1")
    monkeypatch.setattr(judging, "call_wrongly", _raise(error))
    verdict = judge(1, tmp_path)
    assert (verdict.outcome, verdict.is_finding) == (outcome, is_finding)


def test_a_type_error_that_names_an_argument_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr(judging, "_kind", lambda dice: "calls")
    monkeypatch.setattr(judging, "_place", lambda error: "polyc/arguments.py:1")
    monkeypatch.setattr(judging, "call_wrongly", _raise(TypeError("`out` is of type int")))
    assert judge(1, tmp_path) == Verdict("calls", "type")


def test_a_case_that_takes_too_long_is_a_finding(monkeypatch, tmp_path):
    def spin(dice, folder):
        while True:
            np.sin(np.ones(1000))

    monkeypatch.setattr(judging, "_kind", lambda dice: "calls")
    monkeypatch.setattr(judging, "call_wrongly", spin)
    monkeypatch.setattr(judging, "_place", lambda error: "polyc/somewhere.py:1")
    begin = time.process_time()
    assert judge(1, tmp_path, patience=0.2).outcome == "TooSlow"
    assert time.process_time() - begin < 5


def test_processes_that_die_or_hang_are_replaced(bases):
    found = dict(judge_all(range(1, 6), bases, processes=1, patience=1, judge=judge_badly))
    outcomes = {seed: verdict.outcome for seed, verdict in found.items()}
    assert outcomes == {1: "works", 2: "died", 3: "hang", 4: "MemoryError", 5: "works"}


@pytest.mark.thorough
def test_the_campaign_counts_findings(bases, monkeypatch, capsys):
    known = pickle.loads(bases.read_bytes())
    monkeypatch.setattr("tests.fuzz.broken.campaign.read_bases", lambda: known)
    assert run(first=1, cases=4, seconds=None, processes=1) == 0
    printed = capsys.readouterr().out
    assert "cases from seed 1 on" in printed
    assert "4 cases in" in printed
