"""Machine descriptions."""

from __future__ import annotations

import os

import numpy as np
import pytest

from polyc.target import machine
from polyc.target.machine import (
    NAMED,
    Target,
    available_cores,
    detect_target,
    host_features,
    missing_features,
)


def test_lanes_divide_the_register():
    target = Target.named("avx512")
    widths = {t: target.lanes(np.dtype(t)) for t in ("float32", "float64", "int8", "bool")}
    assert widths == {"float32": 16, "float64": 8, "int8": 64, "bool": 64}
    assert Target.named("baseline").lanes(np.dtype(np.complex128)) == 1


def test_detected_target_runs_here():
    target = detect_target()
    assert missing_features(target.features) == ()
    assert target.cores == available_cores() == len(os.sched_getaffinity(0))
    assert target.flags[0].startswith("-m")
    assert 0 < target.l1d <= target.l2 <= target.l3
    assert target.vectors.bytes == NAMED[target.isa].vectors.bytes


def test_without_a_compiler_the_nearest_named_target_stands_in():
    target = detect_target("no-such-compiler-here")
    assert target.flags == NAMED[target.isa].flags


@pytest.mark.parametrize(
    ("features", "isa"),
    [(None, "baseline"), (frozenset(), "baseline")]
    + [(frozenset(t.features), t.isa) for t in NAMED.values()],
)
def test_the_widest_isa_that_the_cpu_has_is_chosen(monkeypatch, features, isa):
    monkeypatch.setattr(machine, "host_features", lambda: features)
    monkeypatch.setattr(machine, "_archspec_flags", lambda *_: None)
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "h", "6", "v", "x86_64")))
    assert detect_target().isa == isa


def test_caches_are_those_that_linux_describes(tmp_path):
    described = [
        ("1", "Data", "32K", "8"),
        ("1", "Instruction", "64K", "4"),
        ("2", "Unified", "1M", "0"),
        ("3", "Unified", "", "16"),
    ]
    for k, values in enumerate(described):
        folder = tmp_path / f"index{k}"
        folder.mkdir()
        files = ("level", "type", "size", "ways_of_associativity")
        for file, value in zip(files, values, strict=True):
            (folder / file).write_text(value + "\n")
    (tmp_path / "index4").mkdir()
    fields = machine._cache_fields(tmp_path)
    assert fields == {"l1d": 32 << 10, "l1d_ways": 8, "l2": 1 << 20}
    assert machine._cache_fields(tmp_path / "nowhere") == {}


def test_host_features_are_those_of_the_kernel():
    assert host_features() is None or len(host_features()) > 5
    assert missing_features(("no_such_feature",)) in ((), ("no_such_feature",))
