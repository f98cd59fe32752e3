"""Sums of products of bfloat16: NumPy's numbers for rounded factors, and the instruction is there.

What float64 makes of factors that ml_dtypes rounds differs by roundings of float32 alone.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import polyc
from polyc import Graph, ops
from polyc.options import Options
from polyc.printing import print_instruction
from polyc.scop.expr import Const
from polyc.scop.factors import round_factors
from polyc.target.instructions.lanes import BF16, DOT2_BF16
from polyc.target.machine import NAMED, Target, detect_target
from tests.exact.runs import exactly
from tests.machines import given, need, without_tiles
from tests.sampling import thorough

ASKED = Options(precision="bf16")


TARGETS = {
    "avx512": given(NAMED["avx512"], BF16, "avx512vl"),
    "avx2": given(NAMED["avx2"], BF16, "avx512vl"),
    "here": without_tiles(detect_target()),
}


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> Target:
    found = TARGETS[request.param]
    if not found.vectors.has(DOT2_BF16):
        pytest.skip("this CPU cannot run it")
    return need(found)


def rounded(x: np.ndarray) -> np.ndarray:
    """The nearest bfloat16, as float64."""
    return x.astype(ml_dtypes.bfloat16).astype(np.float64)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def product(x: np.ndarray, w: np.ndarray, known: bool) -> Graph:
    second = w if known else ops.input("w", w.shape)
    return Graph.of(y=ops.matmul(ops.input("x", x.shape), second))


def multiply(model: polyc.CompiledModel, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    feeds = {"x": x, "w": w}
    return model.run({spec.name: feeds[spec.name] for spec in model.inputs})["y"]


def check(y: np.ndarray, wanted: np.ndarray, depth: int) -> None:
    """Sums of `depth` products of factors near 1."""
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=2e-6 * depth**0.5)


@pytest.mark.parametrize("known", [True, False], ids=["constant", "packed"])
@pytest.mark.parametrize("shape", [(33, 64, 48), (41, 67, 33), (64, 8, 9), (35, 18, 16)], ids=str)
def test_products_of_matrices(target, shape, known):
    m, depth, n = shape
    x, w = normal(m, depth), normal(depth, n)
    model = polyc.compile(product(x, w, known), target=target, options=ASKED)
    y = multiply(model, x, w)
    check(y, rounded(x) @ rounded(w), depth)
    assert np.abs(y - x.astype(float) @ w).max() < 2e-2 * np.abs(y).max()
    assert "pc_dot2_bf16bf16_f32x" in model.source
    assert any("use dot2.bf16 k" in text for text in model.schedules.values())
    assert "bf16_sums: '" in str(model.explain().rewrites)


@pytest.mark.parametrize(("m", "depth", "n"), [(20, 1, 20), (9, 2, 8), (20, 3, 5), (1, 64, 33)])
@pytest.mark.parametrize("known", [True, False], ids=["constant", "packed"])
def test_small_products_are_right(target, m, depth, n, known):
    x, w = normal(m, depth), normal(depth, n)
    model = polyc.compile(product(x, w, known), target=target, options=ASKED)
    y = multiply(model, x, w)
    np.testing.assert_allclose(y, x.astype(float) @ w, rtol=2e-2, atol=2e-2 * depth)


@pytest.mark.parametrize("threads", [1, 2])
def test_on_several_threads(target, threads):
    x, w = normal(130, 70), normal(70, 50)
    model = polyc.compile(product(x, w, True), target=target, threads=threads, options=ASKED)
    check(model(x), rounded(x) @ rounded(w), 70)


def test_nan_and_infinity(target):
    x, w = normal(40, 33), normal(33, 40)
    x[3, 5], x[7, 32], w[9, 11], x[8, 0] = np.nan, np.inf, -np.inf, 3.4e38  # too large to round
    model = polyc.compile(product(x, w, False), target=target, options=ASKED)
    with np.errstate(invalid="ignore", over="ignore"):
        a, b = rounded(x), rounded(w)
        wanted = a @ b
    assert np.isinf(a[8, 0])
    np.testing.assert_allclose(multiply(model, x, w), wanted, rtol=1e-5, atol=2e-5)


def test_the_smallest_numbers_may_count_as_zeros(target):
    x, w = normal(40, 32), np.full((32, 40), 1e-39, np.float32)
    x[0] = np.float32(2.0**-126)
    model = polyc.compile(product(x, w, False), target=target, options=ASKED)
    assert np.abs(multiply(model, x, w)).max() < 1e-36
    tiny = np.full((40, 32), 2.0**-126, np.float32)
    np.testing.assert_array_equal(
        multiply(model, tiny, np.ones_like(w)), np.float32(32 * 2.0**-126)
    )


@pytest.mark.parametrize(
    ("channels", "filters", "size", "kernel", "pad", "stride", "groups"),
    [
        (16, 40, 9, 3, 1, 1, 1),
        (12, 33, 8, 1, 0, 1, 1),
        (8, 64, 11, 3, 0, 2, 1),
        (24, 64, 7, 2, 1, 1, 2),
        (3, 32, 13, 3, 1, 1, 1),
        (40, 40, 9, 3, 1, 1, 40),
    ],
)
def test_convolutions(target, channels, filters, size, kernel, pad, stride, groups):
    x, w = normal(2, channels, size, size), normal(filters, channels // groups, kernel, kernel)
    image, bias = ops.input("x", x.shape), normal(filters)
    y = ops.conv(image, w, bias, pads=(pad,) * 4, strides=(stride,) * 2, group=groups)
    model = polyc.compile(Graph.of(y=ops.relu(y)), target=target, options=ASKED)
    frame = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    paired = "pc_dot2_bf16bf16_f32x" in model.source
    assert paired == (channels // groups > 3)
    a, b = (rounded(v) if paired else v.astype(float) for v in (frame, w))
    windows = np.lib.stride_tricks.sliding_window_view(a, (kernel, kernel), (2, 3))
    windows = windows[:, :, ::stride, ::stride]
    each = filters // groups
    parts = [
        np.einsum(
            "ncyxrq,ocrq->noyx",
            windows[:, g * (channels // groups) : (g + 1) * (channels // groups)],
            b[g * each : (g + 1) * each],
        )
        for g in range(groups)
    ]
    wanted = np.concatenate(parts, 1) + bias[:, None, None]
    check(model(x), np.maximum(wanted, 0), channels * kernel**2)


def test_attention_rounds_both_activations(target):
    heads, length, width = 3, 33, 16
    q, k, v = (normal(heads, length, width, seed=s) for s in range(3))
    a, b, c = (ops.input(n, (heads, length, width)) for n in "qkv")
    scores = ops.softmax(ops.matmul(a, ops.transpose(b, (0, 2, 1))) * 0.25, axis=-1)
    model = polyc.compile(Graph.of(y=ops.matmul(scores, c)), target=target, options=ASKED)
    logits = rounded(q) @ rounded(k).swapaxes(1, 2) * 0.25
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights = (weights / weights.sum(-1, keepdims=True)).astype(np.float32)
    # A weight near the middle of two bfloat16 may be rounded to the other one.
    np.testing.assert_allclose(model(q, k, v), rounded(weights) @ rounded(v), atol=2e-3)
    assert model.source.count("pc_dot2_bf16bf16_f32x") > 1


def test_a_product_goes_through_a_reshape(target):
    """As the one behind the heads of attention, whose results lie next to each other."""
    x, w = normal(3, 33, 16), normal(48, 40)
    image = ops.input("x", x.shape)
    rows = ops.reshape(ops.transpose(ops.tanh(image), (1, 0, 2)), (33, 48))
    model = polyc.compile(Graph.of(y=ops.matmul(rows, w)), target=target, options=ASKED)
    merged = np.tanh(x).swapaxes(0, 1).reshape(33, 48)
    np.testing.assert_allclose(model(x), rounded(merged) @ rounded(w), atol=2e-3)
    assert "pc_dot2_bf16bf16_f32x" in model.source


def test_who_reads_it_as_float32_gets_it_so(target):
    """An activation, an input and a weight that are factors, and something else besides."""
    x, w = normal(40, 40), normal(40, 40)
    image = ops.input("x", x.shape)
    z = ops.tanh(image)
    y = ops.matmul(z, w)
    outputs = {"y": y, "z": z, "sum": image + w, "other": ops.matmul(image, w) + z}
    model = polyc.compile(Graph.of(**outputs), target=target, options=ASKED)
    results = model.run({"x": x})
    np.testing.assert_allclose(results["z"], np.tanh(x), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(results["sum"], x + w)
    check(results["y"], rounded(results["z"]) @ rounded(w), 40)
    check(results["other"], rounded(x) @ rounded(w) + np.tanh(x), 40)


def test_two_layers_round_between_them(target):
    x, w, v = normal(33, 48), normal(48, 64), normal(64, 40)
    graph = Graph.of(y=ops.matmul(ops.relu(ops.matmul(ops.input("x", x.shape), w)), v))
    model = polyc.compile(graph, target=target, options=ASKED)
    hidden = np.maximum(rounded(x) @ rounded(w), 0).astype(np.float32)
    check(model(x), rounded(hidden) @ rounded(v), 64 * 4000)
    assert all(p.dtype == np.float32 for p in (*model.inputs, *model.outputs))


@pytest.mark.parametrize("isa", NAMED)
def test_without_the_instruction_nothing_is_rounded(isa):
    target = NAMED[isa]
    need(target)
    x, w = normal(33, 40), normal(40, 24)
    plain, asked = (
        polyc.compile(product(x, w, True), target=target, options=options)
        for options in (Options(), ASKED)
    )
    assert plain.source == asked.source
    np.testing.assert_allclose(asked(x), x.astype(float) @ w, atol=1e-5)


def test_nor_where_it_is_no_faster():
    slow = need(TARGETS["avx512"])
    slow = replace(slow, rates=replace(slow.rates, pairs=1.0))
    sources = [
        polyc.compile(product(normal(33, 40), normal(40, 24), True), target=slow, options=o).source
        for o in (Options(), ASKED)
    ]
    assert sources[0] == sources[1]


def test_nobody_rounds_unasked(target):
    x, w = normal(33, 40), normal(40, 24)
    model = polyc.compile(product(x, w, True), target=target)
    assert "bf16" not in model.source
    np.testing.assert_allclose(model(x), x.astype(float) @ w, atol=1e-5)


def test_a_transformed_convolution_stays_float32(target):
    """Winograd's form is chosen where it beats sums of pairs, and then its factors are floats."""
    x, w = normal(1, 64, 28, 28), normal(64, 64, 3, 3)
    graph = Graph.of(y=ops.conv(ops.input("x", x.shape), w, pads=(1, 1, 1, 1)))
    model = polyc.compile(graph, target=target, options=ASKED)
    direct = polyc.compile(graph, target=target, options=Options(minimal_filtering=False))
    apart = np.abs(model(x) - direct(x)).max() / np.abs(direct(x)).max()
    assert apart < (5e-3 if "pc_dot2" in model.source else 2e-5)


