"""Tiles that come by the tensor memory accelerator: results, proof, and what shows if wrong."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.analysis.verify import verify_kernel
from polyc.backends import common
from polyc.errors import IllegalSchedule
from polyc.loopnest.index import Affine, const
from polyc.loopnest.nodes import (
    Barrier,
    Commit,
    Group,
    Kernel,
    Node,
)
from polyc.loopnest.nodes import rewrite_nodes as rewrite
from polyc.mapping.cuda import copies
from polyc.options import Options
from polyc.pipeline import run_pipeline
from polyc.target.cuda import CudaTarget, ask_driver
from polyc.trace import Trace
from polyc.types.element_types import BFLOAT16
from tests.cuda import emulated as emulator
from tests.cuda.emulated import PLAIN, RACES
from tests.cuda.models import Model, compile_model
from tests.cuda.mutants import replaced
from tests.cuda.test_tensor_cores import factor, normal
from tests.cuda.test_warpgroups import SHAPES, force, operand
from tests.programs import options

pytestmark = pytest.mark.cuda

STEPS = 9
"""Steps of the sum: with four stages each barrier goes through two phases or three."""


@pytest.fixture(autouse=True)
def smallest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products by one warpgroup, in tiles of 64 x 64."""
    force(monkeypatch, SHAPES[-1])


@pytest.fixture
def chosen(emulated: bool, tmp_path: Path) -> Options:
    """Options for a call on the emulator, or on a GPU that can run it."""
    if not emulated and not ask_driver().devices[0].has_wgmma:
        pytest.skip("the GPU is not one of Hopper's")
    return options(tmp_path, emulated=emulated)


def product(transposed: str = "") -> tuple[Graph, list[np.ndarray], np.ndarray]:
    """A product that no tile divides, its factors as they are given, and the result."""
    left, right = normal(72, 64 * STEPS - 8, dtype=BFLOAT16), normal(64 * STEPS - 8, 88)
    right = right.astype(BFLOAT16)
    (a, given), (b, also) = (operand(n, v, transposed) for n, v in (("a", left), ("b", right)))
    return Graph.of(y=a @ b), [given, also], factor(left) @ factor(right)


@pytest.mark.thorough
@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
def test_products_that_no_tile_divides(transposed, chosen):
    graph, feeds, wanted = product(transposed)
    model = polyc.compile(graph, target="cuda:sm_90a", options=chosen)
    np.testing.assert_allclose(model(*feeds).astype(np.float64), wanted, rtol=0.01, atol=0.01)
    schedule = model.explain().kernels[-1].schedule
    assert schedule.count("| box ") == 2
    assert re.search(r"pipeline \S+_left.kt \S+_right.kt 4 ", schedule)


def test_batches_have_more_dimensions(chosen):
    left, right = normal(2, 3, 70, 136, dtype=BFLOAT16), normal(2, 3, 136, 72, dtype=BFLOAT16)
    a, b = ops.input("a", left.shape, BFLOAT16), ops.input("b", right.shape, BFLOAT16)
    model = polyc.compile(Graph.of(y=a @ b), target="cuda:sm_90a", options=chosen)
    result = model(left, right).astype(np.float64)
    np.testing.assert_allclose(result, factor(left) @ factor(right), rtol=0.01, atol=0.01)
    assert model.explain().kernels[0].schedule.count("| box ") == 2


def test_what_no_tensor_map_can_say_is_copied_by_threads():
    """Rows of 45 or 83 elements are not made of 16 bytes; windows are no boxes."""
    x = ops.input("x", (1, 8, 20, 16), BFLOAT16)
    window = Graph.of(z=ops.conv(x, normal(72, 8, 3, 3, dtype=BFLOAT16), pads=(1, 1, 1, 1)))
    a, b = (ops.input(n, s, BFLOAT16) for n, s in (("a", (70, 45)), ("b", (45, 83))))
    for graph in (window, Graph.of(y=a @ b)):
        assert "box" not in compile_model(graph, "sm_90a").compiled.rows[-1].schedule


def test_one_factor_by_threads_and_the_other_by_boxes(chosen):
    left, right = normal(72, 328, dtype=BFLOAT16), normal(328, 83, dtype=BFLOAT16)
    a, b = (ops.input(n, v.shape, BFLOAT16) for n, v in (("a", left), ("b", right)))
    graph = Graph.of(y=a @ b)
    model = polyc.compile(graph, target="cuda:sm_90a", options=chosen)
    result = model(left, right).astype(np.float64)
    np.testing.assert_allclose(result, factor(left) @ factor(right), rtol=0.01, atol=0.01)
    schedule = model.explain().kernels[0].schedule
    assert re.findall(r"\| (copy|box) \w+_(left|right)\.", schedule) == [
        ("box", "left"),
        ("copy", "right"),
    ]
    text = compile_model(graph, "sm_90a").text
    assert "pc_copy_async_commit" in text
    assert "pc_fence_async" in text


# ---- what is proven -----------------------------------------------------------------------------


def judged() -> tuple[Kernel, Any]:
    """The kernel of the product, and the function that proves it, or a variant."""
    caught: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common, "verify_kernel", lambda *judge: caught.append(judge))
        run_pipeline(product()[0], CudaTarget.named("sm_90a"), Options(), Trace())
    ((kernel, *others),) = caught
    return kernel, lambda variant: verify_kernel(variant, *others)


