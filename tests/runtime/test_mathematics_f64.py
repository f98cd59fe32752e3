"""Errors of the mathematical functions of doubles, against the platform's long double."""

import ctypes
import itertools

import numpy as np
import pytest

from polyc.printing.runtime_table import FUNCTIONS, LANES
from tests.runtime.native import RUNNABLE, apply, compiled, function_loops

# As stated in the headers: bounds of the error in ulp.
BOUNDS = {
    "exp": 1.1,
    "exp_normal": 1.1,
    "exp2": 1.1,
    "expm1": 2.0,
    "sigmoid": 2.5,
    "sinh": 1.7,
    "cosh": 1.6,
    "tanh": 2.7,
    "erf": 1.5,
    "log": 0.9,
    "log2": 1.5,
    "log1p": 1.5,
    "sin": 0.9,
    "cos": 0.9,
    "tan": 2.2,
    "asin": 1.7,
    "acos": 1.2,
    "atan": 2.5,
    "asinh": 2.1,
    "acosh": 2.3,
    "atanh": 2.1,
}
POWER = 1.3

# The error in ulp of the exact result, as long double gives it. A wrong NaN, infinity or sign of
# zero counts as 1e9.
ERRORS = """
#include <math.h>

static double error(double got, long double exact)
{
    if (isnan(got) || isnan(exact))
        return isnan(got) && isnan(exact) ? 0 : 1e9;
    if (!signbit(got) != !signbit(exact))
        return 1e9;
    if (isinf(got) || isinf((double)exact))
        return got == (double)exact ? 0 : fminl(fabs(got), fabsl(exact)) > 0x1.fffffffffffffp1023L
            || fabs(got) == 0x1.fffffffffffffp1023 ? 1 : 1e9;
    int exponent;
    frexpl(exact, &exponent);
    return fabsl(got - exact) / ldexpl(1, (exponent < -1021 ? -1021 : exponent) - 53);
}

static long double exact_exp_normal(long double x) { return x < -708 ? 0 : expl(x); }

static long double exact_sigmoid(long double x)
{
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}
"""
ERRORS += """
double worst_pow(const f64 *x, const f64 *y, const f64 *z, i64 n, f64 *where)
{
    double worst = -1;
    for (i64 i = 0; i < n; i++) {
        double e = error(z[i], powl(x[i], y[i]));
        if (e > worst) {
            worst = e;
            where[0] = x[i];
            where[1] = y[i];
        }
    }
    return worst;
}
"""
for _name in BOUNDS:
    _exact = f"exact_{_name}" if _name in ("exp_normal", "sigmoid") else f"{_name}l"
    ERRORS += f"""
double worst_{_name}(const f64 *x, const f64 *y, i64 n, f64 *where)
{{
    double worst = -1;
    for (i64 i = 0; i < n; i++) {{
        double e = error(y[i], {_exact}(x[i]));
        if (e > worst) {{
            worst = e;
            *where = x[i];
        }}
    }}
    return worst;
}}
"""


