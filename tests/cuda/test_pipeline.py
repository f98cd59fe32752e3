"""Copies that go ahead of their use: what is proven of them, and what shows if they are wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyc import Graph, ops
from polyc.analysis.verify import verify_kernel
from polyc.backends import common
from polyc.errors import IllegalSchedule
from polyc.loopnest.nodes import Assign, Barrier, Block, Commit, Kernel, Local, Node, rewrite_nodes
from polyc.loopnest.rewrite import rewrite_elements
from polyc.options import Options
from polyc.pipeline import run_pipeline
from polyc.target.cuda import CudaTarget
from polyc.trace import Trace
from tests.cuda import emulated
from tests.cuda.models import compile_model
from tests.cuda.mutants import replaced
from tests.sampling import thorough

pytestmark = pytest.mark.cuda

SM_80 = CudaTarget.named("sm_80")
GRAPH = Graph.of(y=ops.input("a", (40, 100)) @ ops.input("b", (100, 40)))
CASES = pytest.mark.parametrize("tf32", [False, thorough(True)], ids=["threads", "tensor cores"])


def judged(tf32: bool) -> tuple[Kernel, Any]:
    """The kernel of the graph, and the function that proves it, or a variant."""
    caught: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common, "verify_kernel", lambda *judge: caught.append(judge))
        run_pipeline(GRAPH, SM_80, Options(tf32=tf32), Trace())
    ((kernel, *others),) = caught
    return kernel, lambda variant: verify_kernel(variant, *others)


def rewritten(kernel: Kernel, rewrite: Any) -> Kernel:
    return replace(kernel, body=rewrite_nodes(kernel.body, rewrite))


@CASES
def test_one_barrier_an_iteration_waits_for_the_oldest_copies(tf32):
    kernel, prove = judged(tf32)
    assert prove(kernel).barriers == 1
    assert str(kernel).count("barrier, at most 2 groups of copies pending") == 1
    assert str(kernel).count("commit") == 1


@CASES
@pytest.mark.parametrize("pending", [3, thorough(None)])
def test_a_wait_for_less_is_refused(tf32, pending):
    kernel, prove = judged(tf32)

    def loosen(node: Node) -> Node:
        return Barrier(pending) if isinstance(node, Barrier) else node

    with pytest.raises(IllegalSchedule, match="may not have copied yet"):
        prove(rewritten(kernel, loosen))


@CASES
def test_copies_that_no_group_has_are_refused(tf32):
    kernel, prove = judged(tf32)

    def drop(node: Node) -> Node:
        if isinstance(node, Block):
            return replace(node, body=tuple(n for n in node.body if not isinstance(n, Commit)))
        return node

    with pytest.raises(IllegalSchedule, match="may not have copied yet"):
        prove(rewritten(kernel, drop))


@CASES
def test_a_place_too_few_is_refused(tf32):
    """With three places for four tiles a copy overwrites what is to be read, barriers or not."""
    kernel, prove = judged(tf32)

    def narrow(node: Node) -> Node:
        if isinstance(node, Block):
            body = [(n, Barrier()) if isinstance(n, Commit) else (n,) for n in node.body]
            locals_ = tuple(map(fewer, node.locals))
            return replace(node, locals=locals_, body=tuple(n for part in body for n in part))
        if isinstance(node, Assign):
            return rewrite_elements(node, lambda e: replace(e, index=tuple(map(modulo_3, e.index))))
        return node

    def fewer(local: Local) -> Local:
        if local.space != "shared":
            return local
        shape = list(local.shape)
        shape[3] = 3
        return replace(local, shape=tuple(shape))

    def modulo_3(index: Any) -> Any:
        terms = tuple(
            (replace(a, divisor=3) if getattr(a, "divisor", 0) == 4 else a, c)
            for a, c in index.terms
        )
        return replace(index, terms=terms)

    with pytest.raises(IllegalSchedule, match="one place for different elements"):
        prove(rewritten(kernel, narrow))


@CASES
def test_too_early_a_read_shows_on_the_emulator(tf32, tmp_path: Path):
    model = compile_model(GRAPH, tf32=tf32)
    rng = np.random.default_rng(0)
    left, right = rng.random((40, 100), np.float32), rng.random((100, 40), np.float32)
    buffers = model.buffers([left, right])
    place = list(model.compiled.program.arrays).index("y")
    for k, text in enumerate(
        [model.text, replaced(model.text, r"async_wait\(2\)", "async_wait(3)")]
    ):
        folder = tmp_path / str(k)
        folder.mkdir()
        outcome = emulated.run(emulated.build(text, folder), buffers, workspace=64)
        right_result = np.allclose(outcome.buffers[place], left @ right, rtol=2e-3)
        assert right_result == (k == 0)
