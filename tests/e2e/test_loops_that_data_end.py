"""Loops that data end: a step is compiled once, and run until its condition says it is over."""

import numpy as np
import pytest

from polyc.run import plan
from polyc.run.specialise import SpecialisingModel
from tests.staged import assert_same, compile_in, model_of, run_ort

RNG = np.random.default_rng(17)

LOOP = """
g (float[n, 5] x, float[5, 5] w) => (float[5] last, float[m, 5] rows, int64 count)
{
    zero = Constant <value = int64 {0}> ()
    one = Constant <value = int64 {1}> ()
    go = Constant <value = bool {1}> ()
    h0 = Constant <value = float[5] {0, 0, 0, 0, 0}> ()
    limit = Constant <value = int64 {LIMIT}> ()
    first = Gather (x, zero)
    count, last, rows = Loop (limit, go, zero, h0) <body = step
        (int64 t, bool c, int64 i, float[5] h) => (bool on, int64 j, float[5] after, float[5] row)
    {
        j = Add (i, one)
        hw = MatMul (h, w)
        sum = Add (hw, first)
        after = Tanh (sum)
        change = Sub (after, h)
        size = Abs (change)
        largest = ReduceMax <keepdims = 0> (size)
        enough = Constant <value = float {0.001}> ()
        on = Greater (largest, enough)
        row = Identity (after)
    }>
}"""
"""It converges after so many steps as the values say."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


def check(model, source, feeds):
    got, want = model.run(feeds), run_ort(source, feeds)
    for output, expected in zip(source.graph.output, want, strict=True):
        assert_same(got[output.name], expected)
    return want


def floats(*shape, scale=1.0):
    return (scale * RNG.standard_normal(shape)).astype(np.float32)


@pytest.fixture
def made(monkeypatch):
    """The stages that were compiled, one after the other."""
    found = []
    make = plan.Plan._make_step

    def counted(self, *arguments):
        step = make(self, *arguments)
        found.append(step)
        return step

    monkeypatch.setattr(plan.Plan, "_make_step", counted)
    return found


def test_it_ends_where_the_values_say(compiled, made):
    source = model_of(LOOP.replace("LIMIT", "500"))
    model = compiled(source)
    assert isinstance(model, SpecialisingModel)
    counts = set()
    for scale in (0.05, 0.2, 0.3):
        w = floats(5, 5, scale=scale)
        *_, count = check(model, source, {"x": floats(3, 5), "w": w})
        counts.add(int(count))
    assert len(counts) == 3
    before = len(made)
    assert before < 12  # and not one for each step
    check(model, source, {"x": floats(3, 5), "w": floats(5, 5, scale=0.25)})
    assert len(made) == before


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_its_limit_ends_it_as_well(limit, compiled):
    source = model_of(LOOP.replace("LIMIT", str(limit)))
    model = compiled(source)
    *_, count = check(model, source, {"x": floats(1, 5), "w": floats(5, 5, scale=0.3)})
    assert count == limit


def test_an_if_in_its_steps_may_give_other_shapes(compiled, made):
    """As PaddleOCR's SLANet, which asks in each step whether all tables have come to their end."""
    source = model_of("""
        g (float[n, 4] x) => (float[n, 4] y, int64 count)
        {
            zero = Constant <value = int64 {0}> ()
            one = Constant <value = int64 {1}> ()
            go = Constant <value = bool {1}> ()
            limit = Constant <value = int64 {300}> ()
            count, y = Loop (limit, go, zero, x) <body = step
                (int64 t, bool c, int64 i, float[n, 4] h) => (bool on, int64 j, float[n, 4] after)
            {
                j = Add (i, one)
                half = Constant <value = float {0.5}> ()
                after = Mul (h, half)
                size = Abs (after)
                largest = ReduceMax <keepdims = 0> (size)
                least = Constant <value = float {0.01}> ()
                small = Less (largest, least)
                flag = If (small) <
                    then_branch = a () => (bool p) { p = Constant <value = bool {0}> () },
                    else_branch = b () => (bool[1] q) {
                        q = Constant <value = bool[1] {1}> () }
                >
                shape = Constant <value = int64[1] {-1}> ()
                list = Reshape (flag, shape)
                none = Constant <value = int64[1] {0}> ()
                on = Squeeze (list, none)
            }>
        }""")
    model = compiled(source)
    counts = {int(check(model, source, {"x": floats(2, 4, scale=s)})[1]) for s in (0.1, 1, 9)}
    assert len(counts) == 3
    assert len(made) < 20


def test_states_may_grow(compiled):
    source = model_of("""
        g (float[2] x, float bound) => (float[m] y)
        {
            go = Constant <value = bool {1}> ()
            y = Loop ("", go, x) <body = step
                (int64 t, bool c, float[k] s) => (bool on, float[l] r)
            {
                e = Exp (s)
                r = Concat <axis = 0> (s, e)
                total = ReduceSum <keepdims = 0> (r)
                on = Less (total, bound)
            }>
        }""")
    model = compiled(source)
    for bound, length in ((0.0, 4), (5.0, 8), (12.0, 16)):
        x, limit = np.zeros(2, np.float32), np.array(bound, np.float32)
        (want,) = check(model, source, {"x": x, "bound": limit})
        assert len(want) == length


def test_one_loop_in_another(compiled):
    source = model_of("""
        g (float[3] x) => (float[3] y, float[m] sizes)
        {
            go = Constant <value = bool {1}> ()
            half = Constant <value = float {0.5}> ()
            large = Constant <value = float {2.0}> ()
            y, sizes = Loop ("", go, x) <body = outer
                (int64 t, bool c, float[3] s) => (bool on, float[3] r, float size)
            {
                inside = Loop ("", go, s) <body = inner
                    (int64 u, bool d, float[3] p) => (bool on2, float[3] q)
                {
                    q = Mul (p, half)
                    a = Abs (q)
                    b = ReduceMax <keepdims = 0> (a)
                    on2 = Greater (b, large)
                }>
                r = Mul (inside, half)
                f = Abs (r)
                size = ReduceMax <keepdims = 0> (f)
                on = Greater (size, half)
            }>
        }""")
    model = compiled(source)
    for scale in (1, 10, 100):
        check(model, source, {"x": floats(3, scale=scale)})
