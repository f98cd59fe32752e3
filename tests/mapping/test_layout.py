"""Strides of accesses, the vector loop that they suggest, and the layouts that follow."""

from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

from polyc.mapping.cpu.layout import decide_layouts, follow_order
from polyc.mapping.cpu.vector_loop import INVARIANT, SCATTERED, UNIT, choose_vector_loop, worth
from polyc.memory.storage import permuted, row_major
from polyc.memory.strides import compute_strides
from polyc.schedule.cluster import Cluster, find_clusters
from polyc.scop.expr import Load, call
from polyc.scop.factors.narrow_factors import move_innermost
from polyc.scop.scop import Scop
from polyc.target.machine import Target
from tests.analysis.nests import (
    F32,
    ZERO,
    array,
    conv_scop,
    load,
    matmul_scop,
    scop,
    statement,
)

TARGET = Target.named("avx512")
I64 = np.dtype(np.int64)


def only_cluster(of: Scop) -> Cluster:
    (cluster,) = find_clusters(of, TARGET)[0]
    return cluster


def given(of: Scop):
    """Row-major storage for what the caller lays out."""
    return {n: row_major(a) for n, a in of.arrays.items() if a.kind in ("input", "output")}


def vector_iterator(of: Scop, storages=None) -> str | None:
    cluster = only_cluster(of)
    storages = given(of) if storages is None else storages
    strides = {s.name: compute_strides(s, of.arrays, storages) for s in cluster.statements}
    d = choose_vector_loop(cluster, strides, TARGET)
    last = cluster.statements[-1]
    return None if d is None else last.iterators[cluster.shared[d][last.name]]


def transposing(rows: int = 64, columns: int = 64) -> Scop:
    return scop(
        [array("X", [rows, columns], "input"), array("Y", [columns, rows], "output")],
        statement(
            f"{{ P[i, j] : 0 <= i < {columns} and 0 <= j < {rows} }}",
            "{ P[i, j] -> Y[i, j] }",
            load("{ P[i, j] -> X[j, i] }"),
        ),
    )


def test_strides_in_elements_go_through_the_storage():
    of = transposing(8, 16)
    (s,) = of.statements
    write, read = compute_strides(s, of.arrays, given(of))
    assert (write.steps, write.is_write) == ((8, 1), True)
    assert (read.steps, read.is_write) == ((1, 16), False)
    stored = {**given(of), "X": permuted(of.arrays["X"], [1, 0])}
    assert compute_strides(s, of.arrays, stored)[1].steps == (8, 1)


def test_an_open_array_may_have_any_dimension_innermost():
    of = transposing()
    (s,) = of.statements
    write, read = compute_strides(s, of.arrays, {"Y": row_major(of.arrays["Y"])})
    assert not write.free
    assert read.free
    assert read.steps == (1, 1)


def test_divisions_and_computed_coordinates_are_irregular():
    index = isl.PwMultiAff("{ P[i, j] -> X[floor(i/2), 0] }")
    dynamic = Load("X", index, F32, ((1, Load("K", isl.PwMultiAff("{ P[i, j] -> K[j] }"), I64)),))
    arrays = [array("X", [8, 8], "input"), array("K", [8], "input"), array("Y", [8, 8], "output")]
    s = statement("{ P[i, j] : 0 <= i, j < 8 }", "{ P[i, j] -> Y[i, j] }", dynamic)
    of = scop(arrays, s)
    strides = {a.array: a.steps for a in compute_strides(s, of.arrays, given(of))}
    assert strides == {"Y": (8, 1), "X": (None, None), "K": (0, 1)}
    plain = replace(s, value=Load("X", index, F32))
    assert compute_strides(plain, of.arrays, given(of))[1].steps == (None, 0)


def test_worth():
    of = matmul_scop(64, 64, 64)
    update = of.statements[1]
    acc, x, w = compute_strides(update, of.arrays, given(of) | {"W": row_major(of.arrays["W"])})
    assert [worth(a, 1) for a in (x, w)] == [INVARIANT, UNIT]
    assert worth(x, 0) == SCATTERED
    assert worth(w, 0) == INVARIANT
    assert worth(acc, 1) >= UNIT


def test_a_matmul_walks_the_columns_of_its_constant():
    assert vector_iterator(matmul_scop(64, 64, 64)) == "j"


def test_products_of_a_batch_walk_columns_and_not_the_batch():
    """Along the batch all factors move, so that none would be used again."""
    box = "0 <= b < 25 and 0 <= i < 24 and 0 <= j < 32"
    value = call("mul", load("{ S[b,i,j,k] -> X[b,i,k] }"), load("{ S[b,i,j,k] -> W[b,k,j] }"))
    of = scop(
        [
            array("X", [25, 24, 64], "input"),
            array("W", [25, 64, 32], "constant"),
            array("Y", [25, 24, 32], "temporary"),
        ],
        statement(f"{{ Z[b,i,j] : {box} }}", "{ Z[b,i,j] -> Y[b,i,j] }", ZERO),
        statement(
            f"{{ S[b,i,j,k] : {box} and 0 <= k < 64 }}", "{ S[b,i,j,k] -> Y[b,i,j] }", value, "add"
        ),
    )
    assert vector_iterator(of) == "j"


