"""Reductions across the dimension that memory is laid out along: strips of columns."""

import numpy as np
import pytest

from polyc.loopnest.nodes import For, walk_nodes
from polyc.mapping.cpu.strategies.columns import choose_walk
from polyc.schedule.directives import Split
from polyc.scop.expr import Call, Const
from polyc.scop.scop import Scop
from tests.analysis.nests import F32, ZERO, array, load, scop, statement
from tests.mapping.stages import AVX512, TARGETS, check, compile_stages
from tests.sampling import sampled, thorough


def column_sums(rows: int, columns: int, batch: int = 1) -> Scop:
    """Y[b, j] = sum of X[b, i, j] over i"""
    kept = f"0 <= b < {batch} and 0 <= j < {columns}"
    return scop(
        [
            array("X", [batch, rows, columns], "input"),
            array("acc", [batch, columns], "temporary"),
            array("Y", [batch, columns], "output"),
        ],
        statement(f"{{ Z[b, j] : {kept} }}", "{ Z[b, j] -> acc[b, j] }", ZERO),
        statement(
            f"{{ S[b, i, j] : {kept} and 0 <= i < {rows} }}",
            "{ S[b, i, j] -> acc[b, j] }",
            load("{ S[b, i, j] -> X[b, i, j] }"),
            "add",
        ),
        statement(
            f"{{ E[b, j] : {kept} }}", "{ E[b, j] -> Y[b, j] }", load("{ E[b, j] -> acc[b, j] }")
        ),
    )


def column_softmax(rows: int, columns: int) -> Scop:
    """M[j] = max of X[i, j];  Y[i, j] = X[i, j] - M[j], down the columns."""
    inside = f"0 <= i < {rows} and 0 <= j < {columns}"
    return scop(
        [
            array("X", [rows, columns], "input"),
            array("M", [columns], "temporary"),
            array("Y", [rows, columns], "output"),
        ],
        statement(
            f"{{ Z[j] : 0 <= j < {columns} }}", "{ Z[j] -> M[j] }", Const(float("-inf"), F32)
        ),
        statement(
            f"{{ S[i, j] : {inside} }}",
            "{ S[i, j] -> M[j] }",
            load("{ S[i, j] -> X[i, j] }"),
            "max",
        ),
        statement(
            f"{{ E[i, j] : {inside} }}",
            "{ E[i, j] -> Y[i, j] }",
            Call("sub", (load("{ E[i, j] -> X[i, j] }"), load("{ E[i, j] -> M[j] }")), F32),
        ),
    )


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.isa)
@pytest.mark.parametrize("shape", [(40, 100), (9, 33, 3), (3, 700), (100, 5)])
def test_sums_of_columns(shape, target):
    stages = check(column_sums(*shape), target)
    text = str(stages.schedule)
    assert "vector j" in text
    assert "unroll i" in text  # some rows at a time


@pytest.mark.parametrize("target", sampled(TARGETS, often=[AVX512]), ids=lambda t: t.isa)
@pytest.mark.parametrize("shape", [(21, 100), thorough((5, 1000))])
def test_statements_with_loops_of_their_own(shape, target):
    stages = check(column_softmax(*shape), target)
    assert [n for n in walk_nodes(stages.final) if isinstance(n, For) and n.kind == "vector"]


def test_the_accumulators_of_a_narrow_strip_are_registers():
    stages = check(column_sums(50, 64))
    accumulators = [lo for n in walk_nodes(stages.final) for lo in getattr(n, "locals", ())]
    assert [lo.in_registers for lo in accumulators] == [True]
    assert "vector j | sink j" in str(stages.schedule)  # the strip is one vector loop


def test_a_wide_strip_adds_some_rows_at_a_time():
    stages = compile_stages(column_sums(600, 4096))
    assert "split j' 32 | vector j'' | sink j' j'' | split i 8 | unroll i'" in str(stages.schedule)


def test_a_strip_stays_in_half_of_the_first_level_cache():
    schedule = compile_stages(column_sums(200, 1 << 15)).schedule
    (strip,) = [d.size for d in schedule.directives if isinstance(d, Split) and d.loops == ("j",)]
    assert strip * np.dtype(np.float32).itemsize <= AVX512.l1d // 2


def test_as_many_loads_between_two_jumps_whatever_the_width():
    for strip in (16, 64, 256):
        width, rows = choose_walk(strip, 16, AVX512)
        assert rows * width // 16 == 16
