"""Small clusters and the loops that execute them, written by hand, for the tests of the proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import islpy as isl
import numpy as np

from polyc.analysis.proof import Proof
from polyc.analysis.verify import verify_kernel
from polyc.loopnest.index import Affine, Condition, const, floordiv, var
from polyc.loopnest.marks import LoopKind
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    If,
    Kernel,
    Local,
    LoopExpr,
    Node,
    Read,
)
from polyc.loopnest.prototype import Param
from polyc.memory.storage import Storage, permuted, row_major
from polyc.scop.expr import Call, Const, Expr, Load, call
from polyc.scop.scop import Array, Kind, Reduction, Scop, Statement

F32 = np.dtype(np.float32)
Index = Affine | int


@dataclass(frozen=True)
class Case:
    """A kernel with all that it is judged by."""

    scop: Scop
    kernel: Kernel
    storages: Mapping[str, Storage]
    parameters: Mapping[str, str]

    def verify(self) -> Proof:
        return verify_kernel(self.kernel, self.scop, self.storages, self.parameters)

    def with_body(self, *nodes: Node) -> Case:
        return replace(self, kernel=replace(self.kernel, body=Block(nodes)))


# -- scops ----------------------------------------------------------------------------------------


def array(name: str, shape: Sequence[int], kind: Kind) -> Array:
    return Array(name, F32, tuple(shape), kind)


def statement(
    domain: str,
    write: str,
    value: Expr,
    reduction: Reduction | None = None,
) -> Statement:
    """From isl literals: domain "{ S[i] : … }", write "{ S[i] -> A[i] }"."""
    points, target = isl.Set(domain), isl.PwMultiAff(write)
    names = tuple(points.get_dim_name(isl.dim_type.set, k) for k in range(points.n_dim()))
    array_name = target.get_tuple_name(isl.dim_type.out)
    return Statement(points.get_tuple_name(), points, names, array_name, target, value, reduction)


def load(access: str) -> Load:
    index = isl.PwMultiAff(access)
    return Load(index.get_tuple_name(isl.dim_type.out), index, F32)


def scop(arrays: Sequence[Array], *statements: Statement) -> Scop:
    of_kind = {k: tuple(a.name for a in arrays if a.kind == k) for k in ("input", "output")}
    table = {a.name: a for a in arrays}
    return Scop("cluster", statements, table, of_kind["input"], of_kind["output"])


ZERO = Const(0.0, F32)

# -- loops ----------------------------------------------------------------------------------------


def at(array: str, *index: Index) -> Element:
    return Element(array, indices(*index))


def indices(*index: Index) -> tuple[Affine, ...]:
    return tuple(const(i) if isinstance(i, int) else i for i in index)


def read(array: str, *index: Index) -> Read:
    return Read(at(array, *index), F32)


def guarded(array: str, *index: Index) -> Read:
    """A read that happens only where a select around it says so."""
    return Read(at(array, *index), F32, guarded=True)


def loop(
    name: str,
    upper: Index,
    *body: Node,
    kind: LoopKind = "sequential",
    step: int = 1,
    lower: Index = 0,
    locals: Sequence[Local] = (),
) -> For:
    low, high = indices(lower, upper)
    return For(name, low, high, step, Block(body, tuple(locals)), kind)


def run(
    statement: str,
    at_instance: Sequence[Index],
    target: Element,
    value: LoopExpr,
    reduction: Reduction | None = None,
) -> Assign:
    return Assign(statement, indices(*at_instance), target, value, F32, reduction)


def when(condition: Condition, *body: Node) -> If:
    return If(condition, Block(body))


def case(
    of: Scop, *body: Node, storages: Mapping[str, Storage] | None = None, local: Sequence[str] = ()
) -> Case:
    """A kernel "k" whose parameters are the scop's arrays but those named in `local`."""
    stored = {a.name: row_major(a) for a in of.arrays.values()} | dict(storages or {})
    written = {s.array for s in of.statements}
    params = tuple(
        Param(name, a.dtype, stored[name].shape, name in written)
        for name, a in of.arrays.items()
        if name not in local
    )
    parameters = {p.name: p.name for p in params}
    return Case(of, Kernel("k", params, Block(body)), stored, parameters)


# -- matmul, convolution, softmax -----------------------------------------------------------------

ci, cj, ck = var("i"), var("j"), var("k")


