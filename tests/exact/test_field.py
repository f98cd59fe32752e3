"""Numbers as elements of a field: NumPy's and C's are the same."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from polyc import Graph, ops
from polyc.exact.field import (
    PRIMES,
    Field,
    bits_of,
    choose,
    encode,
    field_for,
    random_elements,
)
from polyc.exact.guarded import guard
from tests.exact.runs import exactly

FIELDS = [Field(prime, 1) for prime in PRIMES.values()]
each_field = pytest.mark.parametrize("field", FIELDS, ids=lambda f: str(f.prime))


@each_field
def test_dyadic_numbers_are_exact(field):
    p = field.prime
    values = np.array([0, 1, -1, 0.5, -0.0, 3.75, 2.0**-149, 2.0**100, 12345], np.float64)
    half = pow(2, -1, p)
    expected = [0, 1, p - 1, half, 0, 15 * half * half, pow(half, 149, p), pow(2, 100, p), 12345]
    assert bits_of(encode(values, field)).tolist() == [e % p for e in expected]


@each_field
def test_sums_and_products_of_numbers_are_those_of_elements(field):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4096, 4096, 50) / 64 for _ in range(2))
    code = lambda x: bits_of(encode(np.asarray(x, np.float64), field)).astype(object)  # noqa: E731
    assert (code(a + b) == (code(a) + code(b)) % field.prime).all()
    assert (code(a * b) == (code(a) * code(b)) % field.prime).all()


@each_field
def test_infinities_and_nan_are_elements_of_their_own(field):
    values = np.array([np.inf, -np.inf, np.nan], np.float32)
    codes = bits_of(encode(values, field)).tolist()
    assert codes == [field.prime - 1, field.prime - 2, field.prime - 3]


def test_integers_stay_and_empty_arrays_too():
    assert encode(np.arange(3), FIELDS[0]).tolist() == [0, 1, 2]
    assert encode(np.zeros((0, 4), np.float32), FIELDS[0]).shape == (0, 4)
    assert encode(np.float32(2.0).reshape(()), FIELDS[0]).shape == ()


def test_the_field_fits_the_narrowest_float():
    assert field_for([np.dtype("f8"), np.dtype("i1")]).prime == (1 << 31) - 1
    assert field_for([np.dtype("f4"), np.dtype("f2")]).prime < 1 << 16
    assert field_for([np.dtype(ml_dtypes.float8_e5m2)]).prime < 1 << 8
    for p in PRIMES.values():
        assert all(p % n for n in range(2, int(p**0.5) + 1))


def test_elements_fit_their_types():
    rng = np.random.default_rng(0)
    for dtype in ("f8", "f4", "f2", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        field = field_for([np.dtype(dtype)])
        drawn = random_elements((3, 50), np.dtype(dtype), field, rng)
        assert drawn.dtype == dtype
        assert bits_of(drawn).max() < field.prime


def test_runs_put_zero_in_the_middle_at_the_top_and_at_the_bottom():
    places = [choose(FIELDS[0], run).zero for run in range(3)]
    assert places == [FIELDS[0].prime // 2, FIELDS[0].prime - 2, 1]


def test_literals_in_c_are_the_elements_of_constants_in_numpy():
    """x - c for a literal in the text, and for a constant in memory, of every kind of number."""
    values = [0.1, -3.25, 1e-38, 3.4e38, float("inf"), -float("inf"), float("nan"), -0.0, 7.0]
    x = ops.input("x", (5, len(values)))
    inline = [ops.add(x, float(np.float32(v))) for v in values]
    report = exactly(Graph.of(y=x * np.array(values, np.float32), z=ops.concat(inline, axis=0)))
    assert report.agrees, report


def test_a_guard_sees_writes_on_either_side():
    rng = np.random.default_rng(0)
    for at in (-1, 40):
        one = guard(np.arange(10, dtype=np.float32), rng)
        assert one.is_intact
        assert one.array.tolist() == list(range(10))
        assert one.array.ctypes.data % 64 == 0
        strip = one.strips[0 if at < 0 else 1]
        strip[-1 if at < 0 else 0] ^= 1
        assert not one.is_intact
