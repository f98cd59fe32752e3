"""Dependences of small scops, against relations worked out by hand."""

import islpy as isl

from polyc.analysis.conflicts import compute_conflicts
from polyc.analysis.dependences import compute_dependences
from polyc.scop.expr import Call, Const, Load
from polyc.scop.order import original_order
from polyc.scop.scop import Scop
from tests.analysis.nests import F32, ZERO, array, load, matmul_scop, scop, softmax_scop, statement


def equal(relation: isl.UnionMap, text: str) -> bool:
    return relation.is_equal(isl.UnionMap(text))


def test_matmul_has_one_reduction_chain_between_its_start_and_its_end() -> None:
    found = compute_dependences(matmul_scop(4, 3, 5))
    points = "0<=i<4 and 0<=j<3"
    assert equal(
        found.flow,
        f"{{ Z[i,j] -> S[i,j,0] : {points}; S[i,j,k] -> S[i,j,k+1] : {points} and 0<=k<4;"
        f"   S[i,j,4] -> T[i,j] : {points} }}",
    )
    later = f"S[i,j,k] -> S[i,j,l] : {points} and 0<=k<l<5"
    assert equal(found.anti, f"{{ {later} }}")
    assert equal(found.output, f"{{ {later}; Z[i,j] -> S[i,j,k] : {points} and 0<=k<5 }}")
    assert equal(found.reductions, f"{{ {later} }}")
    assert equal(
        found.coincidence,
        f"{{ Z[i,j] -> S[i,j,k] : {points} and 0<=k<5; S[i,j,4] -> T[i,j] : {points} }}",
    )
    assert found.validity.is_equal(found.coincidence.union(found.reductions))
    assert found.without_reductions(found.anti).is_empty()
    assert found.uninitialised.is_empty()


def test_inputs_and_constants_need_no_write() -> None:
    assert compute_dependences(softmax_scop()).uninitialised.is_empty()


def test_a_read_before_any_write_is_found() -> None:
    of = matmul_scop(4, 3, 5)
    headless = Scop(of.name, of.statements[1:], of.arrays, of.inputs, of.outputs)
    for find in (compute_dependences, compute_conflicts):
        found = find(headless).uninitialised
        assert equal(found, "{ S[i,j,0] -> acc[i,j] : 0<=i<4 and 0<=j<3 }")
        assert find(of).uninitialised.is_empty()


def recurrence(reduction: str | None) -> Scop:
    """A[i] = A[i-1] + …, which reads its own array by an explicit load."""
    return scop(
        [array("A", [8], "output")],
        statement("{ B[] }", "{ B[] -> A[0] }", ZERO),
        statement("{ R[i] : 1<=i<8 }", "{ R[i] -> A[i] }", load("{ R[i] -> A[i-1] }"), reduction),
    )


def test_a_recurrence_is_no_reduction() -> None:
    for reduction in (None, "add"):
        found = compute_dependences(recurrence(reduction))
        assert found.reductions.is_empty()
        assert isl.UnionMap("{ R[i] -> R[i+1] : 1<=i<7 }").is_subset(found.coincidence)


def test_a_reduction_that_reads_what_others_have_reduced_stays_one() -> None:
    """x[i] += L[i, j] * x[j] for j < i: sums of one element have no order, but wait for others."""
    found = compute_dependences(triangle("j < i"))
    same = "{ S[i, j] -> S[i, k] : 0 <= j < k < i < 8 }"
    assert equal(found.reductions, same)
    assert isl.UnionMap("{ S[1, 0] -> S[2, 1] }").is_subset(found.coincidence)
    assert found.validity.is_equal(found.coincidence.union(found.reductions))
    assert found.without_reductions(found.output).is_empty()


def test_a_sum_that_reads_itself_halfway_keeps_its_order() -> None:
    """Where j = i as well, that instance reads what those before it have summed."""
    found = compute_dependences(triangle("j < 8"))
    halfway = isl.UnionMap("{ S[i, j] -> S[i, i] : 0 <= j < i < 8 }")
    assert halfway.is_subset(found.coincidence)
    assert halfway.intersect(found.reductions).is_empty()


