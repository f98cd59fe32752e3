"""Tuned schedules on disk: what is written is read, and nothing else is believed."""

import json
import os
from dataclasses import replace

import pytest

from polyc.errors import BuildError
from polyc.mapping.tuned import Tuned, spell_choices
from polyc.target.machine import Target
from polyc.tuning.store import add_tuned, read_tuned, tuned_file
from tests.programs import options

ONE = Tuned("order L1 L0 | split L0 14 | vector L1 | keep all at L0", 0.125, True)
OTHER = Tuned("vector L2", 0.0)


def test_what_is_added_is_read(tmp_path):
    file = tmp_path / "deep" / "t.json"
    add_tuned(file, {"a": ONE}, "a machine")
    add_tuned(file, {"b": OTHER}, "a machine")
    assert read_tuned(file) == {"a": ONE, "b": OTHER}
    add_tuned(file, {"a": OTHER}, "a machine")
    assert read_tuned(file) == {"a": OTHER, "b": OTHER}
    assert json.loads(file.read_text())["for"] == "a machine"


def test_no_file_is_nothing_tuned(tmp_path):
    assert read_tuned(tmp_path / "none.json") == {}


def entry(**changes):
    return {"gain": 0.1, "finished": False, "schedule": ONE.schedule, **changes}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        "\x00\xff",
        "[]",
        "{}",
        '{"format": 99, "clusters": {}}',
        '{"format": 2, "clusters": []}',
        json.dumps({"format": 2, "clusters": {"a": entry(gain=float("nan"))}}),
        json.dumps({"format": 2, "clusters": {"a": entry(gain=-1)}}),
        json.dumps({"format": 2, "clusters": {"a": entry(gain=None)}}),
        json.dumps({"format": 2, "clusters": {"a": entry(schedule={"vector": 0})}}),
        json.dumps({"format": 2, "clusters": {"a": entry(schedule=7)}}),
        json.dumps({"format": 1, "clusters": {"a": {"gain": 0.1, "parameters": {"vector": 1}}}}),
    ],
)
def test_a_malformed_file_is_told_ignored_and_replaced(tmp_path, text):
    file = tmp_path / "t.json"
    file.write_text(text)
    with pytest.warns(RuntimeWarning, match="does not hold tuned schedules"):
        assert read_tuned(file) == {}
    add_tuned(file, {"a": ONE}, "a machine")
    assert read_tuned(file) == {"a": ONE}


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_file_is_told_and_ignored(tmp_path, kind):
    file = tmp_path / "it.json"
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
        case "folder":
            file.mkdir()
    with pytest.warns(RuntimeWarning, match="not a regular file"):
        assert read_tuned(file) == {}


def test_tuned_parameters_that_cannot_be_kept(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BuildError, match="what tuning found cannot be written"):
        add_tuned(tmp_path / "file" / "it.json", {"a": ONE}, "a machine")


def test_a_file_is_for_a_machine_and_a_number_of_threads(tmp_path):
    target, choices = Target.named("avx2"), options(tmp_path)
    others = [
        tuned_file(Target.named("avx512"), choices),
        tuned_file(replace(target, l2=target.l2 * 2), choices),
        tuned_file(target, replace(choices, threads=1)),
        tuned_file(target, replace(choices, cc="clang")),
    ]
    file = tuned_file(target, choices)
    assert file == tuned_file(target, replace(choices, verify=False))
    assert len({file, *others}) == 5
    assert file.parent.parent == choices.cache_dir


def test_a_choice_without_gain_is_that_of_the_cost_model():
    answers = spell_choices(["a", "b", "c"], {"a": ONE, "b": OTHER})
    assert answers["a"] == ONE.schedule
    assert answers["b"] == answers["c"] == ""
