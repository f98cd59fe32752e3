"""Models in which a size decides how many dimensions something has, beside ONNX Runtime."""

import numpy as np
import pytest

import polyc
from polyc.errors import ShapeError, UnsupportedOp
from polyc.run.cpu_model import CpuModel
from tests.staged import assert_same, compile_in, model_of, run_ort

RNG = np.random.default_rng(5)

SQUEEZED = """
g (float[n, 8, length] x, float[8, 4] w) => (float[n, 4] y)
{
    windows = AveragePool <kernel_shape = [16], strides = [16]> (x)
    shape = Shape (windows)
    two = Constant <value = int64 {2}> ()
    count = Gather (shape, two)
    one = Constant <value = int64 {1}> ()
    is_one = Equal (count, one)
    flat = If (is_one) <
        then_branch = squeezed () => (float[n, 8] s)
            { axes = Constant <value = int64[1] {2}> ()  s = Squeeze (windows, axes) },
        else_branch = kept () => (float[n, 8, m] k) { k = Identity (windows) }
    >
    y = Gemm (flat, w)
}
"""
"""As PyTorch's older exporter writes x.squeeze(2): a product of matrices takes one of both."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def check(model, source, **feeds):
    got = model.run(feeds)
    for output, want in zip(source.graph.output, run_ort(source, feeds), strict=True):
        assert_same(got[output.name], want)


def test_only_one_way_fits_to_what_follows(compiled, tmp_path):
    source = model_of(SQUEEZED)
    model = compiled(source)
    assert isinstance(model, CpuModel)
    assert model.otherwise is None
    (size,) = (s for s in model.sizes if s.name == "length")
    assert (size.lower, size.upper) == (16, 31)
    for n, length in ((1, 16), (3, 31), (2, 20)):
        check(model, source, x=floats(n, 8, length), w=floats(8, 4))
    for length in (15, 32):
        with pytest.raises(ShapeError, match="length 16 to 31"):
            model(floats(1, 8, length), floats(8, 4))
    model.save(tmp_path / "saved")
    x, w = floats(2, 8, 17), floats(8, 4)
    np.testing.assert_array_equal(polyc.load(tmp_path / "saved")(x, w), model(x, w))


def test_what_a_branch_of_a_call_needs_is_asked_of_the_calls_that_take_it(compiled):
    """As Silero's VAD: a rate chooses, and each side squeezes what is 1 for its lengths."""
    sides = []
    for name, width in (("then_branch", 16), ("else_branch", 8)):
        sides.append(f"""{name} = g{width} () => (float[n, 4] y{width}) {{
            p{width} = AveragePool <kernel_shape = [{width}], strides = [{width}]> (x)
            s{width} = Shape (p{width})
            two{width} = Constant <value = int64 {{2}}> ()
            c{width} = Gather (s{width}, two{width})
            one{width} = Constant <value = int64 {{1}}> ()
            q{width} = Equal (c{width}, one{width})
            f{width} = If (q{width}) <
                then_branch = a{width} () => (float[n, 8] t{width}) {{
                    axes{width} = Constant <value = int64[1] {{2}}> ()
                    t{width} = Squeeze (p{width}, axes{width}) }},
                else_branch = b{width} () => (float[n, 8, m] e{width}) {{
                    e{width} = Identity (p{width}) }}
            >
            y{width} = Gemm (f{width}, w) }}""")
    source = model_of(f"""
        g (float[n, 8, length] x, float[8, 4] w, int64 rate) => (float[n, 4] y)
        {{
            known = Constant <value = int64 {{16000}}> ()
            fast = Equal (rate, known)
            y = If (fast) < {", ".join(sides)} >
        }}""")
    model = compiled(source)
    assert isinstance(model, CpuModel)
    fast, slow = np.array(16000), np.array(8000)
    w = floats(8, 4)
    for rate, length in ((fast, 16), (fast, 31), (slow, 8), (slow, 15)):
        check(model, source, x=floats(2, 8, length), w=w, rate=rate)
    for rate, length in ((fast, 15), (fast, 40), (slow, 16)):
        with pytest.raises(ShapeError):
            model(floats(2, 8, length), w, rate)


def test_a_squeezed_dimension_is_one_in_all_calls(compiled):
    source = model_of("""
        g (float[n, m, 6] x) => (float[n, 6] y)
        { axes = Constant <value = int64[1] {1}> ()  s = Squeeze (x, axes)  y = Relu (s) }""")
    model = compiled(source)
    check(model, source, x=floats(3, 1, 6))
    check(model, source, x=floats(1, 1, 6))
    with pytest.raises(ShapeError, match="m"):
        model(floats(3, 2, 6))


