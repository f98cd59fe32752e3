"""Kernels as C without Python: built by `make`, and run beside Python on all kinds of sizes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import polyc
from bench.polybench.kernels import PROBLEMS
from polyc.options import options_from_environment
from tests.sampling import thorough

RNG = np.random.default_rng(5)

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="there is no make")


def follow(x, y, shift, scale):
    """y[i] = scale * x[i + shift], and what a local of the usual sizes keeps in memory."""
    for i in range(len(y)):
        t = x[i + shift]
        for j in range(i):
            t += y[j]
        y[i] = t * scale


def exported(kernel, folder):
    """The library that `make` builds of an export, and its header."""
    kernel.export(folder)
    subprocess.run(["make", "-s"], cwd=folder, check=True)
    (library,) = folder.glob("lib/*.so")
    (header,) = folder.glob("model_*.h")
    subprocess.run(["./example"], cwd=folder, check=True, capture_output=True)
    return ctypes.CDLL(str(library)), header.read_text()


def run(library, inputs, states, sizes, threads=1):
    """polyc_run on arrays in place."""
    told = (ctypes.c_int64 * max(len(sizes), 1))(*sizes)
    library.polyc_arena_bytes.restype = ctypes.c_int64
    arena = np.empty(max(int(library.polyc_arena_bytes(told)), 0) + 64, np.uint8)
    start = -arena.ctypes.data % 64
    io = [*inputs, *(inputs[k] for k in states)]
    pointers = (ctypes.c_void_p * len(io))(*(a.ctypes.data for a in io))
    place = ctypes.c_void_p(arena.ctypes.data + start)
    return library.polyc_run(pointers, None, place, told, threads)


def test_c_does_what_python_does_and_says_what_sizes_it_refuses(tmp_path):
    kernel = polyc.kernel(follow).compile(
        x=polyc.f64["n"], y=polyc.f64["m"], shift=polyc.i64, scale=polyc.f32
    )
    library, header = exported(kernel, tmp_path / "follow")
    assert "sizes    those known only at run time: n (0 to any), m (0 to any), shift (-" in header
    assert "polyc_check" in header
    for n, m, shift in [
        (9, 5, 4),
        (9, 9, 0),
        (1, 1, 0),
        (40, 33, 3),
        (5, 0, 0),
        (0, 0, 0),
        (7, 3, -2),
    ]:
        x, y, scale = RNG.random(n), RNG.random(m), np.array(1.5, np.float32)
        theirs = y.copy()
        follow(x, theirs, shift, scale[()])
        for threads in (1, 2):
            mine = y.copy()
            assert run(library, [x, mine, scale], [1], (n, m, shift), threads) == 0
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    x, y = RNG.random(4), RNG.random(5)
    before = y.copy()
    status = run(library, [x, y, scale], [1], (4, 5, 0))
    assert status < -1
    assert f"{status}  a subscript of _x_ leaves the array" in header
    assert library.polyc_check((ctypes.c_int64 * 3)(4, 5, 0)) == status
    np.testing.assert_array_equal(y, before)
    other = np.array(y)
    pointers = (ctypes.c_void_p * 4)(*(a.ctypes.data for a in (x, y, scale, other)))
    assert library.polyc_run(pointers, None, None, (ctypes.c_int64 * 3)(4, 4, 0), 1) == -1


@pytest.mark.parametrize("name", [thorough("trisolv"), thorough("gesummv"), "jacobi-1d"])
def test_polybench_is_exported(tmp_path, name):
    problem = PROBLEMS[name]
    given = problem.make(*(5, 12)[: len(problem.sizes["mini"])])
    problem.kernel(**given)
    library, header = exported(problem.kernel, tmp_path / "kernel")
    assert problem.kernel.function.name in header
    manifest = problem.kernel._stored().bundle.manifest
    for count in (1, 2, 3, 21):
        given = problem.make(*(4, count)[2 - len(problem.sizes["mini"]) :])
        theirs = {n: np.copy(v) for n, v in given.items() if not isinstance(v, int)}
        problem.kernel.python(**{**given, **{n: v for n, v in theirs.items() if v.ndim}})
        arrays = [np.array(v) for v in given.values() if not isinstance(v, int)]
        sizes = [
            a.shape[int(s.name.rpartition("_")[2])] if "shape" in s.name else given[s.name]
            for s in manifest.sizes
            for a in [given.get(s.name.partition("_shape_")[0])]
        ]
        assert run(library, arrays, [s.input for s in manifest.states], sizes, 2) == 0
        for mine, reference in zip(arrays, theirs.values(), strict=True):
            np.testing.assert_allclose(mine, reference, rtol=1e-10)


def test_what_was_exported_is_replaced_and_other_folders_are_not(tmp_path):
    kernel = polyc.kernel(follow)
    with pytest.raises(polyc.errors.ShapeError, match="has not been compiled"):
        kernel.export(tmp_path / "early")
    kernel(RNG.random(4), RNG.random(4), 0, 2.0)
    kernel.export(tmp_path / "it")
    kernel.export(tmp_path / "it")
    (tmp_path / "it" / "mine").write_text("mine")
    with pytest.raises(polyc.errors.PolycError, match="choose another"):
        kernel.export(tmp_path / "it")


@pytest.mark.cuda
def test_cuda_is_exported_for_the_sizes_of_the_last_call(tmp_path):
    options = replace(options_from_environment(), emulated=True)
    kernel = polyc.kernel(target="cuda", options=options)(follow)
    kernel(RNG.random(4), RNG.random(4), 0, 2.0)
    kernel.export(tmp_path / "it")
    header = (tmp_path / "it" / "model_follow.h").read_text()
    assert "buffers[0]  double [4]  x" in header
    assert "buffers[3] = buffers[1]: one array" in header
    assert "buffers[3] = buffers[1];" in (tmp_path / "it" / "example.c").read_text()
    assert "PC_KERNEL" in (tmp_path / "it" / "src" / "model.cu").read_text()
