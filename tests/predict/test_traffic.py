"""Bytes that are fetched into a cache, beside a cache that is simulated."""

from __future__ import annotations

from functools import cache

import pytest

from polyc.loopnest.nodes import Kernel
from polyc.predict.nest import read_nest
from polyc.predict.traffic import measure_touched, measure_traffic
from polyc.schedule.schedule import Schedule
from polyc.scop.expr import call
from polyc.scop.scop import Scop
from tests.analysis.nests import ZERO, array, load, scop, statement
from tests.mapping.stages import compile_stages
from tests.predict.lru import Line, simulate, touched_lines
from tests.sampling import sampled

ROWS, COLUMNS, DEPTH = 48, 48, 40


def product() -> Scop:
    """C[i, j] = sum of A[i, k] * B[k, j]"""
    points = f"0 <= i < {ROWS} and 0 <= j < {COLUMNS}"
    return scop(
        [
            array("A", [ROWS, DEPTH], "input"),
            array("B", [DEPTH, COLUMNS], "input"),
            array("C", [ROWS, COLUMNS], "output"),
        ],
        statement(f"{{ I[i, j] : {points} }}", "{ I[i, j] -> C[i, j] }", ZERO),
        statement(
            f"{{ S[i, j, k] : {points} and 0 <= k < {DEPTH} }}",
            "{ S[i, j, k] -> C[i, j] }",
            call("mul", load("{ S[i, j, k] -> A[i, k] }"), load("{ S[i, j, k] -> B[k, j] }")),
            "add",
        ),
    )


def window() -> Scop:
    """Y[h, w] = X[h, w] + X[h + 1, w] + X[h + 2, w + 4]"""
    moved = [
        f"{{ P[h, w] -> X[h{h}, w{w}] }}" for h, w in (("", ""), (" + 1", ""), (" + 2", " + 4"))
    ]
    return scop(
        [array("X", [66, 132], "input"), array("Y", [64, 128], "output")],
        statement(
            "{ P[h, w] : 0 <= h < 64 and 0 <= w < 128 }",
            "{ P[h, w] -> Y[h, w] }",
            call("add", load(moved[0]), call("add", load(moved[1]), load(moved[2]))),
        ),
    )


ORDERS = {
    "rows outside": "order i j | split j 16 | split i 4 | vector j' | unroll i' | sink j' i'",
    "columns outside": "order j i | split j 16 | split i 4 | vector j' | unroll i' | sink j' i'",
    "blocks": "split i 24 | order i j i' | split j 16 | split i' 4 | vector j' | unroll i'' | "
    "sink j' i''",
}


CAPACITIES = (2 << 10, 4 << 10, 8 << 10, 1 << 20)


@cache
def product_in(order: str) -> tuple[Kernel, list[Line]]:
    kernel = compile_stages(product(), schedule=Schedule.parse(order)).kernel
    return kernel, touched_lines(kernel)


@pytest.mark.parametrize("capacity", sampled(CAPACITIES, often=[4 << 10, 1 << 20]))
@pytest.mark.parametrize(
    "order",
    sampled(ORDERS.values(), often=[ORDERS["rows outside"]]),
    ids=ORDERS,
)
def test_a_product_fetches_what_a_cache_that_is_simulated_does(order, capacity):
    check_traffic(*product_in(order), capacity)


@pytest.mark.parametrize("capacity", [1 << 10, 4 << 10, 1 << 20])
def test_rows_of_a_window_stay_where_they_fit(capacity):
    kernel = compile_stages(window()).kernel
    check_traffic(kernel, touched_lines(kernel), capacity)


def check_traffic(kernel, lines, capacity):
    """Within a third, as a whole: what is left of a loop's rows in the cache is not counted."""
    expected = simulate(lines, capacity)
    found = sum(measure_traffic(read_nest(kernel), capacity).values())
    assert expected / 1.5 <= found <= expected * 1.5, (expected, found)


def test_each_array_is_touched_once_by_loops_and_what_is_left_of_them():
    kernel = compile_stages(product()).kernel  # 48 rows in tiles of 13 leave some over
    touched = measure_touched(read_nest(kernel))
    assert dict(touched) == {
        "A": 4 * ROWS * DEPTH,
        "B": 4 * DEPTH * COLUMNS,
        "C": 4 * ROWS * COLUMNS,
    }
