"""LoopNest: walks, rewrites, substitution, and its text."""

from dataclasses import replace

import numpy as np

from polyc.loopnest import nodes as loopnest
from polyc.loopnest.index import Compare, choice, const, floordiv, var
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    If,
    Kernel,
    Local,
    Read,
    Value,
    children,
    extent_of,
    rewrite_nodes,
    walk_expr,
    walk_nodes,
)
from polyc.loopnest.prototype import Param
from polyc.loopnest.substitute import substitute_expr, substitute_node
from polyc.scop.expr import Call, Cast, Const

F32, F64, I64 = (np.dtype(t) for t in ("f4", "f8", "i8"))
i, j = var("i"), var("j")

GATHER = Read(Element("x", (const(0), j)), F32, ((0, Read(Element("k", (i,)), I64)),))
SUM = Call("add", (GATHER, Cast(Value(i + 1), F32)), F32)
STORE = Assign("S", (i, j), Element("y", (i, j)), SUM, F32, "max")
INNER = For("j", const(0), i + 1, 1, Block((STORE,)), "vector")
GUARD = If(Compare("ge", i - 2), Block((INNER,)), Block(()))
OUTER = For(
    "i", const(0), const(7), 2, Block((GUARD,), (Local("t", F32, (2, 4), "T"),)), "parallel"
)


def test_walks_are_in_textual_order():
    kinds = [type(n).__name__ for n in walk_nodes(OUTER)]
    assert kinds == ["For", "Block", "If", "Block", "For", "Block", "Assign", "Block"]
    leaves = [type(e).__name__ for e in walk_expr(SUM)]
    assert leaves == ["Call", "Read", "Read", "Cast", "Value"]


def test_children_of_a_read_are_its_computed_coordinates():
    assert children(GATHER) == (GATHER.dynamic[0][1],)
    assert children(SUM) == SUM.arguments
    assert children(Const(1.0, F32)) == ()


def test_extents():
    assert extent_of(OUTER) == 4
    assert extent_of(INNER) is None
    assert extent_of(replace(INNER, lower=i - 3)) == 4
    assert extent_of(replace(OUTER, upper=const(-3))) == 0


def test_rewriting_is_innermost_first_and_reaches_every_node():
    seen = []

    def rewrite(node):
        seen.append(type(node).__name__)
        return replace(node, var="z") if isinstance(node, For) else node

    new = rewrite_nodes(Block((OUTER,)), rewrite)
    assert seen == ["Assign", "Block", "For", "Block", "Block", "If", "Block", "For", "Block"]
    assert [n.var for n in walk_nodes(new) if isinstance(n, For)] == ["z", "z"]


def test_a_body_rewritten_to_one_node_is_still_a_block():
    new = rewrite_nodes(Block((OUTER,)), lambda n: STORE if isinstance(n, If) else n)
    (loop,) = new.body
    assert isinstance(loop, For)
    assert loop.body == Block((STORE,), OUTER.body.locals)
    gone = rewrite_nodes(
        Block((INNER,)), lambda n: STORE if isinstance(n, Block) and n.body == (STORE,) else n
    )
    assert gone.body[0].body == Block((STORE,))


def test_substitution_reaches_bounds_indices_conditions_and_data():
    new = substitute_node(OUTER.body, {"i": const(4)})
    (loop,) = [n for n in walk_nodes(new) if isinstance(n, For)]
    (store,) = [n for n in walk_nodes(new) if isinstance(n, Assign)]
    assert loop.upper == const(5)
    assert store.instance == (const(4), j)
    assert store.target.index == (const(4), j)
    assert Value(const(5)) in list(walk_expr(store.value))
    assert Read(Element("k", (const(4),)), I64) in list(walk_expr(store.value))
    assert new.body[0].condition == Compare("ge", const(2))
    test = loopnest.Test(Compare("eq", i - j))
    assert substitute_expr(test, {"j": i}) == loopnest.Test(Compare("eq", const(0)))


def test_text():
    params = (Param("x", F32, (3, 8), False), Param("y", F64, (7, 8), True))
    lines = str(Kernel("k", params, Block((OUTER,)))).splitlines()
    assert lines == [
        "kernel k(float32 x[3, 8], float64 y[7, 8])",
        "  for i in 0 .. 7 step 2:  # parallel",
        "    local float32 t[2, 4]",
        "    if i >= 2:",
        "      for j in 0 .. i + 1 step 1:  # vector",
        "        y[i][j] max= add(x[0][j]{0: k[i]}, float32(i + 1))    # S[i, j]",
        "    else:",
    ]
    odd = choice(Compare("eq", j), floordiv(i, 2), j)
    copy = Assign("C", (i,), Element("y", (odd,)), Const(1.5, F32), F32)
    text = str(Kernel("k", (), Block((copy,), (Local("r", F32, (), "R", True),))))
    assert "registers float32 r[]" in text
    assert "y[(j == 0 ? pc_floordiv(i, 2) : j)] = 1.5    # C[i]" in text
