"""Kernels that move when others are fused stay behind what they read, under whatever shape."""

from dataclasses import replace

from polyc.mapping.cpu.free_fills import set_fills_free
from polyc.mapping.cpu.fuse_tiles import fuse_readers
from polyc.mapping.cpu.storing import store_clusters
from polyc.mapping.stored_kernel import StoredKernel
from polyc.schedule.cluster import Cluster
from polyc.scop.expr import Const, call
from polyc.scop.scop import Scop
from tests.analysis.nests import F32, array, load, statement
from tests.mapping.stages import AVX512


def regrouped_between() -> Scop:
    """A: T = -x;  B: P = -x;  C: Q = -P2, the memory of P;  D: y = T + Q."""
    line, square = "0 <= i < 64", "0 <= j < 8 and 0 <= k < 8"
    statements = (
        statement(
            f"{{ A[i] : {line} }}", "{ A[i] -> T[i] }", call("neg", load("{ A[i] -> x[i] }"))
        ),
        statement(
            f"{{ B[i] : {line} }}", "{ B[i] -> P[i] }", call("neg", load("{ B[i] -> x[i] }"))
        ),
        statement(
            f"{{ C[j, k] : {square} }}",
            "{ C[j, k] -> Q[j, k] }",
            call("neg", load("{ C[j, k] -> P2[j, k] }")),
        ),
        statement(
            f"{{ D[j, k] : {square} }}",
            "{ D[j, k] -> y[j, k] }",
            call("add", load("{ D[j, k] -> T[8j + k] }"), load("{ D[j, k] -> Q[j, k] }")),
        ),
    )
    kinds = {"x": "input", "y": "output"}
    shapes = {"x": [64], "T": [64], "P": [64], "P2": [8, 8], "Q": [8, 8], "y": [8, 8]}
    arrays = {n: array(n, shape, kinds.get(n, "temporary")) for n, shape in shapes.items()}
    arrays["P2"] = replace(arrays["P2"], memory="P")
    return Scop("g", statements, arrays, ("x",), ("y",))


def fuse_at(scop: Scop, first: str) -> list[list[str]]:
    """The statements of the kernels when whatever reads what `first` writes is fused with it."""
    clusters = tuple(
        Cluster((s,), tuple({s.name: k} for k in range(len(s.iterators))), False)
        for s in scop.statements
    )
    stored = store_clusters(clusters, scop, AVX512)

    def fuse(kernel, one, handed):
        begins = kernel.statements[0].name == first
        return StoredKernel((*kernel.parts, one), handed=handed) if begins else None

    kernels = fuse_readers(stored.clusters, scop.arrays, fuse)
    return [[s.name for s in kernel.statements] for kernel in kernels]


def test_a_reader_under_another_shape_stays_behind_the_writer():
    assert fuse_at(regrouped_between(), "A") == [["B"], ["C"], ["A", "D"]]


def test_a_reader_under_another_shape_is_not_fused_with_the_writer():
    """Though it reads something else of that kernel as it is."""
    of = regrouped_between()
    c = replace(
        of.statements[2], value=call("add", of.statements[2].value, load("{ C[j, k] -> P[k] }"))
    )
    assert fuse_at(replace(of, statements=(*of.statements[:2], c, of.statements[3])), "B")[:2] == [
        ["A"],
        ["B"],
    ]


def framed_for_two() -> Scop:
    """A: T = -x;  F: X[0] = 0, before W: X[1 + i] = -T[i];  B: y = -X;  C: z = -X."""
    line, frame = "0 <= i < 64", "0 <= i < 65"
    statements = (
        statement(
            f"{{ A[i] : {line} }}", "{ A[i] -> T[i] }", call("neg", load("{ A[i] -> x[i] }"))
        ),
        statement("{ F[i] : i = 0 }", "{ F[i] -> X[i] }", Const(0.0, F32)),
        statement(
            f"{{ W[i] : {line} }}", "{ W[i] -> X[1 + i] }", call("neg", load("{ W[i] -> T[i] }"))
        ),
        *(
            statement(
                f"{{ {name}[i] : {frame} }}",
                f"{{ {name}[i] -> {target}[i] }}",
                call("neg", load(f"{{ {name}[i] -> X[i] }}")),
            )
            for name, target in (("B", "y"), ("C", "z"))
        ),
    )
    kinds = {"x": "input", "y": "output", "z": "output"}
    shapes = {"x": [64], "T": [64], "X": [65], "y": [65], "z": [65]}
    arrays = {n: array(n, shape, kinds.get(n, "temporary")) for n, shape in shapes.items()}
    return Scop("g", statements, arrays, ("x",), ("y", "z"))


def test_what_two_read_is_handed_to_neither_where_its_fills_are_parts_themselves():
    """A fill that has become a part touches the array, and is no reader that others are left for.

    basic-pitch 0.4.0, a network that transcribes music, was refused for that.
    """
    scop = framed_for_two()
    a, f, w, b, c = (Cluster((s,), ({s.name: 0},), False) for s in scop.statements)
    stored = store_clusters((a, replace(w, prelude=f.statements), b, c), scop, AVX512)
    asked = []

    def fuse(kernel, one, handed):
        asked.append((one.cluster.statements[-1].name, set(handed)))
        parts = [part for p in (*kernel.parts, one) for part in set_fills_free(p, scop.arrays)]
        return StoredKernel(tuple(parts), handed=handed)

    kernels = fuse_readers(stored.clusters, scop.arrays, fuse)
    assert asked == [("W", {"T"})]
    assert [[s.name for s in kernel.statements] for kernel in kernels] == [
        ["A", "F", "W"],
        ["B"],
        ["C"],
    ]
