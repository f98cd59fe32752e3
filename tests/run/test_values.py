"""Inputs whose values are sizes: compiled once for all from 1 on, and else by the call."""

import os
import shutil
import subprocess

import numpy as np
import pytest

import polyc
from polyc.errors import ShapeError
from polyc.options import Options
from polyc.run.cpu_model import CpuModel
from tests.branching import read
from tests.sampling import sampled, thorough
from tests.staged import assert_same, compile_in, run_ort

RNG = np.random.default_rng(6)
X = RNG.standard_normal((6, 4)).astype(np.float32)
W = RNG.uniform(-0.5, 0.5, (4, 4)).astype(np.float32)

LOOP = """g (float[b, 4] x, float[4, 4] w, int64 n) => (float[b, 4] y, float[r, b, 4] s) {
    always = Constant<value = bool {1}>()
    y, s = Loop(n, always, x)<body = step (int64 i, bool c, float[b, 4] h) => (bool c2, h2, z) {
        c2 = Identity(c) z = MatMul(h, w) h2 = Tanh(z)
    }>
}"""

MODELS = {
    LOOP: [{"n": np.array(n)} for n in (30, 1, 7)],
    "g (float[b, 4] x, int64[2] t) => (float[r, c] y) { z = Reshape(x, t) y = Softmax(z) }": [
        {"t": np.array(t)} for t in ((3, 8), (24, 1), (2, 12))
    ],
    "g (float[b, 4] x, int64[3] t) => (float[q, r, c] y) { z = Expand(x, t) y = Neg(z) }": [
        {"t": np.array(t)} for t in ((1, 6, 4), (5, 6, 4))
    ],
    "g (float[b, 4] x, int64 n) => (float[r] y) { a = Constant<value = int64 {0}>() "
    "e = Constant<value = int64 {2}>() i = Range(a, n, e) f = Cast<to = 1>(i) m = ReduceMax<"
    "keepdims = 0>(x) y = Mul(f, m) }": [{"n": np.array(n)} for n in (9, 1, 40)],
    "g (float[b, 4] x, int64[1] k) => (float[r, c] y, int64[r, c] i) { y, i = TopK(x, k) }": [
        {"k": np.array([k])} for k in (1, 3, 4)
    ],
    "g (float[6, 4] x, int64[2] t) => (float[r, c] y) { z = Tile(x, t) y = Exp(z) }": [
        {"t": np.array(t)} for t in ((1, 1), (3, 2))
    ],
    "g (float[b, 4] x, int64 first, int64[1] last) => (float[r, 4] y) { o = "
    "Constant<value = int64[1] {1}>() a = Reshape(first, o) y = Slice(x, a, last) }": [
        {"first": np.array(a), "last": np.array([b])} for a, b in ((1, 4), (2, 6), (1, 9))
    ],
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def no_compiler(monkeypatch):
    """What refuses to compile from now on, when it is called."""

    def refuse(*told):
        raise AssertionError("a call compiles")

    return lambda: monkeypatch.setattr("polyc.pipeline.run_pipeline", refuse)


def feeds_of(model, more):
    known = {"x": X, "w": W, **more}
    return {spec.name: known[spec.name] for spec in model.inputs}


def check(built, model, calls):
    for more in calls:
        feeds = feeds_of(built, more)
        results = built.run(feeds)
        for spec, want in zip(built.outputs, run_ort(model, feeds), strict=True):
            assert_same(results[spec.name], want)


@pytest.mark.parametrize(
    "text", sampled(MODELS, seldom=lambda text: text == LOOP or "TopK" in text)
)
def test_all_values_are_compiled_once(compiled, no_compiler, text, tmp_path):
    model = read(text)
    built = compiled(model)
    assert type(built) is CpuModel
    no_compiler()
    check(built, model, MODELS[text])
    built.save(tmp_path / "saved")
    again = polyc.load(tmp_path / "saved")
    assert (again.inputs, again.outputs) == (built.inputs, built.outputs)
    check(again, model, MODELS[text][::-1])


def test_shapes_say_which_values_they_follow_from(compiled):
    built = compiled(read(LOOP))
    assert [s.shape for s in built.outputs] == [("b", 4), ("n", "b", 4)]
    assert str(built.inputs[2]) == "n: int64[] = (n)"
    assert built.needed == ("n",)


def test_values_that_are_no_sizes_are_left_to_the_call(compiled, tmp_path):
    """-1 and 0 mean something else to a Reshape, and a loop without a step is none."""
    text = next(text for text in MODELS if "Reshape(x, t)" in text)
    built = compiled(read(text))
    check(built, read(text), [{"t": np.array(t)} for t in ((-1, 8), (0, -1), (4, 6))])
    check(compiled(read(LOOP)), read(LOOP), [{"n": np.array(3)}])
    built.save(tmp_path / "saved")
    with pytest.raises(ShapeError, match=r"is right where .* a call has b = 6, t\.0 = -1"):
        polyc.load(tmp_path / "saved")(X, np.array((-1, 8)))
    with pytest.raises(ShapeError):
        built(X, np.array((5, 5)))


@pytest.mark.parametrize("bad", [{1}, {}, "two", [[3, 8]], None, np.array([3.0, 8.0])])
def test_what_is_no_list_of_sizes_is_refused(compiled, bad):
    model = compiled(read(list(MODELS)[1]))
    with pytest.raises(ShapeError, match="input 't'"):
        model(X, bad)
    with pytest.raises(ShapeError, match="has no input"):
        model.run({"x": X, "t": np.array([3, 8]), 7: X})


def test_two_inputs_of_one_name(compiled):
    """What a dimension is called is no name for a value."""
    model = read(
        "g (float[n, 4] x, int64 n) => (float[r] y) { a = Constant<value = int64 {0}>() "
        "e = Constant<value = int64 {1}>() i = Range(a, n, e) y = Cast<to = 1>(i) }"
    )
    built = compiled(model)
    assert type(built) is CpuModel
    np.testing.assert_array_equal(built(X, np.array(9)), np.arange(9, dtype=np.float32))


def test_states_and_a_count(tmp_path):
    """A loop in a session: so many steps in each call, from where the last one ended."""
    text = LOOP.replace("float[r, b, 4] s", "float[r, 6, 4] s").replace("[b, 4]", "[6, 4]")
    options = Options(cache_dir=tmp_path, threads=1)
    session = polyc.compile(read(text), target="baseline", options=options, state={"x": "y"}).start(
        {"x": X}
    )
    state = X
    for n in (30, 2, 5):
        want = run_ort(read(text), {"x": state, "w": W, "n": np.array(n)})
        assert_same(session(w=W, n=np.array(n)), want[1])
        state = want[0]


@pytest.mark.parametrize("text", [LOOP, *(thorough(t) for t in MODELS if "Expand" in t)])
def test_values_are_exact(text):
    assert polyc.verify(read(text), exact=True, target="baseline").agrees


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_exported(compiled, tmp_path):
    compiled(read(LOOP)).export(tmp_path / "c")
    environment = {"PATH": os.defpath, "LC_ALL": "C"}
    made = subprocess.run(["make", "-C", str(tmp_path / "c")], capture_output=True, text=True,
                          env=environment, check=False)  # fmt: skip
    assert made.returncode == 0, made.stderr
    done = subprocess.run(["./example"], cwd=tmp_path / "c", capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "n (1 to any; the value of n)" in next((tmp_path / "c").glob("*.h")).read_text()
