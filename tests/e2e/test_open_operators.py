"""Operators with open sizes are compiled once, and right at any size."""

import re
from dataclasses import replace

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import polyc
from polyc.errors import ShapeError
from polyc.options import Options
from polyc.run.cpu_model import CpuModel
from polyc.run.specialise import SpecialisingModel
from tests.e2e.open_arithmetic import ARITHMETIC
from tests.e2e.open_operators import OPERATORS, RNG
from tests.sampling import sampled
from tests.staged import assert_same, compile_in, model_of, run_ort

CASES = (*OPERATORS, *ARITHMETIC)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


def draw_inputs(case, source, sizes):
    """An array for each input, by how it is declared."""
    feeds = {}
    for info in source.graph.input:
        shape = tuple(
            sizes[d.dim_param] if d.dim_param else d.dim_value
            for d in info.type.tensor_type.shape.dim
        )
        draw = case.draws.get(info.name)
        made = RNG.standard_normal(shape).astype(np.float32) if draw is None else draw(shape, sizes)
        feeds[info.name] = made
    return feeds


def text_of(case):
    text = f"g ({case.takes}) => ({case.gives}) {{ {case.body} }}"
    return model_of(text, case.opset, **{"com.microsoft": 1})


def check(case, source, model, sizes):
    """Compare a call with what the reference gives."""
    feeds = draw_inputs(case, source, sizes)
    got = model.run(feeds)
    run = run_ort if case.by == "ort" else run_reference
    for output, want in zip(source.graph.output, run(source, feeds), strict=True):
        assert_same(got[output.name], want, 1e-4, 1e-4)


def run_reference(source, feeds):
    return ReferenceEvaluator(source).run(None, feeds)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=re.sub(r"\W+", "-", case.name),
            marks=[pytest.mark.thorough] if case.is_long else [],
        )
        for case in CASES
    ],
)
def test_compiled_once_and_right(compiled, case):
    source = text_of(case)
    model = compiled(source)
    assert type(model) is CpuModel, model.reason
    for sizes in case.calls:
        check(case, source, model, sizes)


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=lambda case: re.sub(r"\W+", "-", case.name))
def test_right_whatever_the_hint(compiled, case):
    """Loops run once at the hint, or the model cannot have it: that is a plan, and no promise."""
    source = text_of(case)
    dims = [d for i in source.graph.input for d in i.type.tensor_type.shape.dim]
    model = compiled(source, hint={d.dim_param: 1 for d in dims if d.dim_param})
    for sizes in case.calls:
        check(case, source, model, sizes)


LISTED = """rest = Mod(back, half) pair = Concat<axis = 0>(rest, half)
    parts = Constant<value_ints = [1, 1]>() last, again = Split<axis = 0>(pair, parts)"""


@pytest.mark.parametrize("remainder", ["last = Mod(back, half)", LISTED], ids=["alone", "listed"])
def test_a_remainder_by_nothing_is_refused_by_the_call(compiled, remainder):
    (case,) = (case for case in CASES if case.name.startswith("A roll"))
    case = replace(case, body=case.body.replace("last = Mod(back, half)", remainder))
    x = np.ones((2, 1, 3), np.float32)
    with pytest.raises(ShapeError, match=r"floor\(h/2\) - 1 is not negative.*h = 1"):
        compiled(text_of(case)).run({"x": x})


EMPTY = {"ScatterND": "kl", "TopK": "b", "STFT of [": "b", "MaxRoiPool": "r", "Rows": "n"}
"""How the names of operators begin, and their sizes that may be 0."""


@pytest.mark.parametrize("name", sampled(EMPTY, often=["STFT of [", "Rows"]))
def test_none_at_all(name, tmp_path):
    (case,) = (case for case in CASES if case.name.startswith(name))
    source, options = text_of(case), Options(cache_dir=tmp_path, threads=1)
    dims = dict.fromkeys(EMPTY[name], (0, 100))
    model = polyc.compile(source, target="baseline", options=options, dims=dims)
    assert type(model) is CpuModel, model.reason
    for size in EMPTY[name]:
        check(case, source, model, {**case.calls[1], size: 0})


LEFT = {
    "y = DFT(x)": "DFT.*a length that is transformed.* is the symbolic size 'm'",
    "y = Det(x)": "Det.*the size of a matrix is the symbolic size 'm'",
    """sizes = Constant<value_ints = [8, 8]>()
    y = Resize<axes = [1, 2], keep_aspect_ratio_policy = "not_larger">(x, , , sizes)""":
        "Resize.*the scale of not_larger, which the largest quotient decides",
    """other = Shape<start = 1, end = 2>(x)
    twice = Mul(other, other)
    rest = Constant<value_ints = [-1]>()
    shape = Concat<axis = 0>(twice, rest)
    y = Reshape(x, shape)""": "Reshape.*regroups a symbolic size",
}  # fmt: skip
"""What is compiled when it is called, and why."""


@pytest.mark.parametrize("body", LEFT)
def test_what_is_left_to_the_call_says_why(compiled, body):
    model = compiled(model_of(f"g (float[n, m, k] x) => (float[] y) {{ {body} }}"))
    assert isinstance(model, SpecialisingModel)
    assert re.search(LEFT[body], model.reason)
