"""If whose condition only a call brings: compiled once, and in each call one branch is executed."""

import shutil
import subprocess
from itertools import product

import numpy as np
import onnx
import pytest

import polyc
from polyc.errors import RuntimeFailure, ShapeError
from polyc.options import Options
from polyc.run.cpu_model import CpuModel
from tests.branching import detector, read
from tests.sampling import sampled, thorough
from tests.staged import assert_same, compile_in, run_ort

RNG = np.random.default_rng(5)
X = RNG.standard_normal((5, 7)).astype(np.float32)
W = 0.3 * RNG.standard_normal((7, 7)).astype(np.float32)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


def branch(text, outputs="o"):
    return f"b () => ({outputs}) {{ {text} }}"


def choice(then, other, condition="c", results="y", outputs="o"):
    sides = f"then_branch = {branch(then, outputs)}, else_branch = {branch(other, outputs)}"
    return f"{results} = If({condition})<{sides}>"


MODELS = {
    "kernels on both sides": choice(
        "p = MatMul(x, w) q = Softmax(p) o = Add(q, x)", "p = MatMul(x, w) o = Tanh(p)"
    ),
    "one of them has nothing to compute": choice("o = Identity(x)", "o = MatMul(x, w)"),
    "what is around is needed by one of them": "u = MatMul(x, w) "
    + choice("o = Relu(u)", "o = Neg(x)"),
    "what is around is needed by both, and behind them": "u = MatMul(x, w) "
    + choice("o = Softmax(u)", "o = Sub(u, x)", results="t")
    + " s = Add(t, u) y = Softmax(s)",
    "what is around is returned, and is overwritten by neither": "u = MatMul(x, w) "
    + choice("o = Identity(u)", "o = Sigmoid(x)", results="t")
    + " y = Mul(t, u)",
    "constants": choice(
        "k = Constant<value = float[1] {2}>() s = Shape(x) o = Expand(k, s)", "o = Exp(x)"
    ),
    "the same on both sides": choice("o = MatMul(x, w)", "o = MatMul(x, w)"),
    "the condition is computed": "m = ReduceMax<keepdims = 0>(x) k = CastLike(c, m) n = Sub(m, m) "
    "d = Greater(k, n) " + choice("o = Relu(x)", "o = Neg(x)", condition="d"),
    "the condition is of one element": "k = Constant<value = int64[1] {1}>() d = Reshape(c, k) "
    + choice("o = Relu(x)", "o = Neg(x)", condition="d"),
    "the condition is returned as well, and is opposite to another": "d = Not(c) "
    + choice("o = Relu(x)", "o = Neg(x)", results="t")
    + choice("o = Exp(t)", "o = MatMul(t, w)", condition="d"),
    "one condition twice": choice("o = Relu(x)", "o = MatMul(x, w)", results="t")
    + choice("o = MatMul(t, w)", "o = Softmax(t)"),
    "one inside of another": "m = ReduceMax<keepdims = 0>(x) n = Sub(m, m) "
    + choice(
        "p = MatMul(x, w) d = Less(n, m) " + choice("o = Neg(p)", "o = Abs(p)", "d", "o"),
        "d = Less(m, n) " + choice("o = Relu(x)", "o = Softmax(x)", "d", "o"),
    ),
    "the same condition inside": choice(
        choice("o = Relu(x)", "o = MatMul(x, w)", "c", "o"), "o = Neg(x)"
    ),
    "several results": choice(
        "o = MatMul(x, w) n = ReduceSum<keepdims = 0>(o)",
        "n = ReduceMax<keepdims = 0>(x) o = Exp(x)",
        results="t, s",
        outputs="o, n",
    )
    + " y = Mul(t, s)",
    "joined to others in place": choice("o = Relu(x)", "o = MatMul(x, w)", results="t")
    + " y = Concat<axis = 1>(x, t, x)",
    "integers": "i = Cast<to = 7>(x) " + choice("o = Neg(i)", "o = Add(i, i)"),
    "in float16": "i = Cast<to = 10>(x) " + choice("o = Identity(i)", "o = Neg(i)"),
    "a long loop": choice(
        "k = Constant<value = int64 {40}>() t = Constant<value = bool {1}>() "
        "o = Loop(k, t, x)<body = l (int64 i, bool g, float[n, 7] a) => (bool g2, float[n, 7] a2) "
        "{ g2 = Identity(g) p = MatMul(a, w) a2 = Tanh(p) }>",
        "o = Exp(x)",
    ),
}


OFTEN = {"the same on both sides", "one condition twice"}
OFTEN |= {"what is around is returned, and is overwritten by neither"}
"""Those of an ordinary run, with open sizes."""

TYPES = {"integers": "int64", "in float16": "float16"}