def triangle(condition: str) -> Scop:
    update = load("{ S[i, j] -> x[j] }")
    return scop(
        [array("x", [8], "state")],
        statement(
            f"{{ S[i, j] : 0 <= i, j < 8 and {condition} }}", "{ S[i, j] -> x[i] }", update, "add"
        ),
    )


def test_what_is_written_once_flows_to_those_who_read_it_later() -> None:
    """Q reads A[4] to A[7]: half of it P has written before, and half of it T writes later."""
    of = scop(
        [array("A", [8], "temporary"), array("B", [8], "temporary"), array("Y", [8], "output")],
        statement("{ P[i] : 0<=i<6 }", "{ P[i] -> A[i] }", ZERO),
        statement("{ Q[i] : 0<=i<4 }", "{ Q[i] -> B[i] }", load("{ Q[i] -> A[i+4] }")),
        statement("{ R[i] : 4<=i<8 }", "{ R[i] -> B[i] }", load("{ R[i] -> B[i-1] }")),
        statement("{ T[i] : 6<=i<8 }", "{ T[i] -> A[i] }", load("{ T[i] -> B[i] }")),
    )
    found = compute_dependences(of)
    assert equal(
        found.flow,
        "{ P[i] -> Q[i-4] : 4<=i<6; Q[3] -> R[4]; R[i] -> R[i+1] : 4<=i<7; R[i] -> T[i] : 6<=i<8 }",
    )
    for one in (found, compute_conflicts(of)):
        assert equal(one.uninitialised, "{ Q[i] -> A[i+4] : 2<=i<4 }")
    assert equal(found.anti, "{ Q[i] -> T[i+4] : 2<=i<4 }")


def test_an_anti_dependence_keeps_a_read_before_a_later_write() -> None:
    of = scop(
        [array("A", [8], "output"), array("B", [8], "output")],
        statement("{ P[i] : 0<=i<8 }", "{ P[i] -> A[i] }", ZERO),
        statement("{ Q[i] : 0<=i<8 }", "{ Q[i] -> B[i] }", load("{ Q[i] -> A[7-i] }")),
        statement("{ R[i] : 0<=i<8 }", "{ R[i] -> A[i] }", ZERO),
    )
    found = compute_dependences(of)
    assert equal(found.flow, "{ P[i] -> Q[7-i] : 0<=i<8 }")
    assert equal(found.anti, "{ Q[i] -> R[7-i] : 0<=i<8 }")
    assert equal(found.output, "{ P[i] -> R[i] : 0<=i<8 }")


def test_a_computed_coordinate_may_read_anywhere_along_its_dimension() -> None:
    index = Call("index", (load("{ G[i] -> I[i] }"), Const(4, F32)), F32)
    gather = Load("A", isl.PwMultiAff("{ G[i] -> A[0, i] }"), F32, ((0, index),))
    of = scop(
        [array("I", [3], "input"), array("A", [4, 3], "temporary"), array("Y", [3], "output")],
        statement("{ P[i,j] : 0<=i<4 and 0<=j<3 }", "{ P[i,j] -> A[i,j] }", ZERO),
        statement("{ G[i] : 0<=i<3 }", "{ G[i] -> Y[i] }", gather),
    )
    found = compute_dependences(of)
    assert equal(found.flow, "{ P[i,j] -> G[j] : 0<=i<4 and 0<=j<3 }")
    assert found.uninitialised.is_empty()


def test_the_original_order_pads_short_statements() -> None:
    assert original_order(matmul_scop().statements).is_equal(
        isl.UnionMap("{ Z[i,j] -> [0,i,j,0]; S[i,j,k] -> [1,i,j,k]; T[i,j] -> [2,i,j,0] }")
    )


def test_a_scop_without_reads_has_no_flow() -> None:
    of = scop([array("A", [], "output")], statement("{ B[] }", "{ B[] -> A[] }", ZERO))
    found = compute_dependences(of)
    assert found.validity.is_empty()
    assert found.uninitialised.is_empty()
