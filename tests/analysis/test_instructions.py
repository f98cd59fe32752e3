"""Loops that are given to an instruction are judged like lanes, and have to be that instruction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polyc.analysis.instructions import check_instructions
from polyc.errors import IllegalSchedule
from polyc.loopnest.index import const, var
from polyc.loopnest.marks import LoopKind
from polyc.loopnest.nodes import Assign, Block, Element, For, Kernel, Local, Read
from polyc.loopnest.prototype import Param
from polyc.scop.expr import Call, Cast
from polyc.scop.scop import Reduction
from polyc.target.machine import NAMED
from polyc.types.element_types import INT8, INT32, UINT8
from tests.analysis.nests import (
    ZERO,
    Case,
    array,
    at,
    case,
    load,
    loop,
    read,
    run,
    scop,
    statement,
)

VECTORS = NAMED["avx2"].vectors
i, lane, r = var("i"), var("l"), var("r")


def kernel(lanes: int = 16, terms: int = 4, stride: int = 1, name: str = "dot4.u8s8") -> Kernel:
    factors = (Read(Element("a", (r * stride,)), UINT8), Read(Element("b", (lane, r)), INT8))
    value = Call("mul", tuple(Cast(f, INT32) for f in factors), INT32)
    update = Assign("S", (lane, r), Element("sums", (lane,)), value, INT32, "add")
    inner = For("r", const(0), const(terms), 1, Block((update,)), "instruction", instruction=name)
    outer = For("l", const(0), const(lanes), 1, Block((inner,)), "vector")
    params = (Param("a", UINT8, (64,), False), Param("b", INT8, (64, 4), False))
    return Kernel("k", params, Block((outer,), (Local("sums", INT32, (64,), "sums"),)))


def test_loops_that_are_the_instruction():
    check_instructions(kernel(), VECTORS)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (kernel(stride=2), "operand a lies 4 and 1 apart"),
        (kernel(terms=8), r"it has 4 iterations, and these are \[8\]"),
        (kernel(terms=3), r"it has 4 iterations, and these are \[3\]"),
        (kernel(name="dot4.x"), "has no such row"),
    ],
)
def test_loops_that_are_not(bad, said):
    with pytest.raises(IllegalSchedule, match=said):
        check_instructions(bad, VECTORS)


def test_a_rest_is_allowed_beside_the_whole():
    whole, rest = kernel(), kernel(terms=3)
    both = Block((*whole.body.body, *rest.body.body), whole.body.locals)
    check_instructions(replace(whole, body=both), VECTORS)


def test_outside_of_lanes_there_is_none():
    one = kernel()
    (outer,) = one.body.body
    alone = replace(outer, kind="sequential")
    with pytest.raises(IllegalSchedule, match="no loop around it is in lanes"):
        check_instructions(replace(one, body=Block((alone,), one.body.locals)), VECTORS)


def _sum(kind: LoopKind, reduction: Reduction | None) -> Case:
    """y[0] add= x[i], or y[i + 1] = y[i], for eight i that run so."""
    arrays = [array("x", [8], "input"), array("y", [9], "output")]
    if reduction:
        s = statement("{ S[i] : 0<=i<8 }", "{ S[i] -> y[0] }", load("{ S[i] -> x[i] }"), reduction)
        update = run("S", [i], at("y", 0), read("x", i), reduction)
    else:
        s = statement("{ S[i] : 0<=i<8 }", "{ S[i] -> y[i+1] }", load("{ S[i] -> y[i] }"))
        update = run("S", [i], at("y", i + 1), read("y", i))
    zero = statement("{ Z[i] : 0<=i<9 }", "{ Z[i] -> y[i] }", ZERO)
    start = loop("i", 9, run("Z", [i], at("y", i), ZERO))
    return case(scop(arrays, zero, s), start, loop("i", 8, update, kind=kind))


def test_the_proof_lets_it_carry_nothing_but_a_reduction():
    assert _sum("instruction", "add").verify()
    assert _sum("sequential", None).verify()
    with pytest.raises(IllegalSchedule, match="instruction loop i carries a dependence"):
        _sum("instruction", None).verify()
