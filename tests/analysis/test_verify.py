"""Right loops are accepted; each way of getting them wrong is refused, with a witness."""

from dataclasses import replace

from polyc.analysis.proof import Proof
from polyc.loopnest.index import Compare, choice, const, extremum, modulo, var
from polyc.loopnest.nodes import Assign, Block, For
from polyc.scop.expr import Call
from tests.analysis.mutate import check_refused, find, find_loop, swap
from tests.analysis.nests import (
    F32,
    ZERO,
    at,
    ci,
    cj,
    ck,
    conv,
    copy_at,
    loop,
    matmul,
    pointwise,
    read,
    recurrence,
    run,
    softmax,
    when,
)

# -- accepted -------------------------------------------------------------------------------------


def test_a_tiled_matmul_is_proven() -> None:
    assert matmul().verify() == Proof("k", 3, 4, 6, 1, 3, 1)


def test_a_tiled_convolution_is_proven() -> None:
    assert conv().verify() == Proof("k", 3, 4, 7, 3, 3, 1)
    assert conv(32, 7, 7, 5, 1, 16, 7).verify().statements == 3


def test_a_softmax_with_vector_reductions_is_proven() -> None:
    proof = softmax().verify()
    assert proof == Proof("k", 6, 10, 12, 1, 4, 3)
    assert "6 statements executed in full" in str(proof)
    assert "1 parallel loop," in str(proof)


def test_full_and_partial_tiles_fill_a_domain_between_them() -> None:
    t, v = var("t"), var("v")
    full = loop("t", 8, loop("v", 4, copy_at(t + v), kind="vector"), step=4, kind="parallel")
    rest = loop("i", 10, copy_at(ci), lower=8)
    assert pointwise(full, rest).verify().accesses == 4


def test_what_is_independent_may_run_at_the_same_time() -> None:
    full = loop("i", 8, copy_at(ci), kind="parallel")
    rest = loop("i", 10, copy_at(ci), lower=8)
    assert pointwise(Block((full, rest), concurrent=True)).verify().accesses == 4


def test_what_depends_on_another_may_not_run_at_the_same_time() -> None:
    case = recurrence()
    joined = Block(case.kernel.body.body, concurrent=True)
    check_refused(case.with_body(joined), "joins what runs at the same time", "B[] -> R[1]")
    case = softmax()
    (outer,) = case.kernel.body.body
    assert isinstance(outer, For)
    inside = replace(outer, body=replace(outer.body, concurrent=True))
    check_refused(case.with_body(inside), "joins what runs at the same time", "->")


def test_bounds_by_minima_and_guards_are_understood() -> None:
    t, v = var("t"), var("v")
    end = extremum("min", (t + 4, const(10)))
    assert pointwise(loop("t", 10, loop("v", end, copy_at(v), lower=t), step=4)).verify()
    start = extremum("max", (t * 4, const(0)))
    assert pointwise(
        loop("t", 3, loop("v", extremum("min", (t * 4 + 4, const(10))), copy_at(v), lower=start))
    ).verify()
    inside = Compare("ge", const(9) - t * 4 - v)
    assert pointwise(loop("t", 3, loop("v", 4, when(inside, copy_at(t * 4 + v))))).verify()


def test_a_choice_in_an_index_is_understood() -> None:
    swapped = choice(Compare("eq", modulo(ci, 2)), ci + 1, ci - 1)
    assert pointwise(loop("i", 10, copy_at(swapped), kind="parallel")).verify()


def test_a_step_from_a_variable_bound() -> None:
    t, v = var("t"), var("v")
    assert pointwise(
        loop("t", 2, loop("v", 10, copy_at(v), lower=t, step=2, kind="parallel"))
    ).verify()


# -- order ----------------------------------------------------------------------------------------


def test_a_recurrence_must_run_forwards_and_alone() -> None:
    assert recurrence().verify().dependences == 2
    assert recurrence("unroll").verify()
    check_refused(recurrence(reverse=True), "loop i runs a dependence backwards", "R[1] -> R[2]")
    check_refused(recurrence("parallel"), "parallel loop i carries a dependence", "R[1] -> R[2]")
    check_refused(recurrence("vector"), "vector loop i carries a dependence", "R[1] -> R[2]")


