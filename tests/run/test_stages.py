"""Models that are compiled in stages: sequences, optionals, text, sizes that are data."""

import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import polyc
from polyc import Graph, ops
from polyc.errors import RuntimeFailure, ShapeError, UnsupportedOp
from polyc.graph.builder import apply
from polyc.options import Options
from polyc.run import plan
from polyc.run.specialise import SpecialisingModel
from tests.sampling import sampled
from tests.staged import assert_as_reference, assert_same, compile_in, model_of, run_ort

RNG = np.random.default_rng(5)


@pytest.fixture
def compiled(tmp_path):
    return compile_in(tmp_path)


SEQUENCES = {
    "insert": """g (float[2] a, float[3] b) => (float[n] y) {
        s = SequenceConstruct(a, b) at = Constant<value_int = -2>()
        t = SequenceInsert(s, b, at) u = SequenceInsert(t, a)
        y = ConcatFromSequence<axis = 0>(u) }""",
    "erase": """g (float[2] a, float[3] b) => (float[n] y, int64 n) {
        s = SequenceConstruct(a, b, a) first = Constant<value_int = 0>()
        t = SequenceErase(s, first) u = SequenceErase(t)
        y = SequenceAt(u, first) n = SequenceLength(t) }""",
    "split": """g (float[2] a, float[7] b) => (float[n] y, seq(float[k]) z) {
        three = Constant<value_int = 3>() last = Constant<value_int = -1>()
        z = SplitToSequence(b, three) y = SequenceAt(z, last) }""",
    "rows": """g (float[2] a, float[3] b) => (float[m] y) {
        s = SplitToSequence<keepdims = 0>(b)
        y = ConcatFromSequence<axis = 0, new_axis = 1>(s) }""",
}


@pytest.mark.parametrize("name", sampled(SEQUENCES, often=["erase", "rows"]))
def test_sequences_leave_nothing_to_the_reference(compiled, name):
    a, b = (RNG.standard_normal(n).astype(np.float32) for n in (2, 7 if name == "split" else 3))
    model = assert_as_reference(compiled, model_of(SEQUENCES[name]), a=a, b=b)
    assert not model.explain().fallbacks


MAP = """g (seq(float[n]) s) => (float[k] y, int64 count) {
    count = SequenceLength(s)
    t = SequenceMap<body = f (float[m] x) => (float[m] r) { r = Exp(x) }>(s)
    y = ConcatFromSequence<axis = 0>(t) }"""


def test_a_call_says_how_long_a_sequence_is(compiled):
    for lengths in ((3, 1), (2,), (1, 0, 5)):
        parts = [RNG.standard_normal(n).astype(np.float32) for n in lengths]
        model = assert_as_reference(compiled, model_of(MAP), s=parts)
    assert not model.explain().fallbacks
    with pytest.raises(ShapeError, match="at least 1 element"):
        model.run({"s": []})


def test_an_optional_may_be_left_out(compiled):
    text = """g (optional(float[2]) o, float[2] x) => (float[2] y) {
        there = OptionalHasElement(o)
        y = If(there) <then_branch = t () => (float[2] v) { v = OptionalGetElement(o) },
                       else_branch = e () => (float[2] v) { v = Neg(x) }> }"""
    model = compiled(model_of(text))
    x, o = np.ones(2, np.float32), np.zeros(2, np.float32)
    np.testing.assert_array_equal(model.run({"x": x})["y"], -x)
    np.testing.assert_array_equal(model.run({"x": x, "o": o})["y"], o)
    np.testing.assert_array_equal(model.run({"x": x, "o": None})["y"], -x)


TEXT = """g (string[2] a, string[2] b, float[2] x) => (float[2] y, string[2] c) {
    c = StringConcat(a, b)
    same = Equal(a, b)
    n = Cast<to = 1>(same)
    r = Exp(x)
    y = Mul(r, n) }"""


def test_text_goes_to_the_reference_and_the_rest_is_compiled(compiled):
    a, b = np.array(["x", "y"], object), np.array(["x", "ä"], object)
    model = assert_as_reference(compiled, model_of(TEXT), a=a, b=b, x=np.float32([1, 2]))
    report = model.explain()
    assert [f.operator for f in report.fallbacks] == ["StringConcat", "Equal"]
    assert {f.reason for f in report.fallbacks} == {"it reads text"}
    assert "not compiled: StringConcat" in str(report)
    assert len(report.kernels) == 2  # Exp before, the product after
    assert model(a.astype("U"), b, [1.0, 2.0])[1].tolist() == ["xx", "yä"]


