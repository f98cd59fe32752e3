"""Private arrays keep their values, and nothing is read before it is written."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from polyc.analysis import locality
from polyc.loopnest.index import Affine, Compare, const
from polyc.loopnest.nodes import Block, For, Local, Node, walk_nodes
from polyc.scop.expr import Call
from tests.analysis.mutate import check_refused, find, find_loop, swap
from tests.analysis.nests import (
    F32,
    ZERO,
    Case,
    array,
    at,
    case,
    ci,
    cj,
    load,
    loop,
    matmul,
    read,
    recurrence,
    run,
    scop,
    softmax,
    statement,
    when,
)


def test_a_missing_initialisation_is_refused() -> None:
    right = matmul()
    start = next(n for n in walk_nodes(right.kernel.body) if isinstance(n, For) and n.var == "v")
    wrong = swap(right, start)
    check_refused(wrong, "an instance is not executed", "Z[0, 0]")
    statements = tuple(s for s in right.scop.statements if s.name != "Z")
    check_refused(
        replace(wrong, scop=replace(right.scop, statements=statements)),
        "S reads acc before it is written",
        "S[0, 0, 0] -> acc[0, 0]",
    )


def place_local(of: Case, name: str, *, declared: str | None, shape: tuple[int, ...]) -> Case:
    """The case with its local declared in loop `declared` (None: around all loops) instead."""
    local = next(
        x
        for n in walk_nodes(of.kernel.body)
        if isinstance(n, Block)
        for x in n.locals
        if x.name == name
    )

    def without(node: Node) -> Node:
        match node:
            case Block(body, locals_):
                kept = tuple(x for x in locals_ if x is not local)
                return Block(tuple(map(without, body)), kept)
            case For(body=body):
                body = without(body)
                assert isinstance(body, Block)
                if node.var == declared:
                    body = replace(body, locals=(*body.locals, new))
                return replace(node, body=body)
            case _:
                return node

    new = Local(local.name, local.dtype, shape, local.source)
    body = without(of.kernel.body)
    assert isinstance(body, Block)
    if declared is None:
        body = replace(body, locals=(new,))
    return replace(of, kernel=replace(of.kernel, body=body))


def test_a_local_declared_too_far_out_is_overwritten() -> None:
    check_refused(
        place_local(matmul(), "r", declared="i", shape=(8,)),
        "one place for different elements of acc",
        "Z[0, 0] -> Z[0, 8]",
    )
    check_refused(place_local(matmul(), "r", declared=None, shape=(8,)), "one place for different")


def test_a_local_declared_too_far_in_loses_its_values() -> None:
    wrong = place_local(matmul(), "r", declared="k", shape=(8,))
    check_refused(wrong, "r[v] stands for an element of acc, which is in a local for acc")
    right = recurrence()
    of = replace(right.scop, arrays={"Y": replace(right.scop.arrays["Y"], kind="temporary")})
    body = loop(
        "i",
        6,
        when(Compare("eq", ci), run("B", [], at("y", 0), ZERO)),
        when(Compare("ge", ci - 1), run("R", [ci], at("y", ci), read("y", ci - 1))),
        locals=[Local("y", F32, (6,), "Y")],
    )
    check_refused(
        case(of, body, local=["Y"]), "a value leaves y, which is private to loop i", "B[] -> R[1]"
    )


def test_a_local_read_elsewhere_than_written_is_refused() -> None:
    right = softmax()
    v = find(right, "V")
    wrong = replace(v, value=Call("div", (read("d", const(9) - cj), read("s", 0)), F32))
    check_refused(swap(right, v, wrong), "d[j] and d[-j + 9] are one place", "E[0, 0] -> V[0, 9]")
    elsewhere = replace(v, value=Call("div", (read("d", cj + 10), read("s", 0)), F32))
    longer = place_local(swap(right, v, elsewhere), "d", declared="i", shape=(20,))
    check_refused(longer, "different places for one element of D", "E[0, 0] -> V[0, 0]")
    shifted = replace(v, value=Call("div", (read("d", cj + 1), read("s", 0)), F32))
    check_refused(swap(right, v, shifted), "d[j + 1] leaves the bounds [10]", "V[0, 9] at [10]")


def test_two_locals_do_not_share_an_array() -> None:
    right = matmul(4, 8, 8)
    jj = find_loop(right, "jj")
    start, middle, end = jj.body.body
    r = jj.body.locals
    wrong = replace(jj, body=Block((Block((start,), r), Block((middle, end), r))))
    check_refused(
        swap(right, jj, wrong),
        "acc is written to one local and read from another",
        "Z[0, 0] -> T[0, 0]",
    )


def test_one_place_printed_for_two_elements_of_an_expression_is_refused() -> None:
    """Y = T[0] + T[1] printed as t[1] + t[1]: only the meaning of the first read is wrong."""
    both = Call("add", (load("{ B[] -> T[0] }"), load("{ B[] -> T[1] }")), F32)
    of = scop(
        [array("T", [2], "temporary"), array("Y", [], "output")],
        statement("{ A[i] : 0 <= i < 2 }", "{ A[i] -> T[i] }", ZERO),
        statement("{ B[] }", "{ B[] -> Y[] }", both),
    )

    def printed(first: int) -> Case:
        total = Call("add", (read("t", first), read("t", 1)), F32)
        fill = loop("i", 2, run("A", [ci], at("t", ci), ZERO))
        nest = Block((fill, run("B", [], at("Y"), total)), (Local("t", F32, (2,), "T"),))
        return case(of, nest, local=["T"])

    assert printed(0).verify().locals == 1
    check_refused(printed(1), "one place for different elements of T", "A[1] -> B[]")


def tile(place: Callable[[Affine, Affine], Affine]) -> Case:
    """Y = T in tiles of two, each kept in a local, which is read at some place."""
    of = scop(
        [array("T", [6], "temporary"), array("Y", [6], "output")],
        statement("{ A[i] : 0 <= i < 6 }", "{ A[i] -> T[i] }", ZERO),
        statement("{ B[i] : 0 <= i < 6 }", "{ B[i] -> Y[i] }", load("{ B[i] -> T[i] }")),
    )
    kept = read("t", place(ci, cj))
    fill = loop("j", 2, run("A", [ci + cj], at("t", cj), ZERO))
    empty = loop("j", 2, run("B", [ci + cj], at("Y", ci + cj), kept))
    body = loop("i", 6, fill, empty, step=2, locals=[Local("t", F32, (2,), "T")])
    return case(of, body, local=["T"])


def test_pairs_are_asked_only_where_places_are_not_elements_less_a_corner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []
    judge = locality._check_places

    def watch(*args: Any) -> None:
        asked.append(args)
        judge(*args)

    monkeypatch.setattr(locality, "_check_places", watch)
    assert tile(lambda i, j: j).verify().locals == 1
    assert not asked
    check_refused(tile(lambda i, j: const(1) - j), "one place for different elements of T")
    assert asked


def test_all_accesses_are_moved_by_the_same_amount() -> None:
    """The corner of the tile, and of what is read one further, are both functions of the tile."""
    check_refused(tile(lambda i, j: j + 1), "t[j + 1] leaves the bounds [2]")
    longer = place_local(tile(lambda i, j: j + 1), "t", declared="i", shape=(3,))
    check_refused(longer, "are one place for different elements of T", "A[1] -> B[0]")
