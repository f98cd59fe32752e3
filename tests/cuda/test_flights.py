"""Products of warpgroups go on in the background: what is proven of them, and what shows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyc import Graph, ops
from polyc.analysis.accesses import Surroundings
from polyc.analysis.products import check_products
from polyc.analysis.threads import FARTHEST, Flights
from polyc.analysis.timemap import compute_executions
from polyc.analysis.verify import verify_kernel
from polyc.backends import common
from polyc.errors import IllegalSchedule
from polyc.loopnest.index import Compare, Logic, modulo, var
from polyc.loopnest.nodes import (
    Await,
    Barrier,
    Block,
    If,
    Kernel,
    Node,
    rewrite_nodes,
    walk_nodes,
)
from polyc.options import Options
from polyc.pipeline import run_pipeline
from polyc.target.cuda import CudaTarget
from polyc.trace import Trace
from polyc.types.element_types import BFLOAT16
from tests.cuda import emulated
from tests.cuda.emulated import PLAIN, RACES
from tests.cuda.models import Model, compile_model
from tests.cuda.mutants import replaced
from tests.cuda.test_warpgroups import SHAPES, force

pytestmark = pytest.mark.cuda

ROWS, DEPTH, COLUMNS = 72, 64 * 9 - 8, 88


@pytest.fixture(autouse=True)
def tile(monkeypatch):
    force(monkeypatch, SHAPES[-1])


def product() -> Graph:
    a, b = ops.input("a", (ROWS, DEPTH), BFLOAT16), ops.input("b", (DEPTH, COLUMNS), BFLOAT16)
    return Graph.of(y=a @ b)


@functools.cache
def judged() -> tuple[Kernel, Any]:
    """The kernel of the product, and what else it is proven with."""
    caught: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common, "verify_kernel", lambda *judge: caught.append(judge))
        run_pipeline(product(), CudaTarget.named("sm_90a"), Options(), Trace())
    ((kernel, *others),) = caught
    return kernel, others


def prove(kernel: Kernel) -> None:
    verify_kernel(kernel, *judged()[1])


def rewritten(visit: Callable[[Node], Node]) -> Kernel:
    kernel = judged()[0]
    return replace(kernel, body=rewrite_nodes(kernel.body, visit))


def without(node: Await | Barrier) -> Callable[[Node], Node]:
    """Leaves out the nodes that are equal to one."""

    def visit(inner: Node) -> Node:
        if isinstance(inner, Block):
            return replace(inner, body=tuple(n for n in inner.body if n != node))
        return inner

    return visit


def test_one_product_goes_on_while_the_next_one_is_begun():
    kernel, _ = judged()
    waits = [node.pending for node in walk_nodes(kernel.body) if isinstance(node, Await)]
    assert waits == [1, 0]
    prove(kernel)


def test_more_products_than_there_are_places_for_are_refused():
    """With two on their way, what the older one reads is written again."""
    spoiled = rewritten(lambda node: Await(2) if node == Await(1) else node)
    with pytest.raises(IllegalSchedule, match="may meet in"):
        prove(spoiled)


def test_a_product_goes_on_where_iterations_are_not_told_from_one_another():
    """As far behind as phases are known, a product with so many pending has not ended."""
    flights = Flights()
    flights.begin(0, Await(FARTHEST + 1))
    assert flights.after_barrier(frozenset({(0, None), (1, None)})) == {(0, None)}
    flights.begin(2, Await(FARTHEST))
    assert flights.after_barrier(frozenset({(2, FARTHEST), (2, None)})) == {(2, FARTHEST)}


def test_sums_are_touched_only_when_no_product_may_add_to_them():
    with pytest.raises(IllegalSchedule, match="to which a product may still add"):
        prove(rewritten(without(Await(0))))
    with pytest.raises(IllegalSchedule, match="nothing waits for the product"):
        prove(rewritten(without(Await(1))))


def test_a_product_that_skips_iterations_is_refused():
    """Counted are the products of a thread; where it skips some, an older one may go on."""

    def visit(node: Node) -> Node:
        if isinstance(node, If) and any(isinstance(n, Await) for n in walk_nodes(node)):
            even = Compare("eq", modulo(var("c3"), 2))
            return replace(node, condition=Logic("and", (node.condition, even)))
        return node

    spoiled = rewritten(visit)
    _, (scop, storages, *_) = judged()
    around = Surroundings(spoiled, scop, storages, common.by_name(spoiled))
    runs: dict[str, list[Any]] = {}
    for run in compute_executions(spoiled, scop):
        runs.setdefault(run.statement.name, []).append(run)
    with pytest.raises(IllegalSchedule, match="skips iterations"):
        check_products(around, runs)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("pattern", "by"),
    [
        ("", ""),
        (r"pc_wgmma_wait\(1\);", "pc_wgmma_wait(2);"),
        (r"pc_wgmma_wait\(0\);", ""),
    ],
    ids=["as it is", "too many", "none at the end"],
)
def test_a_wrong_wait_shows_on_the_emulator(pattern: str, by: str, tmp_path: Path):
    model: Model = compile_model(product(), "sm_90a")
    text = replaced(model.text, pattern, by) if pattern else model.text
    random = np.random.default_rng(0)
    left, right = (
        random.standard_normal(shape, dtype=np.float32).astype(BFLOAT16)
        for shape in ((ROWS, DEPTH), (DEPTH, COLUMNS))
    )
    wanted = left.astype(np.float64) @ right.astype(np.float64)
    results = []
    for flags in (PLAIN, RACES):
        if flags != PLAIN and not emulated.has_sanitizers(flags):
            continue
        folder = tmp_path / str(len(results))
        folder.mkdir()
        program = emulated.build(text, folder, flags)
        outcome = emulated.run(program, model.buffers([left, right]), 1, workspace=64)
        found = outcome.buffers[list(model.compiled.program.arrays).index("y")].astype(np.float64)
        close = np.allclose(found, wanted, rtol=0.01, atol=0.01)
        results.append(bool(close and not outcome.found))
    assert all(results) if not pattern else not all(results)