def test_what_the_reference_cannot_do_is_named(compiled):
    model = compiled(model_of("g (uint8[3] x) => (uint8[a, b, c] y) { y = ImageDecoder(x) }"))
    with pytest.raises(RuntimeFailure, match=r"ImageDecoder.*the reference evaluator fails"):
        model(np.zeros(3, np.uint8))


def test_a_package_that_is_missing_is_named_with_its_extra(compiled, monkeypatch):
    model = compiled(model_of("g (uint8[3] x) => (uint8[a, b, c] y) { y = ImageDecoder(x) }"))
    for name in ("PIL", "PIL.Image"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    with pytest.raises(RuntimeFailure, match=r"ImageDecoder.*pip install 'polyc\[images\]'"):
        model(np.zeros(3, np.uint8))


RESULTS = {
    # What is found in a branch has a size that is data; what is behind it has it as well.
    "g (float[3,4] x, float[4,8] w, bool c) => (int64[i,k] p, float[] z, float[3,4] s) {"
    "p = If(c)<then_branch = t () => (u) { u = NonZero(x) }, else_branch = e () => (v) {"
    "n = Neg(x) v = NonZero(n) }> q = Gather<axis=1>(w, p) z = Neg(q) s = Exp(x) }": {
        "p": (np.int64, (2, "k")), "z": (np.float32, (4, 2, "k")), "s": (np.float32, (3, 4)),
    },
    "g (float[3,h,w] x) => (float[] y) { y = Det(x) }": {"y": (np.float32, (3,))},
    "g (float[a,b,h,w] x) => (float[] y) { s = Constant<value_ints=[-1,4]>() "
    "z = Det(x) y = Reshape(z, s) }": {"y": (np.float32, ("y_d0", 4))},
    "g (float[3,4] x, int16[2] t) => (float[add, 1] y) { s = Cast<to = 7>(t) y = Reshape(x, s) }": {
        "y": (np.float32, ("add", 1)),
    },
    "g (float[3,4] x, int64[n] t) => (int32[] y) { r = Reshape(x, t) y = Cast<to=6>(r) }": {
        "y": (np.int32, ("...",)),
    },
    "g (seq(float[k]) x, float[3] w) => (float[i] z, seq(float[k]) u, double[] v) {"
    "i = Constant<value_int=0>() z = SequenceAt(x, i) u = Identity(x) v = Cast<to=11>(w) }": {
        "z": (np.float32, ("i",)), "v": (np.float64, (3,)),
    },
}  # fmt: skip


def test_a_stage_has_both_branches(compiled, monkeypatch):
    """What is computed decides how often all is compiled, and a condition does not."""
    source = model_of(
        "g (float[3,4] x, bool c) => (float[3,k] q, float[a,b] y) { e = Exp(x) l = Cast<to=7>(e) "
        "first = Constant<value_ints=[0]>() one = Constant<value_ints=[1]>() "
        "n = ReduceMin<keepdims=0>(l) end = Unsqueeze(n, first) "
        "q = Slice(x, first, end, one) y = If(c)<then_branch = t () => (u) { u = Softmax(q) },"
        " else_branch = e () => (v) { z = Transpose(q) m = ReduceMax(z) v = Mul(q, m) }> }"
    )
    model = compiled(source)
    assert [s.shape for s in model.outputs] == [(3, "k"), (3, "b")]
    x = 1 + np.eye(3, 4, dtype=np.float32)
    staged, infer = [], plan.infer_stage
    monkeypatch.setattr(plan, "infer_stage", lambda *a: staged.append(a) or infer(*a))
    made = []
    for taken in (True, False, True):
        feeds = {"x": x, "c": np.array(taken)}
        results = model.run(feeds)
        for spec, want in zip(model.outputs, run_ort(source, feeds), strict=True):
            assert_same(results[spec.name], want)
        made.append(len(staged))
    assert made[0] == made[-1] > 0


@pytest.mark.parametrize("text", RESULTS)
def test_outputs_are_known_before_a_call(compiled, text):
    model = compiled(model_of(text))
    assert isinstance(model, SpecialisingModel)
    assert {s.name: (s.dtype, s.shape) for s in model.outputs} == RESULTS[text]


def test_outputs_of_a_graph_that_a_call_completes(compiled):
    a, w = ops.input("a", ("n", 1, "m", 4)), np.ones((1, 2, 3, 3), np.float32)
    y = apply("ConvTranspose", [a, w], output_shape=[10, 8], strides=[3, 2])  # cuts off any number
    model = compiled(Graph.of(y=y))
    assert isinstance(model, SpecialisingModel)
    assert [(s.name, s.shape) for s in model.outputs] == [("y", ("n", 2, 10, 8))]


REFUSED = {
    "g (float[3,height,add] x) => (float[] y) { y = Det(x) }":
        r"dims={'height': 320, 'add': 320}",
    "g (float[batch,height,add] x) => (float[] y) { y = Det(x) }":
        r"dims={'batch': 1, 'height': 320, 'add': 320}",
    "g (float[3,4] x, int16[2] t) => (float[] y) { s = Cast<to = 7>(t) y = Reshape(x, s) }":
        "make what it is to be given as 't' an initializer",
    "g (float[3,4] x, string[2] t) => (float[] y, bool[] e) { y = Exp(x) e = Equal(t, t) }":
        "compile it where it is called",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_exported_says_what_to_give(compiled, text, tmp_path):
    model = compiled(model_of(text))
    for refused in (model.save, model.export):
        with pytest.raises(UnsupportedOp) as caught:
            refused(tmp_path / "somewhere")
        assert REFUSED[text] in str(caught.value)


def test_only_sizes_that_are_open_are_asked_for(tmp_path):
    options = Options(cache_dir=tmp_path, threads=1)
    text = "g (float[n,h,w] x) => (float[] y) { y = Det(x) }"
    dims = {"n": 1, "h": (9, 320)}
    model = polyc.compile(model_of(text), target="baseline", options=options, dims=dims)
    with pytest.raises(UnsupportedOp, match=r"dims={'h': 320, 'w': 320}, or"):
        model.export(tmp_path / "somewhere")
    fixed = dims | {"h": 9, "w": 9}
    model = polyc.compile(model_of(text), target="baseline", options=options, dims=fixed)
    model.export(tmp_path / "somewhere")


def test_a_value_that_much_decides_is_computed_by_a_stage(compiled):
    """The length of a slice is the sum of a hundred numbers: too many to compile for them."""
    text = """g (float[50] x, int64[100] m) => (float[k] y) {
        axes = Constant<value_ints = [0]>() zero = Constant<value_ints = [0]>()
        n = ReduceSum(m, axes) r = Exp(x)
        y = Slice(r, zero, n, axes) }"""
    model = compiled(model_of(text))
    for count in (3, 7, 60, 0, 50, 3):
        m = np.zeros(100, np.int64)
        m[RNG.permutation(100)[:count]] = 1
        x = RNG.standard_normal(50).astype(np.float32)
        np.testing.assert_allclose(model.run({"x": x, "m": m})["y"], np.exp(x)[:count], rtol=1e-6)
    (similar,) = model._plan._kept.values()
    (first,) = similar.by_shapes.values()
    assert sorted(len(s.by_pattern) for s in first.rest._kept.values()) == [0, 1]  # 0 is no size
    seconds = model.profile({"x": x, "m": m}, repeats=1)
    assert len(seconds) == len(model.explain().kernels)
    out = np.empty(3, np.float32)
    assert model(x, m, out=out) is out
    with pytest.raises(ShapeError, match="the result is"):
        model(x, m, out=np.empty(4, np.float32))


FIND = """g (float[50] x, float[50, 8] t, float[8, 5] w, bool b)
    => (int64[1, k] i, float[k, 5] y, int64[2] s) {
    zero = Constant<value_float = 0.0>() axes = Constant<value_ints = [0]>()
    found = Greater(x, zero)
    i = If(b)<then_branch = t () => (p) { p = NonZero(found) }, else_branch = e () => (q) {
        none = Not(found) q = NonZero(none) }> j = Squeeze(i, axes)
    rows = Gather(t, j) h = MatMul(rows, w) y = Softmax(h) s = Shape(h) }"""


LONG = """g (float[k] d, float[1, 5] x) => (float[n, 5] y) {
    e = Exp(d) up = Ceil(e) axis = Constant<value_ints = [0]>()
    total = ReduceSum<keepdims = 0>(up, axis) n = Cast<to = 7>(total)
    two = Constant<value_int = 2>() one = Constant<value_int = 1>() r = Range(two, n, one)
    f = Cast<to = 1>(r) last = Constant<value_ints = [1]>() column = Unsqueeze(f, last)
    t = Sin(column) y = Mul(t, x) }"""


def test_numbers_that_a_stage_computes_are_sizes(compiled):
    """How long speech is follows from durations: once calls differ, one model is for any length."""
    source = model_of(LONG)
    x, steps = RNG.standard_normal((1, 5)).astype(np.float32), []
    model = compiled(source)
    for k in (3, 2, 5, 4, 7, 6):
        d = RNG.random(k).astype(np.float32)
        (expected,) = run_ort(source, {"d": d, "x": x})
        assert_same(model.run({"d": d, "x": x})["y"], expected)
        steps.append([id(stage) for stage in model._last[0]])
    assert steps[2] == steps[3] == steps[4] == steps[5]
    assert all(stage.sizes for stage in model._last[0])
    d = np.float32([-1])  # of length 1, which is less than what numbers begin with
    assert model.run({"d": d, "x": x})["y"].shape == (0, 5)


def test_what_is_repeated_in_one_call_only(compiled):
    """A model for any length would be right where that is 4, and is not taken where it is 1."""
    source = model_of("""g (float[k] d, float[4] x) => (float[n] y) {
        axis = Constant<value_ints = [0]>() total = ReduceSum<keepdims = 0>(d, axis)
        n = Cast<to = 7>(total) zero = Constant<value_int = 0>() one = Constant<value_int = 1>()
        r = Range(zero, n, one) f = Cast<to = 1>(r) y = Add(f, x) }""")
    model, x = compiled(source), np.arange(4, dtype=np.float32)
    for k in (4, 1, 4, 1):
        y = model.run({"d": np.ones(k, np.float32), "x": x})["y"]
        np.testing.assert_array_equal(y, np.arange(k) + x)


def test_what_is_cut_has_a_size_known_only_at_run_time(compiled):
    """The first two calls are compiled for; the others find a model for any number of rows."""
    source = model_of(FIND)
    model = compiled(source)
    t, w = (RNG.standard_normal(s).astype(np.float32) for s in ((50, 8), (8, 5)))
    for count in (7, 12, 50, 1, 29):
        x = np.full(50, -1, np.float32)
        x[RNG.permutation(50)[:count]] = 1
        feeds = {"x": x, "t": t, "w": w, "b": np.array(True)}
        for got, want in zip(model.run(feeds).values(), run_ort(source, feeds), strict=True):
            assert_same(got, want)
    *_, similar = model._plan._kept.values()  # when the condition turned out to steer
    (first,) = similar.by_shapes.values()
    (behind,) = first.rest._kept.values()
    assert len(behind.by_shapes) == 1
    assert list(behind.by_pattern) == [((1, "n0"), (50, 8), (8, 5))]
    y = model.run(feeds | {"x": -np.ones(50, np.float32)})["y"]
    assert y.shape == (0, 5)


def test_what_cannot_be_compiled_for_any_size_is_compiled_for_each(compiled):
    model = compiled(model_of("g (float[n, a, b] x) => (float[n] y) { y = Det(x) }"))

    def check(batch, rows):
        x = RNG.standard_normal((batch, rows, rows)).astype(np.float32)
        np.testing.assert_allclose(model(x), np.linalg.det(x), rtol=1e-4)

    for batch, rows in ((2, 3), (4, 5), (1, 2)):
        check(batch, rows)
    (similar,) = model._plan._kept.values()
    assert (len(similar.by_shapes), len(similar.by_pattern)) == (3, 0)
    for batch in (4, 9, 1):  # one of the three may be any
        check(batch, 5)
    assert (len(similar.by_shapes), list(similar.by_pattern)) == (3, [(("n0", 5, 5),)])


def test_sizes_of_what_only_a_later_stage_reads(compiled):
    """How much is cut follows from x, which itself is read once that is known."""
    text = """g (float[n, 3] x) => (float[k, 3] y) {
        size = Constant<value_ints = [3]>() y = CenterCropPad<axes = [0]>(x, size) }"""
    source = model_of(text)
    model = compiled(source)
    for n in (19, 5, 2, 8):
        x = RNG.standard_normal((n, 3)).astype(np.float32)
        (want,) = run_ort(source, {"x": x})
        assert_same(model(x), want)


GROW = """g (float[2] x, int64 n) => (float[k] y) {
    one = Constant<value_int = 1>() c = Cast<to = 9>(one)
    y = Loop(n, c, x) <body = b (int64 i, bool go, float[m] a) => (bool go, float[q] r) {
        r = Concat<axis = 0>(a, x) }> }"""

UNTIL = """g (float[2] x) => (float[2] y) {
    ten = Constant<value_int = 10>() one = Constant<value_int = 1>() c = Cast<to = 9>(one)
    y = Loop(ten, c, x) <body = b (int64 i, bool go, float[2] a) => (bool still, float[2] r) {
        two = Constant<value_float = 2.0>() r = Mul(a, two)
        axes = Constant<value_ints = [0]>() s = ReduceSum<keepdims = 0>(r, axes)
        limit = Constant<value_float = 20.0>() still = Less(s, limit) }> }"""

EITHER = """g (float[40] x) => (float[40] y) {
    axes = Constant<value_ints = [0]>() s = ReduceSum<keepdims = 0>(x, axes)
    zero = Constant<value_float = 0.0>() c = Greater(s, zero)
    y = If(c) <then_branch = t () => (float[40] v) { v = Exp(x) },
               else_branch = e () => (float[40] w) { w = Neg(x) }> }"""


@pytest.mark.thorough
def test_control_flow_that_data_decides(compiled):
    x = np.float32([1, 2])
    for n in (0, 3, 1):
        assert_as_reference(compiled, model_of(GROW), x=x, n=np.array(n))
    for start in (x, 3 * x):
        assert_as_reference(compiled, model_of(UNTIL), x=start)
    wide = RNG.standard_normal(40).astype(np.float32)
    for sign in (1, -1):
        assert_as_reference(compiled, model_of(EITHER), x=sign * wide)


def test_names_of_stages_do_not_collide(compiled):
    nodes = [helper.make_node("Identity", ["s"], ["t"]),
             helper.make_node("SequenceAt", ["t", "at"], ["y"])]  # fmt: skip
    infos = [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None),
             helper.make_tensor_value_info("at", TensorProto.INT64, [])]  # fmt: skip
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name="y")])
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    model = compiled(source)
    s = [np.float32([1, 2]), np.float32([3])]
    assert model(s, np.array(1)).tolist() == [3]
    assert model(s, np.array(-2)).tolist() == [1, 2]
    with pytest.raises(ShapeError, match="position"):
        model(s, np.array(2))
    with pytest.raises(UnsupportedOp, match="save is not defined"):
        model.save("nowhere")


