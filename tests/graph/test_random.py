"""Random numbers: their distribution, seeds, and what differs from call to call."""

import numpy as np
import pytest

from polyc.run.specialise import SpecialisingModel
from tests.sampling import thorough
from tests.staged import compile_in, model_of


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


@pytest.mark.thorough
def test_a_seed_gives_the_same_numbers_and_a_normal_distribution(compiled):
    text = (
        "g () => (float[300, 301] y) {{ y = RandomNormal<shape=[300, 301], seed={}, mean=2.0>() }}"
    )
    model, other = compiled(model_of(text.format("1.5"))), compiled(model_of(text.format("2.5")))
    y = model()
    np.testing.assert_array_equal(y, model())
    assert not (y == other()).any()
    assert abs(y.mean() - 2) < 0.02
    assert abs(y.std() - 1) < 0.02
    assert abs(((y - 2) ** 3).mean()) < 0.05
    assert np.isfinite(y).all()


def test_numbers_of_any_size_are_those_of_their_places(compiled):
    text = """g (float[{0}] x) => (float[{0}] y, float[{0}] z) {{
        y = RandomNormalLike<seed = 4.0>(x) h = Constant<value_float = 0.5>()
        s = Shape(x) halves = Expand(h, s) z = Bernoulli<seed = 3.0>(halves) }}"""
    model = compiled(model_of(text.format("a, b")))
    assert not isinstance(model, SpecialisingModel)
    for sizes in ((3, 5), (40, 7)):
        x = np.zeros(sizes, np.float32)
        fixed = compiled(model_of(text.format(", ".join(map(str, sizes)))))
        for one, other in zip(model(x), fixed(x), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["float", thorough("double")])
def test_without_a_seed_each_call_draws_anew(compiled, kind):
    """In equal shares over all tenths, and no two nodes alike."""
    model = compiled(
        model_of(f"""g ({kind}[123, 77] x) => ({kind}[123, 77] y, {kind}[123, 77] z) {{
        y = RandomUniformLike(x) z = RandomUniformLike<low = -1.0>(x) }}""")
    )
    x = np.zeros((123, 77), np.float32 if kind == "float" else np.float64)
    y, z = model(x)
    again, _ = model(x)
    assert not np.isclose(y, again).mean() > 0.01
    assert not np.isclose(2 * y - 1, z).mean() > 0.01
    shares = np.bincount((y * 10).astype(int).ravel(), minlength=10) / y.size
    assert abs(shares - 0.1).max() < 0.02
    assert y.min() >= 0
    assert y.max() < 1


def test_multinomial_draws_by_probability(compiled):
    model = compiled(
        model_of("""g (float[2, 3] x) => (int64[2, 20001] y) {
        y = Multinomial<sample_size=20001, dtype=7>(x) }""")
    )
    with np.errstate(divide="ignore"):
        y = model(np.log(np.float32([[0.2, 0.3, 0.5], [0, 1, 0]])))
    assert y.dtype == np.int64
    shares = np.bincount(y[0], minlength=3) / y.shape[1]
    np.testing.assert_allclose(shares, [0.2, 0.3, 0.5], atol=0.02)
    assert (y[1] == 1).all()


def test_dropout_in_training(compiled):
    model = compiled(
        model_of("""g (float[99, 101] x, float r, bool t)
        => (float[99, 101] y, bool[99, 101] m) { y, m = Dropout(x, r, t) }""")
    )
    x = np.ones((99, 101), np.float32)
    y, m = model(x, np.float32(0.25), np.array(True))
    np.testing.assert_array_equal(y, np.where(m, np.float32(1 / 0.75), 0))
    assert abs(m.mean() - 0.75) < 0.03
    y, m = model(x, np.float32(0.25), np.array(False))
    assert m.all()
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("is_fed", [False, True])
def test_a_dropout_of_nothing_draws_nothing(compiled, is_fed):
    """Whether in training or not, known or not: the ratio is 0."""
    inputs, mode = ("float[3, 5] x", "one = Constant<value_int = 1>() t = Cast<to = 9>(one)")
    inputs, mode = (f"{inputs}, bool t", "") if is_fed else (inputs, mode)
    model = compiled(
        model_of(f"""g ({inputs}) => (float[3, 5] y, bool[3, 5] m) {{
        r = Constant<value_float = 0.0>() {mode} d, m = Dropout(x, r, t) y = Neg(d) }}""")
    )
    assert not isinstance(model, SpecialisingModel)
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    results = model.run({"x": x} | ({"t": np.array(True)} if is_fed else {}))
    np.testing.assert_array_equal(results["y"], -x)
    assert results["m"].all()


def test_a_dropout_of_nothing_before_training_was_an_input(compiled):
    model = compiled(model_of("g (float[3] x) => (float[3] y) { y = Dropout<ratio = 0.0>(x) }", 6))
    np.testing.assert_array_equal(model(np.ones(3, np.float32)), 1)


def test_bernoulli(compiled):
    model = compiled(
        model_of("g (float[50, 99] x) => (bool[50, 99] y) { y = Bernoulli<dtype=9>(x) }")
    )
    y = model(np.full((50, 99), 0.3, np.float32))
    assert abs(y.mean() - 0.3) < 0.05
