"""Calls without the way through Python: taken where all fits, and nowhere else."""

import itertools
import pathlib
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.errors import RuntimeFailure, ShapeError
from polyc.options import Options
from polyc.run import cpu_model, quick
from tests.staged import compile_in, model_of

A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5)
PRODUCT = A.astype(np.float64) @ B


class Derived(np.ndarray):
    pass


def at_odd_bytes(x):
    memory = np.empty(x.nbytes + 1, np.uint8)[1:]
    shifted = memory.view(x.dtype).reshape(x.shape)
    shifted[...] = x
    return shifted


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def compile_product(folder, rows=3):
    graph = Graph.of(c=ops.matmul(ops.input("a", (rows, 4)), ops.input("b", (4, 5))))
    return polyc.compile(graph, options=Options(cache_dir=folder, progress=False))


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    return compile_product(tmp_path_factory.mktemp("cache"))


def test_what_fits_is_done_and_all_else_is_declined(product):
    """What is declined leaves the result as it is, and is done or refused by the longer way."""
    call = product._quick
    out = np.full((3, 5), 7, np.float32)
    others = [
        (), (A,), (A, B), (A, B, out, out), (None, B, out), (3, B, out), (A, B.tolist(), out),
        (A.astype(np.float64), B, out), (A.astype(">f4"), B, out), (A.view(np.int32), B, out),
        (A.view("V4"), B, out), (A.view([("f", "f4")]), B, out), (A.reshape(4, 3), B, out),
        (A.reshape(1, 3, 4), B, out),
        (A.ravel(), B, out), (A[:2], B, out), (np.asfortranarray(A), B, out), (A[::-1], B, out),
        (np.repeat(A, 2, 1)[:, ::2], B, out), (at_odd_bytes(A), B, out), (read_only(A), B, out),
        (A.view(Derived), B, out), (A, B, read_only(out)), (A, B, out.astype(np.float16)),
        (A, B, np.empty((5, 3), np.float32).T), (A, B, np.float32(0)), (A, B, [out]),
    ]  # fmt: skip
    for arrays in others:
        assert call(1, *arrays) == quick.DECLINED
    assert (out == 7).all()
    assert call(1, A, B, out) == 0
    np.testing.assert_allclose(out, PRODUCT, rtol=1e-5, atol=1e-6)
    sent = pickle.loads(pickle.dumps(A))  # its dtype is an object of its own
    assert call(1, sent, B, out) == 0
    with pytest.raises(TypeError):
        call("one", A, B, out)


OUTLIVED = """
import gc, pathlib, sys
sys.path.append(sys.argv[1])
from tests.run.test_quick import compile_product
quick = compile_product(pathlib.Path(sys.argv[2]))._quick
gc.collect()  # closes the library
cycle = [quick]
cycle.append(cycle)
del cycle
gc.collect()
assert quick.__name__ == "polyc_run" and "polyc_run" in repr(quick), quick
del quick
gc.collect()
"""


def test_a_function_may_outlive_its_library(tmp_path):
    """Python reads its description, as while it collects garbage, when the library is closed."""
    root = pathlib.Path(__file__).parents[2]
    run = [sys.executable, "-c", OUTLIVED, str(root), str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_result_that_is_an_input_is_named(product):
    memory = np.zeros(32, np.float32)
    a, out = memory[:12].reshape(3, 4), memory[8:23].reshape(3, 5)
    with pytest.raises(ShapeError, match="output 'c' overlaps an input"):
        product(a, B, out=out)


def test_where_headers_lie_otherwise_calls_take_the_longer_way(tmp_path, monkeypatch):
    assert quick.is_readable()
    monkeypatch.setattr(quick, "_FLAGS", quick._FLAGS + 4)
    assert not quick.is_readable.__wrapped__()
    monkeypatch.setattr(quick, "is_readable", lambda: False)
    model = compile_product(tmp_path)
    assert model._quick is None
    out = np.empty((3, 5), np.float32)
    np.testing.assert_allclose(model(A, B, out=out), PRODUCT, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(model(a=A, b=B), out)


def test_an_index_out_of_range_is_met_once(tmp_path):
    graph = Graph.of(y=ops.gather(ops.input("x", (5,)), ops.input("k", (2,), np.int64)))
    model = polyc.compile(graph, options=Options(cache_dir=tmp_path, progress=False))
    x, out = np.arange(5, dtype=np.float32), np.empty(2, np.float32)
    np.testing.assert_array_equal(model(x, np.array([4, -5]), out=out), [4, 0])
    for k in ([0, 5], [-6, 0]):
        with pytest.raises(RuntimeFailure, match="out of range in"):
            model(x, np.array(k), out=out)
    assert model._quick(1, x, np.array([1, 2]), out) == 0  # it lets others in again


def test_calls_of_many_threads(product):
    """One at a time has the memory of quick calls; what comes meanwhile takes the longer way."""
    wrong = []

    def work(seed):
        a, out = np.full((3, 4), seed, np.float32), np.empty((3, 5), np.float32)
        for _ in range(300):
            if not np.allclose(product(a, B, out=out), a @ B, rtol=1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert wrong == []


def test_sizes_that_come_often_are_made_quick(tmp_path):
    model = compile_product(tmp_path, "rows")
    assert model._quick is None

    def check(rows):
        a = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
        out = np.empty((rows, 5), np.float32)
        expected = a.astype(np.float64) @ B
        np.testing.assert_allclose(model(a, B, out=out), expected, rtol=1e-5, atol=1e-4)
        np.testing.assert_array_equal(model(a, B), out)
        return a, out

    for rows in (1, 7, 1, 7, 1):
        check(rows)
    assert model._quick is None
    for rows, _ in itertools.product((7, 3, 2), range(cpu_model.OFTEN)):
        a, out = check(rows)
    assert model._quick(1, a, B, out) == 0
    for rows in (7, 2, 3, 1, 7):
        check(rows)
    with pytest.raises(ShapeError, match="'b' has shape"):
        model(A, B[:3], out=np.empty((3, 5), np.float32))


def test_what_reads_values_or_finds_sizes_is_asked_in_python(tmp_path):
    found = compile_in(tmp_path)(model_of("g (float[6] x) => (int64[1, n] y) { y = NonZero(x) }"))
    x = np.array([0, 1, 0, 0, 2, 3], np.float32)
    for _ in range(2 * cpu_model.OFTEN):
        np.testing.assert_array_equal(found(x), np.array(np.nonzero(x)))
    assert found._quick is None
