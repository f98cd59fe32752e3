"""Sizes that a call finds: compiled once, ahead, for all that there may be."""

import subprocess

import numpy as np
import pytest

import polyc
from polyc.errors import RuntimeFailure, ShapeError, UnsupportedOp
from polyc.options import Options
from polyc.run.cpu_model import CpuModel
from polyc.toolchain.c_compiler import LibraryBuild
from tests.sampling import sampled, thorough
from tests.staged import assert_same, model_of, run_ort

RNG = np.random.default_rng(23)
SHARES = (0, 0.1, 0.5, 1)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    options = Options(cache_dir=tmp_path_factory.mktemp("cache"), threads=1)

    def compile(text, target="baseline", **choices):
        model = polyc.compile(model_of(text), target=target, options=options, **choices)
        assert isinstance(model, CpuModel)
        assert model.otherwise is None
        return model

    return compile


@pytest.fixture(autouse=True)
def no_compiler_in_a_call(monkeypatch):
    """From the first call on nothing is compiled."""
    call = CpuModel._call

    def refuse(*args, **kwargs):
        raise AssertionError("a call compiles")

    def guarded(self, *args):
        monkeypatch.setattr(LibraryBuild, "__init__", refuse)
        try:
            return call(self, *args)
        finally:
            monkeypatch.undo()
            monkeypatch.setattr(CpuModel, "_call", guarded)

    monkeypatch.setattr(CpuModel, "_call", guarded)


def mask(share, *shape):
    """So many elements that are true; for 0.1 exactly one, if there is any."""
    flat = RNG.random(int(np.prod(shape))) < share
    if share == 0.1 and flat.size:
        flat[:] = False
        flat[RNG.integers(flat.size)] = True
    return flat.reshape(shape)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def check(model, text, feeds):
    """As ONNX Runtime has it."""
    got = model.run(feeds)
    for spec, want in zip(model.outputs, run_ort(model_of(text), feeds), strict=True):
        assert_same(got[spec.name], want)


CLASSES = "abcdefghijk"
SELECTED = " ".join(
    f"i{c} = Constant<value_int = {k}>() m{c} = Gather(m, i{c}) x{c} = Gather(x, i{c}) "
    f"v{c} = Compress<axis = 0>(x{c}, m{c})"
    for k, c in enumerate(CLASSES)
)

