"""Rates of a machine: estimates, what is measured, and the file that keeps it."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace

import pytest

from polyc.options import Options
from polyc.target import machine, measure
from polyc.target.instructions.lanes import DOT2_BF16
from polyc.target.machine import Target, detect_target
from polyc.target.measure import measure_rates
from polyc.target.rates import (
    Rates,
    estimate_rates,
    known_rates,
    rates_file,
    read_rates,
    write_rates,
)
from polyc.target.resolve import resolve_target
from tests.sampling import thorough

TARGET = Target.named("avx2")
MEASURED = Rates(
    118.2345e9, 2.06e11, 1e11, 8.5e10, 3.4e10, 7e10, 4.4e10, 8.6e10, 3e-8, 1.08e-9, True
)
NUMBERS = [f.name for f in dataclasses.fields(Rates) if f.name != "measured"]


@pytest.mark.parametrize(
    ("simd", "fused", "cores"), [(64, True, 2), (32, True, 64), (16, False, 1)]
)
def test_estimates_are_plausible(simd, fused, cores):
    rates = estimate_rates(simd, fused, cores)
    assert not rates.measured
    assert 1e10 < rates.flops < 1e12
    assert rates.l1 > rates.l2 >= rates.l3 > rates.read
    assert rates.read_all >= rates.read
    assert rates.copy_all >= rates.copy
    assert (rates.barrier > 0) == (cores > 1)


def test_named_targets_have_estimates_of_their_own():
    flops = {isa: Target.named(isa).rates.flops for isa in machine.NAMED}
    assert flops["baseline"] < flops["avx2"] < flops["avx512"]


def test_a_file_keeps_three_digits(tmp_path):
    file = write_rates(tmp_path, TARGET, MEASURED)
    assert file == rates_file(tmp_path, TARGET)
    kept = read_rates(tmp_path, TARGET)
    assert kept == replace(MEASURED, flops=118e9)
    assert [f.name for f in file.parent.iterdir()] == [file.name]


def test_another_machine_has_another_file(tmp_path):
    write_rates(tmp_path, TARGET, MEASURED)
    for other in (replace(TARGET, cores=3), replace(TARGET, l2=1 << 20), Target.named("avx512")):
        assert read_rates(tmp_path, other) is None
    renamed = replace(TARGET, flags=("-march=native",), rates=MEASURED)
    assert read_rates(tmp_path, renamed) is not None


def test_without_a_file_there_is_no_measurement(tmp_path, recwarn):
    assert read_rates(tmp_path / "nowhere", TARGET) is None
    assert not recwarn.list


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda text: "", "JSONDecodeError"),
        (lambda text: text[: len(text) // 2], "JSONDecodeError"),
        (lambda text: "[1, 2]", "TypeError"),
        (lambda text: "7", "TypeError"),
        (lambda text: text.replace('"flops"', '"flop"'), "KeyError"),
        (lambda text: text.replace('"format": 1', '"format": 0'), "format 0 where 1"),
        (lambda text: _with(text, read=0), "read is 0"),
        (lambda text: _with(text, l1=-1), "l1 is -1"),
        (lambda text: _with(text, copy="fast"), "ValueError"),
        (lambda text: _with(text, copy=None), "TypeError"),
        (lambda text: _with(text, l2=float("nan")), "l2 is nan"),
        (lambda text: "\udc80", "UnicodeDecodeError"),
    ],
)
def test_a_malformed_file_is_told_and_ignored(tmp_path, damage, what):
    file = write_rates(tmp_path, TARGET, MEASURED)
    text = damage(file.read_text(encoding="utf-8"))
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.warns(RuntimeWarning, match=r"is ignored; `polyc doctor --measure`") as told:
        assert read_rates(tmp_path, TARGET) is None
    assert what in str(told[0].message)
    assert str(file) in str(told[0].message)


def test_a_folder_in_place_of_the_file_is_told_and_ignored(tmp_path):
    rates_file(tmp_path, TARGET).mkdir(parents=True)
    with pytest.warns(RuntimeWarning, match="is ignored"):
        assert read_rates(tmp_path, TARGET) is None


def test_detection_finds_what_was_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path))
    before = detect_target()
    assert not before.rates.measured
    write_rates(tmp_path, before, MEASURED)
    after = detect_target()
    assert after == replace(before, rates=replace(MEASURED, flops=118e9))
    override = replace(after, rates=replace(after.rates, flops=1e9))
    assert override.rates.flops == 1e9


def test_detection_survives_a_malformed_file(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path))
    before = detect_target()
    write_rates(tmp_path, before, MEASURED).write_text("{", encoding="utf-8")
    with pytest.warns(RuntimeWarning, match="is ignored"):
        assert detect_target() == before


@pytest.mark.parametrize("isa", [thorough("baseline"), None])
def test_measuring_gives_every_rate(tmp_path, monkeypatch, isa):
    """In short: one try each, on little memory."""
    for name, value in {
        "TRIES": 1,
        "ROUNDS": 2,
        "FMA_ROUNDS": 1000,
        "CACHE_TRAFFIC": 1 << 20,
        "LEAST_MEMORY": 1 << 20,
        "SLICE": 1 << 18,
        "BARRIERS": 10,
    }.items():
        monkeypatch.setattr(measure, name, value)
    target = Target.named(isa) if isa else detect_target()
    target = replace(target, cores=2, l3=1 << 20)
    rates = measure_rates(target, Options(cache_dir=tmp_path))
    assert rates.measured
    assert all(getattr(rates, name) > 0 for name in NUMBERS)
    assert rates.flops > 1e9
    write_rates(tmp_path, target, rates)
    assert read_rates(tmp_path, target) is not None
    alone = measure_rates(replace(target, cores=1), Options(cache_dir=tmp_path))
    assert alone.barrier == 0
    assert json.loads(rates_file(tmp_path, target).read_text())["format"] == 1


def _with(text: str, **changes: object) -> str:
    return json.dumps({**json.loads(text), **changes})


def test_sums_of_bfloat16_are_looked_at_by_running_them(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path))
    here = detect_target()
    assert measure.look_at_pairs(Target.named("avx2"), Options()) == Rates.pairs
    if not here.vectors.has(DOT2_BF16):
        pytest.skip("this CPU has no such instruction")
    looked = []
    right = measure.look_at_pairs
    monkeypatch.setattr(measure, "look_at_pairs", lambda *a: looked.append(a) or right(*a))
    resolve_target("cpu", Options())
    assert known_rates(tmp_path, here) == {"l3"}
    asked = Options(precision="bf16")
    seen = resolve_target("cpu", asked)
    assert 0.5 <= seen.rates.pairs <= 4
    assert known_rates(tmp_path, here) == {"l3", "pairs"}
    assert seen == resolve_target("cpu", asked)
    assert len(looked) == 1


def test_rates_of_before_say_nothing_of_bfloat16(tmp_path):
    file = write_rates(tmp_path, TARGET, MEASURED)
    kept = json.loads(file.read_text())
    del kept["pairs"]
    file.write_text(json.dumps(kept))
    assert read_rates(tmp_path, TARGET) == replace(MEASURED, flops=118e9)
