"""Results whose size is data: found by kernels, cut off by the run time, against the reference."""

import numpy as np
import pytest

from polyc.errors import ShapeError
from tests.sampling import sampled, thorough
from tests.staged import assert_as_reference, assert_same, compile_in, model_of, run_ort

RNG = np.random.default_rng(11)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("shape", [*map(thorough, ((7,), (3, 5))), (1, 1), (2, 0), (2, 3, 33)])
def test_non_zero(compiled, shape):
    dims = ", ".join(map(str, shape))
    source = model_of(f"g (float[{dims}] x) => (int64[r, n] y) {{ y = NonZero(x) }}")
    for share in (0, 0.4, 1):
        x = np.where(RNG.random(shape) < share, RNG.standard_normal(shape), 0).astype(np.float32)
        assert_as_reference(compiled, source, x=x)
    x = np.full(shape, np.nan, np.float32)
    model = assert_as_reference(compiled, source, x=x)
    assert not model.outputs or not model.explain().fallbacks


def test_non_zero_of_a_scalar(compiled):
    source = model_of("g (float x) => (int64[r, n] y) { y = NonZero(x) }")
    for x in (0, 3):
        assert_as_reference(compiled, source, x=np.array(x, np.float32))


def test_slices_without_elements_are_equal(compiled):
    source = model_of("g (float[2, 0] x) => (float[n, m] y) { y = Unique<axis = 0>(x) }")
    assert_as_reference(compiled, source, x=np.zeros((2, 0), np.float32))


def test_what_follows_is_compiled_for_the_size_that_was_found(compiled):
    source = model_of("""g (bool[4, 5] x, float[5, 3] w) => (float[3] y, int64[n] k) {
        i = NonZero(x)
        second = Constant<value_ints = [1]>() axes = Constant<value_ints = [0]>()
        row = Gather(i, second) k = Squeeze(row, axes)
        v = Gather<axis = 0>(w, k) e = Exp(v)
        y = ReduceSum<keepdims = 0>(e, axes) }""")
    w = RNG.standard_normal((5, 3)).astype(np.float32)
    for _ in range(3):
        model = assert_as_reference(compiled, source, x=RNG.random((4, 5)) < 0.5, w=w)
    report = model.explain()
    assert not report.fallbacks
    assert any("NonZero" in n for k in report.kernels for n in k.nodes)


ASSIGNED = """(float[{0}, {1}, 4] x, bool[{0}, {1}] m) => (float[{0}, {1}, 4] y) {{
    flat = Constant<value_ints = [-1]>() v = Constant<value_float = 7.0>()
    line = Reshape(m, flat) ones = Cast<to = 7>(line) n = ReduceSum<keepdims = 1>(ones)
    values = Expand(v, n) last = Constant<value_ints = [1]>() u = Unsqueeze(values, last)
    four = Constant<value_ints = [1, 4]>() rows = Tile(u, four)
    found = NonZero(m) places = Transpose<perm = [1, 0]>(found)
    y = ScatterND(x, places, rows) }}"""


@pytest.mark.parametrize("sizes", [("a", "b"), thorough((3, 5)), thorough((2, "b"))])
def test_what_is_assigned_by_a_mask_is_compiled_once(compiled, sizes):
    """x[m] = 7: exporters say by a sum how many elements a mask has, and by NonZero which."""
    model = compiled(model_of("g " + ASSIGNED.format(*sizes)))
    assert len(model.found) == 1
    for a, b in ((3, 5), (1, 1), (40, 7)):
        extents = [n if isinstance(n, int) else k for n, k in zip(sizes, (a, b), strict=True)]
        x = RNG.random((*extents, 4)).astype(np.float32)
        for m in (RNG.random(extents) < 0.4, np.zeros(extents, bool), np.ones(extents, bool)):
            np.testing.assert_array_equal(model(x, m), np.where(m[..., None], np.float32(7), x))


SCATTERED = """(float[{0}, {1}] x, bool[{0}, {2}] m, float[k] u) => (float[{0}, {1}] y) {{
    found = NonZero(m) places = Transpose<perm = [1, 0]>(found)
    shape = Shape(places) first = Constant<value_ints = [0]>() n = Gather(shape, first)
    some = Slice(u, first, n, first) y = ScatterND{3}(x, places, some) }}"""


@pytest.mark.parametrize("reduction", ["none", thorough("add")])
@pytest.mark.parametrize("columns", ["b", thorough("c")])
def test_elements_of_a_mask_know_their_updates(compiled, columns, reduction):
    """The p-th true element takes update p; where m is less than x its writer is searched for."""
    shown = f'<reduction = "{reduction}">'
    model = compiled(model_of("g " + SCATTERED.format("a", "b", columns, shown)))
    searched = "_writer" in model.source or "_total" in model.source
    assert searched == (columns != "b")
    for a, b in ((3, 5), (1, 1), (40, 7)):
        x, u = (RNG.random(shape).astype(np.float32) for shape in ((a, b), a * b))
        width = b if columns == "b" else max(b - 1, 1)
        for share in (0, 0.4, 1):
            m = RNG.random((a, width)) < share
            expected = x.copy()
            written = expected[:, :width]
            written[m] = u[: m.sum()] + (written[m] if reduction == "add" else 0)
            np.testing.assert_allclose(model(x, m, u), expected, rtol=1e-6)


