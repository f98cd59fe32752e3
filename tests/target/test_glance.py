"""A look at the third-level cache: once on a machine, kept where the cache is, believed if slow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.options import Options, options_from_environment
from polyc.pipeline import run_pipeline
from polyc.scop.lower.windows.choose_filters import choose_filters
from polyc.target import glance as looking
from polyc.target.costs import far_bytes, streamed_bytes
from polyc.target.glance import glance
from polyc.target.machine import NAMED, Target
from polyc.target.rates import rates_file, write_rates
from polyc.target.resolve import resolve_target
from polyc.trace import Trace
from tests.sampling import thorough

AVX512 = Target.named("avx512")
SLOW = replace(AVX512, rates=replace(AVX512.rates, l3=18e9))


@pytest.fixture
def looks(monkeypatch, tmp_path):
    """Where the cache is, and the looks that were taken."""
    taken = []

    def look(target):
        taken.append(target)
        return replace(target.rates, l3=17e9)

    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(looking, "glance", look)
    return taken


def test_one_look_is_enough(looks):
    first, second = (resolve_target("cpu", Options()) for _ in range(2))
    assert first == second
    assert first.rates.l3 == 17e9
    assert not first.rates.measured
    assert len(looks) == 1


def test_what_was_measured_counts(looks, tmp_path):
    machine = resolve_target("cpu", Options(glance=False))
    write_rates(tmp_path, machine, replace(machine.rates, l3=99e9, measured=True))
    assert resolve_target("cpu", Options()).rates.l3 == 99e9
    assert not looks


def test_nobody_looks_if_asked_not_to(looks):
    for options in (Options(glance=False), Options(cache=False)):
        assert resolve_target("cpu", options).rates.l3 == AVX512.rates.l3
    assert not looks
    assert not options_from_environment({"POLYC_GLANCE": "0"}).glance
    assert options_from_environment({}).glance


def test_who_cannot_remember_it_goes_by_the_estimate(looks, tmp_path):
    machine = resolve_target("cpu", Options(glance=False))
    rates_file(tmp_path, machine).parent.write_text("in the way")
    assert resolve_target("cpu", Options()).rates == machine.rates


@pytest.mark.parametrize("isa", NAMED)
def test_a_look_changes_one_rate_to_one_of_a_few(isa):
    target = Target.named(isa)
    seen = glance(target)
    assert replace(seen, l3=target.rates.l3) == target.rates
    steps = 2 * np.log2(target.rates.l3 / seen.l3)
    assert steps >= 0
    assert steps == pytest.approx(round(steps))


def test_a_slow_cache_is_seen(monkeypatch):
    times = iter(range(1000))
    monkeypatch.setattr(looking.time, "perf_counter", lambda: next(times) * 1e-3)
    assert glance(AVX512).l3 == pytest.approx(48e9 / 2**2.5)  # 8 MB in a millisecond: 8.4 GB/s


def test_a_machine_without_a_third_level(monkeypatch):
    small = replace(AVX512, l3=0)
    assert glance(small) == small.rates


def test_what_estimates_cost():
    assert [streamed_bytes(Target.named(isa)) for isa in NAMED] == [8, 8, 8]
    assert far_bytes(AVX512) == 16
    assert streamed_bytes(SLOW) == pytest.approx(3)


def test_the_slower_weights_stream_the_fewer_there_are():
    layer = 1, 1, 512, 512, [3, 3], [7, 7]
    chosen = [choose_filters(*layer, streamed=streamed) for streamed in (8, 3, 2)]
    assert [filters and [f.m for f in filters] for filters in chosen] == [[2, 4], [2, 2], None]


def product(n):
    return Graph.of(y=ops.matmul(ops.input("a", (n, n)), ops.input("b", (n, n))))


@pytest.mark.parametrize(("n", "rows"), [(640, 216), (1000, 126)])
def test_blocks_of_rows_meet_a_panel_while_it_is_near(n, rows):
    """A block and a panel are near, and as few blocks as that allows: three, and eight."""
    slow = run_pipeline(product(n), replace(SLOW, l2=1 << 20), Options(), Trace())
    assert f"split i {rows} | split i' 9 | split j 48 | order i j i'" in slow.rows[-1].schedule


def test_panels_pass_by_in_blocks_only_where_that_is_slow():
    fast = run_pipeline(product(640), replace(AVX512, l2=1 << 20), Options(), Trace())
    assert "order i j i'" not in fast.rows[-1].schedule


@pytest.mark.parametrize("n", [131, thorough(200)])
def test_products_in_blocks_are_right(n):
    here = resolve_target("cpu", Options())
    slow = replace(here, l2=1 << 16, rates=replace(here.rates, l3=here.rates.l3 / 8))
    compiled = polyc.compile(product(n), target=slow, threads=2)
    assert "order i j i'" in compiled.explain().kernels[-1].schedule
    a, b = np.random.default_rng(n).standard_normal((2, n, n)).astype(np.float32)
    np.testing.assert_allclose(compiled(a, b), a.astype(float) @ b, atol=1e-4)