def inputs(count: int, seed: int) -> np.ndarray:
    """Numbers of all sizes, ordinary ones, those next to multiples of pi/2, and special ones."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**64, count, dtype=np.uint64).view(np.float64)
    sizes = np.exp2(rng.uniform(-60, 12, count)) * rng.choice([-1, 1], count)
    turns = np.rint(rng.uniform(-(2.0**20), 2.0**20, count) ** 3 / 2.0**40) * (np.pi / 2)
    info = np.finfo(np.float64)
    special = [0, info.smallest_subnormal, info.tiny, 0.5, 1, 1.5, 2, 36, 40, 709.5, 710, 745.5]
    special += [1023.5, 1074, 1076, 2.0**20, 2.0**52 + 1, 1e22, info.max, np.inf]
    ends = np.nextafter(np.array([1, 1, 6, 2.0**20]), np.array([0, 2, 7, 0]))
    one = 1 + rng.uniform(-1, 1, count) * np.exp2(rng.uniform(-52, 0, count))
    parts = [bits, sizes, rng.uniform(-30, 30, count), rng.uniform(-1.1, 1.1, count), turns, one]
    everything = np.concatenate([*parts, special, np.negative(special), ends, [np.nan]])
    return np.concatenate([everything, np.ones(-everything.size % 64)])


@pytest.fixture(scope="module", params=RUNNABLE, ids=lambda isa: isa.name)
def native(request, tmp_path_factory):
    isa = request.param
    names = [*BOUNDS, "pow", "max", "min"]
    widths = {1, *LANES} if isa is RUNNABLE[0] else {1, isa.lanes // 2}
    functions = [(name, "f64", lanes) for name, lanes in itertools.product(names, sorted(widths))]
    library = compiled(function_loops(functions) + ERRORS, isa, tmp_path_factory.mktemp("f64"))
    return isa, library, sorted(widths - {1})


def worst_error(native, name: str, x: np.ndarray) -> tuple[float, float]:
    isa, library, _ = native
    y = apply(library, f"{name}_f64x{isa.lanes // 2}", "f64", x)
    worst, where = getattr(library, f"worst_{name}"), ctypes.c_double()
    worst.restype = ctypes.c_double
    addresses = [ctypes.c_void_p(a.ctypes.data) for a in (x, y)]
    return worst(*addresses, ctypes.c_int64(x.size), ctypes.byref(where)), where.value


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double is double here")
@pytest.mark.parametrize("name", BOUNDS)
def test_error(native, name):
    error, where = worst_error(native, name, inputs(20_000, seed=1))
    assert error <= BOUNDS[name], f"{name}({where!r}) is off by {error:.2f} ulp"


def powers(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Of any numbers; near 1, with results of all sizes; whole exponents; special ones."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**64, (2, count), dtype=np.uint64).view(np.float64)
    base = np.exp2(rng.uniform(-1074, 1023, count))
    exponent = rng.uniform(-1078, 1026, count) / np.log2(base)
    near = 1 + rng.uniform(-1, 1, count) * np.exp2(rng.uniform(-40, 0, count))
    large = rng.uniform(-1078, 1026, count) / np.log2(near)
    plain = rng.uniform(-9, 9, (2, count))
    values = [0, 5e-324, 1e-310, 0.5, 1, 1 - 2.0**-53, 1.5, 2, 3, 2.0**53 + 2, 2.0**53 - 1, 1e300]
    special = np.array([*values, np.inf, *np.negative(values), -np.inf, np.nan])
    x, y = (each.ravel() for each in np.meshgrid(special, special))
    x = np.concatenate([x, bits[0], base, near, plain[0], plain[0], near])
    y = np.concatenate([y, bits[1], exponent, large, plain[1], np.rint(plain[1]), 0 * near + 2.5])
    rest = np.ones(-x.size % 64)
    return np.concatenate([x, rest]), np.concatenate([y, rest])


def check_powers(native, count: int, seed: int) -> None:
    isa, library, _ = native
    x, y = powers(count, seed)
    z = apply(library, f"pow_f64x{isa.lanes // 2}", "f64", x, y)
    where = np.zeros(2)
    library.worst_pow.restype = ctypes.c_double
    addresses = [ctypes.c_void_p(a.ctypes.data) for a in (x, y, z)]
    place = ctypes.c_void_p(where.ctypes.data)
    error = library.worst_pow(*addresses, ctypes.c_int64(x.size), place)
    assert error <= POWER, f"pow({where[0]!r}, {where[1]!r}) is off by {error:.2f} ulp"


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double is double here")
def test_error_of_powers(native):
    check_powers(native, 20_000, seed=1)


@pytest.mark.thorough
def test_error_of_many_powers(native):
    for seed in range(2, 8):
        check_powers(native, 300_000, seed)


@pytest.mark.thorough
@pytest.mark.parametrize("name", BOUNDS)
def test_error_over_many(native, name):
    for seed in range(2, 12):
        error, where = worst_error(native, name, inputs(300_000, seed))
        assert error <= BOUNDS[name], f"{name}({where!r}) is off by {error:.2f} ulp"


@pytest.mark.parametrize("name", [*BOUNDS, "pow", "max", "min"])
def test_scalar_remainders_agree_with_vectors(native, name):
    _, library, widths = native
    x = inputs(2_000, seed=0)
    operands = [x, np.roll(x, 1)][: FUNCTIONS[name].arity]
    scalar = apply(library, f"{name}_f64", "f64", *operands)
    nan = np.isnan(scalar)  # whose sign and payload nothing specifies
    for lanes in widths:
        vector = apply(library, f"{name}_f64x{lanes}", "f64", *operands)
        np.testing.assert_array_equal(nan, np.isnan(vector))
        np.testing.assert_array_equal(scalar[~nan].view(np.uint64), vector[~nan].view(np.uint64))
