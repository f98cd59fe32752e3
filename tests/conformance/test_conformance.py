"""The ONNX standard's conformance suite: every case of onnx's package passes, or is listed.

    pytest -m conformance -n 2                               # all
    pytest -m conformance tests/conformance --shard 1/4      # a quarter
    pytest -m conformance tests/conformance --update-conformance   # write `known.tsv` anew

`known.tsv` has a line for each case that fails, for each that passes but for a rounding, and for
each that needs the reference evaluator, with the reason; a case that does otherwise than its line
says fails here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc.options import Options
from tests.conformance.cases import (
    KNOWN,
    OUTCOMES,
    Case,
    all_cases,
    find_difference,
    find_rounding,
    read_known,
)


def run_case(case: Case, cache: Path) -> tuple[str, str]:
    """ "passes", "rounds", "falls back" or "fails", and why.

    A case rounds if what it asks for is missed by no more than two roundings of a type narrower
    than float32: our kernels sum in float32, the case's own arithmetic rounds after each operator.
    """
    rounds = ""
    try:
        model = polyc.compile(case.model, target="cpu", options=Options(cache_dir=cache, threads=1))
        for inputs, outputs in case.data:
            pairs = zip(case.model.graph.input, inputs, strict=False)
            got = model.run({i.name: x for i, x in pairs if x is not None})
            for info, want in zip(case.model.graph.output, outputs, strict=True):
                difference = find_difference(got[info.name], want, case.rtol, case.atol)
                if difference:
                    rounds = f"{case.rtol} is missed by a rounding of {np.asarray(want).dtype}"
                    rtol = max(case.rtol, find_rounding(want))
                    if find_difference(got[info.name], want, rtol, case.atol):
                        return "fails", difference
        fallbacks = model.explain().fallbacks
    except Exception as error:
        message = (str(error).strip().splitlines() or [""])[0]
        return "fails", f"{type(error).__name__}: {message[:150]}"
    if fallbacks:
        return "falls back", f"{fallbacks[0].operator}: {fallbacks[0].reason}"
    return ("rounds", rounds) if rounds else ("passes", "")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.conformance
def test_case(conformance_case: str, cache: Path, request: pytest.FixtureRequest) -> None:
    outcome, reason = run_case(all_cases()[conformance_case], cache)
    if request.config.getoption("--update-conformance"):
        request.config.stash[OUTCOMES][conformance_case] = (outcome, reason)
        return
    expected = read_known().get(conformance_case, ("passes", ""))[0]
    if expected == "rounds" and outcome == "passes":
        return  # NumPy's float16 rounds otherwise on other processors
    assert outcome == expected, f"{reason or 'it is listed otherwise'}; update {KNOWN.name}"