def test_a_shape_of_numbers_and_of_what_a_call_computes(compiled):
    """A list that steers shapes, some elements of which are the same in all calls."""
    source = model_of("""
        g (float[3, n] x, float far) => (float[3, m] y)
        {
            least = Constant <value = float {1.0}> ()
            most = Max (far, least)
            wide = Cast <to = 7> (most)
            flat = Constant <value = int64[1] {-1}> ()
            width = Reshape (wide, flat)
            three = Constant <value = int64[1] {3}> ()
            target = Concat <axis = 0> (three, width)
            axes = Constant <value = int64[1] {1}> ()
            short = ReduceMax <keepdims = 1> (x, axes)
            y = Expand (short, target)
        }""")
    model = compiled(source)
    for far in (4.5, 7.0, 9.9, 1.0, 12.0):
        feeds = {
            "x": RNG.standard_normal((3, 5)).astype(np.float32),
            "far": np.array(far, np.float32),
        }
        (want,) = run_ort(source, feeds)
        np.testing.assert_array_equal(model.run(feeds)["y"], want)


def test_what_fitted_once_says_nothing_of_other_calls(compiled):
    """Sizes and structures of each call are looked at, though steps are kept."""
    text = """g (seq(float[k]) s, float[n] a, float[n] b) => (float[n] y) {
        i = Constant<value_int = 0>() first = SequenceAt(s, i)
        whole = ReduceSum(first) c = Add(a, b) y = Mul(c, whole) }"""
    model = compiled(model_of(text))
    for lengths, rows in (((3,), 4), ((3,), 4), ((3,), 6), ((2, 5), 6), ((3,), 4)):
        s = [RNG.standard_normal(n).astype(np.float32) for n in lengths]
        a, b = RNG.standard_normal((2, rows)).astype(np.float32)
        np.testing.assert_allclose(
            model.run({"s": s, "a": a, "b": b})["y"], (a + b) * s[0].sum(), rtol=1e-5
        )
        for _ in range(2):
            with pytest.raises(ShapeError, match="where n ="):
                model.run({"s": s, "a": a, "b": b[1:]})
