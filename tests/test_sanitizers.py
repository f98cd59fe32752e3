"""No access outside of an array, and no undefined behaviour, in the C of a sample of operators."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from polyc import Graph, Options, ops
from polyc.graph.onnx.export import export_onnx
from polyc.graph.onnx_import import import_onnx
from polyc.program.program import Program
from polyc.target.machine import Target, detect_target
from polyc.target.resolve import resolve_target
from tests import networks, sanitized
from tests.branching import branching, read
from tests.e2e.compare import find_difference
from tests.networks import Weights


def has_sanitizers(folder: Path) -> bool:
    (folder / "a.c").write_text("int main(void) { return 0; }\n")
    command = ["gcc", *sanitized.FLAGS.split(), "a.c", "-o", "a"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module", autouse=True)
def _sanitizers(tmp_path_factory):
    if not has_sanitizers(tmp_path_factory.mktemp("probe")):
        pytest.skip("gcc has no sanitizers here")


def windows() -> Graph:
    """Convolutions and pooling with frames, strides, groups and tails on every side."""
    w = Weights()
    x = ops.input("x", (1, 6, 11, 23))
    h = ops.relu(ops.conv(x, w(19, 6, 3, 3), w(19), pads=(1, 1, 1, 1), strides=(2, 1)))
    g = ops.conv(h, w(19, 1, 3, 3), group=19, dilations=(1, 2))
    p = ops.max_pool(h, kernel_shape=(3, 2), strides=(2, 3), pads=(1, 0, 1, 1), ceil_mode=True)
    a = ops.average_pool(h, kernel_shape=(2, 3), pads=(0, 1, 1, 1))
    t = ops.conv_transpose(h, w(19, 3, 2, 2), strides=(2, 2))
    return Graph.of(g=g, p=p, a=a, t=t)


def rows() -> Graph:
    """Rows, totals and mathematics, with lengths that no vector divides."""
    w = Weights()
    x = ops.input("x", (5, 37))
    y = ops.matmul(x, w(37, 29)) + w(29)
    return Graph.of(
        s=ops.softmax(x, axis=-1),
        c=ops.softmax(x, axis=0),
        n=ops.layer_normalization(y, w.positive(29), w(29)),
        m=ops.reduce_max(y, axes=(0,)),
        e=ops.erf(y) + ops.tanh(y) * ops.sigmoid(y) - ops.log(ops.exp(y)),
        z=ops.cum_sum(x, axis=1),
        v=ops.concat(
            [
                ops.slice(ops.transpose(x), (3,), (31,), axes=(0,), steps=(2,)),
                ops.slice(ops.pad(x, (1, 2, 0, 1)), (5, 39), (0, 4), axes=(0, 1), steps=(-1, -7)),
            ],
            axis=0,
        ),
    )


def transforms() -> Graph:
    """A convolution large enough for Winograd's transforms, its border tiles cut by the image."""
    w = Weights()
    x = ops.input("x", (1, 33, 15, 13))
    return Graph.of(y=ops.relu(ops.conv(x, w(35, 33, 3, 3), w(35), pads=(1, 1, 1, 1))))


def integers() -> Graph:
    """Corner cases that C leaves undefined: overflow, shifts, division by zero, conversions."""
    i = ops.input("i", (33,), "int32")
    j = ops.input("j", (33,), "int32")
    b = ops.input("b", (33,), "uint8")
    f = ops.input("f", (33,), "float32")
    return Graph.of(
        add=i + j, mul=i * j, sub=i - j, neg=ops.neg(i), abs=ops.abs(i), mod=ops.mod(i, j),
        shift=ops.bit_shift(b, b, "LEFT"), cast=ops.cast(f, "int32"), small=ops.cast(i, "int8"),
        where=ops.where(ops.less(i, j), i, j), total=ops.reduce_sum(i, axes=(0,)),
    )  # fmt: skip


def large_branches() -> Graph:
    """Enough to do for several threads in both branches that a call decides between."""
    return branching(200, 96)


def chosen_rows() -> Graph:
    """Enough to do for several threads with as many rows as a call finds."""
    text = """g (float[300, 96] x, float[96, 80] w) => (float[80] y, int64[1] n) {
        zero = Constant<value = float {0}>() first = Constant<value = int64 {0}>()
        column = Gather<axis = 1>(x, first) good = Greater(column, zero)
        v = Compress<axis = 0>(x, good) u = MatMul(v, w) e = Exp(u)
        axes = Constant<value = int64[1] {0}>() y = ReduceSum<keepdims = 0>(e, axes)
        n = Shape<end = 1>(u)
    }"""
    return import_onnx(read(text), decides=True)


def gathers() -> Graph:
    """Places that are data; the model has to survive any."""
    x, k = ops.input("x", (7, 9)), ops.input("k", (5,), "int64")
    e = ops.input("e", (7, 4), "int64")
    return Graph.of(rows=ops.gather(x, k, axis=0), cells=ops.gather_elements(x, e, axis=1))


EXTREMES = np.array([-(2**31), 2**31 - 1, 0, -1, 1, 7, -7, 1 << 20, 65537, 3, -128], np.int32)
FLOATS = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 1e38, 0.5, -0.5, 2.5, -0.0, 1e-40])
CORNERS = {
    "i": np.tile(EXTREMES, 3),
    "j": np.repeat(EXTREMES, 3),
    "b": np.arange(33).astype(np.uint8) % 8,
    "f": np.tile(FLOATS, 3).astype(np.float32),
}


