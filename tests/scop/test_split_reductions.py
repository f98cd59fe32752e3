"""Long reductions with nothing to do in parallel are split into parts."""

from dataclasses import replace

import numpy as np
import pytest

from polyc.schedule.cluster import find_clusters
from polyc.scop.expr import Call
from polyc.scop.scop import Reduction, Scop
from polyc.scop.split_reductions import CPU, Grain, split_reductions
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target
from tests.analysis.nests import F32, ZERO, array, load, scop, statement
from tests.scop.rewrites import check, get, names

GRAIN = replace(CPU, long=200)
"""Reductions that the interpreter gets through."""


def split(before: Scop) -> Scop:
    return split_reductions(before, GRAIN)


def sums(rows: int, columns: int, kept: str, op: Reduction = "add", kind: str = "input") -> Scop:
    """Y[kept] = sum of X[i, j] over the others; kept is "i", "j", or nothing."""
    sizes = {"i": rows, "j": columns}
    inside = " and ".join(f"0 <= {i} < {n}" for i, n in sizes.items())
    outside = f"0 <= {kept} < {sizes[kept]}" if kept else ""
    shape = [sizes[kept]] if kept else []
    return scop(
        [
            array("X", [rows, columns], kind),  # type: ignore[arg-type]
            array("acc", shape, "temporary"),
            array("Y", shape, "output"),
        ],
        statement(f"{{ Z[{kept}] : {outside} }}", f"{{ Z[{kept}] -> acc[{kept}] }}", ZERO),
        statement(
            f"{{ S[i, j] : {inside} }}",
            f"{{ S[i, j] -> acc[{kept}] }}",
            Call("abs", (load("{ S[i, j] -> X[i, j] }"),), F32),
            op,
        ),
        statement(
            f"{{ E[{kept}] : {outside} }}",
            f"{{ E[{kept}] -> Y[{kept}] }}",
            load(f"{{ E[{kept}] -> acc[{kept}] }}"),
        ),
    )


def sums_of_products(constant: str) -> Scop:
    """Sums over j of X[i, j] = sum over k of A[i, k] * B[j, k]; one of A and B may be constant."""
    before, sizes = sums(20, 37, "i", kind="temporary"), {"A": 20, "B": 37}
    factors = [load(f"{{ P[i, j, k] -> {a}[{d}, k] }}") for a, d in (("A", "i"), ("B", "j"))]
    points = "0 <= i < 20 and 0 <= j < 37"
    start = statement(f"{{ O[i, j] : {points} }}", "{ O[i, j] -> X[i, j] }", ZERO)
    update = statement(
        f"{{ P[i, j, k] : {points} and 0 <= k < 3 }}",
        "{ P[i, j, k] -> X[i, j] }",
        Call("mul", tuple(factors), F32),
        "add",
    )
    known = {
        name: array(name, [size, 3], "constant" if name == constant else "temporary")
        for name, size in sizes.items()
    }
    statements = start, update, *before.statements
    return replace(before, statements=statements, arrays={**before.arrays, **known})


@pytest.mark.parametrize(("constant", "splits"), [("A", True), ("B", False), ("", False)])
def test_rows_of_what_weights_were_multiplied_with_are_lanes(constant, splits):
    """Channels of a convolution lie side by side; rows of the scores of an attention do not.

    Those are threads enough: a softmax that was split left the kernel of its attention.
    """
    assert ("Z_parts" in names(split(sums_of_products(constant)))) == splits


@pytest.mark.parametrize("op", ["add", "max"])
@pytest.mark.parametrize(
    ("rows", "columns", "kept"),
    [(32, 40, ""), (32, 40, "j"), (37, 20, "j"), (3, 100, "i"), (4, 64, "")],
)
def test_the_same_totals(rows, columns, kept, op):
    after = check(split, sums(rows, columns, kept, op))
    assert names(after) == ["Z_parts", "S_parts", "S_part", "Z", "S", "E"]
    assert get(after, "S").reduction == op


def test_parts_are_equal_where_a_divisor_allows_it():
    after = split(sums(48, 40, "j"))
    assert after.arrays["acc_parts"].shape == (16, 40)
    assert split(sums(66, 40, "")).arrays["acc_parts"].shape == (22,)


def test_the_iterator_that_has_enough_iterations_is_split():
    after = split(sums(3, 100, ""))
    assert get(after, "S_parts").iterators == ("j_part", "i", "j_rest")


def test_enough_rows_are_threads_enough():
    before = sums(CPU.few, 100, "i")
    assert split(before) == before
    assert split(sums(CPU.few - 1, 100, "i")) != sums(CPU.few - 1, 100, "i")


def test_columns_side_by_side_are_one_iteration():
    assert split(sums(100, 4 * CPU.run, "j")) != sums(100, 4 * CPU.run, "j")


def test_what_is_short_stays_whole():
    before = sums(10, 19, "")
    assert split(before) == before


def test_weights_are_shared_out_by_their_panels():
    before = sums(100, 64, "j", kind="constant")
    assert split(before) == before


def test_partial_results_are_a_kernel_of_their_own():
    after = split(sums(64, 4096, "j"))
    clusters, refusals = find_clusters(after, Target.named("avx512"))
    assert [[s.name for s in c.statements] for c in clusters] == [
        ["Z_parts", "S_parts", "S_part"],
        ["Z", "S", "E"],
    ]
    assert any("partial results" in r.reason for r in refusals)
    assert np.prod(clusters[0].extents) == 16 * 4096


def test_a_gpu_has_parts_for_all_multiprocessors():
    grain = replace(Grain.of(CudaTarget.named("sm_80")), long=200, row=50)
    assert split_reductions(sums(300, 3, "j"), grain).arrays["acc_parts"].shape == (150, 3)
    assert split_reductions(sums(301, 3, "j"), grain).arrays["acc_parts"].shape == (301, 3)
    for enough in (sums(108, 200, "i"), sums(200, 40, "i")):
        assert split_reductions(enough, grain) == enough
