"""Arrays that a call may have on the stack are read there, also where a loop asks where it ends."""

from __future__ import annotations

from polyc.loopnest.index import Affine, var
from polyc.loopnest.nodes import Block, For, Near, walk_nodes
from polyc.loopnest.show import show_expr
from polyc.printing.near import declare_near
from polyc.printing.scope import Scope
from polyc.scop.expr import INT64, Cast
from tests.analysis.nests import F32, at, loop, read, run

i = var("i")


def test_what_ends_a_loop_is_read_where_it_is():
    value = read("t", i)
    body = Block((run("S", [i], at("y", i), value, "add"),))
    ended = For("i", Affine(0), Affine(9), 1, body, end=Cast(value, INT64))
    picked = For("i", Affine(0), Affine(9), 1, body, only=Cast(value, INT64))
    block = Block((loop("k", 3, ended, picked),), near=(Near(at("t", Affine(0)), 0, 9),))
    scope = Scope({"t": (9,), "y": (9,)}, {}, None, types={"t": F32, "y": F32})
    inside, _, lines = declare_near(block, scope)
    assert "f32 *const tnear" in lines[2]
    loops = [n for n in walk_nodes(inside) if isinstance(n, For) and n.var == "i"]
    assert [show_expr(n.end or n.only) for n in loops] == ["int64(tnear[i])"] * 2
