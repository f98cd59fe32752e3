"""Schedules of GPU kernels in the user's hand: given back the same CUDA, edited as good numbers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.errors import IllegalSchedule
from polyc.options import Options
from polyc.pipeline import Compiled, run_pipeline
from polyc.schedule.schedule import Schedule
from polyc.target.cuda import CudaTarget
from polyc.trace import Trace
from polyc.types.element_types import BFLOAT16
from tests import networks
from tests.cuda.test_warpgroups import force
from tests.e2e.test_fused_tiles import attention
from tests.golden.models import MODELS
from tests.programs import options
from tests.sampling import sampled, thorough

pytestmark = pytest.mark.cuda


def compile_text(
    graph: Graph, schedules: dict[str, str] | None = None, arch: str = "sm_80"
) -> Compiled:
    chosen = Options(schedules=tuple(sorted((schedules or {}).items())))
    return run_pipeline(graph, CudaTarget.named(arch), chosen, Trace())


def product(dtype: str | np.dtype = "float32") -> Graph:
    a, b = ops.input("a", (136, 200), dtype), ops.input("b", (200, 264), dtype)
    return Graph.of(y=ops.relu(a @ b))


KEPT = ("matmul_bias_relu", "layer_norm", "max_pool", "flatten_gemm", "bfloat16_vector_product")

GRAPHS = {
    **{name: MODELS[name] for name in KEPT},
    "equal_layers": lambda: networks.chain(3),
    "tensor_cores": lambda: product(BFLOAT16),
}


@pytest.mark.parametrize("name", sampled(GRAPHS, seldom=["flatten_gemm", "equal_layers"]))
def test_schedules_given_back_give_the_same_text(name):
    first = compile_text(GRAPHS[name]())
    texts = dict(first.schedules)
    assert len(texts) == len(first.program.launches)
    assert all(str(Schedule.parse(text)) == text for text in texts.values())
    again = compile_text(GRAPHS[name](), texts)
    assert again.schedules == first.schedules
    assert {k: d.text for k, d in again.devices.items()} == {
        k: d.text for k, d in first.devices.items()
    }


@pytest.mark.thorough
def test_boxes_and_warpgroups_given_back_give_the_same_text(monkeypatch):
    from polyc.mapping.cuda.warpgroup_tiles import WGMMA, list_warpgroup_shapes

    force(monkeypatch, list_warpgroup_shapes(WGMMA[BFLOAT16])[-1])
    first = compile_text(product(BFLOAT16), arch="sm_90a")
    ((name, text),) = first.schedules
    assert "use wgmma.m64k16.bf16" in text
    assert text.count("| box ") == 2
    monkeypatch.undo()
    again = compile_text(product(BFLOAT16), {name: text}, "sm_90a")
    assert "use mma" in dict(compile_text(product(BFLOAT16), arch="sm_90a").schedules)[name]
    assert [d.text for d in again.devices.values()] == [d.text for d in first.devices.values()]
    used = next(step for step in text.split(" | ") if step.startswith("use "))
    with pytest.raises(IllegalSchedule, match="warpgroups read boxes, by use wgmma"):
        compile_text(product(BFLOAT16), {name: text.replace(f"{used} | ", "")}, "sm_90a")
    alone = text.replace("block b mt nt | ", "")
    with pytest.raises(IllegalSchedule, match="the schedule of MatMul_0_out: the proof refuses"):
        compile_text(product(BFLOAT16), {name: alone}, "sm_90a")


def layers() -> Graph:
    x, u = ops.input("x", (30, 40)), ops.input("u", (40, 70))
    w, b = np.ones((40, 50), np.float32), np.ones(50, np.float32)
    return Graph.of(y=ops.relu(x @ w + b), z=ops.softmax(x), t=ops.abs(ops.transpose(u, (1, 0))))


PRODUCT, SOFTMAX, TURNED = "MatMul_0_out", "Softmax_3_4", "Abs_5"


@cache
def printed() -> dict[str, str]:
    """What the strategies say."""
    return dict(compile_text(layers()).schedules)


def edited(name: str, *changes: tuple[str, str]) -> str:
    text = printed()[name]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def without(name: str, verb: str) -> str:
    """The schedule without the directives of a verb."""
    steps = printed()[name].split(" | ")
    kept = [step for step in steps if step.split()[0] != verb]
    assert len(kept) < len(steps)
    return " | ".join(kept)


def test_every_kernel_is_called_and_says_how_it_runs():
    texts = printed()
    assert [*texts] == [PRODUCT, SOFTMAX, TURNED]
    assert texts[PRODUCT].startswith("tile i as ")
    assert "keep matmul_0_acc_tiles in registers at nt" in texts[PRODUCT]
    assert "keep matmul_0_acc_left matmul_0_acc_right in shared at nt" in texts[PRODUCT]
    assert "partial Softmax_3.t" in texts[SOFTMAX]
    assert "keep t_tile0 in shared at i0" in texts[TURNED]


EDITED = {
    "one thread": {PRODUCT: "", SOFTMAX: "block i0"},
    "a thread an element": {
        PRODUCT: "order i j | split j 32 | block i j | thread j' | keep all in stack at j'",
        SOFTMAX: "split i0 8 | block i0 | thread i0'",
        TURNED: "join i1 i0 as e | split e 128 | split e' 2 | block e | thread e' | sink e''",
    },
}
"""Schedules for the three kernels, all different from the strategies'."""


