"""Errors of the mathematical functions over all floats, special values, and scalar remainders."""

import ctypes
import math
import platform

import numpy as np
import pytest

from polyc.printing.runtime_table import FUNCTIONS, LANES
from tests.runtime.native import ISAS, RUNNABLE, apply, compiled, function_loops
from tests.sampling import sampled

NAMES = [n for n, f in FUNCTIONS.items() if f.family != "core"]
UNARY = [n for n in NAMES if n != "pow"]
LOOKED_UP = [n for n, f in FUNCTIONS.items() if f.family == "piecewise"]

# As stated in the headers: bounds of the error in ulp.
BOUNDS = {
    "exp": 1.1,
    "exp_normal": 1.1,
    "exp2": 1.1,
    "expm1": 1.7,
    "sigmoid": 2.5,
    "tanh": 1.4,
    "erf": 1.5,
    "sinh": 1.7,
    "cosh": 1.6,
    "log": 0.9,
    "log2": 1.5,
    "log1p": 1.5,
    "asin": 1.7,
    "acos": 1.2,
    "atan": 2.9,
    "sin": 0.51,
    "cos": 0.51,
    "tan": 2.0,
    "asinh": 0.51,
    "acosh": 0.51,
    "atanh": 0.51,
    "pow": 0.51,
}

# Sweeps bit patterns `first, first + stride, …` of float and returns the largest error, in ulp of
# the exact result as libm's double gives it. A wrong NaN, infinity or sign of zero counts as 1e9.
SWEEP = """
#include <math.h>
#include <string.h>

static double error(f32 got, double exact)
{
    if (isnan(got) || isnan(exact))
        return isnan(got) && isnan(exact) ? 0 : 1e9;
    if (!signbit(got) != !signbit(exact))
        return 1e9;
    if (isinf(got) || isinf((f32)exact))
        return got == (f32)exact ? 0 : fmin(fabs(got), fabs(exact)) >= 0x1.fffffep127 ? 1 : 1e9;
    int exponent;
    frexp(exact, &exponent);
    return fabs(got - exact) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

typedef void function(const f32 *, f32 *, i64);

double sweep(function *f, double (*reference)(double), u32 first, u32 stride, f32 *where)
{
    enum { COUNT = 64 };
    double worst = 0;
    for (u64 start = first; start < 1ull << 32; start += (u64)COUNT * stride) {
        f32 x[COUNT], y[COUNT];
        for (int i = 0; i < COUNT; i++) {
            u32 bits = (u32)(start + (u64)i * stride);
            memcpy(x + i, &bits, 4);
        }
        f(x, y, COUNT);
        for (int i = 0; i < COUNT; i++) {
            double e = error(y[i], reference(x[i]));
            if (e > worst) {
                worst = e;
                *where = x[i];
            }
        }
    }
    return worst;
}

double reference_exp_normal(double x) { return x < -87 ? 0 : exp(x); }

double reference_sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
"""
SWEEP += "".join(
    f"double reference_{name}(double x) {{ return {name}(x); }}\n"
    for name in UNARY
    if name not in ("sigmoid", "exp_normal")
)


def widths(name, isa):
    """The numbers of lanes tested: where a look-up goes another way for each, all of them."""
    return LANES if name in LOOKED_UP else (isa.lanes,)


@pytest.fixture(
    scope="module", params=sampled(RUNNABLE, often=RUNNABLE[:1]), ids=lambda isa: isa.name
)
def native(request, tmp_path_factory):
    isa = request.param
    functions = [(n, "f32", lanes) for n in NAMES for lanes in (1, *widths(n, isa))]
    source = function_loops(functions) + SWEEP
    library = compiled(source, isa, tmp_path_factory.mktemp("mathematics"))
    library.sweep.restype = ctypes.c_double
    return isa, library


@pytest.mark.thorough
@pytest.mark.parametrize("name", UNARY)
def test_error_over_all_floats(native, name):
    isa, library = native
    where = ctypes.c_float()
    worst = library.sweep(
        getattr(library, f"apply_{name}_f32x{isa.lanes}"),
        getattr(library, f"reference_{name}"),
        ctypes.c_uint32(11),
        ctypes.c_uint32(1999 if isa is ISAS[0] else 9973),
        ctypes.byref(where),
    )
    assert worst <= BOUNDS[name], f"{name}({where.value!r}) is off by {worst:.2f} ulp"


