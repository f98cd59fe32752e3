"""Arrays that may be near keep their values there; whatever would lose one is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polyc.loopnest.index import Compare, var
from polyc.loopnest.nodes import Block, For, Near, Node, rewrite_nodes, walk_nodes
from polyc.scop.expr import call
from tests.analysis.mutate import check_refused, find, swap
from tests.analysis.nests import (
    Case,
    array,
    at,
    case,
    ci,
    cj,
    load,
    loop,
    read,
    run,
    scop,
    statement,
    when,
)

T = var("t")


def rows_in_tiles(near: Near, *, kind: str = "parallel", step: int = 3) -> Case:
    """B = 2 X; Y = B + B, of 6 x 10 numbers, `step` rows at a time, with B near in each tile."""
    rows = "0<=i<6 and 0<=j<10"
    of = scop(
        [
            array("X", [6, 10], "input"),
            array("B", [6, 10], "temporary"),
            array("Y", [6, 10], "output"),
        ],
        statement(
            f"{{ S[i,j] : {rows} }}",
            "{ S[i,j] -> B[i,j] }",
            call("add", load("{ S[i,j] -> X[i,j] }"), load("{ S[i,j] -> X[i,j] }")),
        ),
        statement(
            f"{{ R[i,j] : {rows} }}",
            "{ R[i,j] -> Y[i,j] }",
            call("add", load("{ R[i,j] -> B[i,j] }"), load("{ R[i,j] -> B[i,j] }")),
        ),
    )
    twice = call("add", read("X", ci, cj), read("X", ci, cj))
    both = call("add", read("B", ci, cj), read("B", ci, cj))

    def rows_of(node: Node) -> For:
        return loop("i", T + step, loop("j", 10, node), lower=T)

    tile = Block(
        (
            rows_of(run("S", [ci, cj], at("B", ci, cj), twice)),
            rows_of(run("R", [ci, cj], at("Y", ci, cj), both)),
        ),
        near=(near,),
    )
    right = case(of, loop("t", 6, tile, kind=kind, step=step))
    return own(right, "B")


def own(of: Case, name: str) -> Case:
    params = tuple(replace(p, inside=p.name == name) for p in of.kernel.params)
    return replace(of, kernel=replace(of.kernel, params=params))


def change_near(of: Case, change) -> Case:
    """The case with what is near in its blocks changed."""
    body = rewrite_nodes(
        of.kernel.body,
        lambda n: replace(n, near=change(n.near)) if isinstance(n, Block) and n.near else n,
    )
    return replace(of, kernel=replace(of.kernel, body=body))


RIGHT = Near(at("B", T, 0), 0, 3)


@pytest.mark.parametrize("kind", ["parallel", "sequential"])
def test_rows_of_a_tile_may_be_near(kind):
    rows_in_tiles(RIGHT, kind=kind).verify()


def test_a_run_that_is_too_short_is_refused():
    wrong = rows_in_tiles(replace(RIGHT, rows=2))
    check_refused(wrong, "B[i][j] is not in the run from B[t][0] on", "S[2, 0]")


def test_a_run_that_begins_elsewhere_is_refused():
    check_refused(
        rows_in_tiles(replace(RIGHT, first=at("B", T + 1, 0))), "not in the run", "S[0, 0]"
    )
    check_refused(rows_in_tiles(replace(RIGHT, first=at("B", T, 1))), "not in the run", "S[0, 0]")
    check_refused(rows_in_tiles(replace(RIGHT, first=at("B", 0, 0))), "not in the run", "S[3, 0]")


def test_rows_that_are_not_next_to_each_other_are_refused():
    """A column is no run: elements of other columns lie between its own."""
    check_refused(rows_in_tiles(replace(RIGHT, dimension=1, rows=10)), "not in the run")


def test_rows_that_64_bits_cannot_count_are_refused():
    """On the stack or not is asked of a product, which must not overflow."""
    rows_in_tiles(replace(RIGHT, rows=1 << 16)).verify()
    wrong = rows_in_tiles(replace(RIGHT, rows=(1 << 16) + 1))
    check_refused(wrong, "65537 rows of B may be more than 64 bits can count")


def test_a_first_place_inside_of_the_block_is_refused():
    check_refused(
        rows_in_tiles(replace(RIGHT, first=at("B", ci, 0))), "i is used outside of its loop"
    )


def test_a_value_that_is_read_in_another_tile_is_refused():
    """S of all tiles, then R: what was near is something else by then."""
    right = rows_in_tiles(RIGHT)
    (tile,) = [n for n in walk_nodes(right.kernel.body) if isinstance(n, Block) and n.near]
    first, second = (
        loop("t", 6, replace(tile, body=(node,)), kind="parallel", step=3) for node in tile.body
    )
    check_refused(own(right.with_body(first, second), "B"), "near in two blocks")


def test_a_value_that_leaves_its_tile_is_refused():
    """Each iteration reads what the one before wrote."""
    of = scop(
        [array("X", [6], "input"), array("B", [6], "temporary"), array("Y", [6], "output")],
        statement("{ S[i] : 0<=i<6 }", "{ S[i] -> B[i] }", load("{ S[i] -> X[i] }")),
        statement("{ R[i] : 0<=i<5 }", "{ R[i] -> Y[i] }", load("{ R[i] -> B[i] }")),
        statement("{ L[i] : i=5 }", "{ L[i] -> Y[i] }", load("{ L[i] -> X[i] }")),
    )
    write = run("S", [T], at("B", T), read("X", T))
    late = run("R", [T - 1], at("Y", T - 1), read("B", T - 1))
    tile = Block((write, when(Compare("ge", T - 1), late)), near=(Near(at("B", T - 1), 0, 2),))
    last = run("L", [5], at("Y", 5), read("X", 5))
    check_refused(own(case(of, loop("t", 6, tile), last), "B"), "a value leaves B", "S[0] -> R[0]")


def test_threads_that_share_what_is_near_each_are_refused():
    right = rows_in_tiles(RIGHT, kind="sequential")
    body = rewrite_nodes(
        right.kernel.body,
        lambda n: replace(n, kind="parallel") if isinstance(n, For) and n.var == "i" else n,
    )
    wrong = replace(right, kernel=replace(right.kernel, body=body))
    check_refused(wrong, "threads share B")


def test_a_value_of_an_earlier_launch_is_refused():
    """It is in memory, where this launch does not look."""
    right = rows_in_tiles(RIGHT)
    statements = tuple(s for s in right.scop.statements if s.name != "S")
    wrong = swap(right, find_loop_of(right, "S"))
    wrong = replace(wrong, scop=replace(right.scop, statements=statements))
    check_refused(wrong, "R reads B before it is written")


def find_loop_of(of: Case, statement: str) -> Node:
    return next(
        n
        for n in walk_nodes(of.kernel.body)
        if isinstance(n, For) and n.var == "i" and find(of, statement) in walk_nodes(n)
    )


def test_what_is_not_the_kernels_own_is_refused():
    right = rows_in_tiles(RIGHT)
    params = tuple(replace(p, inside=False) for p in right.kernel.params)
    check_refused(
        replace(right, kernel=replace(right.kernel, params=params)), "not the kernel's own"
    )


def test_what_is_own_and_not_near_is_refused():
    wrong = change_near(rows_in_tiles(RIGHT), lambda near: ())
    check_refused(wrong, "not near where S touches it")
