"""Schedules in the user's hand: given back they give the same C; edited, the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.errors import IllegalSchedule
from polyc.options import Options
from polyc.pipeline import Compiled, run_pipeline
from polyc.schedule.schedule import Schedule
from polyc.target.machine import Target
from polyc.trace import Trace
from tests import networks
from tests.golden.models import MODELS
from tests.programs import options
from tests.sampling import sampled, thorough
from tests.staged import model_of

AVX512 = Target.named("avx512")


def compile_text(graph: Graph, schedules: dict[str, str] | None = None) -> Compiled:
    chosen = Options(schedules=tuple(sorted((schedules or {}).items())))
    return run_pipeline(graph, AVX512, chosen, Trace())


def attention() -> Graph:
    q, k, v = (ops.input(c, (12, 512, 64)) for c in "qkv")
    weights = ops.softmax(ops.matmul(q, ops.transpose(k, (0, 2, 1))) * 0.125, axis=-1)
    return Graph.of(y=ops.matmul(weights, v))


def pool() -> Graph:
    """Fills, a copy and windows, fused."""
    x = ops.input("x", (1, 64, 96, 97))
    return Graph.of(y=ops.max_pool(x, (3, 3), strides=(2, 2), pads=(1, 1, 1, 1)))


GRAPHS = {
    **MODELS,
    "pool": pool,
    "resnet": networks.resnet,
    "inception": networks.inception,
    "attention": attention,
}


@pytest.mark.parametrize(
    "name",
    sampled(GRAPHS, seldom=["resnet", "inception", "attention"]),
)
def test_schedules_given_back_give_the_same_text(name):
    first = compile_text(GRAPHS[name]())
    texts = dict(first.schedules)
    assert len(texts) == len(first.program.launches)
    assert all(str(Schedule.parse(text)) == text for text in texts.values())
    again = compile_text(GRAPHS[name](), texts)
    assert again.schedules == first.schedules
    assert again.sources == first.sources


def layers() -> Graph:
    x, w, b = ops.input("x", (30, 40)), np.ones((40, 50), np.float32), np.ones(50, np.float32)
    return Graph.of(y=ops.softmax(ops.relu(x @ w + b), axis=-1))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where what all edits have in common is found again."""
    return tmp_path_factory.mktemp("layers")


EDITED = [
    ("MatMul_0_out", ""),
    thorough("MatMul_0_out", "order j i"),
    ("MatMul_0_out", "parallel i | split j 24 | vector j' | sink j' | keep all at j"),
    ("MatMul_0_out", "split i 7 | split j 16 | unroll i' | vector j' | sink i' j' | keep all at j"),
    ("MatMul_0_out", "distribute j | distribute i | split i 3"),
    ("MatMul_0", "parallel i j | keep matmul_0_acc in registers at j"),
    ("Softmax_3_3", "parallel i0"),
]


@pytest.mark.parametrize(("name", "text"), EDITED)
@pytest.mark.parametrize("threads", sampled([1, 2], often=[2]))
def test_edited_schedules_compute_the_same(name, text, threads, home):
    graph = layers()
    plain = polyc.compile(graph, options=options(home), threads=threads)
    known = plain.schedules
    called = name if name in known or name == "MatMul_0" else list(known)[-1]
    model = polyc.compile(graph, options=options(home), threads=threads, schedule={called: text})
    x = np.random.default_rng(0).standard_normal((30, 40), dtype=np.float32)
    np.testing.assert_allclose(model(x), plain(x), rtol=1e-5, atol=1e-6)
    shown = dict(model.schedules)
    assert len(shown) == len(known)
    changed = [k for k in shown if shown[k] != known[k]]
    assert len(changed) <= 1
    assert all(row.proof for row in model.explain().kernels)


REFUSED = [
    ("MatMul_0_out", "reverse k", r"kernel MatMul_0_out: reverse k breaks a dependence"),
    ("MatMul_0_out", "parallel i j k", r"has to run after MatMul_0\["),
    ("MatMul_0_out", "split n 4", "the schedule of MatMul_0_out: split n 4: there is no loop n"),
    ("MatMul_0_out", "splice i", "the schedule of MatMul_0_out: .* splice is no directive"),
    ("MatMul_0_out", "pack x", "pack x: what is packed is read by a sum of products"),
    ("MatMul_0_out", "block i", "kernel MatMul_0_out: block i: that is for GPUs"),
    ("MatMul_0_out", "warp i", "kernel MatMul_0_out: thread i: that is for GPUs"),
    ("MatMul_0_out", "join i j as e", "MatMul_0_out: join i j as e: that is for GPUs"),
    ("MatMul_0_out", "keep matmul_0_acc in shared at j", "matmul_0_acc in shared.*for GPUs"),
    ("MatMul_0_out", "keep all in registers at j", "keep all in registers at j: .*for GPUs"),
    (
        "MatMul_0_out",
        "keep z in stack",
        "no array z|z is neither a loop nor",
    ),
    ("MatMul_0_out", "parallel S_MatMul_0.i", "there is no statement S_MatMul_0 here"),
    ("conv1", "order i j", "given for conv1, but no kernel is called so; there are MatMul_0_out"),
]


@pytest.mark.parametrize(("name", "text", "said"), REFUSED)
def test_what_does_not_fit_is_refused(name, text, said):
    with pytest.raises(IllegalSchedule, match=said):
        compile_text(layers(), {name: text})


def test_two_schedules_of_one_kernel_are_refused():
    """By the name of its last statement, and by that of a node that it alone computes."""
    both = {"MatMul_0": "order i j", "MatMul_0_out": "order j i"}
    with pytest.raises(IllegalSchedule, match="MatMul_0 and MatMul_0_out both speak of MatMul_0_o"):
        compile_text(layers(), both)


def test_a_fused_kernel_can_be_taken_apart():
    first = compile_text(attention())
    (called,) = [name for name, text in first.schedules if text.startswith("fuse ")]
    apart = compile_text(attention(), {called: "parallel b0 i"})
    assert len(apart.program.launches) > len(first.program.launches)
    assert dict(apart.schedules)[called] == "parallel b0 i"


STAGED = """g (float[20] x) => (float[n, 1] e, float[20] z) {
              z = Exp(x) y = NonZero(x) t = Transpose(y)
              w = Cast<to = 1>(t) e = Softmax<axis = 0>(w) }"""


def test_the_schedules_of_a_model_in_stages_are_taken_back(tmp_path):
    x = np.arange(20, dtype=np.float32)
    model = polyc.compile(model_of(STAGED), target="baseline", options=options(tmp_path))
    expected = model(x)
    edited = {**model.schedules, "Exp_0": "split i0 5"}
    assert len(edited) > 2
    again = polyc.compile(
        model_of(STAGED), target="baseline", options=options(tmp_path), schedule=edited
    )
    for result, right in zip(again(x), expected, strict=True):
        np.testing.assert_allclose(result, right, rtol=1e-6)
    assert again.schedules == edited


def test_arguments_of_a_wrong_type():
    for wrong in (["order i"], {"y": 3}, {3: "order i"}):
        with pytest.raises(TypeError, match="schedule"):
            polyc.compile(layers(), schedule=wrong)
