"""The order of shared loops by isl's scheduler, and the tree that it becomes."""

from dataclasses import replace

import islpy as isl
import pytest

from polyc.analysis.dependences import compute_dependences
from polyc.poly.show import show_tree
from polyc.schedule.cluster import Cluster, find_clusters
from polyc.schedule.schedule import (
    OuterBand,
    build_tree,
    outer_band,
    schedule_outer,
    union_domain,
)
from polyc.scop.expr import Call
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
    softmax_scop,
    statement,
)

BUDGET = 1_000_000


def last_cluster(of: Scop) -> Cluster:
    return find_clusters(of, Target.named("avx512"))[0][-1]


def band_of(of: Scop, budget: int = BUDGET) -> OuterBand:
    return schedule_outer(last_cluster(of), compute_dependences(of), budget)


@pytest.mark.parametrize(
    ("of", "loops"),
    [(matmul_scop(), 2), (conv_scop(16, 8, 8, 4, 3), 4), (softmax_scop(64, 10), 1)],
    ids=["matmul", "conv", "softmax"],
)
def test_every_shared_loop_is_coincident(of, loops):
    band = band_of(of)
    assert sorted(band.loops) == list(range(loops))
    assert band.coincident == frozenset(range(loops))
    assert band.fallback is None


def test_a_budget_that_is_too_small_falls_back_to_the_text_and_says_so():
    band = band_of(conv_scop(16, 8, 8, 4, 3), budget=10)
    assert band.loops == (0, 1, 2, 3)
    assert band.coincident == frozenset(range(4))
    assert band.fallback is not None
    assert band.fallback.startswith("isl stopped")
    assert band_of(conv_scop(16, 8, 8, 4, 3)).fallback is None


def test_nothing_shared_is_nothing_to_schedule():
    of = scop(
        [array("Y", [6], "output")],
        statement("{ B[i] : i = 0 }", "{ B[i] -> Y[0] }", ZERO),
        statement("{ R[i] : 1 <= i < 6 }", "{ R[i] -> Y[i] }", load("{ R[i] -> Y[i-1] }")),
    )
    cluster = last_cluster(of)
    assert schedule_outer(cluster, compute_dependences(of), BUDGET).loops in ((), (0,))


def test_a_carried_loop_is_not_coincident():
    """Y[i, j] = Y[i - 1, j] + X[i, j], as if i could be shared."""
    of = scop(
        [array("X", [6, 4], "input"), array("Y", [6, 4], "output")],
        statement("{ B[j] : 0 <= j < 4 }", "{ B[j] -> Y[0, j] }", ZERO),
        statement(
            "{ R[i, j] : 1 <= i < 6 and 0 <= j < 4 }",
            "{ R[i, j] -> Y[i, j] }",
            Call("add", (load("{ R[i, j] -> Y[i - 1, j] }"), load("{ R[i, j] -> X[i, j] }")), F32),
        ),
    )
    update = of.statements[1]
    cluster = Cluster((update,), ({"R": 0}, {"R": 1}), has_reuse=False)
    band = schedule_outer(cluster, compute_dependences(of), BUDGET)
    assert 1 in band.coincident
    assert 0 not in band.coincident


def test_a_statement_with_one_iteration_of_a_loop_does_not_hide_it():
    """isl schedules E at [i, 0] beside W at [i, j], as in a last, narrower tile."""
    of = scop(
        [array("T", [4, 2], "temporary"), array("Y", [4], "output")],
        statement("{ W[i, j] : 0 <= i < 4 and 0 <= j < 2 }", "{ W[i, j] -> T[i, j] }", ZERO),
        statement(
            "{ E[i, j] : 0 <= i < 4 and j = 0 }",
            "{ E[i, j] -> Y[i] }",
            load("{ E[i, j] -> T[i, j] }"),
        ),
    )
    cluster = Cluster(of.statements, ({"W": 0, "E": 0}, {"W": 1, "E": 1}), has_reuse=False)
    band = schedule_outer(cluster, compute_dependences(of), BUDGET)
    assert band.fallback is None
    assert sorted(band.loops) == [0, 1]
    assert band.coincident == {0, 1}


def test_the_tree_of_a_matmul():
    of = matmul_scop()
    cluster = last_cluster(of)
    tree = build_tree(cluster, OuterBand((0, 1), frozenset({0, 1})), [1, 0], {"S": ("k",)})
    assert show_tree(tree).splitlines() == [
        "domain  S[i, j, k], T[i, j], Z[i, j]",
        "└ band  j, i  permutable  coincident",
        "  └ sequence",
        "    ├ filter  Z",
        "    ├ filter  S",
        "    │ └ band  k",
        "    └ filter  T",
    ]
    assert outer_band(tree, cluster).get_type() == isl.schedule_node_type.band


def test_inner_loops_end_as_asked():
    of = conv_scop(16, 8, 8, 4, 3)
    cluster = last_cluster(of)
    order = OuterBand((0, 1, 2, 3), frozenset(range(4)))
    tree = build_tree(cluster, order, [0, 1, 2, 3], {"S": ("c", "r")})
    (inner,) = [line for line in show_tree(tree).splitlines() if "band  q" in line]
    assert inner.endswith("band  q, c, r")


def test_a_single_statement_needs_no_sequence():
    of = softmax_scop()
    first = replace(last_cluster(of), statements=of.statements[:1], shared=({"M0": 0},))
    tree = build_tree(first, OuterBand((0,), frozenset()), [0], {})
    assert show_tree(tree).splitlines() == ["domain  M0[i]", "└ band  i  permutable"]


def test_a_prelude_runs_before_as_nests_of_its_own():
    of = scop(
        [array("X", [9], "input"), array("Y", [10], "output")],
        statement("{ F[i] : 0 <= i < 1 }", "{ F[i] -> Y[9] }", ZERO),
        statement("{ P[i] : 0 <= i < 9 }", "{ P[i] -> Y[i] }", load("{ P[i] -> X[i] }")),
    )
    cluster = last_cluster(of)
    tree = build_tree(cluster, OuterBand((0,), frozenset({0})), [0], {})
    assert show_tree(tree).splitlines() == [
        "domain  F[i], P[i]",
        "└ sequence",
        "  ├ filter  F",
        "  │ └ band  i",
        "  └ filter  P",
        "    └ band  i  permutable  coincident",
    ]
    assert outer_band(tree, cluster).band_get_permutable()


def test_union_domain_holds_every_instance():
    of = matmul_scop()
    domain = union_domain(of.statements)
    assert all(isl.UnionSet.from_set(s.domain).is_subset(domain) for s in of.statements)
    assert domain.n_set() == 3
