"""Products keep boxes of results in registers: the text says so, and borders are right."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import polyc
from bench.polybench.algebra import two_products
from bench.polybench.blas import gemm, syrk, trmm
from bench.polybench.solvers import cholesky, lu
from polyc.analysis.verify import verify_kernel
from polyc.codegen.hold import hold
from polyc.errors import IllegalSchedule
from polyc.loopnest.nodes import Block, For, Node, rewrite_nodes, walk_nodes
from polyc.loops.lower.lower import lower
from polyc.loops.read.sizes import Signature
from polyc.loops.run.compile import compile_loops
from polyc.memory.storage import row_major
from polyc.options import Options
from polyc.target.machine import Target
from polyc.types.ranges import assume
from tests.loops.against_python import check
from tests.sampling import sampled, thorough

RNG = np.random.default_rng(7)


def random(*shape: int) -> np.ndarray:
    return RNG.random(shape)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (9, 24, 1), (10, 25, 3), (8, 23, 5), (17, 49, 2), (131, 250, 260)]
)
def test_a_product_is_right_at_its_borders(shape, threads):
    n, m, inner = shape
    C, A, B = random(n, m), random(n, inner), random(inner, m)
    expected = 0.5 * C + 1.5 * A @ B
    replace(gemm, threads=threads)(1.5, 0.5, C, A, B)
    np.testing.assert_allclose(C, expected, rtol=1e-12)


@polyc.kernel
def scatter(C, A, B, steps):
    for k in range(A.shape[0]):
        for i in range(C.shape[0] - 1, -1, -1):
            for j in range(2, C.shape[1]):
                C[i, j - 1] -= A[k, i] * B[k, j] * steps


CASES = {
    "lu": (lu, lambda n: (random(n, n) + n * np.eye(n),)),
    "trmm": (trmm, lambda n: (1.5, random(n, n), random(n, n + 1))),
    "two products": (
        two_products,
        lambda n: (1.5, 0.5, *(random(n, n) for _ in range(5))),
    ),
    "columns": (syrk, lambda n: (1.5, 0.5, random(n, n), random(n, n + 2))),
    "columns of results": (cholesky, lambda n: (random(n, n) / n + n * np.eye(n),)),
    "scatter": (scatter, lambda n: (random(n, n), random(n, n), random(n, n), 3)),
}


@pytest.mark.parametrize("name", sampled(CASES, seldom=["lu", "two products"]))
def test_products_of_other_shapes_are_right(name):
    kernel, arguments = CASES[name]
    for n in (1, 3, 33):
        for threads in (1, 2):
            used = replace(kernel, threads=threads)
            check(used, *arguments(n))
    assert "mark  hold" in used.explain()


@pytest.mark.parametrize("kernel", [syrk, cholesky])
def test_what_is_read_down_columns_is_copied_into_rows(kernel):
    arguments = (1.5, 0.5, random(9, 9), random(9, 4)) if kernel is syrk else (np.eye(9),)
    kernel(*arguments)
    assert re.search(r"A_t\[\w+, \w+\] = A\[\w+, \w+\]", kernel.explain())
    assert "pc_load_f64x" in kernel.source


def f64s(*ranks: int) -> Signature:
    arrays = (polyc.f64[(None,) * rank] if rank else polyc.f64 for rank in ranks)
    return Signature(dict(zip(["alpha", "beta", "C", "A", "B"], arrays, strict=True)))


@pytest.mark.parametrize("isa", ["avx512", thorough("avx2"), "baseline"])
def test_results_live_in_registers_of_every_target(isa):
    target = Target.named(isa)
    compiled = compile_loops(gemm.function, f64s(0, 0, 2, 2, 2), target, Options())
    text = compiled.text
    lanes = target.vectors.bytes // 8
    assert f"pc_store_f64x{lanes}(&C_[" in text
    assert f"f64x{lanes} acc_0_0_0, " in text
    assert "acc_0_0_0 += (" in text
    kinds = [n.kind for n in walk_nodes(compiled.kernel.body) if isinstance(n, For)]
    assert kinds.count("hold") == 6  # of all rows or of one; of all vectors, of one, or of a part
    assert (f"pc_storen_f64x{lanes}(&C_[" in text) == (lanes > 2)  # else it is one column


@pytest.mark.parametrize("l1d", [thorough(32), 48])
def test_tiles_for_any_cache_cut_no_box(l1d):
    target = replace(Target.named("avx512"), l1d=l1d * 1024)
    compiled = compile_loops(lu.function, Signature({"A": polyc.f64["n", "n"]}), target, Options())
    assert "acc_0_0_0 += " in compiled.text  # what a box keeps that may be cut goes through memory


@polyc.kernel
def last(x, A):
    for i in range(x.shape[0]):
        for j in range(A.shape[1]):
            x[i] += A[i, j] * x[0]


def test_what_is_touched_in_between_is_not_kept():
    signature = Signature({"x": polyc.f64["n"], "A": polyc.f64["n", "m"]})
    compiled = compile_loops(last.function, signature, Target.named("avx2"), Options())
    scop = lower(last.function, signature).scop
    storages = {name: row_major(array) for name, array in scop.arrays.items()}

    def keep(node: Node) -> Node:
        return replace(node, kind="hold") if isinstance(node, For) else node

    body = rewrite_nodes(compiled.kernel.body, keep)
    names = {name: name for name in scop.arrays}
    said = r"keeps x\[.*\], and touches it as x\[0\]"
    with assume(signature.sizes), pytest.raises(IllegalSchedule, match=said):
        verify_kernel(replace(compiled.kernel, body=body), scop, storages, names)


def test_loops_with_more_than_one_assignment_keep_nothing():
    signature = Signature({"x": polyc.f64["n"], "A": polyc.f64["n", "m"]})
    body = compile_loops(last.function, signature, Target.named("avx2"), Options()).kernel.body
    (assign,) = (n for n in walk_nodes(body) if type(n).__name__ == "Assign")
    loop = next(n for n in walk_nodes(body) if isinstance(n, For))
    twice = replace(loop, kind="hold", body=Block((assign, assign)))
    assert hold(Block((twice,))) == Block((replace(twice, kind="sequential"),))


@polyc.kernel
def weigh(C, A, B):
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_that_fill_no_vector_are_held_in_lanes(dtype):
    for rows, columns, depth in ((1, 1, 1), (9, 30, 16), (8, 3, 40), (17, 25, 1), (30, 49, 300)):
        A, B = (RNG.random(shape).astype(dtype) for shape in ((rows, depth), (depth, columns)))
        check(weigh, np.ones((rows, columns), dtype), A, B)
    assert re.search(r"acc_\d_0_0 = pc_loadn_f\d\dx\d+\(&C_\[.*_start", weigh.source)


@polyc.kernel
def below_the_diagonal(C, A, B):
    for i in range(C.shape[0]):
        for k in range(A.shape[1]):
            for j in range(k + 1):
                C[i, j] += A[i, k] * B[k, j]


def test_columns_of_a_length_that_changes_are_not():
    for n in (1, 8, 30, 53):
        check(below_the_diagonal, *(RNG.random((n, n)) for _ in range(3)))
    assert "_start" not in below_the_diagonal.source
