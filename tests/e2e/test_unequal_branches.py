"""If whose branches give results of the same rank and other lengths: a call finds how long."""

import numpy as np
import pytest

import polyc
from polyc.errors import ShapeError
from polyc.options import Options
from polyc.run.cpu_model import CpuModel
from tests.branching import read
from tests.staged import assert_same, compile_in, run_ort

RNG = np.random.default_rng(6)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


def graph(then, other, behind="y = Softmax(t)", results="t", outputs="o"):
    """Two branches that read x and w, and what is computed of what the call has taken."""
    sides = f"then_branch = b () => ({outputs}) {{ {then} }}, "
    sides += f"else_branch = b () => ({outputs}) {{ {other} }}"
    given = "float[n, 7] x, float[m, 7] w, bool c"
    return read(f"g ({given}) => (float[a, b] y) {{ {results} = If(c)<{sides}> {behind} }}")


MODELS = {
    "one is longer in all calls": graph("o = Relu(x)", "o = Concat<axis = 0>(x, w)"),
    "a call says which one is longer": graph("o = Exp(x)", "o = Neg(w)"),
    "both dimensions differ": graph("o = Concat<axis = 1>(x, x)", "o = Concat<axis = 0>(w, w)"),
    "it is a result of the model": graph("o = Exp(x)", "o = Neg(w)", "", "y"),
    "two results are equally long": graph(
        "o = Exp(x) p = Neg(x)", "o = Neg(w) p = Exp(w)", "y = Add(t, s)", "t, s", "o, p"
    ),
    "a sum over what is there": graph(
        "o = Exp(x)", "o = Neg(w)", "k = Constant<value_ints = [0]>() y = ReduceSum(t, k)"
    ),
}


def feed(rows, others, taken):
    x, w = (RNG.standard_normal((n, 7)).astype(np.float32) for n in (rows, others))
    return {"x": x, "w": w, "c": np.array(taken)}


@pytest.mark.parametrize("name", MODELS)
def test_what_a_call_takes_is_as_long_as_it_is(compiled, name, tmp_path):
    model = compiled(MODELS[name])
    assert type(model) is CpuModel
    model.save(tmp_path / "saved")
    for built in (model, polyc.load(tmp_path / "saved")):
        for rows, others in ((5, 3), (2, 9), (1, 1)):
            for taken in (True, False):
                feeds = feed(rows, others, taken)
                assert_same(built.run(feeds)["y"], run_ort(MODELS[name], feeds)[0])


def test_a_window_that_a_branch_has_no_room_for_is_asked_of_its_calls():
    """Frames of 8 or of 4 samples: where a branch is not taken its length may be below zero."""
    network = read(
        """g (float[n, 1, t] x, float[2, 1, 8] long, float[2, 1, 4] short, bool c)
           => (float[n, 2, s] y) {
        z = If(c)<then_branch = b () => (o) { o = Conv<strides = [4]>(x, long) },
                  else_branch = b () => (o) { o = Conv<strides = [2]>(x, short) }>
        y = Relu(z) }"""
    )
    model = polyc.compile(network, target="baseline", options=Options(threads=1))
    assert type(model) is CpuModel
    weights = {"long": (2, 1, 8), "short": (2, 1, 4)}
    constant = {k: RNG.standard_normal(s).astype(np.float32) for k, s in weights.items()}
    for length in (4, 7, 8, 9, 31):
        x = RNG.standard_normal((2, 1, length)).astype(np.float32)
        for taken in (True, False):
            feeds = {"x": x, **constant, "c": np.array(taken)}
            if taken and length < 8:
                with pytest.raises(ShapeError, match="takes the branch"):
                    model.run(feeds)
            else:
                assert_same(model.run(feeds)["y"], run_ort(network, feeds)[0])


def test_what_another_branch_pads_is_defined_in_its_calls_alone(compiled):
    """Both read one tensor, and each pads it: the frame of one is no longer than it needs."""
    network = read(
        """g (float[n, 1, t] x, float[2, 1, 16] long, float[2, 1, 8] short, bool c)
           => (float[n, 2, s] y) {
        z = If(c)<
            then_branch = b () => (o) { o = Conv<strides = [8], pads = [4, 4]>(x, long) },
            else_branch = b () => (o) { o = Conv<strides = [4], pads = [2, 2]>(x, short) }>
        y = Relu(z) }"""
    )
    model = compiled(network)
    assert type(model) is CpuModel
    for taken, length in ((True, 8), (True, 37), (False, 4), (False, 7), (False, 30)):
        feeds = {
            "x": RNG.standard_normal((3, 1, length)).astype(np.float32),
            "long": RNG.standard_normal((2, 1, 16)).astype(np.float32),
            "short": RNG.standard_normal((2, 1, 8)).astype(np.float32),
            "c": np.array(taken),
        }
        assert_same(model.run(feeds)["y"], run_ort(network, feeds)[0])