def other_tiles() -> dict[str, str]:
    """Half the rows in other digits, two stages, no swizzle; two warps a row; a tile of 16."""
    small = edited(PRODUCT, ("pm 2 im 4", "pm 2 im 2"), (".kt 3", ".kt 2"))
    return {
        PRODUCT: " | ".join(s for s in small.split(" | ") if not s.startswith("swizzle")),
        SOFTMAX: edited(SOFTMAX, ("by 32 4", "by 64 2")),
        TURNED: "stage u by i1 i0 | split i1 16 | split i0 32 | order i0 i1 i0' i1' | block i0 i1"
        " | keep t_tile0 in shared at i1 | distribute i1' i0' | thread i0' i1' | swizzle t_tile0"
        " 4 0 5",
    }


@pytest.mark.parametrize("name", [*EDITED, thorough("other tiles")])
def test_edited_schedules_compute_the_same(name, tmp_path):
    texts = EDITED.get(name) or other_tiles()
    chosen = options(tmp_path, emulated=True)
    model = polyc.compile(layers(), target="cuda:sm_80", options=chosen, schedule=texts)
    rng = np.random.default_rng(0)
    x, u = (rng.standard_normal(shape, dtype=np.float32) for shape in ((30, 40), (40, 70)))
    y, z, t = model(x, u)
    np.testing.assert_allclose(y, np.repeat(np.maximum(x.sum(1) + 1, 0), 50).reshape(30, 50), 1e-4)
    weights = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(z, weights / weights.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(t, np.abs(u.T))
    assert {k: str(Schedule.parse(v)) for k, v in model.schedules.items()} == model.schedules
    assert all(model.schedules[k] != printed()[k] for k in texts)
    assert all(row.proof for row in model.explain().kernels)


REFUSED = [
    (
        PRODUCT,
        "block j k",
        r"kernel MatMul_0_out: block k breaks a dependence \(flow\): MatMul_0\[",
    ),
    thorough(PRODUCT, "thread i | block j", "block j: blocks are the outermost loops"),
    (PRODUCT, "warp i j", "the schedule of MatMul_0_out: warp i j: .* at most 1024"),
    (PRODUCT, "parallel i", "parallel i: that is for CPUs"),
    thorough(PRODUCT, "block i j | pack x", "pack x: that is for CPUs"),
    (
        PRODUCT,
        "cut k as a b by 4 | partial MatMul_0.b",
        "matmul_0_acc_parts: made by this schedule",
    ),
    (PRODUCT, "block i j | keep x in shared at j", "x is no array that this kernel has to itself"),
    (PRODUCT, "use mma k", "mma is no instruction"),
    ("conv1", "block i", "given for conv1, but no kernel is called so; there are MatMul_0_out"),
]


@pytest.mark.parametrize(("name", "text", "said"), REFUSED)
def test_what_does_not_fit_is_refused(name, text, said):
    with pytest.raises(IllegalSchedule, match=said):
        compile_text(layers(), {name: text})


CHANGED = [
    (PRODUCT, (".kt 3", ".kt 99"), "there are 1 to 8 stages"),
    thorough(PRODUCT, ("im 4 by", "im 4000 by"), "matmul_0_acc_tiles cannot live there"),
    (PRODUCT, ("tiles in registers at nt", "tiles in registers at mt"), "shared by the blocks"),
    (PRODUCT, ("tiles in registers at nt", "tiles in stack at nt"), "what lives there is a block"),
    thorough(
        PRODUCT,
        ("right in shared", "right in registers"),
        "threads need elements of matmul_0_acc_l",
    ),
    (PRODUCT, ("copy matmul_0_acc_left", "box matmul_0_acc_left"), "A100 brings no boxes"),
    thorough(PRODUCT, ("unroll matmul_0_acc_left.mr", "unroll"), "say unroll mr"),
    (PRODUCT, ("swizzle matmul_0_acc_left", "swizzle x"), "x is no array that this schedule makes"),
    (PRODUCT, ("left 2 3 7", "left 2 6 7"), "1 to 8 bits are exclusive-ored"),
    (SOFTMAX, ("by 32 4", "by 48 4"), "over a multiple of 32 neighbours"),
    (TURNED, ("tile0 in shared", "tile0 in registers"), "threads need elements of t_tile0"),
    (TURNED, ("stage u by i1 i0", "stage u by i0 i1"), "reads u nowhere with unit step"),
]


@pytest.mark.parametrize(("name", "change", "said"), CHANGED)
def test_a_change_too_far_is_refused(name, change, said):
    with pytest.raises(IllegalSchedule, match=said):
        compile_text(layers(), {name: edited(name, change)})


LEFT_OUT = [
    (PRODUCT, "pipeline", "copy of matmul_0_acc_left: .* say pipeline"),
    thorough(PRODUCT, "fuse", "pipeline .* MatMul_0 reads it, and is not in that loop; say fuse"),
    (PRODUCT, "keep", "made by this schedule, and kept nowhere; say keep matmul_0_acc_tiles in"),
    thorough(PRODUCT, "thread", "there is no loop over threads around it"),
    (SOFTMAX, "partial", "there is no statement Softmax_3_combine"),
    (TURNED, "keep", "t_tile0: made by this schedule"),
]


@pytest.mark.parametrize(("name", "verb", "said"), LEFT_OUT)
def test_what_is_needed_is_asked_for(name, verb, said):
    with pytest.raises(IllegalSchedule, match=said):
        compile_text(layers(), {name: without(name, verb)})


INSTRUCTIONS = [
    (("k16.bf16", "k16.f16"), "it multiplies float16, and matmul_0_wide_acc_left has bfloat16"),
    thorough(
        ("m16n8k16.bf16", "m16n8k8.tf32"),
        "its loops have any 2 any 2 8 iterations, in this order",
    ),
    (("thread gm tn", "thread tn gm"), "the lanes around it are loops over threads: 8 4 apart"),
    thorough(("gm tn am an im jn", "gm tn an am jn im"), "so: into … am an im jn"),
    thorough(("acc_left 2 3 6", "acc_left 2 1 6"), "it reads 16 bytes of matmul_0_wide_acc_left"),
    (("use mma.m16n8k16", "use wgmma.m64k16"), "A100 has no such instruction"),
]


@cache
def product_of_tensor_cores() -> tuple[str, str]:
    """Its kernel, and the schedule of it."""
    ((name, text),) = compile_text(product(BFLOAT16)).schedules
    return name, text


@pytest.mark.parametrize(("change", "said"), INSTRUCTIONS)
def test_an_instruction_that_the_loops_are_not_is_refused(change, said):
    name, text = product_of_tensor_cores()
    assert change[0] in text
    with pytest.raises(IllegalSchedule, match=said):
        compile_text(product(BFLOAT16), {name: text.replace(*change)})


@pytest.mark.thorough
def test_an_edited_product_of_tensor_cores_is_exact(tmp_path):
    """Other digits, fewer stages and no swizzle: every element as the statements say."""
    a, b = ops.input("a", (40, 72), BFLOAT16), ops.input("b", (72, 48), BFLOAT16)
    graph = Graph.of(y=a @ b)
    ((name, text),) = compile_text(graph).schedules
    steps = [step for step in text.split(" | ") if not step.startswith("swizzle")]
    other = " | ".join(steps).replace("im 2 gm 8", "gm 8 im 2").replace(".kt 3", ".kt 2")
    assert "use mma.m16n8k16.bf16" in other
    assert "gm 8 im 2" in other
    assert ".kt 2 " in other
    chosen = options(tmp_path, emulated=True, schedules=((name, other),))
    report = polyc.verify(graph, target="cuda:sm_80", exact=True, options=chosen)
    assert "exactly" in str(report)


def test_more_shared_memory_than_a_block_has_is_refused():
    a, b = ops.input("a", (4096, 2000)), ops.input("b", (2000, 264))
    graph = Graph.of(y=a @ b)
    ((name, text),) = compile_text(graph).schedules
    assert ".kt 4 " in text
    many = text.replace("as ki 16", "as ki 64").replace(".kt 4 ", ".kt 8 ")
    with pytest.raises(IllegalSchedule, match="bytes in shared memory, and A100 has"):
        compile_text(graph, {name: many})


@pytest.mark.thorough
def test_fused_parts_are_given_back_or_taken_apart():
    first = compile_text(attention(2, 20, 24, 8))
    ((name, text),) = first.schedules
    assert " in place of matmul_0 at mt" in text
    again = compile_text(attention(2, 20, 24, 8), {name: text})
    assert [d.text for d in again.devices.values()] == [d.text for d in first.devices.values()]
    apart = compile_text(attention(2, 20, 24, 8), {name: "block b0 i"})
    assert len(apart.program.launches) > 1
    assert dict(apart.schedules)[name] == "block b0 i"
