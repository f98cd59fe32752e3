"""A kernel called again with the same arguments, and with ones that only look like them."""

import numpy as np
import pytest

import polyc
from bench.polybench.everyday import nearest
from polyc.errors import ShapeError


def _kernel():
    @polyc.kernel
    def add(x, y, scale, steps):
        for _ in range(steps):
            for i in range(len(x)):
                y[i] += scale * x[i]

    return add


def _is_right(add, x, y, scale=2.0, steps=1):
    """Call a kernel; whether it has added what it should."""
    expected = y + steps * scale * x if steps else y.copy()
    add(x, y, scale, steps)
    return np.allclose(y, expected, rtol=1e-7, atol=0)


def test_the_same_arguments_are_the_same_call():
    add, x, y = _kernel(), np.arange(5.0), np.zeros(5)
    for _ in range(3):
        assert _is_right(add, x, y)
    x += 1  # other elements of the same arrays
    assert _is_right(add, x, y)
    add(x, y, scale=2.0, steps=1)
    add(x, y, steps=1, scale=2.0)
    np.testing.assert_allclose(y, 2 * (3 * np.arange(5.0) + 3 * (np.arange(5.0) + 1)))


def test_other_numbers_are_another_call():
    add, x, y = _kernel(), np.arange(5.0), np.zeros(5)
    for scale, steps in [(1.0, 1), (3.0, 1), (3.0, 2), (3.0, 0), (np.nan, 0)]:
        assert _is_right(add, x, y, scale, steps)


def test_a_negative_zero_is_another_number():
    @polyc.kernel
    def sign(x, value):
        for i in range(len(x)):
            x[i] = value

    x = np.zeros(3)
    for value in (0.0, -0.0, 0.0):
        sign(x, value)
        assert np.signbit(x).tolist() == [np.signbit(value)] * 3


def test_other_arrays_are_another_call():
    add = _kernel()
    for n in (5, 5, 0, 1, 700):
        assert _is_right(add, np.arange(float(n)), np.ones(n))


def test_an_array_that_was_changed_in_place_is_checked_anew():
    @polyc.kernel
    def fill(A):
        n, m = A.shape
        for i in range(n):
            for j in range(m):
                A[i, j] = 10 * i + j

    A = np.zeros((2, 6))
    fill(A)
    A.shape = (3, 4)
    fill(A)
    assert A.tolist() == [[10 * i + j for j in range(4)] for i in range(3)]
    A.flags.writeable = False
    with pytest.raises(ShapeError, match="read-only"):
        fill(A)


def test_memory_that_two_arguments_share_is_found_each_time():
    add, x, y = _kernel(), np.arange(8.0), np.zeros(8)
    assert _is_right(add, x, y)
    for _ in range(2):
        with pytest.raises(ShapeError, match="shares memory"):
            add(x, x, 2.0, 1)
    assert _is_right(add, x, y)


def test_arrays_that_are_copied_are_copied_each_time():
    add, x, y = _kernel(), np.arange(16.0)[::2], np.zeros((8, 2))[:, 0]
    for _ in range(3):
        assert _is_right(add, x, y)


def test_no_array_is_kept_alive():
    import gc
    import weakref

    add, x, y = _kernel(), np.arange(8.0), np.zeros(8)
    assert _is_right(add, x, y)
    seen = weakref.ref(y)
    del y
    gc.collect()
    assert seen() is None
    assert _is_right(add, x, np.ones(8))


def test_data_that_leaves_an_array_is_told_each_time():
    @polyc.kernel
    def gather(x, index, y):
        for i in range(len(y)):
            y[i] = x[index[i]]

    x, index, y = np.arange(4.0), np.array([0, 1, 2]), np.zeros(3)
    gather(x, index, y)
    index[1] = 9
    for _ in range(2):
        with pytest.raises(polyc.errors.RuntimeFailure):
            gather(x, index, y)
    index[1] = 3
    gather(x, index, y)
    assert y.tolist() == [0, 3, 2]


def test_calls_keep_the_memory_that_they_work_in():
    kernel = polyc.kernel(nearest.python)
    rng = np.random.default_rng(1)

    def call(n):
        a, b, near = rng.random((n, 16)), rng.random((30, 16)), np.zeros(n, np.int64)
        kernel(a, b, near)
        distances = ((a[:, None] - b[None]) ** 2).sum(2)
        np.testing.assert_array_equal(near, distances.argmin(1))

    call(300)
    (caller,) = kernel._callers.values()
    (arena,) = caller.usual.arenas.free
    for _ in range(2):
        call(300)
        assert [*map(id, caller.usual.arenas.free)] == [id(arena)]
    call(900)  # a larger one takes its place
    (other,) = caller.usual.arenas.free
    assert len(other) > len(arena)
    call(300)
    assert [*map(id, caller.usual.arenas.free)] == [id(other)]


def test_arrays_may_take_turns():
    @polyc.kernel
    def step(a, b):
        for i in range(1, len(a) - 1):
            b[i] = (a[i - 1] + a[i + 1]) / 2

    a, b = np.arange(9.0) ** 2, np.zeros(9)
    c, d = a.copy(), b.copy()
    for _ in range(6):
        step(a, b)
        step.python(c, d)
        a, b, c, d = b, a, d, c
    assert step._again is not None
    np.testing.assert_array_equal(a, c)


def test_arrays_that_c_declines_are_looked_at_by_python():
    add, x, y = _kernel(), np.arange(8.0), np.zeros(8)
    for _ in range(3):
        assert _is_right(add, x, y)
    read_only = x.copy()
    read_only.flags.writeable = False
    apart = np.arange(16.0)[::2]
    subclass = x.view(type("Own", (np.ndarray,), {}))
    for other in (read_only, apart, subclass, x):
        assert _is_right(add, other, y)
        assert _is_right(add, other, y, np.float64(0.5))
    with pytest.raises(ShapeError, match="read-only"):
        add(x, read_only, 2.0, 1)
    assert _is_right(add, x.astype(np.float32), y)


def test_names_belong_to_the_call():
    @polyc.kernel
    def scale(x, a, b):
        for i in range(len(x)):
            x[i] = a * x[i] - b

    for _ in range(3):
        x = np.ones(3)
        scale(x, b=2.0, a=5.0)
        assert x.tolist() == [3.0] * 3
    scale(x, 2.0, 5.0)
    assert x.tolist() == [1.0] * 3


def test_types_of_arrays_may_be_gone():
    import pickle

    add, y = _kernel(), np.zeros(5)
    for _ in range(4):
        x = pickle.loads(pickle.dumps(np.arange(5.0)))
        assert _is_right(add, x, y)
        del x


def test_numbers_that_are_no_sizes_may_change():
    add, x, y = _kernel(), np.arange(5.0), np.zeros(5)
    for scale in (0.0, -0.0, 1.5, 1.5, -2.0):
        assert _is_right(add, x, y, scale)
        before = add._again
    assert _is_right(add, x, y, 7.0)
    assert add._again is before is not None
    with pytest.raises(ShapeError, match="'scale' is a str"):
        add(x, y, "2", 1)