def test_a_convolution_walks_its_output_channels_where_the_layout_is_open():
    of = conv_scop(32, 8, 8, 16, 3)
    open_output = {**of.arrays, "Y": replace(of.arrays["Y"], kind="temporary")}
    free = Scop(of.name, of.statements, open_output, of.inputs, of.outputs)
    assert vector_iterator(free) == "o"


def test_a_transposition_gains_nothing_from_lanes_on_one_side():
    assert vector_iterator(transposing()) in (None, "i", "j")
    assert vector_iterator(transposing(1, 64)) == "i"


def test_rows_that_data_picks_are_not_transposed_to_lie_in_lanes():
    """Resize: y[c, i, j] = w[i] * x[k[i], j, c]; lanes are channels, and not 16 rows from afar."""
    picked = Load(
        "X",
        isl.PwMultiAff("{ P[c, i, j] -> X[0, j, c] }"),
        F32,
        ((0, Load("K", isl.PwMultiAff("{ P[c, i, j] -> K[i] }"), I64)),),
    )
    of = scop(
        [
            array("X", [28, 28, 64], "input"),
            replace(array("K", [56], "input"), dtype=I64),
            array("W", [56], "input"),
            array("Y", [64, 56, 28], "output"),
        ],
        statement(
            "{ P[c, i, j] : 0 <= c < 64 and 0 <= i < 56 and 0 <= j < 28 }",
            "{ P[c, i, j] -> Y[c, i, j] }",
            call("mul", load("{ P[c, i, j] -> W[i] }"), picked),
        ),
    )
    laid_out = {name: row_major(of.arrays[name]) for name in "XKW"}
    assert vector_iterator(of, laid_out) == "c"


def test_the_vector_loop_is_stored_innermost_and_constants_in_panels():
    of = conv_scop(32, 8, 8, 16, 3)
    arrays = {**of.arrays, "Y": replace(of.arrays["Y"], kind="temporary")}
    of = Scop(of.name, of.statements, arrays, of.inputs, of.outputs)
    cluster = only_cluster(of)
    strides = {s.name: compute_strides(s, arrays, given(of)) for s in cluster.statements}
    d = choose_vector_loop(cluster, strides, TARGET)
    decided = decide_layouts(cluster, d, 16, arrays, given(of))
    assert decided["Y"].permutation == (0, 2, 3, 1)
    assert decided["W"].blocks == ((0, 16),)
    assert decided["B"].is_row_major
    assert "X" not in decided


def test_constants_lie_as_the_sum_of_a_tile_walks_them():
    """Where an instruction takes channels, these are summed last: W[o, c, r, q] at o, r, q, c."""
    of = conv_scop(32, 8, 8, 16, 3)
    last = {s.name: s.iterators.index("c") for s in of.statements if s.reduction}
    moved = tuple(move_innermost(s, last[s.name]) if s.reduction else s for s in of.statements)
    for case, expected in ((of, (0, 1, 2, 3)), (replace(of, statements=moved), (0, 2, 3, 1))):
        cluster = only_cluster(case)
        strides = {s.name: compute_strides(s, of.arrays, given(of)) for s in cluster.statements}
        d = choose_vector_loop(cluster, strides, TARGET)
        assert decide_layouts(cluster, d, 16, of.arrays, given(of))["W"].permutation == expected


@pytest.mark.parametrize(
    ("loops", "places"),
    [("bto", (0, 2, 1)), ("bot", (0, 2, 1)), ("tob", (2, 0, 1)), ("obt", (2, 0, 1))],
)
def test_panels_lie_as_the_shared_loops_go_through_them(loops, places):
    """M[b, t, o] += V[b, t, c] * W[b, c, o], o in panels of 16."""
    of = scop(
        [
            array("V", [4, 6, 8], "input"),
            array("W", [4, 8, 32], "constant"),
            array("M", [4, 6, 32], "output"),
        ],
        statement("{ Z[b,t,o] : 0<=b<4 and 0<=t<6 and 0<=o<32 }", "{ Z[b,t,o] -> M[b,t,o] }", ZERO),
        statement(
            "{ S[b,t,o,c] : 0<=b<4 and 0<=t<6 and 0<=o<32 and 0<=c<8 }",
            "{ S[b,t,o,c] -> M[b,t,o] }",
            call("mul", load("{ S[b,t,o,c] -> V[b,t,c] }"), load("{ S[b,t,o,c] -> W[b,c,o] }")),
            "add",
        ),
    )
    cluster = only_cluster(of)
    shared = {"bto"[loop["S"]]: d for d, loop in enumerate(cluster.shared)}
    order = [shared[i] for i in loops]
    laid = {**given(of), "W": permuted(of.arrays["W"], [2, 0, 1], [(2, 16)])}
    found = follow_order(cluster, order, of.arrays, laid)
    assert found["W"].permutation == places
    assert found["W"].blocks == ((2, 16),)
    assert all(found[name] == laid[name] for name in "VM")


def test_without_a_vector_loop_constants_lie_as_the_reduction_runs():
    of = matmul_scop()  # acc[i, j] += X[i, k] * W[k, j]
    decided = decide_layouts(only_cluster(of), None, 1, of.arrays, given(of))
    assert set(decided) == {"W", "acc"}
    assert decided["W"].permutation == (1, 0)
    assert decided["acc"].is_row_major
