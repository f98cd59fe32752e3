"""Families of operators, and random graphs of them, on the emulator against onnx's reference."""

from __future__ import annotations

from dataclasses import replace

import pytest

import polyc
from polyc.options import options_from_environment
from tests.e2e import steps_compute, steps_move
from tests.e2e import test_arrays as arrays
from tests.e2e import test_pointwise as pointwise
from tests.e2e import test_sums as sums
from tests.e2e.cases import family
from tests.e2e.compare import find_difference
from tests.e2e.random_graphs import STEPS, random_graph

pytestmark = pytest.mark.cuda

EMULATED = replace(options_from_environment(), emulated=True)

FAMILIES = [
    pointwise.exact_unary,
    pointwise.smooth_unary,
    pointwise.activations,
    pointwise.arithmetic,
    pointwise.division,
    pointwise.choice,
    pointwise.conversions,
    sums.reductions,
    sums.extremes,
    sums.softmax,
    sums.norms,
    sums.products,
    sums.convolutions,
    sums.pools,
    sums.nothing_to_sum,
    arrays.reordering,
    arrays.cutting,
    arrays.padding,
    arrays.repeating,
    arrays.gathering,
    arrays.generating,
]

GRAPHS = 3


@pytest.mark.parametrize("draw_cases", FAMILIES, ids=lambda draw: draw.__name__)
def test_family(draw_cases) -> None:
    check = family(draw_cases, ["cuda:sm_80"], EMULATED, examples=2)
    check()


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_random_graph(seed: int) -> None:
    assert {step.__module__ for step in STEPS} == {steps_compute.__name__, steps_move.__name__}
    graph, outputs = random_graph(seed)
    model = polyc.compile(graph.model(outputs), target="cuda:sm_80", options=EMULATED)
    results = model.run(graph.feeds)
    faults = [
        f"{value.name}: {found}"
        for value in outputs
        if (found := find_difference(results[value.name], value.array, atol=1e-4)) is not None
    ]
    assert not faults, f"seed {seed}: {faults} in {', '.join(node.name for node in graph.nodes)}"
