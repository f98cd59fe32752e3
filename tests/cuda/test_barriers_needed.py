"""Generated kernels have no race, and each of their barriers is needed: without it, one shows."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from polyc import Graph, ops
from polyc.types.element_types import FLOAT16
from tests.cuda import emulated
from tests.cuda.emulated import ADDRESS, PLAIN, RACES
from tests.cuda.models import Model, compile_model

pytestmark = pytest.mark.cuda


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def attention() -> ops.Tensor:
    q, k = ops.input("q", (2, 20, 16)), ops.input("k", (2, 20, 16))
    return ops.matmul(ops.softmax(ops.matmul(q, ops.transpose(k, (0, 2, 1)))), k)


def convolution() -> ops.Tensor:
    x = ops.input("x", (1, 6, 9, 11))
    return ops.relu(ops.conv(x, normal(18, 6, 3, 3), normal(18), pads=(1, 1, 1, 1)))


GRAPHS = {
    "product": lambda: ops.relu(ops.matmul(ops.input("x", (50, 70)), normal(70, 40)) + normal(40)),
    "product on tensor cores": lambda: ops.matmul(
        ops.input("x", (50, 70), FLOAT16), ops.input("w", (70, 40), FLOAT16)
    ),
    "convolution": convolution,
    "softmax": lambda: ops.softmax(ops.input("x", (3, 300))),
    "softmax of columns": lambda: ops.softmax(ops.input("x", (300, 3)), axis=0),
    "layer norm": lambda: ops.layer_normalization(
        ops.input("x", (3, 520)), normal(520), normal(520)
    ),
    "columns": lambda: ops.reduce_sum(ops.input("x", (1000, 5)), axes=(0,)),
    "total": lambda: ops.reduce_max(ops.input("x", (20000,)), axes=(0,)),
    "attention": attention,
    "transpose": lambda: ops.transpose(ops.relu(ops.input("x", (2, 35, 40))), (0, 2, 1)),
}


@functools.cache
def model(name: str) -> Model:
    return compile_model(Graph.of(y=GRAPHS[name]()))


def run(
    name: str, text: str, folder: Path, flags: tuple[str, ...], seed: int
) -> tuple[np.ndarray | None, str]:
    """The output, if the run ended well, and what was found."""
    compiled = model(name).compiled
    program = emulated.build(text, folder, flags)
    feeds = [normal(*map(int, spec.shape)) for spec, _ in compiled.program.inputs]
    outcome = emulated.run(program, model(name).buffers(feeds), seed, workspace=64)
    ((_, output),) = compiled.program.outputs
    found = outcome.message + outcome.report
    place = list(compiled.program.arrays).index(output)
    return (None if outcome.error else outcome.buffers[place]), found


@pytest.mark.thorough
@pytest.mark.parametrize("name", GRAPHS)
def test_sanitizers_have_nothing_to_report(name: str, tmp_path: Path):
    results = []
    for flags in (PLAIN, ADDRESS, RACES):
        if flags != PLAIN and not emulated.has_sanitizers(flags):
            continue
        result, found = run(name, model(name).text, tmp_path, flags, seed=1)
        assert not found
        results.append(result)
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-5, atol=1e-5)


def barriers(name: str) -> list[int]:
    """The lines that are barriers."""
    return [k for k, line in enumerate(model(name).text.splitlines()) if "PC_SYNC" in line]


@pytest.mark.thorough
@pytest.mark.parametrize("name", GRAPHS)
def test_without_any_one_barrier_something_shows(name: str, tmp_path: Path):
    if not emulated.has_sanitizers(RACES):
        pytest.skip("g++ has no sanitizers here")
    lines = model(name).text.splitlines(keepends=True)
    for position in barriers(name):
        text = "".join([*lines[:position], "\n", *lines[position + 1 :]])
        _, found = run(name, text, tmp_path, RACES, seed=1)
        assert "data race" in found, f"line {position + 1} is not needed:\n{model(name).text}"
