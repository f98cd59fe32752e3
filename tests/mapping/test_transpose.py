"""Pointwise statements that read across what they write: squares of two loops, in registers."""

import numpy as np
import pytest

from polyc.loopnest.nodes import Transpose, walk_nodes
from polyc.scop.expr import call
from polyc.scop.scop import Scop
from tests.analysis.nests import array, load, scop, statement
from tests.mapping.stages import TARGETS, Stages, check
from tests.sampling import thorough


def transposing(rows: int, columns: int, batch: int = 1) -> Scop:
    """Y[b, i, j] = X[b, j, i] + Z[b, i, j]"""
    return scop(
        [
            array("X", [batch, rows, columns], "input"),
            array("Z", [batch, columns, rows], "input"),
            array("Y", [batch, columns, rows], "output"),
        ],
        statement(
            f"{{ P[b, i, j] : 0 <= b < {batch} and 0 <= i < {columns} and 0 <= j < {rows} }}",
            "{ P[b, i, j] -> Y[b, i, j] }",
            call(
                "add",
                load("{ P[b, i, j] -> X[b, j, i] }"),
                load("{ P[b, i, j] -> Z[b, i, j] }"),
            ),
        ),
    )


def tiles(stages: Stages) -> list[int]:
    return [n.lanes for n in walk_nodes(stages.final) if isinstance(n, Transpose)]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.isa)
@pytest.mark.parametrize(
    "shape", [(32, 64), thorough((33, 49, 2)), (7, 7, 3), thorough((3, 300)), (300, 3)]
)
def test_whatever_the_shape_nothing_is_moved_alone(shape, target):
    stages = check(transposing(*shape), target)
    assert tiles(stages)
    assert max(tiles(stages)) <= target.lanes(np.dtype(np.float32))


def test_rows_are_read_in_longer_runs_than_a_tile():
    stages = check(transposing(64, 256))
    assert "split i 128 | split i' 16" in str(stages.schedule)  # 128 floats are 512 bytes
    assert "unroll i''" in str(stages.schedule)


def test_loops_go_in_the_order_of_the_reads():
    of = scop(
        [array("X", [8, 16, 32], "input"), array("Y", [16, 8, 32], "output")],
        statement(
            "{ P[i, j, k] : 0 <= i < 16 and 0 <= j < 8 and 0 <= k < 32 }",
            "{ P[i, j, k] -> Y[i, j, k] }",
            load("{ P[i, j, k] -> X[j, i, k] }"),
        ),
    )
    assert str(check(of).schedule).startswith("order j i k")


def test_nothing_is_transposed_where_no_access_is_along_the_vectors():
    """Y[i, j] = X[min(j, 3)]: a row of Y is not worth the rows of a square that are all alike."""
    of = scop(
        [array("X", [4], "input"), array("Y", [64, 64], "output")],
        statement(
            "{ P[i, j] : 0 <= i < 64 and 0 <= j < 64 }",
            "{ P[i, j] -> Y[i, j] }",
            load("{ P[i, j] -> X[j] : j < 4; P[i, j] -> X[3] : j >= 4 }"),
        ),
    )
    assert not tiles(check(of))
