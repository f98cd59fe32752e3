"""Tuned parameters from the cache folder, through the whole compiler."""

from __future__ import annotations

import numpy as np
import pytest

import polyc
from polyc.errors import BuildError
from polyc.mapping.parameters import Parameters, Tuned
from polyc.pipeline import cluster_model
from polyc.target.machine import Target, detect_target
from polyc.trace import Trace
from polyc.tuning.search import Finding, Search
from polyc.tuning.store import add_tuned, tuned_file
from tests.e2e.graph_builder import GraphBuilder
from tests.programs import options


@pytest.fixture
def product():
    """x @ w, and what it is."""
    generator, g = np.random.default_rng(0), GraphBuilder("product")
    x, w = (generator.standard_normal(s).astype(np.float32) for s in ((48, 64), (64, 96)))
    (y,) = g.node("MatMul", [g.input(x), g.constant(w)], exact=False)
    proto = g.model([y])
    return proto, {proto.graph.input[0].name: x}, x @ w


def choose(proto, choices, parameters: Parameters, gain: float = 0.25) -> None:
    """Keep parameters for the model's one cluster, as a search does."""
    target = detect_target()
    (one,) = cluster_model(proto, target, choices, Trace()).opened
    add_tuned(tuned_file(target, choices), {one.key: Tuned(parameters, gain)}, "test")


def schedule(model) -> str:
    (row,) = model.explain().kernels
    return row.told_schedule


def check(model, feeds, expected) -> None:
    (result,) = model.run(feeds).values()
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_what_was_tuned_is_used_proven_and_told(product, tmp_path):
    proto, feeds, expected = product
    choices = options(tmp_path)
    lanes = detect_target().simd_bytes // 4
    before = polyc.compile(proto, options=choices)
    assert "tuned" not in schedule(before)
    choose(proto, choices, Parameters(1, (0, 3, lanes)))
    after = polyc.compile(proto, options=choices)
    assert f"j/{lanes}" in schedule(after)
    assert "i/3" in schedule(after)
    assert schedule(after).endswith("tuned, 25% less time")
    assert "tuned: 1 launch by measurement" in str(after.explain())
    assert after.explain().kernels[0].proof
    check(after, feeds, expected)
    # The choice is part of the cached model, and of its key.
    again = polyc.compile(proto, options=choices)
    assert schedule(again) == schedule(after)
    choose(proto, choices, Parameters(1, (0, 2, lanes)))
    assert "i/2" in schedule(polyc.compile(proto, options=choices))


def test_it_can_be_ignored(product, tmp_path):
    proto, feeds, expected = product
    choices = options(tmp_path)
    choose(proto, choices, Parameters(1, (0, 3, detect_target().simd_bytes // 4)))
    plain = polyc.compile(proto, options=options(tmp_path, use_tuned=False))
    assert "tuned" not in schedule(plain)
    assert "i/3" not in schedule(plain)
    check(plain, feeds, expected)


def test_without_the_file_the_cost_model_chooses_again(product, tmp_path):
    proto, *_ = product
    choices = options(tmp_path)
    choose(proto, choices, Parameters(1, (0, 3, detect_target().simd_bytes // 4)))
    assert "tuned" in schedule(polyc.compile(proto, options=choices))
    tuned_file(detect_target(), choices).unlink()
    assert "tuned" not in schedule(polyc.compile(proto, options=choices))


@pytest.mark.parametrize(
    "parameters",
    [Parameters(5), Parameters(1, (0, 50, 64)), Parameters(1, order=(1, 1)), Parameters(None)],
    ids=str,
)
def test_parameters_outside_of_the_space_are_not_used(product, tmp_path, parameters):
    proto, feeds, expected = product
    choices = options(tmp_path)
    before = schedule(polyc.compile(proto, options=options(tmp_path, use_tuned=False)))
    choose(proto, choices, parameters)
    model = polyc.compile(proto, options=choices)
    assert (schedule(model) == before) == (parameters != Parameters(None))
    check(model, feeds, expected)


def test_a_file_without_sense_harms_nobody(product, tmp_path):
    proto, feeds, expected = product
    choices = options(tmp_path)
    choose(proto, choices, Parameters(1, (0, 3, 16)))
    tuned_file(detect_target(), choices).write_text("__import__('os').abort()")
    with pytest.warns(RuntimeWarning, match="does not hold tuned parameters"):
        model = polyc.compile(proto, options=choices)
    assert "tuned" not in schedule(model)
    check(model, feeds, expected)


@pytest.mark.parametrize("cache", [True, False])
def test_compile_searches_when_it_is_asked_to(product, tmp_path, monkeypatch, cache):
    proto, feeds, expected = product
    choices = options(tmp_path, cache=cache)
    found = Tuned(Parameters(1, (0, 3, detect_target().simd_bytes // 4)), 0.5)
    asked = []

    def run(search, tasks, budget):
        asked.append(budget)
        built = search.bench.build(tasks[0].cluster, found.parameters)
        assert built.run() > 0
        yield Finding(tasks[0], found, "", built.schedule)

    monkeypatch.setattr(Search, "run", run)
    model = polyc.compile(proto, tune=7, options=choices)
    assert asked == [7]
    assert "i/3" in schedule(model)
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
