"""Operands that are copied first: which, how their copies lie, and that the results agree."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.mapping.cpu.storing import store_clusters
from polyc.mapping.reading import read_packed
from polyc.schedule.cluster import find_clusters
from polyc.scop.scop import Scop
from tests.analysis.nests import ZERO, array, call, load, scop, statement
from tests.mapping.stages import AVX512
from tests.programs import options


def product(m: int, n: int, k: int) -> Scop:
    """Y[i, j] = sum of X[i, k] W[k, j] over k, both given."""
    ij = f"0 <= i < {m} and 0 <= j < {n}"
    return scop(
        [
            array("X", [m, k], "input"),
            array("W", [k, n], "input"),
            array("acc", [m, n], "temporary"),
            array("Y", [m, n], "output"),
        ],
        statement(f"{{ Z[i, j] : {ij} }}", "{ Z[i, j] -> acc[i, j] }", ZERO),
        statement(
            f"{{ S[i, j, k] : {ij} and 0 <= k < {k} }}",
            "{ S[i, j, k] -> acc[i, j] }",
            call("mul", load("{ S[i, j, k] -> X[i, k] }"), load("{ S[i, j, k] -> W[k, j] }")),
            "add",
        ),
        statement(
            f"{{ T[i, j] : {ij} }}", "{ T[i, j] -> Y[i, j] }", load("{ T[i, j] -> acc[i, j] }")
        ),
    )


def stored_clusters(of: Scop):
    return store_clusters(find_clusters(of, AVX512)[0], of, AVX512).clusters


def test_a_given_matrix_of_few_columns_is_copied_column_by_column():
    copy, dots = stored_clusters(product(500, 3, 700))
    assert copy.cluster.statements[0].array == "W_packed"
    assert dots.vector is None  # each dot product along k
    assert dots.storages["W_packed"].permutation == (1, 0)


def test_a_copy_is_the_memory_of_no_other_array():
    of = product(500, 3, 700)
    arrays = {**of.arrays, "flat": array("flat", [2100], "temporary")}
    arrays["W"] = replace(arrays["W"], memory="flat")
    stored = store_clusters(find_clusters(of, AVX512)[0], replace(of, arrays=arrays), AVX512)
    assert stored.scop.arrays["W_packed"].memory == ""


def test_few_rows_are_no_reason_to_copy_the_matrix():
    """Each element of W is used three times; the vectors are along j."""
    (alone,) = stored_clusters(product(3, 500, 700))
    assert alone.vector is not None


def test_what_is_used_only_a_few_times_is_not_copied():
    (alone,) = stored_clusters(product(20, 3, 700))
    assert not read_packed(alone.schedule)


@pytest.mark.thorough
@pytest.mark.parametrize("target", ["auto", "avx2", "baseline"])
@pytest.mark.parametrize(("m", "n", "k"), [(67, 3, 129), (40, 2, 33), (33, 1, 1000), (500, 3, 17)])
def test_products_with_few_columns(m, n, k, target, tmp_path: Path):
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    graph = Graph.of(y=ops.matmul(ops.input("x", (m, k)), ops.input("w", (k, n))))
    model = polyc.compile(graph, options=options(tmp_path), target=target, threads=2)
    np.testing.assert_allclose(model(x, w), x.astype(np.float64) @ w, rtol=1e-4, atol=1e-4)


def test_rows_at_computed_positions_are_read_where_they_are(tmp_path: Path):
    """The copy would have to know which rows the indices name."""
    rng = np.random.default_rng(5)
    table, rows = rng.standard_normal((50, 9), np.float32), rng.integers(0, 9, 40)
    picked = ops.gather(ops.input("t", (50, 9)), ops.input("r", (40,), np.int64), axis=1)
    graph = Graph.of(y=ops.reduce_sum(picked, axes=[0]))
    model = polyc.compile(graph, options=options(tmp_path))
    np.testing.assert_allclose(
        model(table, rows), table[:, rows].sum(0, keepdims=True), rtol=1e-4, atol=1e-4
    )
