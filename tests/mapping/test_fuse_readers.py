"""Kernels that move when others are fused stay behind what they read, under whatever shape."""

from dataclasses import replace

from polyc.mapping.cpu.fuse_tiles import fuse_readers
from polyc.mapping.cpu.storing import store_clusters
from polyc.mapping.stored_kernel import StoredKernel
from polyc.schedule.cluster import Cluster
from polyc.scop.expr import call
from polyc.scop.scop import Scop
from tests.analysis.nests import array, load, statement
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