FOLLOWED = {
    "classes": f"""g (bool[11, 9] m, float[11, 9] x) => (float[k] y) {{
        {SELECTED} c = Concat<axis = 0>({", ".join("v" + c for c in CLASSES)}) y = Exp(c) }}""",
    "elementwise": """g (bool[3, 17] m, float[3, 17] x) => (float[k] y) {
        i = NonZero(m) t = Transpose(i) v = GatherND(x, t) e = Exp(v) y = Mul(e, e) }""",
    "sums": """g (bool[19] m, float[19, 6] x) => (float[6] y, float[k] z, float s) {
        i = NonZero(m) zero = Constant<value_ints = [0]>() one = Constant<value_ints = [1]>()
        j = Squeeze(i, zero) v = Gather(x, j)
        y = ReduceSum<keepdims = 0>(v, zero) z = ReduceSum<keepdims = 0>(v, one)
        s = ReduceSum<keepdims = 0>(v) }""",
    "products": """g (bool[33] m, float[33, 20] x, float[20, 9] w)
        => (float[k, 9] y, float[k, k] z) {
        v = Compress<axis = 0>(x, m) h = MatMul(v, w) y = Softmax(h)
        t = Transpose(v) z = MatMul(v, t) }""",
    "best": """g (bool[40] m, float[40] x) => (float[a] y, int64[a] i) {
        v = Compress<axis = 0>(x, m) s = Shape(v) five = Constant<value_ints = [5]>()
        k = Min(s, five) y, i = TopK(v, k) }""",
    "several": """g (bool[21] m, float[21] x)
        => (float[a] y, float[b] z, int64[1, b] p, float[c] q) {
        y = Compress<axis = 0>(x, m)
        zero = Constant<value_float = 0.0>() positive = Greater(y, zero)
        p = NonZero(positive) z = Compress<axis = 0>(y, positive)
        n = Not(m) q = Compress<axis = 0>(x, n) }""",
    "one mask": """g (bool[30] m, float[30, 4] x, float[30, 4] w) => (float[k, 4] y, float[k] z) {
        axes = Constant<value_ints = [0]>() last = Constant<value_ints = [1]>()
        i = NonZero(m) a = Squeeze(i, axes) p = Gather(x, a)
        j = NonZero(m) b = Squeeze(j, axes) q = Gather(w, b)
        y = Add(p, q) z = ReduceMean<keepdims = 0>(y, last) }""",
    "joined": """g (bool[11] m, bool[7] n, float[11] x, float[7] w) => (float[k] y, int64[1] s) {
        a = Compress<axis = 0>(x, m) b = Compress<axis = 0>(w, n)
        c = Concat<axis = 0>(a, b, a) y = Neg(c) s = Shape(c) }""",
    "counted": """g (bool[26] m) => (float[k] y, int64[k] r, int64 n) {
        i = NonZero(m) s = Size(i) n = Identity(s) s1 = Shape(i)
        one = Constant<value_ints = [1]>() c = Gather(s1, one)
        y = ConstantOfShape<value = float[1] {2.5}>(c)
        zero = Constant<value_int = 0>() step = Constant<value_int = 1>()
        first = Constant<value_ints = [0]>() l = Squeeze(c, first) r = Range(zero, l, step) }""",
    "distinct": """g (int64[24] x)
        => (int64[k] y, int64[k] i, int64[24] v, int64[k] c, float[k] f) {
        y, i, v, c = Unique(x) t = Cast<to = 1>(c) f = Sqrt(t) }""",
    "framed": """g (bool[9] m, float[9] x) => (float[9] y, float[3, k] z) {
        v = Compress<axis = 0>(x, m) s = Shape(v) n = Constant<value_ints = [9]>()
        rest = Sub(n, s) none = Constant<value_ints = [0]>() pads = Concat<axis = 0>(none, rest)
        y = Pad(v, pads) row = Constant<value_ints = [1, -1]>() w = Reshape(v, row)
        three = Constant<value_ints = [3, 1]>() z = Tile(w, three) }""",
}


OPEN = {
    "places": """g (float[n, h, w] x) => (int64[3, k] p, float[k] y) {
        r = Relu(x) p = NonZero(r) t = Transpose(p) v = GatherND(x, t) y = Neg(v) }""",
    "rows": """g (bool[n] m, float[n, 5] x, float[5, 3] w) => (float[k, 3] y, float[3] s) {
        v = Compress<axis = 0>(x, m) y = MatMul(v, w) axes = Constant<value_ints = [0]>()
        s = ReduceSum<keepdims = 0>(y, axes) }""",
    "elements": """g (bool[n] m, float[n, 2] x) => (float[k] y) { y = Compress(x, m) }""",
    "distinct": """g (int64[n] x) => (int64[k] y, int64[k] i, int64[n] v, int64[k] c) {
        y, i, v, c = Unique(x) }""",
    "distinct rows": """g (int64[n, w] x) => (int64[k, w] y, int64[n] v) {
        y, i, v = Unique<axis = 0, sorted = 1>(x) }""",
    "nested": """g (bool[n] m, float[n] x) => (float[a] y, int64[1, b] p, float[b, b] z) {
        y = Compress<axis = 0>(x, m) zero = Constant<value_float = 0.0>()
        positive = Greater(y, zero) p = NonZero(positive) v = Compress<axis = 0>(y, positive)
        axis = Constant<value_ints = [1]>() c = Unsqueeze(v, axis) z = Sub(c, v) }""",
}


