"""How many threads a call is worth: by what they do between two barriers."""

import pytest

import polyc
from bench.polybench.blas import gemm
from bench.polybench.solvers import durbin
from bench.polybench.stencils import jacobi_1d

KERNELS = {
    "gemm": (
        gemm,
        [polyc.f64, polyc.f64, polyc.f64["n", "m"], polyc.f64["n", "k"], polyc.f64["k", "m"]],
    ),
    "durbin": (durbin, [polyc.f64["n"]] * 3),
    "jacobi_1d": (jacobi_1d, [polyc.i64, polyc.f64["n"], polyc.f64["n"]]),
}


@pytest.fixture(scope="module")
def callers():
    found = {}
    for name, (kernel, types) in KERNELS.items():
        arguments = kernel.function.arguments
        compiled = polyc.kernel(kernel.python).compile(**dict(zip(arguments, types, strict=True)))
        found[name] = compiled._last
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
def test_threads_that_would_wait_are_left_out(callers, name, sizes, wanted):
    caller = callers[name]
    library = caller.usual.library
    told = library.ffi.new("int64_t[]", [sizes[size.shown] for size in caller.signature.sizes])
    assert library.functions.polyc_team(told, 4) == wanted
    assert library.functions.polyc_team(told, 1) == 1