def reference(name, *operands):
    """The function in double precision, by NumPy."""
    wide = [o.astype(np.float64) for o in operands]
    if name == "sigmoid":
        return np.where(wide[0] < 0, np.exp(wide[0]), 1) / (1 + np.exp(-np.abs(wide[0])))
    if name == "exp_normal":
        least = -708 if operands[0].dtype == np.float64 else -87
        return np.where(wide[0] < least, 0, np.exp(wide[0]))
    if name == "erf":
        return np.array([math.erf(x) for x in wide[0]])
    names = {"pow": "power", "asin": "arcsin", "acos": "arccos", "atan": "arctan"}
    names |= {"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}
    return getattr(np, names.get(name, name))(*wide)


def errors_in_ulp(got, exact):
    """|got - exact| in ulp of exact; of infinities and NaN, 0 where they agree and else 1e9."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        ulp = np.ldexp(1.0, np.maximum(np.frexp(exact)[1], -125) - 24)
        error = np.abs(got - exact) / ulp
    same = (got == rounded) | (np.isnan(got) & np.isnan(exact))
    return np.where(np.isfinite(error), error, np.where(same, 0, 1e9))


def specials():
    info = np.finfo(np.float32)
    values = [0, info.smallest_subnormal, info.tiny, 1e-10, 0.1, 0.5, 1, 1.5, 2, 3, 10, 64, 88.75]
    values += [127.5, 149, 151, 2.0**23 + 1, 2.0**24 - 1, 2.0**24 + 2, 1e20, info.max, np.inf]
    return np.array([*values, *(-v for v in values), np.nan], np.float32)


def padded(array):
    return np.concatenate([array, np.ones(-array.size % 64, array.dtype)])


@pytest.mark.parametrize("name", UNARY)
def test_special_values(native, name):
    isa, library = native
    x = padded(specials())
    with np.errstate(all="ignore"):
        exact = reference(name, x)
    got = apply(library, f"{name}_f32x{isa.lanes}", "f32", x)
    np.testing.assert_array_less(errors_in_ulp(got, exact), BOUNDS[name] + 0.01, err_msg=name)
    zero = exact == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(exact[zero]))


def test_power(native):
    isa, library = native
    x, y = (a.ravel() for a in np.meshgrid(specials(), specials()))
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**32, (2, 100_000), dtype=np.uint32).view(np.float32)
    near = np.exp2(rng.uniform(-149, 127, 300_000)).astype(np.float32)
    exponent = (rng.uniform(-151, 129, near.size) / np.log2(near)).astype(np.float32)
    small = rng.uniform(-9, 9, (2, 50_000)).astype(np.float32)
    x = padded(np.concatenate([x, bits[0], near, small[0], small[0]]))
    y = padded(np.concatenate([y, bits[1], exponent, small[1], np.rint(small[1])]))
    with np.errstate(all="ignore"):
        exact = reference("pow", x, y)
    got = apply(library, f"pow_f32x{isa.lanes}", "f32", x, y)
    worst = np.argmax(errors_in_ulp(got, exact))
    error = errors_in_ulp(got, exact)[worst]
    assert error <= BOUNDS["pow"], f"pow({x[worst]!r}, {y[worst]!r}) is off by {error:.2f} ulp"
    zero = exact == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(exact[zero]))


@pytest.mark.parametrize("name", NAMES)
def test_scalar_remainders_agree_with_vectors(native, name):
    isa, library = native
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**32, 20_032, dtype=np.uint32).view(np.float32)
    plain = rng.uniform(-20, 20, 20_032).astype(np.float32)
    x = np.concatenate([bits, plain])
    operands = [x, np.roll(x, 1)][: FUNCTIONS[name].arity]
    scalar = apply(library, f"{name}_f32", "f32", *operands)
    nan = np.isnan(scalar)  # whose sign and payload nothing specifies
    for lanes in widths(name, isa):
        vector = apply(library, f"{name}_f32x{lanes}", "f32", *operands)
        np.testing.assert_array_equal(nan, np.isnan(vector))
        np.testing.assert_array_equal(scalar[~nan].view(np.uint32), vector[~nan].view(np.uint32))


@pytest.mark.parametrize("name", LOOKED_UP)
def test_never_beyond_one(native, name):
    isa, library = native
    x = np.linspace(0, 12, 2**20, dtype=np.float32)
    x[-1] = np.inf
    y = apply(library, f"{name}_f32x{isa.lanes}", "f32", x)
    assert y.max() == y[-2] == y[-1] == 1


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flags are called otherwise")
def test_what_is_masked_underflows_nowhere(native):
    """Intel's cores take 150 cycles for a vector that does: e^x is 0 before it is computed."""
    isa, library = native
    flags, underflow = ctypes.CDLL("libm.so.6"), 0x10
    values = np.array([-np.inf, np.finfo(np.float32).min, -1e4, -105, 0, 1], np.float32)
    masked, mild = padded(values), padded(np.array([-103, -100, -90, -87.1, -87, 0], np.float32))
    cases = ("exp", masked), ("sigmoid", -masked), ("exp_normal", masked), ("exp_normal", mild)
    for name, x in cases:
        flags.feclearexcept(underflow)
        got = apply(library, f"{name}_f32x{isa.lanes}", "f32", x)
        assert not flags.fetestexcept(underflow), name
        np.testing.assert_array_equal(got[:4], [name == "sigmoid"] * 4)
    assert got[4] >= np.finfo(np.float32).tiny


def test_double_precision_is_that_of_libm(tmp_path):
    isa = RUNNABLE[0]
    functions = [(n, "f64", lanes) for n in NAMES for lanes in (1, 8)]
    library = compiled(function_loops(functions), isa, tmp_path)
    x = np.random.default_rng(7).uniform(-3, 3, 512)
    for name in NAMES:
        operands = [x, np.roll(x, 1)][: FUNCTIONS[name].arity]
        with np.errstate(all="ignore"):
            expected = reference(name, *operands)
        for kind in ("f64", "f64x8"):
            got = apply(library, f"{name}_{kind}", "f64", *operands)
            np.testing.assert_allclose(got, expected, rtol=1e-14, err_msg=name)