def draw(model, share, size=7):
    """Feeds of a model, of whose masks a share is true."""
    feeds = {}
    for spec in model.inputs:
        shape = tuple(size if isinstance(d, str) else d for d in spec.shape)
        if spec.dtype == np.bool_:
            feeds[spec.name] = mask(share, *shape)
        elif spec.dtype.kind == "i":
            feeds[spec.name] = RNG.integers(0, 1 + int(20 * share), shape)
        else:
            feeds[spec.name] = floats(*shape)
    return feeds


@pytest.mark.parametrize("name", sampled(FOLLOWED, seldom=["one mask", "framed"]))
def test_what_follows_is_compiled_for_any_number(compiled, name):
    model = compiled(FOLLOWED[name])
    for share in SHARES:
        check(model, FOLLOWED[name], draw(model, share))


@pytest.mark.parametrize(
    "name",
    sampled(OPEN, seldom=["distinct rows", "distinct", "rows"]),
)
def test_sizes_that_a_call_tells_may_be_open_as_well(compiled, name):
    model = compiled(OPEN[name])
    for size in (1, 6, 19):
        for share in SHARES:
            check(model, OPEN[name], draw(model, share, size))


DETECTOR = """g (float[1, {n}, 4] boxes, float[1, 3, {n}] scores)
    => (int64[k, 3] kept, float[k, 4] b, float[k] s, float[m, 4] best, float[1, 3, k] all) {{
    most = Constant<value_ints = [6]>() iou = Constant<value_floats = [0.5]>()
    least = Constant<value_floats = [0.3]>() zero = Constant<value_ints = [0]>()
    one = Constant<value_ints = [1]>() two = Constant<value_ints = [2]>()
    kept = NonMaxSuppression(boxes, scores, most, iou, least)
    column = Gather<axis = 1>(kept, two) places = Squeeze(column, one)
    plain = Squeeze(boxes, zero) b = Gather(plain, places)
    all = Gather<axis = 2>(scores, places) s = GatherND(scores, kept)
    five = Constant<value_ints = [5]>() l = Shape(s) k = Min(l, five)
    v, i = TopK(s, k) best = Gather(b, i) }}"""
"""What exporters write of a detector's end: boxes that are kept, their scores, the best of them."""


@pytest.mark.parametrize(("n", "sizes"), [thorough(37, (37,)), ("n", (1, 8, *[37] * 20))])
def test_boxes_that_are_kept(compiled, n, sizes):
    """Of 37 as often as it takes: once one in twelve draws was wrong."""
    text = DETECTOR.format(n=n)
    model = compiled(text)
    assert [spec.shape for spec in model.outputs[:3]] == [("k", 3), ("k", 4), ("k",)]
    assert not model.explain().fallbacks
    for size in sizes:
        for highest in (0.2, 0.35, 1):
            low = RNG.random((1, size, 2)) * 3
            boxes = np.concatenate([low, low + RNG.random((1, size, 2)) * 2], -1)
            scores = RNG.random((1, 3, size)) * highest
            feeds = {"boxes": boxes.astype(np.float32), "scores": scores.astype(np.float32)}
            check(model, text, feeds)


CHAIN = """g (float[{n}, 4] boxes, float[{n}] scores, int64[{n}] labels)
    => (float[k, 4] b, float[k] s, int64[k] l) {{
    low = Constant<value_float = 0.2>() zero = Constant<value_ints = [0]>()
    one = Constant<value_ints = [1]>() two = Constant<value_ints = [2]>()
    five = Constant<value_ints = [5]>() left = Constant<value_int = 0>()
    right = Constant<value_int = 2>() small = Constant<value_float = 0.3>()
    good = Greater(scores, low) i0 = NonZero(good) i = Squeeze(i0, zero)
    b1 = Gather(boxes, i) s1 = Gather(scores, i) l1 = Gather(labels, i)
    x0 = Gather<axis = 1>(b1, left) x1 = Gather<axis = 1>(b1, right) wide = Sub(x1, x0)
    big = Greater(wide, small) j0 = NonZero(big) j = Squeeze(j0, zero)
    b2 = Gather(b1, j) s2 = Gather(s1, j) l2 = Gather(l1, j)
    largest = ReduceMax<keepdims = 0>(b2) unit = Constant<value_float = 1.0>()
    span = Add(largest, unit) numbers = Cast<to = 1>(l2) offset = Mul(numbers, span)
    column = Unsqueeze(offset, one) apart = Add(b2, column) b3 = Unsqueeze(apart, zero)
    axes = Constant<value_ints = [0, 1]>() s3 = Unsqueeze(s2, axes)
    most = Constant<value_ints = [100000]>() iou = Constant<value_floats = [0.5]>()
    kept = NonMaxSuppression(b3, s3, most, iou)
    last = Gather<axis = 1>(kept, two) flat = Squeeze(last, one)
    best = Slice(flat, zero, five, zero)
    b = Gather(b2, best) s = Gather(s2, best) l = Gather(l2, best) }}"""
