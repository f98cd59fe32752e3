"""Exact runs for tests."""

from __future__ import annotations

from typing import Any

from polyc.exact.run import ExactReport, run_exactly
from polyc.graph.states import read_states
from polyc.options import Options
from polyc.target.machine import Target
from polyc.target.resolve import resolve_target
from polyc.types.call_sizes import Range, read_sizes


def exactly(
    model: Any,
    *,
    dims: dict[str, Range] | None = None,
    hint: dict[str, int] | None = None,
    state: dict[str, str] | None = None,
    target: str | Target = "avx2",
    choices: dict[str, Any] | None = None,
    **rest: Any,
) -> ExactReport:
    """The exact run of a model as compiled for AVX2, on which no machine's own numbers bear.

    choices: options, such as tf32.
    """
    sizes, states = read_sizes(dims, hint), read_states(state)
    options = Options(verify=False, sizes=sizes, states=states, emulated=True, **(choices or {}))
    machine = resolve_target(target, options) if isinstance(target, str) else target
    return run_exactly(model, machine, options, **rest)