def source(name, rows="n"):
    result = TYPES.get(name, "float")
    return read(
        f"g (float[{rows}, 7] x, float[7, 7] w, bool c) => ({result}[a, b] y) {{ {MODELS[name]} }}"
    )


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        *((name, "n") if name in OFTEN else thorough(name, "n") for name in MODELS),
        *(thorough(name, "5") for name in MODELS),
    ],
)
def test_both_branches_are_compiled_once(compiled, name, rows):
    model = source(name, rows)
    built = compiled(model)
    assert type(built) is CpuModel
    for taken in (True, False, True):
        feeds = {"x": X, "w": W, "c": np.array(taken)}
        (want,) = run_ort(model, feeds)
        assert_same(built.run(feeds)["y"], want, 1e-4, 1e-5)


@pytest.fixture(scope="module")
def heard(tmp_path_factory):
    """A voice detector, its states kept."""
    options = Options(cache_dir=tmp_path_factory.mktemp("cache"))
    return polyc.compile(
        detector(),
        target="baseline",
        threads=2,
        options=options,
        dims={"samples": (1, 128)},
        state={"state": "next"},
    )


def listen(batch, samples, rate, state=None):
    return {
        "input": RNG.standard_normal((batch, samples)).astype(np.float32),
        "state": RNG.standard_normal((2, batch, 5)).astype(np.float32) if state is None else state,
        "rate": np.array(rate),
    }


CALLS = [
    (1, 16, 16000),
    (3, 33, 8000),
    (2, 128, 16000),
    (1, 16, 8000),
    (2, 9, 8000),
    (3, 70, 16000),
]


@pytest.fixture
def no_compiler(monkeypatch):
    """From now on nothing is compiled."""

    def refuse(*told):
        raise AssertionError("a call compiles")

    monkeypatch.setattr("polyc.toolchain.c_compiler.LibraryBuild.__init__", refuse)
    monkeypatch.setattr("polyc.pipeline.run_pipeline", refuse)


def check_detector(model):
    for call in CALLS:
        feeds = listen(*call)
        for spec, want in zip(model.outputs, run_ort(detector(), feeds), strict=True):
            assert_same(model.run(feeds)[spec.name], want)
    with pytest.raises(
        ShapeError, match=r"takes the branch of .* not be negative, with samples = 9"
    ):
        model.run(listen(2, 9, 16000))


def test_a_detector_is_compiled_once_for_both_rates(heard, no_compiler, tmp_path):
    assert type(heard) is CpuModel
    assert [s.shape for s in heard.outputs] == [("batch", 1), (2, "batch", 5)]
    check_detector(heard)
    heard.save(tmp_path / "saved")
    again = polyc.load(tmp_path / "saved")
    assert again.outputs == heard.outputs
    check_detector(again)