"""Likely boxes, large ones of these, of which those of a class may not overlap, the best five."""


@pytest.mark.parametrize(("n", "sizes"), [(50, (50,)), thorough("n", (1, 3, 30))])
def test_what_is_found_among_what_was_found(compiled, n, sizes):
    text = CHAIN.format(n=n)
    model = compiled(text)
    assert len(model.found) == 3
    for size in sizes:
        for highest in (0.1, 0.3, 1):
            low = RNG.random((size, 2)) * 3
            boxes = np.concatenate([low, low + RNG.random((size, 2)) * 2], -1)
            feeds = {
                "boxes": boxes.astype(np.float32),
                "scores": (RNG.random(size) * highest).astype(np.float32),
                "labels": RNG.integers(0, 3, size),
            }
            check(model, text, feeds)


def test_nothing_else_is_found_for_a_mask_that_is_asked_twice(compiled):
    assert len(compiled(FOLLOWED["one mask"]).found) == 1


def test_each_way_to_ask_a_mask_finds_the_same(compiled):
    text = """g (bool[n] m, float[n, 3] x) => (float[k, 3] y, int64[1, k] p, float[k, 3] z) {
        y = Compress<axis = 0>(x, m) p = NonZero(m) t = Transpose(p) v = GatherND(x, t)
        z = Add(y, v) }"""
    model = compiled(text)
    (found,) = model.found
    assert (found.name, str(found.most)) == ("k", "n")
    for share in SHARES:
        check(model, text, draw(model, share))


def test_what_is_found_cannot_be_tuned(tmp_path):
    options = Options(cache_dir=tmp_path, threads=1)
    source = model_of(FOLLOWED["products"])
    with pytest.raises(UnsupportedOp, match=r"but a call finds k; tune a model of"):
        polyc.compile(source, target="baseline", options=options, tune=1)


def test_names_of_sizes(compiled):
    model = compiled("""g (bool[3, 5] m) => (int64[i, hits] p, float[a] y) {
        p = NonZero(m) q = Cast<to = 1>(p) t = Transpose(q)
        one = Constant<value_ints = [1]>() y = ReduceSum<keepdims = 0>(t, one) }""")
    assert [spec.shape for spec in model.outputs] == [(2, "hits"), ("hits",)]
    (bare,) = compiled("g (bool[3] m) => (int64[] p) { p = NonZero(m) }").outputs
    assert bare.shape == (1, "found_NonZero_0")


def test_saved_and_exported(compiled, tmp_path):
    text = OPEN["nested"]
    model = compiled(text)
    model.save(tmp_path / "saved")
    again = polyc.load(tmp_path / "saved")
    assert again.outputs == model.outputs
    for share in SHARES:
        check(again, text, draw(model, share, 11))
    model.export(tmp_path / "c")
    header = (tmp_path / "c" / "model_g.h").read_text()
    assert "io[5]  int64_t  a (0 to n)" in header
    assert "#define MODEL_G_IO_4_BYTES(sizes) " in header
    subprocess.run(["make", "-s"], cwd=tmp_path / "c", check=True, capture_output=True)
    run = subprocess.run(["./example"], cwd=tmp_path / "c", check=True, capture_output=True)
    assert run.stdout.decode() == "y:\np:\nz:\n"  # of a mask of zeros


