"""How many threads a call is worth: by what they do between two barriers."""

import pytest

import polyc
from bench.polybench.blas import gemm
from bench.polybench.solvers import durbin
from bench.polybench.stencils import jacobi_1d
from polyc.loops.read.sizes import Signature
from polyc.loops.run.compile import compile_loops
from polyc.options import Options
from polyc.target.machine import Target
from polyc.threads.worth import choose_threads

KERNELS = {
    "gemm": (
        gemm,
        [polyc.f64, polyc.f64, polyc.f64["n", "m"], polyc.f64["n", "k"], polyc.f64["k", "m"]],
    ),
    "durbin": (durbin, [polyc.f64["n"]] * 3),
    "jacobi_1d": (jacobi_1d, [polyc.i64, polyc.f64["n"], polyc.f64["n"]]),
}


@pytest.fixture(scope="module")
def compiled():
    found = {}
    for name, (kernel, types) in KERNELS.items():
        signature = Signature(dict(zip(kernel.function.arguments, types, strict=True)))
        loops = compile_loops(kernel.function, signature, Target.named("avx2"), Options())
        found[name] = loops.kernel, [size.shown for size in signature.sizes]
    return found


CASES = [
    ("gemm", {"n": 2000, "m": 2000, "k": 2000}, 4),
    ("gemm", {"n": 10, "m": 10, "k": 10}, 1),  # done before a thread is awake
    ("gemm", {"n": 0, "m": 10, "k": 10}, 1),
    ("durbin", {"n": 2000}, 1),  # a few barriers for each of some hundred vectors
    ("jacobi_1d", {"n": 500, "steps": 500}, 1),  # a wavefront has one tile
    ("jacobi_1d", {"n": 2_000_000, "steps": 500}, 4),
]


@pytest.mark.parametrize(("name", "sizes", "wanted"), CASES)
def test_threads_that_would_wait_are_left_out(compiled, name, sizes, wanted):
    kernel, shown = compiled[name]
    values = dict(zip(kernel.sizes, (sizes[name] for name in shown), strict=True))
    assert choose_threads(kernel, values, 4) == wanted
    assert choose_threads(kernel, values, 1) == 1