def test_states_go_on_whichever_branch_is_taken(heard, no_compiler):
    state = np.zeros((2, 2, 5), np.float32)
    session = heard.start({"state": state})
    for rate in (16000, 8000, 8000, 16000):
        feeds = listen(2, 40, rate, state)
        want, state = run_ort(detector(), feeds)
        assert_same(session(input=feeds["input"], rate=feeds["rate"]), want)
        assert_same(session.state["state"], state)


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_a_detector_as_plain_c(heard, tmp_path):
    heard.export(tmp_path / "c")
    made = subprocess.run(["make", "-C", str(tmp_path / "c")], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    done = subprocess.run(["./example"], cwd=tmp_path / "c", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


PADDED = """g (float[n, 1, t] x, bool c) => (float[n, 2, k] y) {{
    y = If(c)<then_branch = b () => (o) {{ o = Conv<pads = [{0}, {0}]>(x, {1}) }},
              else_branch = b () => (o) {{ o = Conv<pads = [{2}, {2}]>(x, {3}) }}> }}"""


@pytest.mark.parametrize("pads", [(2, 1), (1, 2)])
def test_what_both_branches_pad_each_pads_itself(compiled, pads):
    """As a voice detector has a window of its own for each sampling rate."""
    kernels = [RNG.standard_normal((2, 1, 2 * p + 1)).astype(np.float32) for p in pads]
    source = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> '
        + PADDED.format(pads[0], "v", pads[1], "w").replace("[n, 2, k]", "[n, 2, t]")
    )
    source.graph.initializer.extend(map(onnx.numpy_helper.from_array, kernels, "vw"))
    model = compiled(source)
    for shape in ((1, 1, 1), (2, 1, 9)):
        x = RNG.standard_normal(shape).astype(np.float32)
        for taken in (True, False):
            feeds = {"x": x, "c": np.array(taken)}
            assert_same(model.run(feeds)["y"], run_ort(source, feeds)[0], 1e-5)


def test_what_is_not_taken_cannot_fail(compiled):
    """An index out of range in a branch is one in the calls that take it."""
    text = choice("o = Gather<axis = 0>(x, i)", "o = Gather<axis = 1>(x, i)")
    model = compiled(read(f"g (float[7, 7] x, int64[7] i, bool c) => (float[7, 7] y) {{ {text} }}"))
    x = RNG.standard_normal((7, 7)).astype(np.float32)
    assert type(model) is CpuModel
    good, bad = np.arange(7)[::-1].copy(), np.full(7, 9)
    np.testing.assert_array_equal(model(x, good, np.array(True)), x[good])
    np.testing.assert_array_equal(model(x, good, np.array(False)), x[:, good])
    with pytest.raises(RuntimeFailure, match="out of range"):
        model(x, bad, np.array(True))


def square(then, other):
    return read(
        f"g (float[n, 7] x, float[m, 7] w, bool c) => (float[a, b] y) {{ {choice(then, other)} }}"
    )


WAITING = {
    "its branches give": read(
        f"""g (float[n, 7] x, float[m, 7] w, bool c) => (float[a] y) {{
        {choice("o = Relu(x)", "l = Constant<value_ints = [-1]>() o = Reshape(x, l)", results="t")}
        k = Constant<value_ints = [-1]>() y = Reshape(t, k) }}"""
    ),
    "its then_branch is not known before a call (Trim 'then_branch.NonZero": square(
        "z = NonZero(x) q = Cast<to = 1>(z) o = Transpose(q)", "o = Relu(x)"
    ),
}


@pytest.mark.parametrize("reason", sampled(WAITING, often=["its branches give"]))
def test_what_waits_for_the_call_says_why(compiled, reason):
    built = compiled(WAITING[reason])
    assert f"its condition is computed at run time, and {reason}" in built.reason
    for taken in (True, False):
        feeds = {"x": X, "w": X[::-1].copy(), "c": np.array(taken)}
        assert_same(built.run(feeds)["y"], run_ort(WAITING[reason], feeds)[0])


NEEDING = {
    "rows that are equal": square("o = Relu(x)", "o = Add(x, w)"),
    "in a branch inside of the other": read(
        f"""g (float[n, 7] x, float[m, 7] w, bool c, bool d) => (float[a, b] y) {{
        {choice(choice("s = Add(x, w) o = Softmax(s)", "o = Exp(x)", "d", "o"), "o = Neg(x)")} }}"""
    ),
    "of two choices by one condition": read(
        f"""g (float[n, 7] x, float[m, 7] w, bool c) => (float[a, b] y) {{
        {choice("o = Neg(x)", "o = Add(x, w)", results="t")}
        {choice("o = Sub(t, w)", "o = Exp(t)")} }}"""
    ),
    "enough for a window": read(
        f"""g (float[n, 3, h, k] x, float[4, 3, 5, 5] w, bool c) => (float[n] y) {{
        axes = Constant<value_ints = [1, 2, 3]>()
        {choice("v = Conv(x, w) o = ReduceMax<keepdims = 0>(v, axes)",
                "o = ReduceMax<keepdims = 0>(x, axes)")} }}"""
    ),
}  # fmt: skip
"""Branches that need something of sizes which others do not."""


def feeds_of(model, rows, others, **conditions):
    shapes = {"x": (rows, 7), "w": (others, 7)}
    if len(model.graph.input[0].type.tensor_type.shape.dim) == 4:
        shapes = {"x": (2, 3, rows, others + 1), "w": (4, 3, 5, 5)}
    feeds = {k: RNG.standard_normal(shape).astype(np.float32) for k, shape in shapes.items()}
    named = {i.name for i in model.graph.input}
    return feeds | {k: np.array(v) for k, v in conditions.items() if k in named}


@pytest.mark.parametrize(
    "name", sampled(NEEDING, often=["rows that are equal", "in a branch inside of the other"])
)
def test_what_one_branch_needs_only_its_calls_keep_to(compiled, name, tmp_path):
    model = NEEDING[name]
    built = compiled(model)
    assert type(built) is CpuModel
    built.save(tmp_path / "saved")
    refused = 0
    for again in (built, polyc.load(tmp_path / "saved")):
        for rows, others, c, d in product((2, 5), (3, 5), (True, False), (True, False)):
            feeds = feeds_of(model, rows, others, c=c, d=d)
            try:
                (want,) = run_ort(model, feeds)
            except Exception:
                with pytest.raises(ShapeError, match=r"takes the branch of .* not be negative"):
                    again.run(feeds)
                refused += 1
            else:
                assert_same(again.run(feeds)["y"], want, 1e-4, 1e-5)
    assert refused


def test_what_both_branches_need_every_call_must_keep_to(compiled):
    model = square("o = Add(x, w)", "z = Mul(x, w) o = Softmax(z)")
    built = compiled(model)
    assert type(built) is CpuModel
    for taken in (True, False):
        feeds = {"x": X, "w": X[::-1].copy(), "c": np.array(taken)}
        assert_same(built.run(feeds)["y"], run_ort(model, feeds)[0])
    with pytest.raises(ShapeError, match="is right where"):
        built(X, X[:3], np.array(True))


def test_the_report_says_what_is_launched_where(compiled):
    shown = str(compiled(source("kernels on both sides")).explain())
    assert "# if c\n" in shown
    assert "# if not c\n" in shown


@pytest.mark.parametrize("taken", [True, False])
def test_branches_are_exact(taken):
    """What is printed is what the statements say, in a field where nothing is rounded."""
    model = source("what is around is returned, and is overwritten by neither")
    report = polyc.verify(model, exact=True, target="baseline", feeds={"c": np.array(taken)})
    assert report.agrees