def test_an_exported_model_tells_what_it_finds(compiled, tmp_path):
    compiled("g (float[5] x) => (int64[1, k] p) { p = NonZero(x) }").export(tmp_path / "c")
    example = tmp_path / "c" / "example.c"
    text = example.read_text()
    assert "*(const int64_t *)io[2]" in text
    fill = "    for (int k = 0; k < 3; k++)\n        ((float *)io[0])[2 * k] = 1;\n"
    example.write_text(text.replace("    const int status =", f"{fill}    const int status ="))
    subprocess.run(["make", "-s"], cwd=tmp_path / "c", check=True, capture_output=True)
    run = subprocess.run(["./example"], cwd=tmp_path / "c", check=True, capture_output=True)
    assert run.stdout.decode() == "p: 0 2 4\n"


def test_results_in_arrays_of_the_caller(compiled):
    model = compiled("g (bool[6] m, float[6] x) => (float[k] y, float[6] z) {"
                     "y = Compress<axis = 0>(x, m) z = Neg(x) }")  # fmt: skip
    m, x = np.array([1, 0, 1, 1, 0, 0], bool), floats(6)
    y, z = np.empty(3, np.float32), np.empty(6, np.float32)
    got = model(m, x, out=[y, z])
    assert got[0] is y
    assert got[1] is z
    np.testing.assert_array_equal(y, x[m])
    np.testing.assert_array_equal(z, -x)
    with pytest.raises(ShapeError, match=r"'y' has shape \(4,\), expected \(3,\)"):
        model(m, x, out=[np.empty(4, np.float32), z])


def test_a_result_keeps_no_more_memory_than_it_needs(compiled):
    model = compiled("g (bool[n] m, float[n] x) => (float[k] y) { y = Compress<axis = 0>(x, m) }")
    m = np.zeros(100_000, bool)
    m[[5, 70_000]] = True
    y = model(m, np.arange(100_000, dtype=np.float32))
    assert y.tolist() == [5, 70_000]
    assert y.base is None


@pytest.mark.parametrize("threads", [2, thorough(3)])
def test_several_threads(tmp_path, threads):
    text = """g (bool[n] m, float[n, 64] x, float[64, 80] w) => (float[k, 80] y, float[k, k] z) {
        v = Compress<axis = 0>(x, m) y = MatMul(v, w) t = Transpose(v) z = MatMul(v, t) }"""
    options = Options(cache_dir=tmp_path, threads=threads)
    model = polyc.compile(model_of(text), options=options, hint={"n": 2000})
    assert "threads = 1" not in model.source
    w = floats(64, 80)
    for n in (1500, 3, 700):
        for share in SHARES:
            check(model, text, {"m": mask(share, n), "x": floats(n, 64), "w": w})


def test_what_is_found_must_fit(compiled):
    """A number that is added to five numbers must be five, as nothing says before a call."""
    text = """g (bool[9] m, float[9] x, float[5] w) => (float[k] y) {
        a = Compress<axis = 0>(x, m) y = Add(a, w) }"""
    model = compiled(text)
    m, x, w = np.zeros(9, bool), floats(9), floats(5)
    m[[0, 2, 3, 7, 8]] = True
    check(model, text, {"m": m, "x": x, "w": w})
    for wrong in (1, 2):
        with pytest.raises(RuntimeFailure, match=r"a call finds k = [46], but .* k - 5 is not neg"):
            model(np.arange(9) % 9 < 2 + 2 * wrong, x, w)
    check(model, text, {"m": m, "x": x, "w": w})


