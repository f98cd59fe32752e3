"""The exact run of CUDA, on the emulator."""

from __future__ import annotations

import pytest

import polyc
from polyc import Graph, ops
from polyc.errors import UnsupportedOp
from tests.cuda.models import compile_model
from tests.cuda.test_warpgroups import SHAPES, force
from tests.exact.cuda_models import CASES, Case
from tests.exact.runs import exactly

pytestmark = pytest.mark.cuda


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_models_agree(case: Case, monkeypatch):
    if case.by_warpgroups:
        force(monkeypatch, SHAPES[-1])
    assert case.has in compile_model(case.build(), case.arch, verify=False, **case.choices).text
    report = exactly(case.build(), target=f"cuda:{case.arch}", choices=dict(case.choices))
    assert report.agrees, report
    assert report.elements > 0
    assert report.places == ("the emulator",)


def test_a_size_that_is_left_open_is_chosen_by_a_call():
    """Kernels for a GPU are for known sizes: what a call would compile is run exactly."""
    x = ops.input("x", (5, "n"))
    report = polyc.verify(
        Graph.of(y=ops.exp(x) + x), exact=True, target="cuda:sm_80", dims={"n": (1, 50)}
    )
    assert report.agrees
    assert report.elements > 0


def test_states_are_for_cpus():
    x = ops.input("x", (5, 3))
    with pytest.raises(UnsupportedOp, match="states"):
        polyc.verify(Graph.of(y=x + 1.0), exact=True, target="cuda:sm_80", state={"x": "y"})