def matmul_scop(m: int = 4, n: int = 32, k: int = 5) -> Scop:
    product = call("mul", load("{ S[i,j,k] -> X[i,k] }"), load("{ S[i,j,k] -> W[k,j] }"))
    total = Call("max", (load("{ T[i,j] -> acc[i,j] }"), ZERO), F32)
    return scop(
        [
            array("X", [m, k], "input"),
            array("W", [k, n], "constant"),
            array("acc", [m, n], "temporary"),
            array("Y", [m, n], "output"),
        ],
        statement(f"{{ Z[i,j] : 0<=i<{m} and 0<=j<{n} }}", "{ Z[i,j] -> acc[i,j] }", ZERO),
        statement(
            f"{{ S[i,j,k] : 0<=i<{m} and 0<=j<{n} and 0<=k<{k} }}",
            "{ S[i,j,k] -> acc[i,j] }",
            product,
            "add",
        ),
        statement(f"{{ T[i,j] : 0<=i<{m} and 0<=j<{n} }}", "{ T[i,j] -> Y[i,j] }", total),
    )


def matmul(m: int = 4, n: int = 32, k: int = 5, vector: int = 8) -> Case:
    """for i (parallel), for jj step vector: a register tile of `vector` totals; W is blocked."""
    of = matmul_scop(m, n, k)
    jj, v = var("jj"), var("v")
    j = jj + v
    blocked = permuted(of.arrays["W"], [1, 0], [(1, vector)])
    w = read("W", floordiv(jj, vector), ck, v)
    body = loop(
        "i",
        m,
        loop(
            "jj",
            n,
            loop("v", vector, run("Z", [ci, j], at("r", v), ZERO), kind="vector"),
            loop(
                "k",
                k,
                loop(
                    "v",
                    vector,
                    run("S", [ci, j, ck], at("r", v), call("mul", read("X", ci, ck), w), "add"),
                    kind="vector",
                ),
            ),
            loop(
                "v",
                vector,
                run("T", [ci, j], at("Y", ci, j), Call("max", (read("r", v), ZERO), F32)),
                kind="vector",
            ),
            step=vector,
            locals=[Local("r", F32, (vector,), "acc", True)],
        ),
        kind="parallel",
    )
    return case(of, body, storages={"W": blocked}, local=["acc"])


def conv_scop(o: int, y: int, x: int, c: int, r: int) -> Scop:
    full = f"0<=n<1 and 0<=o<{o} and 0<=y<{y} and 0<=x<{x}"
    point = "n,o,y,x,c,r,q"
    product = call(
        "mul", load(f"{{ S[{point}] -> X[n,c,y+r,x+q] }}"), load(f"{{ S[{point}] -> W[o,c,r,q] }}")
    )
    total = call("add", load("{ T[n,o,y,x] -> acc[n,o,y,x] }"), load("{ T[n,o,y,x] -> B[o] }"))
    return scop(
        [
            array("X", [1, c, y + r - 1, x + r - 1], "input"),
            array("W", [o, c, r, r], "constant"),
            array("B", [o], "constant"),
            array("acc", [1, o, y, x], "temporary"),
            array("Y", [1, o, y, x], "output"),
        ],
        statement(f"{{ Z[n,o,y,x] : {full} }}", "{ Z[n,o,y,x] -> acc[n,o,y,x] }", ZERO),
        statement(
            f"{{ S[{point}] : {full} and 0<=c<{c} and 0<=r<{r} and 0<=q<{r} }}",
            f"{{ S[{point}] -> acc[n,o,y,x] }}",
            product,
            "add",
        ),
        statement(f"{{ T[n,o,y,x] : {full} }}", "{ T[n,o,y,x] -> Y[n,o,y,x] }", total),
    )


