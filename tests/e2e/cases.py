"""Many small nodes, compiled as one model: each is a case of its own, with its own expectation.

Starting the C compiler costs more than compiling a small kernel, and kernels are compiled side by
side; so the cases of a family share a model, in which no node reads another's result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import polyc
from polyc.options import Options
from tests.e2e.compare import find_difference
from tests.e2e.graph_builder import GraphBuilder, Value

EXAMPLES = int(os.environ.get("POLYC_TEST_EXAMPLES", "3"))
"""Models to draw for each family of operators; raise it to search for bugs."""

TARGETS = ["auto", "auto", "avx2", "baseline"]

FLOATS = ("float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS

EXTENTS = [1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 33]


@dataclass(frozen=True)
class Case:
    """A node on given arrays. Inputs in `constants` are initializers, the others are fed.

    `expected` replaces the reference's results. A finite float is right within `rtol` of its own
    magnitude plus `atol` times the largest one; with both 0, bit for bit but for a NaN's payload.
    """

    op: str
    inputs: Sequence[np.ndarray | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    constants: Collection[int] = ()
    n_outputs: int = 1
    expected: Sequence[np.ndarray] | None = None
    rtol: float = 0.0
    atol: float = 0.0

    def __str__(self) -> str:
        def show(k: int, x: np.ndarray | None) -> str:
            if x is None:
                return "-"
            known = k in self.constants
            value = f" = {x.tolist()}" if known and x.size <= 12 else " constant" if known else ""
            return f"{x.dtype}{list(x.shape)}{value}"

        shown = ", ".join(show(k, x) for k, x in enumerate(self.inputs))
        return f"{self.op}({shown}; {self.attributes})"


def family(
    draw_cases: Callable[[st.DataObject], list[Case]],
    targets: Sequence[str] = TARGETS,
    options: Options | None = None,
    examples: int = EXAMPLES,
) -> Callable[[], None]:
    """A test that draws models of such cases, compiles each for some target, and compares."""

    @settings(
        max_examples=examples,
        derandomize=examples <= 3,
        deadline=None,
        database=None,
        phases=[Phase.generate],  # shrinking would compile for hours; the message names the case
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def test(data: st.DataObject) -> None:
        target = data.draw(st.sampled_from(targets), label="target")
        level = data.draw(st.sampled_from([3, 3, 0]), label="opt_level")
        cases = draw_cases(data)
        faults = find_faults(cases, target, level, options)
        assert not faults, "\n".join(faults)

    test.__doc__ = draw_cases.__doc__
    return test


def find_faults(
    cases: Sequence[Case],
    target: str = "auto",
    opt_level: int = 3,
    options: Options | None = None,
) -> list[str]:
    """A line for each case whose compiled result is not what it should be."""
    graph = GraphBuilder("cases")
    results = [_add(graph, case) for case in cases]
    outputs = [value for values in results for value in values]
    model = polyc.compile(
        graph.model(outputs), threads=2, target=target, opt_level=opt_level, options=options
    )
    got = model.run({name: strided(array) for name, array in graph.feeds.items()})
    faults = []
    for case, values in zip(cases, results, strict=True):
        for value in values:
            want = value.array
            found = find_difference(got[value.name], want, case.rtol, case.atol)
            if found is not None:
                faults.append(f"{case}: {found} (node of {value.name})")
    return faults


def _add(graph: GraphBuilder, case: Case) -> list[Value]:
    values = [
        None if x is None else graph.constant(x) if k in case.constants else graph.input(x)
        for k, x in enumerate(case.inputs)
    ]
    return graph.node(
        case.op, values, exact=False, n_outputs=case.n_outputs, expected=case.expected,
        **case.attributes,
    )  # fmt: skip


def strided(array: np.ndarray) -> np.ndarray:
    """The same contents in an array that is not contiguous: every second element of another."""
    if not array.ndim:
        return array
    wide = np.empty((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


# -- what cases are made of ------------------------------------------------------------------------


def shapes(low: int = 0, high: int = 4, empty: bool = True) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of `low` to `high` dimensions with at most 4000 elements; few are empty."""
    extents = st.sampled_from(EXTENTS * 2 + [0] if empty else EXTENTS)
    lists = st.lists(extents, min_size=low, max_size=high).map(tuple)
    return lists.map(_limited)


def _limited(shape: tuple[int, ...]) -> tuple[int, ...]:
    kept: list[int] = []
    for n in shape:
        kept.append(n if np.prod([*kept, n]) <= 4000 else 1)
    return tuple(kept)


def seeds() -> st.SearchStrategy[np.random.Generator]:
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-42, -1e-42, 3e38, -3e38, 0.5, -0.5, 1.5, 2.5]


def special(rng: np.random.Generator, dtype: str, shape: Sequence[int]) -> np.ndarray:
    """Values of a type among which are its corners: NaN, infinities, zeros, extremes."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        values = rng.integers(-9 if kind.kind == "i" else 0, 10, shape).astype(kind)
        corners = np.array([limits.min, limits.max, 0, 1], kind)
    else:
        values = (3 * rng.standard_normal(shape)).astype(kind)
        corners = np.array(SPECIAL).astype(kind)
    return np.where(rng.random(shape) < 0.25, rng.choice(corners, shape), values).astype(kind)


def small(
    rng: np.random.Generator, dtype: str, shape: Sequence[int], low: float = -4, high: float = 4
) -> np.ndarray:
    """Moderate values of a type; integers between `low` and `high`, unsigned ones from 0."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu":
        start = 0 if kind.kind == "u" else int(low)
        return rng.integers(start, int(high) + 1, shape).astype(kind)
    return rng.uniform(low, high, shape).astype(kind)


def ints(*values: int) -> np.ndarray:
    """A constant list of int64, as shapes and axes are given."""
    return np.array(values, np.int64)