def make_feeds(program: Program) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    feeds = {}
    for spec, _ in program.inputs:
        shape = tuple(int(d) for d in spec.shape)
        if spec.name in CORNERS:
            feeds[spec.name] = CORNERS[spec.name]
        elif spec.dtype == np.int64:
            feeds[spec.name] = rng.integers(-7, 7, shape)
        else:
            feeds[spec.name] = rng.standard_normal(shape).astype(np.float32)
    return feeds


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("build", "isa"),
    [
        (windows, "cpu"),
        (transforms, "cpu"),
        (rows, "baseline"),
        (integers, "cpu"),
        (gathers, "cpu"),
        (networks.transformer, "cpu"),
        (networks.mobilenet, "baseline"),
    ],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_nothing_is_reported(build: Callable[[], Graph], isa: str, tmp_path: Path):
    graph = build()
    program = sanitized.build(graph, resolve_target(isa, Options()), tmp_path)
    feeds = make_feeds(program)
    for threads in (1, 3):
        outcome = sanitized.run(program, tmp_path, feeds, threads)
        assert outcome.status == 0, outcome.report
        assert outcome.report == ""
    if build is integers:  # of what C leaves undefined, NumPy's results are no reference
        assert outcome.outputs["add"][0] == np.int32(0)
        return
    expected = ReferenceEvaluator(export_onnx(graph)).run(None, feeds)
    for (name, got), want in zip(outcome.outputs.items(), expected, strict=True):
        fault = find_difference(got, np.asarray(want), 1e-4, 1e-5)
        assert fault is None, f"{name}: {fault}"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "build",
    [windows, transforms, rows, networks.inception, large_branches, chosen_rows],
    ids=lambda x: x.__name__,
)
def test_threads_do_not_race(build: Callable[[], Graph], tmp_path: Path):
    """Neither launches without a barrier between them, nor loops of one kernel that are joined."""
    program = sanitized.build(build(), detect_target(), tmp_path, flags=sanitized.THREAD_FLAGS)
    outcome = sanitized.run(program, tmp_path, make_feeds(program), 4)
    assert (outcome.status, outcome.report) == (0, "")


@pytest.mark.thorough
@pytest.mark.parametrize("bad", [7, -8, 2**62, -(2**63)])
def test_bad_indices_touch_nothing_and_are_told(bad: int, tmp_path: Path):
    program = sanitized.build(gathers(), Target.named("baseline"), tmp_path)
    feeds = make_feeds(program)
    feeds["k"] = np.array([0, 1, bad, 2, 3])
    outcome = sanitized.run(program, tmp_path, feeds, 2)
    assert outcome.report == ""
    assert outcome.status > 0


@pytest.mark.thorough
def test_what_is_found_stays_within_memory(tmp_path: Path):
    program = sanitized.build(chosen_rows(), detect_target(), tmp_path)
    feeds = make_feeds(program)
    for threads in (1, 3):
        outcome = sanitized.run(program, tmp_path, feeds, threads)
        assert (outcome.status, outcome.report) == (0, "")
    x, w = feeds["x"].astype(np.float64), feeds["w"]
    good = x[:, 0] > 0
    assert outcome.outputs["n"] == good.sum()
    want = np.exp(x[good] @ w).sum(0)
    np.testing.assert_allclose(outcome.outputs["y"], want, rtol=1e-4)


@pytest.mark.thorough
@pytest.mark.parametrize("bad", ["301", "-1", "(1ll << 62)", "(-9223372036854775807ll - 1)"])
def test_a_size_that_cannot_be_ends_the_call(bad: str, tmp_path: Path):
    """Should a kernel go wrong: nothing works with the size that it has written."""
    pattern = re.compile(r"^(\s*Compress_2_Gather_\d+_\[0\]) = .*;", re.MULTILINE)
    edited = []

    def damage(text: str) -> str:
        changed = pattern.sub(rf"\1 = {bad};", text)
        edited.append(changed != text)
        return changed

    program = sanitized.build(chosen_rows(), Target.named("baseline"), tmp_path, damage)
    assert any(edited)
    for threads in (1, 3):
        outcome = sanitized.run(program, tmp_path, make_feeds(program), threads)
        assert (outcome.status, outcome.report) == (len(program.launches) + 1, "")


def simple() -> Graph:
    x = ops.input("x", (3, 21))
    w = Weights()
    return Graph.of(y=ops.matmul(ops.relu(ops.matmul(x, w(21, 50))), w(50, 37)))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("pattern", "replacement", "complaint"),
    [
        (r"\by_\[", "y_[111 + ", "heap-buffer-overflow"),
        (r"&x_\[|\bx_\[", "x_[63 + ", "heap-buffer-overflow"),
        (r"\brelu_0_\[", "relu_0_[150 + ", "use-after-poison"),
        (
            r"\{\n    \(void\)pc_self",
            "{\n    int zero = 0; *status = 1 << (zero - 1);\n    (void)pc_self",
            "runtime error",
        ),
    ],
)
def test_broken_kernels_are_reported(pattern, replacement, complaint, tmp_path):
    """The sanitizers do see what the tests above would have them report."""

    def damage(text: str) -> str:
        return re.sub(pattern, replacement, text)

    program = sanitized.build(simple(), Target.named("baseline"), tmp_path, damage)
    outcome = sanitized.run(program, tmp_path, make_feeds(program), 1)
    assert outcome.status == -1
    assert complaint in outcome.report