def test_where_both_ways_fit_there_is_a_model_for_each(compiled, tmp_path):
    source = model_of("""
        g (float[n, 1, length] x) => (float y) { s = Squeeze (x)  y = Exp (s) }""")
    source.graph.output[0].type.tensor_type.ClearField("shape")
    model = compiled(source, dims={"length": (2, None)})
    assert isinstance(model, CpuModel)
    assert isinstance(model.otherwise, CpuModel)
    for n, length in ((1, 5), (4, 5), (1, 300), (2, 2)):
        x = floats(n, 1, length)
        check(model, source, x=x)
        want = np.exp(np.squeeze(x))
        np.testing.assert_allclose(model(x), want, rtol=1e-5)
        out = np.empty_like(want)
        assert model(x, out=out) is out
        np.testing.assert_allclose(out, want, rtol=1e-5)
    for what in (model.save, model.export):
        with pytest.raises(UnsupportedOp, match=r"dims=\{'n': 1\}"):
            what(tmp_path / "never")
    assert not (tmp_path / "never").exists()
    compiled(source, dims={"n": 1, "length": (2, None)}).save(tmp_path / "one")


def test_of_two_models_for_a_size_the_one_of_known_sizes_leaves_the_rest_to_the_other(compiled):
    source = model_of("g (float[n, 1, 3] x) => (float y) { y = Squeeze (x) }")
    source.graph.output[0].type.tensor_type.ClearField("shape")
    model = compiled(source)
    for n in (1, 2, 5):
        assert model(floats(n, 1, 3)).shape == ((n, 3) if n > 1 else (3,))
        assert model(x=floats(n, 1, 3)).shape == ((n, 3) if n > 1 else (3,))
        out = np.empty((n, 3) if n > 1 else (3,), np.float32)
        assert model(floats(n, 1, 3), out=out) is out
    with pytest.raises(ShapeError):
        model(floats(2, 2, 3))


@pytest.mark.parametrize("name", ["state", "cell", "bias", "lengths"])
def test_states_and_weights_of_another_size_are_refused(name):
    """A state for another batch was read beyond its end, as the proof said."""
    shapes = {"state": [1, 2, 4], "cell": [1, 2, 4], "bias": [1, 32], "lengths": [2]}
    shapes[name] = {"state": [1, 1, 4], "cell": [1, 2, 3], "bias": [1, 16], "lengths": [3]}[name]
    takes = ", ".join(
        f"{'int32' if n == 'lengths' else 'float'}{s} {n}".replace(" [", "[")
        for n, s in shapes.items()
    )
    source = model_of(f"""
        g (float[5, 2, 3] x, float[1, 16, 3] w, float[1, 16, 4] r, {takes}) => (float[5, 1, 2, 4] y)
        {{ y = LSTM <hidden_size = 4> (x, w, r, bias, lengths, state, cell) }}""")
    with pytest.raises(ShapeError, match=r"shape of (initial_[hc]|B|sequence_lens)"):
        polyc.compile(source)


def test_a_state_says_the_batch(compiled):
    source = model_of("""
        g (float[t, n, 3] x, float[1, 12, 3] w, float[1, 12, 4] r, float[1, 1, 4] h)
        => (float[t, 1, n, 4] y)
        { y = GRU <hidden_size = 4> (x, w, r, , , h) }""")
    model = compiled(source)
    weights = floats(1, 12, 3), floats(1, 12, 4), floats(1, 1, 4)
    assert model(floats(6, 1, 3), *weights).shape == (6, 1, 1, 4)
    with pytest.raises(ShapeError, match="n"):
        model(floats(6, 2, 3), *weights)


def test_a_slice_whose_end_may_count_from_either_side(compiled):
    """Where a bound of a size is negative it counts from the end; both ways are compiled."""
    source = model_of("""
        g (float[n] x) => (float[m] y)
        {
            shape = Shape (x)
            five = Constant <value = int64[1] {5}> ()
            end = Sub (shape, five)
            zero = Constant <value = int64[1] {0}> ()
            part = Slice (x, zero, end)
            y = Exp (part)
        }""")
    model = compiled(source)
    assert isinstance(model, CpuModel)
    for n in (1, 2, 3, 4, 5, 6, 7, 100):
        check(model, source, x=floats(n))


FRAMES = """
g (float[batch, n] x) => (float[batch, frames, 160] y)
{
    shape = Shape <start = 1> (x)
    window = Constant <value = int64[1] {400}> ()
    hop = Constant <value = int64[1] {160}> ()
    over = Sub (shape, window)
    rest = Mod (over, hop)
    last = Sub (shape, rest)
    first = Constant <value = int64[1] {240}> ()
    axis = Constant <value = int64[1] {1}> ()
    whole = Slice (x, first, last, axis)
    target = Constant <value = int64[3] {0, -1, 160}> ()
    y = Reshape (whole, target)
}
"""
"""A signal cut to whole frames, as preprocessors of speech write it."""


def test_a_signal_is_cut_to_whole_frames(compiled):
    source = model_of(FRAMES)
    model = compiled(source)
    assert isinstance(model, CpuModel)
    for batch, n in ((1, 400), (2, 401), (1, 559), (3, 560), (1, 16000)):
        check(model, source, x=floats(batch, n))
    for n in (10, 79, 80, 239, 241, 399):
        assert model(floats(2, n)).shape == (2, 0, 160)
