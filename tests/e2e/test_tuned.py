"""Tuned schedules from the cache folder, through the whole compiler."""

from __future__ import annotations

import numpy as np
import pytest

import polyc
from polyc.errors import BuildError
from polyc.mapping.cpu.laying import Tiles, lay_out
from polyc.mapping.tuned import Tuned
from polyc.pipeline import cluster_model
from polyc.target.machine import Target, detect_target
from polyc.trace import Trace
from polyc.tuning.search import Finding, Search, spell_in_positions
from polyc.tuning.store import add_tuned, tuned_file
from tests.e2e.graph_builder import GraphBuilder
from tests.programs import options
from tests.sampling import thorough


@pytest.fixture
def product():
    """x @ w, and what it is."""
    generator, g = np.random.default_rng(0), GraphBuilder("product")
    x, w = (generator.standard_normal(s).astype(np.float32) for s in ((48, 64), (64, 96)))
    (y,) = g.node("MatMul", [g.input(x), g.constant(w)], exact=False)
    proto = g.model([y])
    return proto, {proto.graph.input[0].name: x}, x @ w


LANES = detect_target().vectors.bytes // 4


def rows_at_a_time(one, height: int):
    """The product's schedule with tiles of so many rows of one vector."""
    return lay_out(one, Tiles(1, (0, height, LANES), ())).schedule(detect_target())


def choose(proto, choices, chosen: int | str, gain: float = 0.25) -> None:
    """Keep a schedule, or one of so many rows, for the model's one cluster, as a search does."""
    target = detect_target()
    (one,) = cluster_model(proto, target, choices, Trace()).opened
    text = (
        chosen if isinstance(chosen, str) else spell_in_positions(one, rows_at_a_time(one, chosen))
    )
    add_tuned(tuned_file(target, choices), {one.key: Tuned(text, gain)}, "test")


def schedule(model) -> str:
    (row,) = model.explain().kernels
    return row.told_schedule


def check(model, feeds, expected) -> None:
    (result,) = model.run(feeds).values()
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_what_was_tuned_is_used_proven_and_told(product, tmp_path):
    proto, feeds, expected = product
    choices = options(tmp_path)
    before = polyc.compile(proto, options=choices)
    assert "tuned" not in schedule(before)
    choose(proto, choices, 3)
    after = polyc.compile(proto, options=choices)
    assert f"split j {LANES}" in schedule(after)
    assert "split i 3" in schedule(after)
    assert schedule(after).endswith("tuned, 25% less time")
    assert "tuned: 1 launch by measurement" in str(after.explain())
    assert after.explain().kernels[0].proof
    check(after, feeds, expected)
    # The choice is part of the cached model, and of its key.
    again = polyc.compile(proto, options=choices)
    assert schedule(again) == schedule(after)
    choose(proto, choices, 2)
    assert "split i 2" in schedule(polyc.compile(proto, options=choices))


def test_it_can_be_ignored(product, tmp_path):
    proto, feeds, expected = product
    choices = options(tmp_path)
    choose(proto, choices, 3)
    plain = polyc.compile(proto, options=options(tmp_path, use_tuned=False))
    assert "tuned" not in schedule(plain)
    assert "split i 3" not in schedule(plain)
    check(plain, feeds, expected)


def test_without_the_file_the_cost_model_chooses_again(product, tmp_path):
    proto, *_ = product
    choices = options(tmp_path)
    choose(proto, choices, 3)
    assert "tuned" in schedule(polyc.compile(proto, options=choices))
    tuned_file(detect_target(), choices).unlink()
    assert "tuned" not in schedule(polyc.compile(proto, options=choices))


@pytest.mark.parametrize(
    ("text", "used"),
    [
        thorough("vector L5", False),
        thorough(f"order L1 L0 | split L1 {LANES} | vector L1'", False),
        thorough("order L1 L1", False),
        thorough("parallel L2", False),
        ("not a schedule", False),
        thorough("parallel L0 L1 | vector L2 | keep all in place at L1", True),
    ],
)
def test_schedules_outside_of_the_space_are_not_used(product, tmp_path, text, used):
    proto, feeds, expected = product
    choices = options(tmp_path)
    before = schedule(polyc.compile(proto, options=options(tmp_path, use_tuned=False)))
    choose(proto, choices, text)
    model = polyc.compile(proto, options=choices)
    assert (schedule(model) != before) == used
    check(model, feeds, expected)


def test_a_file_without_sense_harms_nobody(product, tmp_path):
    proto, feeds, expected = product
    choices = options(tmp_path)
    choose(proto, choices, 3)
    tuned_file(detect_target(), choices).write_text("__import__('os').abort()")
    with pytest.warns(RuntimeWarning, match="does not hold tuned schedules"):
        model = polyc.compile(proto, options=choices)
    assert "tuned" not in schedule(model)
    check(model, feeds, expected)


@pytest.mark.parametrize("cache", [True, thorough(False)])
def test_compile_searches_when_it_is_asked_to(product, tmp_path, monkeypatch, cache):
    proto, feeds, expected = product
    choices = options(tmp_path, cache=cache)
    asked = []

    def run(search, tasks, budget):
        asked.append(budget)
        one = tasks[0].cluster
        best = rows_at_a_time(one, 3)
        found = Tuned(spell_in_positions(one, best), 0.5)
        built = search.bench.build(one, best)
        assert built.run() > 0
        yield Finding(tasks[0], found, "", built.schedule)

    monkeypatch.setattr(Search, "run", run)
    model = polyc.compile(proto, tune=7, options=choices)
    assert asked == [7]
    assert "split i 3" in schedule(model)
    check(model, feeds, expected)
    later = polyc.compile(proto, options=choices)
    assert ("tuned" in schedule(later)) == cache


def test_a_search_leaves_the_results_right(product, tmp_path):
    proto, feeds, expected = product
    check(polyc.compile(proto, tune=0.5, options=options(tmp_path)), feeds, expected)


def test_a_target_that_this_machine_cannot_run_is_not_tuned_for(product, tmp_path):
    proto, *_ = product
    alien = Target(**{**vars(Target.named("avx2")), "features": ("warp_drive",)})
    with pytest.raises(BuildError, match="tune on such a machine"):
        polyc.compile(proto, target=alien, tune=1, options=options(tmp_path))