def regrouped(kernel: Kernel, kind: type, change: Any) -> Kernel:
    """The kernel with the groups of its commits, or of its barriers, changed."""

    def visit(node: Node) -> Node:
        if isinstance(node, Commit | Barrier) and isinstance(node, kind) and node.group:
            return replace(node, group=change(node.group))
        return node

    return replace(kernel, body=rewrite(kernel.body, visit))


def later(group: Group, by: int = 1) -> Group:
    return replace(group, number=group.number + by)


def test_one_barrier_an_iteration_waits_for_the_group_of_its_step():
    kernel, prove = judged()
    assert prove(kernel).barriers == 1
    assert str(kernel).count("group c3 of boxes arrived") == 1
    assert str(kernel).count("commit boxes as group c3 + 2") == 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (Barrier, lambda group: later(group, -1)),
        (Barrier, lambda group: None),
        (Barrier, lambda group: replace(group, places=5)),
        (Barrier, lambda group: replace(group, number=const(0))),
        (Commit, lambda group: None),
        (Commit, later),
        (Commit, lambda group: replace(group, number=Affine(0))),
    ],
    ids=["too old", "none", "other barriers", "always one", "no group", "skips one", "one group"],
)
def test_waits_that_are_not_enough_are_refused(kind, change):
    kernel, prove = judged()
    with pytest.raises(IllegalSchedule, match="may not have copied yet"):
        prove(regrouped(kernel, kind, change))


def test_too_few_barriers_for_the_groups_on_their_way_are_refused():
    """With one of them, group n + 1 begins before anybody waits for group n."""
    kernel, prove = judged()
    for kind in (Commit, Barrier):
        kernel = regrouped(kernel, kind, lambda group: replace(group, places=1))
    with pytest.raises(IllegalSchedule, match="may not have copied yet"):
        prove(kernel)


def test_a_border_that_no_tensor_map_has(monkeypatch):
    """What lies behind a part of an array is more of the array, and no zeros."""
    a, b = (ops.input(n, s, BFLOAT16) for n, s in (("a", (80, 160)), ("b", (140, 72))))
    graph = Graph.of(y=ops.slice(a, (0, 0), (72, 140)) @ b)
    (row,) = compile_model(graph, "sm_90a").compiled.rows
    assert re.findall(r"\| box \w+_(left|right)\.", row.schedule) == ["right"]
    monkeypatch.setattr(copies, "comes_in_boxes", lambda *_: True)
    with pytest.raises(IllegalSchedule, match="other than zeros outside of a, or zeros inside"):
        compile_model(graph, "sm_90a")


# ---- what shows on the emulator, and what nvcc says ---------------------------------------------


def is_right(text: str, folder: Path, flags: tuple[str, ...] = PLAIN) -> bool:
    graph, feeds, wanted = product()
    model = compile_model(graph, "sm_90a")
    folder.mkdir(exist_ok=True)
    buffers = model.buffers(feeds)
    program = emulator.build(text, folder, flags)
    for seed in (1, 2):
        outcome = emulator.run(program, buffers, seed, workspace=64)
        result = outcome.buffers[list(model.compiled.program.arrays).index("y")]
        close = np.allclose(result.astype(np.float64), wanted, rtol=0.01, atol=0.01)
        if outcome.found or not close:
            return False
    return True


def text() -> str:
    model: Model = compile_model(product()[0], "sm_90a")
    return model.text


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("pattern", "by"),
    [
        (r"if \(c3 >= 0\) pc_mbarrier_wait.*", ""),
        (r"(pc_mbarrier_wait.*\n *)PC_SYNC\(\);", r"\1"),
        (
            r"if \(c3 >= 0\) (pc_mbarrier_wait.&arrived.)pc_mod.c3, 3.",
            r"if (c3 >= 0) \1(c3 + 2) % 3",
        ),
        (r"pc_mod\(pc_floordiv\(c3, 3\), 2\)", "1 - pc_floordiv(c3, 3) % 2"),
        (r"\], 2\);\n( *)pc_mbarrier_init_fence", r"], 1);\n\1pc_mbarrier_init_fence"),
    ],
    ids=["no wait", "no barrier", "another stage", "other phase", "half of the arrivals"],
)
def test_a_wrong_wait_shows(pattern, by, tmp_path):
    assert not is_right(replaced(text(), pattern, by), tmp_path)


@pytest.mark.thorough
def test_sanitizers_have_nothing_to_report(tmp_path):
    assert is_right(text(), tmp_path / "plain")
    if emulator.has_sanitizers(RACES):
        assert is_right(text(), tmp_path / "races", RACES)


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_nothing_spills(monkeypatch, tmp_path):
    for shape in (SHAPES[0], SHAPES[1]):
        force(monkeypatch, shape)
        model = polyc.compile(product()[0], target="cuda:sm_90a", options=options(tmp_path))
        (kernel,) = model.explain().kernels
        assert "| box " in kernel.schedule
        assert all(function.spilled == 0 for function in kernel.functions)