def conv(
    o: int = 64, y: int = 56, x: int = 56, c: int = 64, r: int = 3, ot: int = 16, xt: int = 14
) -> Case:
    """NCHWc convolution: n, o/16, y, x/14, then a register tile x%14 by o%16 over c, r, q."""
    of = conv_scop(o, y, x, c, r)
    n, oo, yy, xx, cc, rr, q, u, v = (
        var(name) for name in ("n", "oo", "y", "xx", "c", "r", "q", "u", "v")
    )
    ox, oc = xx * xt + u, oo * ot + v
    storages = {
        "W": permuted(of.arrays["W"], [0, 1, 2, 3], [(0, ot)]),
        "B": permuted(of.arrays["B"], [0], [(0, ot)]),
        "Y": permuted(of.arrays["Y"], [0, 1, 2, 3], [(1, ot)]),
    }

    def tile(assign: Assign) -> Node:
        return loop("u", xt, loop("v", ot, assign, kind="vector"), kind="unroll")

    product = call("mul", read("X", n, cc, yy + rr, ox + q), read("W", oo, cc, rr, q, v))
    total = call("add", read("a", u, v), read("B", oo, v))
    inner = loop(
        "xx",
        x // xt,
        tile(run("Z", [n, oc, yy, ox], at("a", u, v), ZERO)),
        loop(
            "c",
            c,
            loop(
                "r",
                r,
                loop(
                    "q",
                    r,
                    tile(run("S", [n, oc, yy, ox, cc, rr, q], at("a", u, v), product, "add")),
                ),
            ),
        ),
        tile(run("T", [n, oc, yy, ox], at("Y", n, oo, yy, ox, v), total)),
        locals=[Local("a", F32, (xt, ot), "acc", True)],
    )
    body = loop(
        "n",
        1,
        loop("oo", o // ot, loop("y", y, inner, kind="parallel"), kind="parallel"),
        kind="parallel",
    )
    return case(of, body, storages=storages, local=["acc"])


def softmax_scop(rows: int = 6, columns: int = 10) -> Scop:
    i, ij = f"0<=i<{rows}", f"0<=i<{rows} and 0<=j<{columns}"
    lowest = Const(float("-inf"), F32)
    shifted = call("exp", call("sub", load("{ E[i,j] -> X[i,j] }"), load("{ E[i,j] -> M[i] }")))
    return scop(
        [
            array("X", [rows, columns], "input"),
            array("M", [rows], "temporary"),
            array("D", [rows, columns], "temporary"),
            array("N", [rows], "temporary"),
            array("Y", [rows, columns], "output"),
        ],
        statement(f"{{ M0[i] : {i} }}", "{ M0[i] -> M[i] }", lowest),
        statement(
            f"{{ M1[i,j] : {ij} }}", "{ M1[i,j] -> M[i] }", load("{ M1[i,j] -> X[i,j] }"), "max"
        ),
        statement(f"{{ E[i,j] : {ij} }}", "{ E[i,j] -> D[i,j] }", shifted),
        statement(f"{{ N0[i] : {i} }}", "{ N0[i] -> N[i] }", ZERO),
        statement(
            f"{{ N1[i,j] : {ij} }}", "{ N1[i,j] -> N[i] }", load("{ N1[i,j] -> D[i,j] }"), "add"
        ),
        statement(
            f"{{ V[i,j] : {ij} }}",
            "{ V[i,j] -> Y[i,j] }",
            call("div", load("{ V[i,j] -> D[i,j] }"), load("{ V[i,j] -> N[i] }")),
        ),
    )


def softmax(rows: int = 6, columns: int = 10) -> Case:
    """One parallel loop over rows; the row lives in locals; both reductions are vectorised."""
    of = softmax_scop(rows, columns)
    shifted = call("exp", call("sub", read("X", ci, cj), read("m", 0)))

    def row(assign: Assign) -> For:
        return loop("j", columns, assign, kind="vector")

    body = loop(
        "i",
        rows,
        run("M0", [ci], at("m", 0), Const(float("-inf"), F32)),
        row(run("M1", [ci, cj], at("m", 0), read("X", ci, cj), "max")),
        row(run("E", [ci, cj], at("d", cj), shifted)),
        run("N0", [ci], at("s", 0), ZERO),
        row(run("N1", [ci, cj], at("s", 0), read("d", cj), "add")),
        row(run("V", [ci, cj], at("Y", ci, cj), call("div", read("d", cj), read("s", 0)))),
        kind="parallel",
        locals=[
            Local("m", F32, (1,), "M"),
            Local("d", F32, (columns,), "D"),
            Local("s", F32, (1,), "N"),
        ],
    )
    return case(of, body, local=["M", "D", "N"])


def pointwise(*body: Node, n: int = 10) -> Case:
    """Y[i] = X[i]."""
    of = scop(
        [array("X", [n], "input"), array("Y", [n], "output")],
        statement(f"{{ P[i] : 0<=i<{n} }}", "{ P[i] -> Y[i] }", load("{ P[i] -> X[i] }")),
    )
    return case(of, *body)


def copy_at(index: Affine) -> Assign:
    return run("P", [index], at("Y", index), read("X", index))


def recurrence(kind: LoopKind = "sequential", reverse: bool = False) -> Case:
    """Y[i] = Y[i - 1], Y[0] = 0."""
    of = scop(
        [array("Y", [6], "output")],
        statement("{ B[] }", "{ B[] -> Y[0] }", ZERO),
        statement("{ R[i] : 1<=i<6 }", "{ R[i] -> Y[i] }", load("{ R[i] -> Y[i-1] }")),
    )
    i = const(6) - ci if reverse else ci
    step = run("R", [i], at("Y", i), read("Y", i - 1))
    return case(of, run("B", [], at("Y", 0), ZERO), loop("i", 6, step, lower=1, kind=kind))
