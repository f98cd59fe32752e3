"""Families of operators, and random graphs of them, on the emulator and on a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

import polyc
from polyc.options import Options, options_from_environment
from tests.cuda.operator_cases import OPERATORS, find_example, merge
from tests.e2e import steps_compute, steps_move
from tests.e2e import test_arrays as arrays
from tests.e2e import test_pointwise as pointwise
from tests.e2e import test_positions as positions
from tests.e2e import test_quantized as quantized
from tests.e2e import test_sums as sums
from tests.e2e.cases import EXAMPLES, family
from tests.e2e.compare import find_difference
from tests.e2e.random_graphs import STEPS, random_graph


def found_on(emulated: bool) -> tuple[str, Options]:
    """The target and the options of a test: a GPU of the oldest kind, or the one that is here."""
    options = replace(options_from_environment(), emulated=emulated)
    return ("cuda:sm_80" if emulated else "cuda"), options


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
    positions.scatter,
    positions.order,
    positions.resizing,
    quantized.linear,
    quantized.products,
]

GRAPHS = 3

TOGETHER = 16
"""Operators a model: enough to share the compiler's start, few enough to see what is wrong."""


@pytest.mark.cuda
def test_every_operator_has_an_example() -> None:
    missing = [op for op in OPERATORS if find_example(op) is None]
    assert not missing, f"give them an example in operator_cases.BY_HAND: {missing}"


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, len(OPERATORS), TOGETHER))
def test_operators(first: int, emulated: bool) -> None:
    target, options = found_on(emulated)
    chosen = OPERATORS[first : first + TOGETHER]
    examples = [example for op in chosen if (example := find_example(op)) is not None]
    model, whole = merge(examples)
    results = polyc.compile(model, target=target, options=options).run(dict(whole.feeds))
    faults = [
        f"{name} of {model.graph.name}: {found}"
        for name, wanted in whole.expected.items()
        if (found := find_difference(results[name], wanted, whole.rtol, whole.rtol)) is not None
    ]
    assert not faults, f"{chosen}: {faults}"


@pytest.mark.thorough
@pytest.mark.parametrize("draw_cases", FAMILIES, ids=lambda draw: draw.__name__)
def test_family(draw_cases, emulated: bool) -> None:
    target, options = found_on(emulated)
    check = family(draw_cases, [target], options, examples=1 if emulated else EXAMPLES)
    check()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(GRAPHS))
def test_random_graph(seed: int, emulated: bool) -> None:
    target, options = found_on(emulated)
    assert {step.__module__ for step in STEPS} == {steps_compute.__name__, steps_move.__name__}
    graph, outputs = random_graph(seed)
    model = polyc.compile(graph.model(outputs), target=target, options=options)
    results = model.run(graph.feeds)
    faults = [
        f"{value.name}: {found}"
        for value in outputs
        if (found := find_difference(results[value.name], value.array, atol=1e-4)) is not None
    ]
    assert not faults, f"seed {seed}: {faults} in {', '.join(node.name for node in graph.nodes)}"