def test_two_sizes_that_must_fit_are_left_to_the_call(tmp_path):
    text = """g (bool[5] m, bool[5] n, float[5] x) => (float[k] y) {
        a = Compress<axis = 0>(x, m) b = Compress<axis = 0>(x, n) y = Add(a, b) }"""
    options = Options(cache_dir=tmp_path, threads=1)
    model = polyc.compile(model_of(text), target="baseline", options=options)
    assert "of which a call finds found_Compress_0 and found_Compress_1" in model.reason
    m, n = np.array([1, 0, 1, 0, 0], bool), np.array([0, 0, 1, 0, 1], bool)
    check(model, text, {"m": m, "n": n, "x": floats(5)})


@pytest.mark.thorough
def test_the_exact_run(compiled):
    for text in (OPEN["nested"], FOLLOWED["products"], FOLLOWED["counted"]):
        report = polyc.verify(model_of(text), exact=True, target="avx2")
        assert report.agrees, report
        assert report.elements > 0


def test_states_go_on(tmp_path):
    """What is found is added up from call to call."""
    text = """g (bool[9] m, float[9] x, float[1] old) => (float[k] y, float[1] new) {
        y = Compress<axis = 0>(x, m) axes = Constant<value_ints = [0]>()
        s = ReduceSum<keepdims = 1>(y, axes) new = Add(old, s) }"""
    options = Options(cache_dir=tmp_path, threads=1)
    model = polyc.compile(model_of(text), options=options, state={"old": "new"})
    session, total = model.start(), 0
    for share in SHARES:
        m, x = mask(share, 9), floats(9)
        np.testing.assert_array_equal(session(m, x), x[m])
        total += x[m].sum()
    np.testing.assert_allclose(session.state["old"], [total], rtol=1e-5)
    _, new = model(m, x, np.float32([2]))
    np.testing.assert_allclose(new, [2 + x[m].sum()], rtol=1e-5)
    assert len(model.explain({"m": m, "x": x, "old": new}).kernels) > 1


@pytest.mark.parametrize(
    "text",
    [
        """g (float[2, n] x) => (float[2, 10, 5, 1] y) {
            s = Constant<value_ints = [2, 10, 5, 1]>() t = Exp(x) y = Reshape(t, s) }""",
        """g (float[5, 10] x) => (float[2, 10, 5, 1] y) {
            s = Constant<value_ints = [2, 10, 5, 1]>() p = NonZero(x) t = Cast<to = 1>(p)
            y = Reshape(t, s) }""",
    ],
)
def test_a_shape_that_only_one_size_fits(compiled, text):
    model = compiled(text)
    shape = (2, 50) if not model.found else (5, 10)
    check(model, text, {"x": 1 + RNG.random(shape).astype(np.float32)})


PAIRS = """
g (float[n] x, int64 most) => (float[m, m] y)
{
    zero = Constant <value = float {0.0}> ()
    above = Greater (x, zero)
    places = NonZero (above)
    column = Transpose (places)
    kept = GatherND (x, column)
    count = Shape (kept)
    flat = Constant <value = int64[1] {-1}> ()
    listed = Reshape (most, flat)
    fewer = Min (count, listed)
    best, which = TopK (kept, fewer)
    one = Constant <value = int64[1] {1}> ()
    zeroth = Constant <value = int64[1] {0}> ()
    row = Unsqueeze (best, zeroth)
    beside = Unsqueeze (best, one)
    gap = Sub (beside, row)
    near = Exp (gap)
    y = MatMul (near, gap)
}
"""
"""Of what is found the best, as many as a call asks for: their pairs are kept in memory."""


def test_pairs_of_the_best_of_what_is_found(tmp_path):
    source = model_of(PAIRS)
    options = Options(cache_dir=tmp_path, threads=1)
    model = polyc.compile(source, target="baseline", options=options)
    assert isinstance(model, CpuModel)
    for n, most in ((20, 3), (20, 100), (1, 1), (7, 2)):
        feeds = {"x": RNG.standard_normal(n).astype(np.float32), "most": np.array(most)}
        (want,) = run_ort(source, feeds)
        np.testing.assert_allclose(model.run(feeds)["y"], want, rtol=1e-4, atol=1e-5)
