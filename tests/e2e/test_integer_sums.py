"""Sums of restored bytes: integers inside, and the numbers of exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

import polyc
from polyc.target.machine import NAMED, Target, missing_features
from tests.exact.runs import exactly
from tests.machines import find_bytes, need
from tests.sampling import thorough

TARGETS = [*NAMED.values(), find_bytes()]
KINDS = {"u8s8": (np.uint8, np.int8), "s8s8": (np.int8, np.int8)}


@dataclass(frozen=True)
class Case:
    """A product between DequantizeLinear and QuantizeLinear, with what it should compute.

    scales: of x, of each channel of w, of y; zeros: of x and y. bias: for each channel.
    """

    op: str
    x: np.ndarray
    w: np.ndarray
    scales: tuple[np.float32, np.ndarray, np.float32]
    zeros: tuple[int, int]
    bias: np.ndarray | None = None
    relu: bool = False
    attributes: dict = field(default_factory=dict)

    @property
    def axis(self) -> int:
        """The dimension of w that has a scale for each element."""
        return 0 if self.op == "Conv" or self.attributes.get("transB") else 1

    def model(self) -> onnx.ModelProto:
        xs, ws, ys = self.scales
        known = {
            "w": self.w, "ws": ws, "wz": np.zeros(ws.shape, self.w.dtype),
            "xs": np.asarray(xs), "xz": np.asarray(self.zeros[0], self.x.dtype),
            "ys": np.asarray(ys), "yz": np.asarray(self.zeros[1], np.uint8),
        }  # fmt: skip
        nodes = [
            helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
            helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=self.axis),
        ]
        operands = ["xf", "wf"]
        if self.bias is not None:
            known |= {"b": self.bias, "bs": (ws * xs).astype(np.float32)}
            nodes.append(helper.make_node("DequantizeLinear", ["b", "bs"], ["bf"], axis=0))
            operands.append("bf")
        nodes.append(helper.make_node(self.op, operands, ["t"], name="product", **self.attributes))
        if self.relu:
            nodes.append(helper.make_node("Relu", ["t"], ["r"]))
        last = "r" if self.relu else "t"
        nodes.append(helper.make_node("QuantizeLinear", [last, "ys", "yz"], ["y"]))
        dtype = helper.np_dtype_to_tensor_dtype(self.x.dtype)
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", dtype, self.x.shape)],
            [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
            [numpy_helper.from_array(v, n) for n, v in known.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])

    def check(self, y: np.ndarray, sums: np.ndarray) -> None:
        """Each result is the exact one, rounded to even, unless that is within 4 units in the last
        place of what lies between two integers.

        sums: of the integers, with channels last, as y should be.
        """
        xs, ws, ys = (np.vectorize(Fraction, otypes=[object])(s.astype(float)) for s in self.scales)
        product = np.vectorize(Fraction, otypes=[object])(sums) * (xs * ws)
        bias = np.zeros(ws.shape, object)
        if self.bias is not None:
            rounded = (self.scales[1] * self.scales[0]).astype(np.float32).astype(float)
            bias = np.vectorize(lambda b, s: int(b) * Fraction(s), otypes=[object])(
                self.bias, rounded
            )
        total = product + bias
        largest = np.maximum(abs(product), abs(bias)) / ys
        if self.relu:
            total = np.maximum(total, 0)
        quotient = total / ys
        wanted = np.vectorize(round, otypes=[object])(quotient) + self.zeros[1]
        wanted = np.clip(wanted, 0, 255).astype(int)
        wrong = wanted != y
        apart = abs(
            quotient - np.vectorize(lambda q: q // 1, otypes=[object])(quotient) - Fraction(1, 2)
        )
        near = apart <= 4 * largest * Fraction(1, 2**23)
        assert not (wrong & ~near).any()
        assert wrong.mean() < 0.01
        assert len(np.unique(wanted)) > 3


def whole(rng: np.random.Generator, dtype: type, *shape: int) -> np.ndarray:
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


def case(
    op: str,
    x: Sequence[int],
    w: Sequence[int],
    kind: str = "u8s8",
    bias: bool = False,
    single: bool = False,
    **more,
) -> Case:
    rng = np.random.default_rng(sum(x) + 7 * sum(w))
    types = KINDS[kind]
    attributes = {k: v for k, v in more.items() if k not in ("relu", "zeros")}
    values = whole(rng, types[1], *w)
    channels = w[0] if op == "Conv" or attributes.get("transB") else w[1]
    ws = np.float32(0.003) if single else rng.uniform(0.001, 0.01, channels).astype(np.float32)
    terms = values.size // channels
    ys = np.float32(np.sqrt(terms) * 0.03)
    zeros = more.get("zeros", (3, 128))
    return Case(
        op, whole(rng, types[0], *x), values, (np.float32(0.021), np.asarray(ws), ys), zeros,
        rng.integers(-5000, 5000, channels).astype(np.int32) if bias else None,
        more.get("relu", False), attributes,
    )  # fmt: skip


def sums_of(c: Case) -> np.ndarray:
    """The sums of integers, channels last."""
    x, w = c.x.astype(np.int64) - c.zeros[0], c.w.astype(np.int64)
    if c.op != "Conv":
        return x @ (w.T if c.attributes.get("transB") else w)
    pad, stride = c.attributes.get("pads", [0])[0], c.attributes.get("strides", [1])[0]
    kernel, groups = w.shape[2], c.attributes.get("group", 1)
    frame = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    windows = np.lib.stride_tricks.sliding_window_view(frame, (kernel, kernel), (2, 3))
    windows = windows[:, :, ::stride, ::stride]
    parts = zip(np.split(windows, groups, 1), np.split(w, groups, 0), strict=True)
    return np.concatenate([np.einsum("ncyxrq,ocrq->nyxo", a, b) for a, b in parts], -1)


def compiled(c: Case, target: Target, **how) -> tuple[polyc.CompiledModel, np.ndarray]:
    """(the model, its result with channels last)"""
    need(target)
    model = polyc.compile(c.model(), target=target, **how)
    y = model(c.x)
    return model, np.moveaxis(y, 1, -1) if c.op == "Conv" else y


def is_integer(model: polyc.CompiledModel) -> bool:
    """Whether an instruction multiplies bytes, or pairs of what they are widened to."""
    return ("pc_dot4_" in model.source or "pc_dot2_" in model.source) and "sums up integers" in str(
        model.explain()
    )


CASES: dict[str, Callable[[str], Case]] = {
    "1x1": lambda kind: case("Conv", (1, 36, 5, 7), (40, 36, 1, 1), kind, bias=True),
    "few channels": lambda kind: case("Conv", (1, 20, 9, 7), (16, 20, 1, 1), kind, bias=True),
    "3x3": lambda kind: case(
        "Conv", (2, 12, 9, 8), (33, 12, 3, 3), kind, bias=True, relu=True, pads=[1] * 4
    ),
    "stride": lambda kind: case(
        "Conv", (1, 16, 11, 11), (64, 16, 3, 3), kind, pads=[1] * 4, strides=[2] * 2
    ),
    "a rest of 3": lambda kind: case("Conv", (1, 11, 7, 7), (48, 11, 2, 2), kind),
    "3 channels": lambda kind: case(
        "Conv", (2, 3, 9, 8), (40, 3, 3, 3), kind, bias=True, pads=[1] * 4, strides=[2] * 2
    ),
    "rows of 7": lambda kind: case("Conv", (1, 2, 11, 12), (36, 2, 7, 7), kind, pads=[3] * 4),
    "fewer products": lambda kind: case(
        "Conv", (2, 64, 9, 8), (66, 64, 3, 3), kind, bias=True, relu=True, pads=[1] * 4
    ),
    "one scale": lambda kind: case("Conv", (1, 8, 6, 6), (32, 8, 3, 3), kind, single=True),
    "matmul": lambda kind: case("MatMul", (35, 66), (66, 40), kind),
    "no zero": lambda kind: case("MatMul", (35, 64), (64, 40), kind, zeros=(0, 0)),
    "gemm": lambda kind: case("Gemm", (34, 70), (48, 70), kind, bias=True, transB=1),
}


ALWAYS = {("u8s8", "3 channels"), ("u8s8", "fewer products"), ("s8s8", "1x1")}
"""Those that every run of the tests has; each takes some seconds, for four targets."""


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(*pair, marks=() if pair in ALWAYS else pytest.mark.thorough)
        for pair in product(KINDS, CASES)
    ],
)
def test_results_are_the_exact_ones_on_every_machine(kind, name):
    c, results = CASES[name](kind), {}
    sums = sums_of(c)
    for target in dict.fromkeys(TARGETS):
        if missing_features(target.features):
            continue
        model, results[target] = compiled(c, target)
        assert is_integer(model)
        c.check(results[target], sums)
    first, *others = results.values()
    assert all(np.array_equal(first, other) for other in others)


def test_products_are_fewer_in_batches_that_are_open():
    model = CASES["fewer products"]("u8s8").model()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    machine = NAMED["avx2"]
    need(machine)
    fewer = polyc.compile(model, target=machine)
    direct = polyc.compile(model, target=machine, options=polyc.Options(minimal_filtering=False))
    assert sum(k.flops for k in fewer.explain().kernels) < 0.7 * sum(
        k.flops for k in direct.explain().kernels
    )
    for n in (1, 2, 5):
        x = whole(np.random.default_rng(n), np.uint8, n, 64, 9, 8)
        np.testing.assert_array_equal(fewer(x), direct(x))


@pytest.mark.parametrize("kind", ["u8s8", thorough("s8s8")])
def test_windows_of_a_channel_each_are_sums_of_integers_as_well(kind):
    c = case("Conv", (2, 37, 9, 8), (37, 1, 3, 3), kind, bias=True, pads=[1] * 4, group=37)
    results, sums = [], sums_of(c)
    for target in dict.fromkeys(TARGETS):
        if not missing_features(target.features):
            model, y = compiled(c, target)
            assert "sums up integers" in str(model.explain())
            c.check(y, sums)
            results.append(y)
    assert all(np.array_equal(results[0], other) for other in results)
    assert exactly(c.model()).agrees


@pytest.mark.parametrize("threads", [2, 8])
def test_on_several_threads(threads):
    c = case("Conv", (1, 36, 13, 13), (96, 36, 3, 3), bias=True, pads=[1] * 4)
    _, one = compiled(c, TARGETS[-1], threads=1)
    _, several = compiled(c, TARGETS[-1], threads=threads)
    np.testing.assert_array_equal(one, several)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "3 channels" else pytest.mark.thorough)
        for name in ("1x1", "3x3", "3 channels", "rows of 7", "fewer products", "gemm")
    ],
)
def test_in_a_prime_field_it_is_the_graph(name):
    report = exactly(CASES[name]("u8s8").model())
    assert report.agrees, report


class MaxPool(OpRun):
    """3 x 3, for integers as well: the reference's own pads with NaN."""

    def _run(self, x, kernel_shape=None, **_):
        return (np.lib.stride_tricks.sliding_window_view(x, kernel_shape, (2, 3)).max((4, 5)),)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_a_residual_has_a_scale_of_its_own(dtype):
    """Two products, a pool, and a sum: each is restored where it is read."""
    need(TARGETS[-1])
    rng = np.random.default_rng(0)
    known = {
        "w": whole(rng, np.int8, 32, 32, 1, 1), "ws": np.full(32, 0.004, np.float32),
        "xs": np.float32(0.02), "ys": np.float32(0.05), "zs": np.float32(0.07), "z": dtype(9),
    }  # fmt: skip
    listed = [
        ("DequantizeLinear", "x xs z", "xf", {}), ("DequantizeLinear", "w ws", "wf", {"axis": 0}),
        ("Conv", "xf wf", "t", {}), ("QuantizeLinear", "t ys z", "q", {}),
        ("MaxPool", "q", "m", {"kernel_shape": [3, 3]}),
        ("DequantizeLinear", "q ys z", "qf", {}), ("DequantizeLinear", "m ys z", "mf", {}),
        ("Conv", "mf wf", "u", {"pads": [1] * 4}),
        ("QuantizeLinear", "u zs z", "p", {}), ("DequantizeLinear", "p zs z", "pf", {}),
        ("Add", "pf qf", "s", {}), ("Relu", "s", "r", {}), ("QuantizeLinear", "r ys z", "y", {}),
    ]  # fmt: skip
    nodes = [helper.make_node(op, i.split(), [o], **more) for op, i, o, more in listed]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, (1, 32, 9, 9))],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in known.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    x = whole(rng, dtype, 1, 32, 9, 9)
    models = [
        polyc.compile(proto, target=target)
        for target in dict.fromkeys(TARGETS)
        if not missing_features(target.features)
    ]
    results = [model(x) for model in models]
    # Signed bytes that the model makes are unsigned ones for the instruction.
    assert "pc_dot4_u8i8" in models[-1].source
    assert all(np.array_equal(results[0], other) for other in results[1:])
    (wanted,) = ReferenceEvaluator(proto, new_ops=[MaxPool]).run(None, {"x": x})
    assert np.abs(wanted.astype(int) - results[0]).max() <= 2  # one more of q in the second product
    assert (wanted != results[0]).mean() < 0.01
    report = exactly(proto)
    assert report.agrees, report