def typed_model(kind: int, x: np.ndarray, w: np.ndarray, b: np.ndarray) -> onnx.ModelProto:
    """y = relu(x @ w + b) @ w of a type."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["y"]),
    ]
    stored = [numpy_helper.from_array(v, n) for n, v in (("w", w), ("b", b))]
    given = [helper.make_tensor_value_info("x", kind, x.shape)]
    results = [helper.make_tensor_value_info("y", kind, None)]
    graph = helper.make_graph(nodes, "g", given, results, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize(
    ("kind", "dtype", "close"),
    [
        (TensorProto.BFLOAT16, ml_dtypes.bfloat16, 2e-2),
        (TensorProto.FLOAT16, np.float16, 2e-3),
    ],
    ids=["bfloat16", "float16"],
)
def test_models_of_narrow_floats(target, kind, dtype, close):
    x, w, b = (normal(*shape).astype(dtype) for shape in ((33, 40), (40, 40), (40,)))
    proto = typed_model(kind, x, w, b)
    model = polyc.compile(proto, target=target)
    assert ("pc_dot2_bf16bf16_f32x" in model.source) == (kind == TensorProto.BFLOAT16)
    y = model(x).astype(np.float64)
    a, c, d = (v.astype(np.float64) for v in (x, w, b))
    wanted = np.maximum(a @ c + d, 0).astype(dtype).astype(np.float64) @ c
    np.testing.assert_allclose(y, wanted, atol=close * np.abs(wanted).max())
    if kind == TensorProto.FLOAT16:
        (reference,) = ReferenceEvaluator(proto).run(None, {"x": x})
        np.testing.assert_allclose(y, reference.astype(float), atol=close * np.abs(wanted).max())


def framed() -> Graph:
    x, w = ops.input("x", (1, 8, 7, 9)), normal(40, 8, 3, 3)
    return Graph.of(y=ops.conv(x, w, normal(40), pads=(1, 1, 1, 1)))


def in_pairs(known: bool) -> Graph:
    return product(normal(35, 37), normal(37, 43), known)


GRAPHS = {"constant": lambda: in_pairs(True), "packed": lambda: in_pairs(False), "framed": framed}


def run_exact(name: str, target: Target) -> bool:
    choices = {"precision": "bf16", "minimal_filtering": False}
    return exactly(GRAPHS[name](), target=target, choices=choices).agrees


SELDOM = {("avx2", "constant"), ("avx2", "packed")}
"""What is decided for them is decided for AVX-512 as well."""


@pytest.mark.parametrize(
    ("target", "name"),
    [thorough(*pair) if pair in SELDOM else pair for pair in itertools.product(TARGETS, GRAPHS)],
    indirect=["target"],
)
def test_the_exact_run_agrees(name, target):
    assert run_exact(name, target)


def one_number_over_and_over(patch: pytest.MonkeyPatch) -> None:
    right = print_instruction._load

    def wrong(*rest):
        text = right(*rest)
        return text.replace(", 2)", ", 1)") if "repeat" in text else text

    patch.setattr(print_instruction, "_load", wrong)


def weights_that_the_statements_have_otherwise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(round_factors._Storing, "with_constants", lambda storing, scop: scop)


def ones_in_the_frame(patch: pytest.MonkeyPatch) -> None:
    right = round_factors._Storing._rounded

    def wrong(storing, value):
        made = right(storing, value)
        return replace(made, value=1.0) if isinstance(made, Const) else made

    patch.setattr(round_factors._Storing, "_rounded", wrong)


@pytest.mark.parametrize(
    ("plant", "name"),
    [
        thorough(one_number_over_and_over, "packed"),
        (weights_that_the_statements_have_otherwise, "constant"),
        (ones_in_the_frame, "framed"),
    ],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_the_exact_run_sees_faults(plant, name, monkeypatch):
    plant(monkeypatch)
    assert not run_exact(name, TARGETS["avx2"])


def test_rows_are_interleaved_in_vectors_where_they_are_packed(target):
    """Of an operand that moves with the lanes, an instruction takes two rows at once."""
    x, w = normal(64, 64), normal(64, 64)
    model = polyc.compile(product(x, w, False), target=target, options=ASKED)
    check(multiply(model, x, w), rounded(x) @ rounded(w), 64)
    (copied,) = (text for name, text in model.schedules.items() if name.endswith("_packed"))
    assert "split i0 2 " in copied
    assert "vector i1'" in copied


@pytest.mark.parametrize("rows", [1, 3, 16])
def test_few_rows_read_weights_of_bfloat16_as_they_are(target, rows):
    x, w = (normal(*shape).astype(ml_dtypes.bfloat16) for shape in ((rows, 96), (96, 80)))
    graph = Graph.of(y=ops.matmul(ops.input("x", x.shape, x.dtype), w))
    model = polyc.compile(graph, target=target)
    assert "const bf16 *restrict constant" in model.source
    wanted = x.astype(float) @ w.astype(float)
    np.testing.assert_allclose(model(x).astype(float), wanted, rtol=8e-3, atol=1e-2)


@pytest.mark.parametrize("isa", ["avx512", "avx2"])
@pytest.mark.parametrize("rows", [1, 3, 8, 9])
def test_few_rows_read_weights_of_float16_as_they_are(isa, rows):
    need(NAMED[isa])
    x, w = (normal(*shape).astype(np.float16) for shape in ((rows, 96), (96, 83)))
    graph = Graph.of(y=ops.matmul(ops.input("x", x.shape, x.dtype), w))
    model = polyc.compile(graph, target=NAMED[isa])
    assert ("const f16 *restrict constant" in model.source) == (rows <= 8)
    wanted = x.astype(float) @ w.astype(float)
    np.testing.assert_allclose(model(x).astype(float), wanted, rtol=1e-3, atol=1e-3)
