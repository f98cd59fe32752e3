"""Long chains taken step by step for several vectors: the same numbers, and a register a step."""

from __future__ import annotations

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.codegen.in_steps import LONG
from polyc.target.machine import NAMED, Target
from tests.exact.runs import exactly
from tests.machines import need

LINKS = LONG // 3 + 1


def chain(columns: int, links: int) -> Graph:
    """x -> |0.5 x| + 0.25 and so on."""
    x = y = ops.input("x", (6, columns))
    for _ in range(links):
        y = ops.add(ops.abs(ops.mul(y, np.float32(0.5))), np.float32(0.25))
    return Graph.of(y=ops.add(y, x))


def reference(x: np.ndarray, links: int) -> np.ndarray:
    y = x.astype(np.float64)
    for _ in range(links):
        y = np.abs(y * 0.5) + 0.25
    return y + x


@pytest.mark.parametrize("columns", [64, 37, 5])
@pytest.mark.parametrize("target", NAMED.values(), ids=str)
def test_numbers_stay(target: Target, columns: int):
    need(target)
    x = np.random.default_rng(columns).standard_normal((6, columns)).astype(np.float32)
    model = polyc.compile(chain(columns, LINKS), target=target)
    np.testing.assert_allclose(model(x), reference(x, LINKS), rtol=1e-5, atol=1e-6)


def test_all_vectors_take_a_step_before_the_next():
    source = polyc.compile(chain(64, LINKS), target=NAMED["avx2"]).source
    first, second = source.index("pc_step_0_0 ="), source.index("pc_step_1_0 =")
    assert first < source.index("pc_step_0_8 =") < second


def test_a_short_chain_stays_whole():
    assert "pc_step" not in polyc.compile(chain(64, 2), target=NAMED["avx2"]).source


def test_the_exact_run_agrees():
    assert exactly(chain(37, LINKS)).agrees
