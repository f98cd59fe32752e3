"""Loads, stores and reductions: which elements they touch, and what they make of them."""

import ctypes
import mmap

import numpy as np
import pytest

from polyc.printing.runtime_table import FLOATS, NARROW, NUMBERS, STORABLE, TYPES, preamble
from tests.runtime import native as runtime
from tests.runtime.native import RUNNABLE, Uses, compiled
from tests.sampling import sampled

DTYPES = {
    name: np.dtype(f"u{np.dtype(dtype).itemsize}") if name in NARROW else dtype
    for name, dtype in runtime.DTYPES.items()
}
"""What is only stored is its bits."""

MOVES = ("load", "loads", "loadn", "store", "stores", "storen", "splat")
MEMORY = (*MOVES, "transpose", "interleave")
REDUCTIONS = {"add": np.sum, "mul": np.prod, "min": np.min, "max": np.max}
BOOLEAN_REDUCTIONS = {"and": np.all, "or": np.any}


def moves(element, lanes):
    """C for each way to move `lanes` elements between memory p and memory q."""
    t, v = element, f"{element}x{lanes}"
    reductions = {} if t in NARROW else BOOLEAN_REDUCTIONS if t == "b8" else REDUCTIONS
    counts = ["iota"] if t in NUMBERS else []
    known = {n // DTYPES_SIZE[t] for n in (4, 8) if n % DTYPES_SIZE[t] == 0}
    bodies = {
        "load": f"pc_store_{v}(q, pc_load_{v}(p));",
        "loads": f"pc_store_{v}(q, n == 2 ? pc_loads_{v}(p, 2) : pc_loads_{v}(p, n));",
        "stores": f"pc_stores_{v}(q, pc_load_{v}(p), n);",
        "loadn": f"pc_store_{v}(q, pc_loadn_{v}(p, n));",
        "storen": "".join(
            f"if (n == {k}) pc_storen_{v}(q, pc_load_{v}(p), {k}); else " for k in sorted(known)
        )
        + f"pc_storen_{v}(q, pc_load_{v}(p), n);",
        "splat": f"pc_store_{v}(q, pc_splat_{v}(p[n]));",
        "transpose": f"""
            {t} rows[{lanes * lanes}] __attribute__((aligned(64)));
            for (int k = 0; k < {lanes * lanes}; k++)
                rows[k] = p[k];
            pc_transpose_{v}(rows);
            for (int k = 0; k < {lanes * lanes}; k++)
                q[k] = rows[k];""",
        "interleave": "".join(
            f"""if (n == {rows}) {{
                {t} rows[{lanes * lanes}] __attribute__((aligned(64)));
                for (int k = 0; k < {rows * lanes}; k++)
                    rows[k] = p[k];
                pc_interleave_{v}(rows, {rows});
                for (int k = 0; k < {rows * lanes}; k++)
                    q[k] = rows[k];
            }}"""
            for rows in (2, 4, 8)
            if rows < lanes
        ),
        **{r: f"*q = pc_reduce_{r}_{v}(pc_load_{v}(p));" for r in reductions},
        **{c: f"pc_store_{v}(q, pc_{c}_{v}(*p));" for c in counts},
    }
    functions = [*MEMORY, *(f"reduce_{r}" for r in reductions), *counts]
    loops = [
        f"void {name}_{v}(const {t} *p, {t} *q, i64 n) {{ (void)n, (void)p, (void)q; {body} }}"
        for name, body in bodies.items()
    ]
    return {(f, element, lanes) for f in functions}, loops


@pytest.fixture(
    scope="module", params=sampled(RUNNABLE, often=RUNNABLE[:1]), ids=lambda isa: isa.name
)
def native(request, tmp_path_factory):
    isa = request.param
    uses, loops = Uses(), []
    for element in STORABLE:
        # One vector register of the element, and the lanes that f32 has.
        for lanes in {isa.lanes, isa.lanes * 4 // DTYPES_SIZE[element]}:
            functions, texts = moves(element, lanes)
            uses.functions |= functions
            loops += texts
    library = compiled(preamble(uses) + "\n".join(loops), isa, tmp_path_factory.mktemp("memory"))
    return isa, library


DTYPES_SIZE = {element: np.dtype(dtype).itemsize for element, dtype in DTYPES.items()}


def call(native, name, element, p, q, n=0, lanes=None):
    isa, library = native
    addresses = (ctypes.c_void_p(a.ctypes.data) for a in (p, q))
    function = getattr(library, f"{name}_{element}x{lanes or isa.lanes}")
    function(*addresses, ctypes.c_int64(n))


def values(element, count, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2 if element == "b8" else 100, count).astype(DTYPES[element])


@pytest.mark.thorough
@pytest.mark.parametrize("element", STORABLE)
def test_whole_vectors_at_any_address(native, element):
    lanes = native[0].lanes
    p, q = values(element, lanes + 1), values(element, lanes + 2, seed=1)
    expected = q.copy()
    expected[1 : lanes + 1] = p[1:]
    call(native, "load", element, p[1:], q[1:])
    np.testing.assert_array_equal(q, expected)


@pytest.mark.parametrize("element", STORABLE)
@pytest.mark.parametrize("stride", [1, 2, 3, -2])
def test_strides(native, element, stride):
    lanes = native[0].lanes
    wide = values(element, 3 * lanes if stride != 2 else 2 * lanes - 1)
    start = 0 if stride > 0 else -stride * (lanes - 1)
    places = start + stride * np.arange(lanes)
    gathered, scattered = np.zeros(lanes, wide.dtype), np.zeros(wide.size, wide.dtype)
    call(native, "loads", element, wide[start:], gathered, stride)
    np.testing.assert_array_equal(gathered, wide[places])
    call(native, "stores", element, gathered, scattered[start:], stride)
    expected = np.zeros_like(scattered)
    expected[places] = gathered
    np.testing.assert_array_equal(scattered, expected)


@pytest.fixture(scope="module")
def page():
    """A writable page before one that no access is allowed to: (array of bytes of the first)."""
    size = mmap.PAGESIZE
    block = mmap.mmap(-1, 2 * size)
    view = np.frombuffer(block, np.uint8)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    guard = ctypes.c_void_p(view.ctypes.data + size)
    assert protect(guard, ctypes.c_size_t(size), 0) == 0
    yield view[:size]
    protect(guard, ctypes.c_size_t(size), mmap.PROT_READ | mmap.PROT_WRITE)


@pytest.mark.parametrize("element", STORABLE)
def test_partial_vectors_touch_nothing_beyond(native, page, element):
    """The first n elements end where the forbidden page begins."""
    isa, _ = native
    size = DTYPES_SIZE[element]
    for lanes in {isa.lanes, isa.lanes * 4 // size}:
        for n in range(lanes + 2):
            count = min(n, lanes)
            edge = page[page.size - count * size :].view(DTYPES[element])
            source = values(element, lanes, seed=n)
            loaded = values(element, lanes, seed=n + 1)
            edge[:] = source[:count]
            call(native, "loadn", element, edge, loaded, n, lanes)
            np.testing.assert_array_equal(loaded[:count], source[:count])
            assert not loaded[count:].any()
            edge[:] = 0
            call(native, "storen", element, source, edge, n, lanes)
            np.testing.assert_array_equal(edge, source[:count])


@pytest.mark.parametrize("element", STORABLE)
def test_partial_stores_leave_the_rest(native, element):
    lanes = native[0].lanes
    for n in (-(2**40) + 1, -1, 0, 1, lanes - 1, lanes, 2**40):
        source, target = values(element, lanes), values(element, lanes, seed=1)
        expected = np.where(np.arange(lanes) < n, source, target)
        call(native, "storen", element, source, target, n)
        np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("element", STORABLE)
def test_transpose(native, element):
    lanes = native[0].lanes
    square = values(element, lanes * lanes).reshape(lanes, lanes)
    result = np.zeros_like(square)
    call(native, "transpose", element, square, result)
    np.testing.assert_array_equal(result, square.T)


@pytest.mark.parametrize("element", STORABLE)
def test_interleave(native, element):
    lanes = native[0].lanes
    for rows in (n for n in (2, 4, 8) if n < lanes):
        tile = values(element, rows * lanes).reshape(rows, lanes)
        result = np.zeros_like(tile)
        call(native, "interleave", element, tile, result, rows)
        np.testing.assert_array_equal(result.ravel(), tile.T.ravel())


@pytest.mark.parametrize("element", STORABLE)
def test_splat(native, element):
    lanes = native[0].lanes
    for value in (0, 1):
        out = np.zeros(lanes, DTYPES[element])
        call(native, "splat", element, np.array([0, value], out.dtype), out, 1)
        np.testing.assert_array_equal(out, np.full(lanes, value, out.dtype))


@pytest.mark.parametrize("element", FLOATS)
def test_splat_keeps_the_sign_of_zero(native, element):
    out = np.zeros(native[0].lanes, DTYPES[element])
    call(native, "splat", element, np.array([-0.0], out.dtype), out)
    assert np.signbit(out).all()


@pytest.mark.parametrize("element", NUMBERS)
def test_iota_counts_and_wraps(native, element):
    lanes, dtype = native[0].lanes, DTYPES[element]
    start = np.array([5 if element in FLOATS else np.iinfo(dtype).max - 2], dtype)
    out = np.zeros(lanes, dtype)
    call(native, "iota", element, start, out)
    np.testing.assert_array_equal(out, start + np.arange(lanes).astype(dtype))


@pytest.mark.parametrize("element", TYPES)
def test_reductions(native, element):
    isa, _ = native
    references = BOOLEAN_REDUCTIONS if element == "b8" else REDUCTIONS
    for lanes in {isa.lanes, isa.lanes * 4 // DTYPES_SIZE[element]}:
        for seed, high in ((0, 2), (1, 3), (2, 100)):
            rng = np.random.default_rng(seed)
            p = rng.integers(0, high, lanes).astype(DTYPES[element])
            for name, reference in references.items():
                out = np.zeros(1, p.dtype)
                call(native, name, element, p, out, 0, lanes)
                with np.errstate(over="ignore"):
                    options = {"dtype": p.dtype} if name in ("add", "mul") else {}
                    expected = reference(p, **options)
                np.testing.assert_allclose(out[0], expected, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("element", FLOATS)
@pytest.mark.parametrize("name", ["min", "max"])
def test_reductions_keep_nan(native, element, name):
    p = values(element, native[0].lanes)
    for lane in range(p.size):
        with_nan = p.copy()
        with_nan[lane] = np.nan
        out = np.zeros(1, p.dtype)
        call(native, name, element, with_nan, out)
        assert np.isnan(out[0]), lane