def test_positions_are_looked_up_a_vector_at_a_time(compiled):
    """Each lane is written out, so that 16 vectors of a row kept gcc busy for a minute."""
    model = compiled(model_of("g " + SCATTERED.format("a", "b", "c", "")))
    assert model.source.count("pc_index") < 200


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("length", sampled([0, 2, 3], seldom=[2]))
def test_compress(compiled, axis, length):
    attribute = "" if axis is None else f"<axis = {axis}>"
    source = model_of(
        f"g (int32[4, 3] x, bool[{length}] c) => (int32[n] y) {{ y = Compress{attribute}(x, c) }}"
    )
    x = RNG.integers(-9, 9, (4, 3)).astype(np.int32)
    assert_as_reference(compiled, source, x=x, c=RNG.random(length) < 0.6)
    assert_as_reference(compiled, source, x=x, c=np.ones(length, bool))


def test_compress_by_a_constant_is_a_slice(compiled):
    source = model_of("""g (float[3, 2] x) => (float[n, 2] y) {
        t = Constant<value_ints = [1, 0, 1]>() c = Cast<to = 9>(t)
        y = Compress<axis = 0>(x, c) }""")
    model = assert_as_reference(compiled, source, x=RNG.random((3, 2)).astype(np.float32))
    assert [spec.shape for spec in model.outputs] == [(2, 2)]


def test_what_is_true_of_a_constant_is_a_constant(compiled):
    """Exporters write the numbers up to n as NonZero(ConstantOfShape(n))."""
    source = model_of("""g (float[4, 6] x) => (float[n, 6] y, int64[r, n] p) {
        n = Constant<value_ints = [2, 3]>() f = ConstantOfShape<value = int64[1] {1}>(n)
        p = NonZero(f) first = Constant<value_int = 0>() k = Gather(p, first)
        y = Gather<axis = 0>(x, k) }""")
    model = assert_as_reference(compiled, source, x=RNG.random((4, 6)).astype(np.float32))
    assert not any("NonZero" in n for k in model.explain().kernels for n in k.nodes)


def test_a_condition_that_is_too_long(compiled):
    source = model_of("g (float[3] x, bool[4] c) => (float[n] y) { y = Compress(x, c) }")
    with pytest.raises(ShapeError, match="length of condition"):
        compiled(source)(np.zeros(3, np.float32), np.ones(4, bool))


UNIQUE = "g ({} x) => ({} y, int64[a] i, int64[b] v, int64[d] c) {{ y, i, v, c = Unique<{}>(x) }}"


@pytest.mark.thorough
@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("shape", [(13,), (3, 5), (0,)])
def test_unique_elements(compiled, shape, is_sorted):
    dims = ", ".join(map(str, shape))
    source = model_of(UNIQUE.format(f"int64[{dims}]", "int64[n]", f"sorted = {is_sorted}"))
    x = RNG.integers(-2, 3, shape)
    got = compiled(source).run({"x": x})
    for name, want in zip("yivc", run_ort(source, {"x": x}), strict=True):
        assert_same(got[name], want)


@pytest.mark.parametrize(("axis", "is_sorted"), [(0, 1), thorough(1, 1), thorough(-1, 0)])
def test_unique_slices(compiled, axis, is_sorted):
    kind = "float[4, 6, 2]"
    attributes = f"axis = {axis}, sorted = {is_sorted}"
    source = model_of(UNIQUE.format(kind, "float[n, m, k]", attributes))
    x = RNG.integers(0, 2, (4, 6, 2)).astype(np.float32)
    x[:, 3] = x[:, 1]
    x[2] = x[0]
    x[0, :, 1] = x[2, :, 1] = np.inf
    got = compiled(source).run({"x": x})
    for name, want in zip("yivc", run_ort(source, {"x": x}), strict=True):
        assert_same(got[name], want)


def test_nans_are_equal_and_last(compiled):
    source = model_of(UNIQUE.format("float[5]", "float[n]", "sorted = 1"))
    x = np.array([np.nan, 2, np.nan, -np.inf, 2], np.float32)
    assert_as_reference(compiled, source, x=x)


def test_a_concatenation_of_what_is_found_one_behind_the_other(compiled):
    """Where the second part ends is not known when the first one is written."""
    source = model_of("""g (float[n] a, float[m] b) => (float[k] y) {
        zero = Constant<value_ints = [0]>()
        i = NonZero(a) first = Squeeze(i, zero) u = Gather(a, first) e = Exp(u)
        total = ReduceSum(e) scaled = Mul(b, total)
        j = NonZero(scaled) second = Squeeze(j, zero) v = Gather(scaled, second)
        y = Concat<axis = 0>(e, v) }""")
    model = compiled(source)
    assert len(model.found) == 2
    for n, m in ((5, 7), (1, 1), (40, 3)):
        a, b = (np.where(RNG.random(k) < 0.5, RNG.random(k), 0).astype(np.float32) for k in (n, m))
        np.testing.assert_allclose(model(a, b), run_ort(source, {"a": a, "b": b})[0], 1e-5)


@pytest.mark.parametrize("most", [3, 20])
def test_the_first_of_as_many_as_there_are(compiled, most):
    """A detector ranks 20 candidates, or fewer where it finds fewer: of thousands."""
    source = model_of(f"""g (float[n] x) => (float[k] y, int64[k] i) {{
        zero = Constant<value_ints = [0]>() half = Constant<value_float = 0.5>()
        m = Greater(x, half) at = NonZero(m) places = Squeeze(at, zero) some = Gather(x, places)
        count = Shape(some) most = Constant<value_ints = [{most}]>() few = Min(count, most)
        y, i = TopK<axis = 0>(some, few) }}""")
    model = compiled(source)
    assert any("Places" in name for kernel in model.explain().kernels for name in kernel.nodes)
    for n in (1, 7, 100, 3000):
        for x in (RNG.random(n), np.zeros(n), np.round(RNG.random(n), 1)):
            x = x.astype(np.float32)
            got, want = model(x), run_ort(source, {"x": x})
            np.testing.assert_array_equal(got[0], want[0])
            np.testing.assert_array_equal(got[1], want[1])
