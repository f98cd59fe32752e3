"""Operators with open sizes are compiled once, and right at any size."""

import re

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from polyc.run.cpu_model import CpuModel
from tests.e2e.open_operators import CASES, RNG
from tests.staged import assert_same, compile_in, model_of, run_ort


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


@pytest.mark.parametrize("case", CASES, ids=lambda case: re.sub(r"\W+", "-", case.name))
def test_compiled_once_and_right(compiled, case):
    source = model_of(
        f"g ({case.takes}) => ({case.gives}) {{ {case.body} }}",
        case.opset,
        **{"com.microsoft": 1},
    )
    model = compiled(source)
    assert type(model) is CpuModel, model.reason
    for sizes in case.calls:
        feeds = draw_inputs(case, source, sizes)
        got = model.run(feeds)
        if case.by == "ort":
            expected = run_ort(source, feeds)
        else:
            expected = ReferenceEvaluator(source).run(None, feeds)
        for output, want in zip(source.graph.output, expected, strict=True):
            assert_same(got[output.name], want, case.tolerance, case.tolerance)
