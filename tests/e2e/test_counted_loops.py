"""Loops whose condition follows from what they count: one loop over steps, at any length."""

import numpy as np
import pytest

from polyc.graph.onnx_import import import_onnx
from polyc.run.cpu_model import CpuModel
from polyc.run.specialise import SpecialisingModel
from tests.staged import assert_same, compile_in, model_of, run_ort

RNG = np.random.default_rng(11)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


def recurrence(begin, goes_on, update, limit='""', number="int64"):
    """h = tanh(h w + x[i]) while `goes_on`; i begins with a value and is updated."""
    return model_of(f"""
        g (float[n, 5] x, float[5, 5] w) => (float[5] last, {number} count, float[m, 5] rows)
        {{
            zero = Constant <value = int64 {{0}}> ()
            shape = Shape (x)
            extent = Gather (shape, zero)
            size = Cast <to = {6 if number == "int32" else 7}> (extent)
            three = Constant <value = int64 {{3}}> ()
            go = Constant <value = bool {{1}}> ()
            h0 = Constant <value = float[5] {{0, 0, 0, 0, 0}}> ()
            {begin}
            count, last, limits, rows = Loop ({limit}, go, i0, h0, size) <body = step
                (int64 t, bool c, {number} i, float[5] h, {number} end)
                => (bool on, {number} j, float[5] after, {number} same, float[5] row)
            {{
                one = Constant <value = {number} {{1}}> ()
                two = Constant <value = {number} {{2}}> ()
                none = Constant <value = {number} {{0}}> ()
                {update}
                at = Gather (x, i)
                hw = MatMul (h, w)
                sum = Add (hw, at)
                after = Tanh (sum)
                row = Identity (after)
                kept = Identity (end)
                same = Identity (kept)
                {goes_on}
            }}>
        }}""")


ZERO = "i0 = Constant <value = int64 {0}> ()"
UP = "j = Add (i, one)"
LESS = "on = Less (j, end)"
LOOPS = {
    "tensorflow": recurrence(
        ZERO, "f = Cast <to = 1> (j)  e = Cast <to = 1> (end)  on = Less (f, e)", UP
    ),
    "paddle": recurrence(
        ZERO,
        """l = Less (j, end)  number = Cast <to = 7> (l)
        copied = Add (number, none)  on = Cast <to = 9> (copied)""",
        UP,
    ),
    "both": recurrence(
        ZERO, "l = Less (j, end)  yes = LessOrEqual (t, end)  on = And (l, yes)", UP
    ),
    "not": recurrence(ZERO, "l = GreaterOrEqual (j, end)  on = Not (l)", UP),
    "at_most": recurrence(ZERO, "on = LessOrEqual (two, two)", UP, limit="extent"),
    "by_two": recurrence(ZERO, LESS, "j = Add (i, two)"),
    "narrow": recurrence("i0 = Constant <value = int32 {0}> ()", LESS, UP, number="int32"),
    "limited": recurrence(ZERO, LESS, UP, limit="three"),
}
LOOPS["down"] = recurrence(
    "one0 = Constant <value = int64 {1}> ()  i0 = Sub (size, one0)",
    "on = GreaterOrEqual (j, none)",
    "j = Sub (i, one)",
)


@pytest.mark.parametrize("name", LOOPS)
def test_one_loop_for_any_length(name, compiled):
    source = LOOPS[name]
    model = compiled(source, dims={"n": (3 if name == "limited" else 1, None)})
    assert isinstance(model, CpuModel)
    assert name == "limited" or any(row.steps for row in model.explain().kernels)
    w = 0.3 * RNG.standard_normal((5, 5)).astype(np.float32)
    for n in (3, 4, 5, 31) if name == "limited" else (1, 2, 3, 8, 31):
        feeds = {"x": RNG.standard_normal((n, 5)).astype(np.float32), "w": w}
        got = model.run(feeds)
        for output, want in zip(source.graph.output, run_ort(source, feeds), strict=True):
            assert_same(got[output.name], want)


@pytest.mark.parametrize(
    "goes_on", ["on = Identity (differs)", "yes = LessOrEqual (t, end)  on = And (differs, yes)"]
)
def test_what_may_step_over_its_end_is_not_counted(goes_on, compiled):
    """i != n, in steps of two: from 0 it never is 5, and the limit ends it."""
    text = f"equal = Equal (j, end)  differs = Not (equal)  {goes_on}"
    source = recurrence(ZERO, text, "j = Add (i, two)", limit="three")
    model = compiled(source, dims={"n": (5, None)})
    w = 0.3 * RNG.standard_normal((5, 5)).astype(np.float32)
    feeds = {"x": RNG.standard_normal((5, 5)).astype(np.float32), "w": w}
    got = model.run(feeds)
    for output, want in zip(source.graph.output, run_ort(source, feeds), strict=True):
        assert_same(got[output.name], want)


def test_what_data_end_is_left_to_the_call(compiled):
    source = recurrence(
        ZERO,
        """largest = ReduceMax <keepdims = 0> (after)  e = Cast <to = 1> (end)
        l = Less (j, end)  small = Less (largest, e)  on = And (l, small)""",
        UP,
    )
    assert isinstance(compiled(source), SpecialisingModel)


def test_steps_that_are_written_out_have_short_names():
    """What was left of a Loop was named after all steps before it, 500 of them in 5 KB a name."""
    source = model_of("""
        g (float[4] x) => (float[m] y)
        {
            limit = Constant <value = int64 {12}> ()
            go = Constant <value = bool {1}> ()
            y = Loop (limit, go, x) <
                body = step (int64 t, bool c, float[k] s) => (bool d, float[l] r)
            { d = Identity (c)  e = Exp (s)  r = Concat <axis = 0> (s, e) }>
        }""")
    graph = import_onnx(source)
    assert graph.tensors[graph.outputs[0]].shape == (4 << 12,)
    assert max(len(node.name) for node in graph.nodes) < 40
