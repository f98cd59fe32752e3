"""Equal computations on arrays that are stored differently are not one kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.analysis.launches.verify import verify_launches
from polyc.backends import prove
from polyc.backends.common import CompiledKernel
from polyc.errors import IllegalSchedule
from polyc.options import Options
from polyc.pipeline import run_pipeline
from polyc.poly.boxes import box
from polyc.target.machine import Target
from polyc.trace import Trace
from tests.programs import options


def products(layers: int = 2) -> Graph:
    """A chain of one form: rows of 256 floats that are kept get a gap, those returned have none."""
    rng = np.random.default_rng(0)
    h = ops.input("x", (32, 256))
    for _ in range(layers):
        h = ops.relu(ops.matmul(h, rng.standard_normal((256, 256), dtype=np.float32) / 16))
    return Graph.of(y=h)


def test_a_row_with_a_gap_and_one_without_are_stored_by_kernels_of_their_own(tmp_path: Path):
    graph = products()
    model = polyc.compile(graph, options=options(tmp_path))
    x = np.random.default_rng(1).standard_normal((32, 256), dtype=np.float32)
    memory = np.full((34, 256), 7, np.float32)  # a row before and one after the result
    model(x, out=memory[1:33])
    assert (memory[0] == 7).all()
    assert (memory[33] == 7).all()


def test_an_argument_stored_otherwise_than_its_kernel_was_proven_for_is_refused(monkeypatch):
    asked = []

    def note(*judge):
        asked.append(judge)
        return verify_launches(*judge)

    monkeypatch.setattr(prove, "verify_launches", note)
    run_pipeline(products(), Target.named("avx512"), Options(), Trace())
    ((program, *others),) = asked
    array = program.launches[0].arguments[0]
    stored = program.arrays[array]
    wider = replace(stored.storage, shape=(*stored.storage.shape[:-1], 999))
    arrays = {**program.arrays, array: replace(stored, storage=wider)}
    damaged = replace(program, arrays=arrays)
    with pytest.raises(IllegalSchedule, match="was proven as"):
        verify_launches(damaged, *others)


def test_each_launch_of_a_kernel_touches_the_arrays_that_it_is_given(monkeypatch):
    """The elements are those of the kernel's first launch, the arrays its own."""
    asked = []

    def note(*judge):
        asked.append((judge, verify_launches(*judge)))
        return asked[-1][1]

    monkeypatch.setattr(prove, "verify_launches", note)
    run_pipeline(products(layers=5), Target.named("avx512"), Options(), Trace())
    (((program, _, arrays, *_), launched),) = asked
    assert len({launch.kernel for launch in program.launches}) < len(program.launches)
    for launch, access in zip(program.launches, launched.touched, strict=True):
        sources = {program.arrays[name].source for name in launch.arguments}
        assert access.reads.keys() | access.writes.keys() == sources
        for name, elements in (*access.reads.items(), *access.writes.items()):
            assert elements.is_equal(box(name, arrays[name].shape))


def test_each_kernel_is_handed_on_once():
    emitted: list[CompiledKernel] = []
    graph, target = products(), Target.named("avx512")
    compiled = run_pipeline(graph, target, Options(), Trace(), emit=emitted.append)
    assert {k.file: k.source for k in emitted} == compiled.sources
