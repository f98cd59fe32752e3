"""Compiled random graphs of mixed operators against onnx's reference, node by node."""

from __future__ import annotations

import os

import numpy as np
import pytest

import polyc
from tests.e2e import steps_compute, steps_move
from tests.e2e.compare import find_difference
from tests.e2e.random_graphs import STEPS, random_graph

GRAPHS = int(os.environ.get("POLYC_TEST_GRAPHS", "32"))
"""How many graphs to try; raise it, or start elsewhere, to search for bugs."""

FIRST = int(os.environ.get("POLYC_TEST_FIRST_GRAPH", "0"))


def test_every_module_of_steps_is_in_the_table() -> None:
    modules = {step.__module__ for step in STEPS}
    assert modules == {steps_compute.__name__, steps_move.__name__}
    assert len(STEPS) > 30


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(FIRST, FIRST + GRAPHS))
def test_random_graph(seed: int) -> None:
    graph, outputs = random_graph(seed)
    rng = np.random.default_rng(seed + 1)
    target = str(rng.choice(["auto", "auto", "avx2", "baseline"]))
    level, threads = int(rng.choice([3, 3, 1, 0])), int(rng.choice([1, 2, 3]))
    model = polyc.compile(graph.model(outputs), target=target, opt_level=level, threads=threads)
    assert not model.explain().fallbacks
    results = model.run(graph.feeds)
    faults = [
        f"{value.name}: {found}"
        for value in outputs
        if (found := find_difference(results[value.name], value.array, atol=1e-4)) is not None
    ]
    nodes = ", ".join(node.name for node in graph.nodes)
    assert not faults, f"seed {seed}, {target}, level {level}: {faults} in {nodes}"
