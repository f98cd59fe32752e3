"""The verdict of the proof equals that of an enumeration, on small random loop nests.

A nest starts as an arrangement of four statements (fused or not, tiled, reversed, interchanged,
with loops of any kind, totals in memory or in a local) and is then damaged in up to two places. The
enumeration is in `oracle`.
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.errors import IllegalSchedule
from polyc.loopnest import nodes as loopnest
from polyc.loopnest.index import Affine, Compare, Logic, const, extremum, floordiv, modulo, var
from polyc.loopnest.marks import LoopKind
from polyc.loopnest.nodes import Assign, Block, For, If, Local, Node, Read
from polyc.scop.expr import Call, Load, Within, call
from polyc.scop.scop import Scop
from tests.analysis.nests import (
    F32,
    ZERO,
    Case,
    array,
    at,
    case,
    guarded,
    load,
    read,
    run,
    scop,
    statement,
)
from tests.analysis.oracle import find_fault

# -- the cluster: a pointwise statement, a reduction, a guarded recurrence ------------------------
#
#     P[i,j]: A[i,j] = X[i,j]       Z[i]: s[i] = 0       S[i,j]: s[i] += A[i,j]
#     R[i]:   Y[i] = s[i] + (i >= 1 ? Y[i-1] : 0)


def cluster(n: int, m: int) -> Scop:
    row, point = f"0<=i<{n}", f"0<=i<{n} and 0<=j<{m}"
    previous = Load("Y", isl.PwMultiAff("{ R[i] -> Y[i-1] : i >= 1 }"), F32)
    guarded = Call("select", (Within(isl.Set("{ R[i] : i >= 1 }")), previous, ZERO), F32)
    return scop(
        [
            array("X", [n, m], "input"),
            array("A", [n, m], "temporary"),
            array("s", [n], "temporary"),
            array("Y", [n], "output"),
        ],
        statement(f"{{ P[i,j] : {point} }}", "{ P[i,j] -> A[i,j] }", load("{ P[i,j] -> X[i,j] }")),
        statement(f"{{ Z[i] : {row} }}", "{ Z[i] -> s[i] }", ZERO),
        statement(
            f"{{ S[i,j] : {point} }}", "{ S[i,j] -> s[i] }", load("{ S[i,j] -> A[i,j] }"), "add"
        ),
        statement(
            f"{{ R[i] : {row} }}",
            "{ R[i] -> Y[i] }",
            call("add", load("{ R[i] -> s[i] }"), guarded),
        ),
    )


DEPTH = {"P": 2, "Z": 1, "S": 2, "R": 1}

# -- random nests ---------------------------------------------------------------------------------

KINDS: tuple[LoopKind, ...] = ("sequential", "sequential", "parallel", "vector", "unroll")


def assign(name: str, p: tuple[Affine, ...], totals_local: bool) -> Assign:
    total = at("t", 0) if totals_local else at("s", p[0])
    total_read = Read(total, F32)
    match name:
        case "P":
            return run("P", p, at("A", *p), read("X", *p))
        case "Z":
            return run("Z", p, total, ZERO)
        case "S":
            return run("S", p, total, read("A", *p), "add")
        case _:
            guard = (loopnest.Test(Compare("ge", p[0] - 1)), guarded("Y", p[0] - 1), ZERO)
            value = Call("add", (total_read, Call("select", guard, F32)), F32)
            return run("R", p, at("Y", p[0]), value)


@st.composite
def loops(draw: st.DrawFn, name: str, extent: int) -> tuple[list[For], Affine]:
    """Empty loops, outermost first, and the index that runs over the extent in them."""
    c, d = var(name), var(name + name)
    kind = draw(st.sampled_from(KINDS))

    def make(v: str, low: Affine, high: Affine, step: int, kind: LoopKind) -> For:
        return For(v, low, high, step, Block(()), kind)

    match draw(st.sampled_from(["plain", "plain", "plain", "reversed", "step", "tile", "guard"])):
        case "reversed":
            return [make(name, const(0), const(extent), 1, kind)], const(extent - 1) - c
        case "step":
            end = extremum("min", (c + 2, const(extent)))
            inner = draw(st.sampled_from(KINDS))
            return [
                make(name, const(0), const(extent), 2, kind),
                make(name * 2, c, end, 1, inner),
            ], d
        case "tile":
            inner = draw(st.sampled_from(KINDS))
            end = extremum("min", (const(2), const(extent) - c * 2))
            return [
                make(name, const(0), const((extent + 1) // 2), 1, kind),
                make(name * 2, const(0), end, 1, inner),
            ], c * 2 + d
        case "guard":  # one counter does the work of two
            split = floordiv(c, 2) * 2 + modulo(c, 2)
            return [make(name, const(0), const(extent), 1, kind)], split
        case _:
            return [make(name, const(0), const(extent), 1, kind)], c


def nest(around: list[For], *body: Node) -> tuple[Node, ...]:
    for loop in reversed(around):
        body = (replace(loop, body=replace(loop.body, body=body)),)
    return body


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, int, int, bool]:
    """A case, with the extents n and m, and whether the totals s live in a local."""
    n, m, totals_local = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.booleans())
    groups: list[str] = []
    for name in draw(st.sampled_from(["PZSR", "PZSR", "ZPSR", "ZPRS"])):
        fuse = draw(st.booleans()) or (totals_local and name in "SR")
        groups = [*groups[:-1], groups[-1] + name] if groups and fuse else [*groups, name]
    body = [node for group in groups for node in draw(rows_of(group, n, m, totals_local))]
    outer = (Local("t", F32, (1,), "s"),) if totals_local else ()
    root: Node = Block(tuple(body), outer)
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        root = draw(damaged(root))
    assert isinstance(root, Block)
    right = case(cluster(n, m), local=["s"] if totals_local else [])
    return replace(right, kernel=replace(right.kernel, body=root)), n, m, totals_local


@st.composite
def rows_of(draw: st.DrawFn, group: str, n: int, m: int, totals_local: bool) -> tuple[Node, ...]:
    """One loop nest over rows that executes a group of statements."""
    rows, i = draw(loops("i", n))
    inside: list[Node] = []
    for name in group:
        if DEPTH[name] == 1:
            inside.append(assign(name, (i,), totals_local))
            continue
        columns, j = draw(loops("j", m))
        if len(group) == 1 and draw(st.booleans()):  # interchanged
            rows, columns = columns, rows
        inside.extend(nest(columns, assign(name, (i, j), totals_local)))
    if totals_local and draw(st.integers(0, 4)):  # a local of its own for each row
        rows[-1] = replace(rows[-1], body=Block((), (Local("t", F32, (1,), "s"),)))
    return nest(rows, *inside)


@st.composite
def damaged(draw: st.DrawFn, node: Node) -> Node:
    """The node with one thing below it changed, at random."""
    match node:
        case Block(body=body) if body:
            k = draw(st.integers(0, len(body) - 1))
            action = draw(st.sampled_from(["below"] * 7 + ["drop", "twice", "swap"]))
            new = {"drop": (), "twice": (body[k], body[k]), "swap": (body[k],)}.get(action)
            if new is None:
                new = (draw(damaged(body[k])),)
            after = body[k + 1 :]
            if action == "swap":
                return replace(node, body=(*body[:k], *after, *new))
            return replace(node, body=(*body[:k], *new, *after))
        case For():
            by = draw(st.sampled_from([-1, 1]))
            match draw(st.sampled_from(["below"] * 4 + ["lower", "upper", "kind", "guard"])):
                case "lower":
                    return replace(node, lower=node.lower + by)
                case "upper":
                    return replace(node, upper=node.upper + by)
                case "kind":
                    return replace(node, kind=draw(st.sampled_from(KINDS)))
                case "guard":
                    always = Compare("eq", const(draw(st.integers(0, 1))))
                    test = Logic("or", (Compare("ge", var(node.var) - 1), always))
                    inside = (If(test, Block(node.body.body)),)
                    return replace(node, body=replace(node.body, body=inside))
                case _:
                    return replace(node, body=draw(damaged(node.body)))
        case If(then=then):
            return replace(node, then=draw(damaged(then)))
        case Assign():
            by = draw(st.sampled_from([-1, 1]))
            k = draw(st.integers(0, len(node.instance) - 1))
            shifted = tuple(x + by * (d == k) for d, x in enumerate(node.instance))
            if draw(st.booleans()):
                return replace(node, instance=shifted)
            index = node.target.index
            target = replace(node.target, index=(index[0] + by, *index[1:]))
            return replace(node, target=target)
        case _:
            return node


# -- the two verdicts -----------------------------------------------------------------------------

SEEN = {True: 0, False: 0}


@settings(max_examples=400, deadline=None, derandomize=True)
@given(cases())
def check_verdict(drawn: tuple[Case, int, int, bool]) -> None:
    nest, n, m, totals_local = drawn
    fault = find_fault(nest.kernel.body, n, m, totals_local)
    try:
        nest.verify()
        refusal = None
    except IllegalSchedule as error:
        refusal = str(error)
    assert (fault is None) == (refusal is None), f"{nest.kernel}\n{fault}\n{refusal}"
    SEEN[fault is None] += 1


def test_the_proof_agrees_with_an_enumeration() -> None:
    SEEN.update({True: 0, False: 0})
    check_verdict()
    assert min(SEEN.values()) >= 40, f"right and wrong nests must both occur: {SEEN}"
