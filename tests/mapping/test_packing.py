"""Operands that are copied first: which, how their copies lie, and that the results agree."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.mapping.cpu.space import find_tuned
from polyc.mapping.cpu.storing import store_clusters
from polyc.mapping.reading import read_packed
from polyc.mapping.tuned import Tuned
from polyc.schedule.cluster import find_clusters
from polyc.schedule.keeping import Prefetch
from polyc.scop.scop import Scop
from polyc.tuning.search import spell_in_positions
from tests.analysis.nests import ZERO, array, call, load, scop, statement
from tests.mapping.stages import AVX2, AVX512
from tests.programs import options
from tests.sampling import thorough


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


def gram(m: int, k: int) -> Scop:
    """Y[i, j] = sum of X[i, k] X[j, K + k] over k: rows of one array with each other."""
    ij = f"0 <= i < {m} and 0 <= j < {m}"
    factors = load("{ S[i, j, k] -> X[i, k] }"), load(f"{{ S[i, j, k] -> X[j, {k} + k] }}")
    return scop(
        [array("X", [m, 2 * k], "input"), array("Y", [m, m], "output")],
        statement(f"{{ Z[i, j] : {ij} }}", "{ Z[i, j] -> Y[i, j] }", ZERO),
        statement(
            f"{{ S[i, j, k] : {ij} and 0 <= k < {k} }}",
            "{ S[i, j, k] -> Y[i, j] }",
            call("mul", *factors),
            "add",
        ),
    )


def test_of_an_array_that_is_read_in_two_ways_that_in_lanes_is_copied():
    """Queries and keys of attention may be one array: one layout does not suit both."""
    copy, product = stored_clusters(gram(197, 64))
    read = {name: load for load in product.cluster.statements[-1].loads for name in [load.array]}
    assert set(read) == {"X", "X_packed"}
    assert read["X"].index.plain_is_equal(load("{ S[i, j, k] -> X[i, k] }").index)
    storage = product.storages["X_packed"]
    assert storage.permutation[0] == 0
    assert storage.blocks == ((0, 48),)
    (moved,) = copy.cluster.statements
    assert moved.domain.dim_min_val(1).to_python() == 64  # nothing of the other way is copied
    assert product.storages["X_packed"].shape[1] == 64  # nor is there room for it


@pytest.mark.parametrize("target", [thorough("auto"), thorough("avx2"), "baseline"])
def test_rows_of_one_array_with_each_other(target, tmp_path: Path):
    x = np.random.default_rng(7).standard_normal((69, 46), np.float32)
    x[5, 3], x[7, 30] = np.inf, np.nan
    both = ops.input("x", (69, 46))
    left, right = ops.split(both, [23, 23], axis=1)
    product = left @ ops.transpose(right, (1, 0))
    model = polyc.compile(Graph.of(y=product), options=options(tmp_path), target=target)
    with np.errstate(invalid="ignore"):
        expected = x[:, :23].astype(np.float64) @ x[:, 23:].T
    np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=1e-4)


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


def reader(m: int, n: int, k: int, target=AVX2):
    """How a product reads the copy of its second factor."""
    of = product(m, n, k)
    *_, read = store_clusters(find_clusters(of, target)[0], of, target).clusters
    return read.schedule


def fetched(schedule) -> list[tuple[str, ...]]:
    return [d.arrays for d in schedule.directives if isinstance(d, Prefetch)]


def test_panels_that_pass_by_for_each_block_of_rows_are_fetched_ahead():
    """1000 x 1000 go through all panels 21 times, 1536 x 1536 16 times; 256 x 256 are near.

    16 times are a 25th of the products' time where a third-level cache has all panels, a tenth
    where they come from memory.
    """
    assert ("W_packed",) in fetched(reader(1000, 1000, 1000))
    assert ("W_packed",) not in fetched(reader(1536, 1536, 1536, replace(AVX2, l3=32 << 20)))
    assert ("W_packed",) in fetched(reader(1536, 1536, 1536, replace(AVX2, l3=16 << 20)))
    assert ("W_packed",) not in fetched(reader(256, 256, 256))


def test_a_schedule_that_names_a_copy_has_positions_for_it():
    of = product(1000, 1000, 1000)
    stored = store_clusters(find_clusters(of, AVX2)[0], of, AVX2)
    (one,) = stored.opened
    schedule = stored.clusters[-1].schedule
    assert "prefetch W_packed" in str(schedule)
    text = spell_in_positions(one, schedule)
    assert "W" not in text
    assert find_tuned(one, Tuned(text, 1.0), AVX2) == schedule