def test_a_reduction_may_be_vectorised_but_not_made_parallel_nor_reversed() -> None:
    right = matmul()
    k = find_loop(right, "k")
    assert swap(right, k, replace(k, kind="vector")).verify()
    wrong = swap(right, k, replace(k, kind="parallel"))
    check_refused(wrong, "parallel loop k carries a dependence", "S[0, 0, 0] -> S[0, 0, 1]")
    s = find(right, "S")
    backwards = Assign(
        s.statement,
        (*s.instance[:2], const(4) - ck),
        s.target,
        Call("mul", (read("X", ci, const(4) - ck), s.value.arguments[1]), F32),
        F32,
        "add",
    )
    check_refused(swap(right, s, backwards), "loop k runs a dependence backwards")


def test_the_largest_of_a_row_may_be_found_in_any_order_and_a_sum_not() -> None:
    right, last = softmax(), const(9) - cj
    largest, total = find(right, "M1"), find(right, "N1")
    backwards = replace(largest, instance=(ci, last), value=read("X", ci, last))
    assert swap(right, largest, backwards).verify()
    backwards = replace(total, instance=(ci, last), value=read("d", last))
    check_refused(swap(right, total, backwards), "loop j runs a dependence backwards")
    row = find_loop(right, "j")  # the first one, that of the largest
    alone = swap(right, row, replace(row, kind="parallel"))
    check_refused(alone, "parallel loop j carries a dependence")


def test_statements_in_the_wrong_order_are_refused() -> None:
    right = recurrence()
    first, second = right.kernel.body.body
    check_refused(right.with_body(second, first), "against the order of the text", "B[] -> R[1]")


def test_a_read_before_its_write_in_the_same_iteration_is_refused() -> None:
    right = softmax()
    row = find_loop(right, "i")
    body = list(row.body.body)
    body[1], body[2] = body[2], body[1]
    wrong = replace(row, body=replace(row.body, body=tuple(body)))
    check_refused(swap(right, row, wrong), "against the order of the text", "M1[0, 0] -> E[0, 0]")


# -- completeness ---------------------------------------------------------------------------------


def test_every_instance_runs_exactly_once() -> None:
    check_refused(pointwise(loop("i", 9, copy_at(ci))), "an instance is not executed", "P[9]")
    check_refused(pointwise(loop("i", 11, copy_at(ci))), "outside of the domain of P", "P[10]")
    check_refused(
        pointwise(loop("i", 10, copy_at(ci)), loop("i", 3, copy_at(ci), lower=2)),
        "two copies",
        "P[2]",
    )
    check_refused(pointwise(loop("o", 2, loop("i", 10, copy_at(ci)))), "executed twice", "P[0]")
    check_refused(pointwise(), "an instance is not executed", "P[0]")
    check_refused(
        pointwise(loop("i", 10, copy_at(ci), step=2)), "an instance is not executed", "P[1]"
    )
    check_refused(
        pointwise(loop("i", 10, when(Compare("ge", ci - 1), copy_at(ci)))), "not executed", "P[0]"
    )


def test_an_off_by_one_bound_of_a_tile_is_refused() -> None:
    right = conv(32, 4, 14, 3, 3)
    u = find_loop(right, "u")
    check_refused(swap(right, u, replace(u, upper=const(13))), "not executed", "Z[0, 0, 0, 13]")


def test_ill_formed_loops_are_refused() -> None:
    check_refused(pointwise(loop("i", 10, copy_at(var("z")))), "z is used outside of its loop")
    check_refused(
        pointwise(loop("i", 10, when(Compare("ge", var("z")), copy_at(ci)))), "z is used outside"
    )
    check_refused(pointwise(loop("i", 10, copy_at(ci), step=0)), "step 0")
    check_refused(pointwise(run("Q", [0], at("Y", 0), ZERO)), "Q is executed")
    check_refused(pointwise(run("P", [0, 0], at("Y", 0), ZERO)), "P is executed with 2 indices")
