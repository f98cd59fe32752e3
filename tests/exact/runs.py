"""Exact runs for tests."""

from __future__ import annotations

from typing import Any

from polyc.call_sizes import Range, read_sizes
from polyc.exact.run import ExactReport, run_exactly
from polyc.options import Options
from polyc.states import read_states
from polyc.target.machine import Target


def exactly(
    model: Any,
    *,
    dims: dict[str, Range] | None = None,
    hint: dict[str, int] | None = None,
    state: dict[str, str] | None = None,
    target: str = "avx2",
    **rest: Any,
) -> ExactReport:
    """The exact run of a model as compiled for AVX2, on which no machine's own numbers bear."""
    options = Options(verify=False, sizes=read_sizes(dims, hint), states=read_states(state))
    return run_exactly(model, Target.named(target), options, **rest)
