"""The def-use table, and what is dead."""

import islpy as isl

from polyc.scop.scop import Scop
from polyc.scop.uses import drop_dead, find_uses
from tests.analysis.nests import array, load, matmul_scop, scop, softmax_scop, statement


def test_writers_and_readers():
    of = softmax_scop()
    uses = find_uses(of.statements)
    assert [s.name for s in uses.writes("M")] == ["M0", "M1"]
    assert [(s.name, ld.array) for s, ld in uses.reads("D")] == [("N1", "D"), ("V", "D")]
    assert uses.writes("X") == ()
    assert uses.reads("Y") == ()


def test_an_accumulator_is_what_a_reduction_updates():
    uses = find_uses(matmul_scop().statements)
    assert uses.is_accumulator("acc")
    assert not uses.is_accumulator("Y")
    assert not uses.is_accumulator("X")


def test_statements_that_nobody_needs_go_and_their_arrays_with_them():
    arrays = [array("X", [4], "input"), array("Y", [4], "output")]
    arrays += [array(n, [4], "temporary") for n in ("A", "B")] + [array("C", [4], "constant")]
    of = scop(
        arrays,
        statement("{ S[i] : 0 <= i < 4 }", "{ S[i] -> A[i] }", load("{ S[i] -> C[i] }")),
        statement("{ T[i] : 0 <= i < 4 }", "{ T[i] -> B[i] }", load("{ T[i] -> A[i] }")),
        statement("{ U[i] : 0 <= i < 4 }", "{ U[i] -> Y[i] }", load("{ U[i] -> X[3 - i] }")),
    )
    kept = drop_dead(of)
    assert [s.name for s in kept.statements] == ["U"]
    assert set(kept.arrays) == {"X", "Y"}


def test_an_input_that_nobody_reads_stays_in_the_signature():
    of = scop(
        [array("X", [4], "input"), array("Y", [4], "output"), array("C", [4], "constant")],
        statement("{ S[i] : 0 <= i < 4 }", "{ S[i] -> Y[i] }", load("{ S[i] -> C[i] }")),
    )
    kept = drop_dead(of)
    assert set(kept.arrays) == {"X", "Y", "C"}
    assert isinstance(kept, Scop)
    assert kept.statements[0].domain.is_equal(isl.Set("{ S[i] : 0 <= i < 4 }"))
