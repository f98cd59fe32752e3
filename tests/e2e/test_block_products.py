"""Products with weights of 4 and 8 bits in blocks: NumPy's numbers, and weights stay packed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import polyc
from polyc.errors import ShapeError
from polyc.options import options_from_environment
from polyc.printing.print_expr import Printer
from polyc.target.machine import NAMED
from tests.exact.runs import exactly
from tests.machines import BYTES, need

ROUNDED, FLOATS = 1e-2, 2e-6
"""Errors over the largest result, with x as bytes and as floats."""


@dataclass(frozen=True)
class Weights:
    """n columns of k weights; zeros: "" for none, "packed" or "floats"."""

    k: int
    n: int
    bits: int = 4
    block: int = 32
    zeros: str = ""

    @property
    def blocks(self) -> int:
        return -(-self.k // self.block)

    def arrays(self) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(self.k + self.n)
        count = self.n * self.blocks
        shape = (self.n, self.blocks, self.block * self.bits // 8)
        found = {
            "b": rng.integers(0, 256, shape).astype(np.uint8),
            "s": rng.uniform(-1, 1, count).astype(np.float32),
        }
        if self.zeros == "packed":
            size = self.n * -(-self.blocks * self.bits // 8)
            found["z"] = rng.integers(0, 256, size).astype(np.uint8)
        elif self.zeros:
            found["z"] = rng.uniform(0, 1 << self.bits, count).astype(np.float32)
        return found

    def restored(self) -> np.ndarray:
        """float64[k, n]"""
        arrays = self.arrays()
        zeros = np.full((self.n, self.blocks), 1 << (self.bits - 1))
        if self.zeros == "packed":
            zeros = self._unpacked(arrays["z"].reshape(self.n, -1))[:, : self.blocks]
        elif self.zeros:
            zeros = arrays["z"].reshape(self.n, -1)
        whole = self._unpacked(arrays["b"]).reshape(self.n, self.blocks, self.block)
        moved = whole.astype(np.float64) - zeros[..., None]
        scaled = moved * arrays["s"].reshape(self.n, self.blocks, 1)
        return scaled.reshape(self.n, -1)[:, : self.k].T

    def _unpacked(self, x: np.ndarray) -> np.ndarray:
        if self.bits == 8:
            return x
        return np.stack([x & 15, x >> 4], axis=-1).reshape(*x.shape[:-1], -1)

    def model(self, *rows: int, level: int = 0, dtype: type = np.float32) -> onnx.ModelProto:
        code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        arrays = self.arrays()
        arrays["s"] = arrays["s"].astype(dtype)
        stored = [numpy_helper.from_array(v, name) for name, v in arrays.items()]
        node = helper.make_node(
            "MatMulNBits", ["x", *arrays], ["y"], domain="com.microsoft", name="product",
            K=self.k, N=self.n, bits=self.bits, block_size=self.block, accuracy_level=level,
        )  # fmt: skip
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_tensor_value_info("x", code, [*rows, self.k])],
            [helper.make_tensor_value_info("y", code, [*rows, self.n])],
            stored,
        )
        imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=10)


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def assert_near(got: np.ndarray, want: np.ndarray, error: float) -> None:
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= error * np.abs(want).max()


CASES = [
    (Weights(96, 40), (1,), 4),
    (Weights(70, 37, zeros="packed"), (5,), 0),
    (Weights(32, 33, zeros="floats"), (2, 3), 0),
    (Weights(40, 33, bits=8, block=16, zeros="floats"), (2, 3), 4),
    (Weights(300, 1, bits=8, block=128), (), 0),
    (Weights(5, 19, block=256), (1, 2), 4),
]


@pytest.mark.parametrize(("weights", "rows", "level"), CASES, ids=str)
def test_numbers(weights, rows, level):
    """Blocks that are not full, one block, one column, a vector, no row more than one tile has."""
    x = draw(*rows, weights.k)
    y = polyc.compile(weights.model(*rows, level=level), threads=1)(x)
    error = ROUNDED if level == 4 else FLOATS
    assert_near(y, x.astype(np.float64) @ weights.restored(), error)


@pytest.mark.thorough
@pytest.mark.parametrize("level", [0, 4])
@pytest.mark.parametrize("zeros", ["", "packed", "floats"])
@pytest.mark.parametrize("block", [16, 32, 64, 128, 256])
@pytest.mark.parametrize("bits", [4, 8])
def test_all_blocks(bits, block, zeros, level):
    weights = Weights(2 * block + 7, 50, bits, block, zeros)
    x = draw(9, weights.k)
    y = polyc.compile(weights.model(9, level=level), threads=1)(x)
    assert_near(y, x.astype(np.float64) @ weights.restored(), ROUNDED if level == 4 else FLOATS)


@pytest.mark.parametrize("level", [0, 4])
def test_one_kernel_reads_packed_weights(level):
    """Sums of blocks live in registers, and no weight is restored before."""
    target = need(BYTES)
    weights = Weights(4096, 256)
    model = polyc.compile(weights.model(3, level=level), target=target, threads=2)
    (schedule,) = (text for text in model.schedules.values() if "fuse g" in text)
    assert "keep y_of_block in registers at g" in schedule
    assert ("use dot4.u8s8 r" in schedule) == (level == 4)
    x = draw(3, weights.k)
    results = [
        polyc.compile(weights.model(3, level=level), target=target, threads=n)(x) for n in (1, 8)
    ]
    assert all(np.array_equal(model(x), y) for y in results)


@pytest.mark.parametrize("target", NAMED, ids=str)
@pytest.mark.parametrize("level", [0, 4])
def test_targets(target, level):
    need(NAMED[target])
    weights = Weights(64, 41, zeros="packed")
    x = draw(3, 64)
    y = polyc.compile(weights.model(3, level=level), target=target, threads=1)(x)
    assert_near(y, x.astype(np.float64) @ weights.restored(), ROUNDED if level else FLOATS)


def test_what_is_no_number():
    """As the standard's product has it: infinity times what is less than its zero point."""
    weights = Weights(64, 35)
    x = draw(3, 64)
    x[0, 5], x[1, 7], x[2, 9] = np.inf, np.nan, -np.inf
    y = polyc.compile(weights.model(3), threads=1)(x)
    with np.errstate(invalid="ignore"):
        want = x @ weights.restored().astype(np.float32)
    assert np.array_equal(np.isnan(y), np.isnan(want))
    assert np.array_equal(y[np.isinf(want)], want[np.isinf(want)])
    zeros = polyc.compile(weights.model(3, level=4), threads=1)(np.zeros((3, 64), np.float32))
    assert not zeros.any()


def test_any_number_of_rows():
    weights = Weights(64, 48)
    model = polyc.compile(weights.model("n", level=4), threads=1)
    for rows in (1, 4, 13):
        x = draw(rows, 64)
        assert_near(model(x), x.astype(np.float64) @ weights.restored(), ROUNDED)


@pytest.mark.parametrize("wrong", ["b", "s", "z", "x"])
def test_what_does_not_fit_is_an_error(wrong):
    source = Weights(64, 8, zeros="packed").model(2)
    if wrong == "x":
        source.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 63
    for stored in source.graph.initializer:
        if stored.name == wrong:
            cut = np.ascontiguousarray(numpy_helper.to_array(stored)[:-1])
            stored.CopyFrom(numpy_helper.from_array(cut, wrong))
    with pytest.raises(ShapeError):
        polyc.compile(source)


def test_narrow_floats():
    weights, x = Weights(64, 48), draw(3, 64).astype(np.float16)
    source = weights.model(3, dtype=np.float16)
    y = polyc.compile(source, threads=1)(x)
    assert y.dtype == np.float16
    assert_near(y, x.astype(np.float64) @ weights.restored(), 2e-3)


KINDS = {"uint4": (0, 15), "int4": (-8, 7), "uint8": (0, 255), "int8": (-128, 127)}
"""Element type -> its least and largest value."""


@pytest.mark.parametrize(
    ("kind", "form", "given"),
    [
        ("uint4", "plain", True),
        ("int4", "transposed", False),
        ("uint8", "Gemm", False),
        ("int8", "plain", True),
        ("uint4", "Gemm", False),
    ],
)
def test_restored_blocks(kind, form, given):
    """DequantizeLinear with blocks along k, of which the last one is not full."""
    k, n, block, x = 71, 35, 16 if kind == "int8" else 32, draw(3, 71)
    least, most = KINDS[kind]
    rng, dtype = (
        np.random.default_rng(5),
        np.dtype(kind if "8" in kind else getattr(ml_dtypes, kind)),
    )
    w = rng.integers(least, most, (k, n), endpoint=True)
    s = rng.uniform(-1, 1, (-(-k // block), n)).astype(np.float32)
    z = rng.integers(least, most, s.shape, endpoint=True) if given else np.zeros(s.shape, np.int64)
    moved = w - np.repeat(z, block, 0)[:k]
    want = x.astype(np.float64) @ (moved * np.repeat(s, block, 0)[:k].astype(np.float64))
    bias = rng.standard_normal(n).astype(np.float32)
    columns = form != "plain"
    stored = {"w": w.astype(dtype), "s": s} | ({"z": z.astype(dtype)} if given else {})
    stored = {i: np.ascontiguousarray(v.T) if columns else v for i, v in stored.items()}
    nodes = [
        helper.make_node("DequantizeLinear", [*stored], ["r"], axis=int(columns), block_size=block)
    ]
    if form == "Gemm":
        nodes.append(helper.make_node("Gemm", ["x", "r", "c"], ["y"], transB=1))
        want, stored = want + bias, {**stored, "c": bias}
    else:
        nodes += [helper.make_node("Transpose", ["r"], ["t"])] if columns else []
        nodes.append(helper.make_node("MatMul", ["x", "t" if columns else "r"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3, k])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3, n])],
        [numpy_helper.from_array(v, name) for name, v in stored.items()],
    )
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    model = polyc.compile(source, threads=1)
    assert "keep their" in str(model.explain())
    assert_near(model(x), want, FLOATS)


@pytest.mark.parametrize("level", [0, 4])
def test_exactly(level):
    """The printed loops do what their statements say, with vectors and rows that are left over."""
    assert exactly(Weights(48, 21, block=16, zeros="packed").model(3, level=level)).agrees


@pytest.mark.parametrize("level", [0, 4])
def test_a_wrong_shift_is_seen(level, monkeypatch):
    """Numbers are taken out of words one bit further up."""
    right = Printer._index

    def wrong(printer, index, dtype, scope):
        return right(printer, index + 1 if dtype.kind == "u" else index, dtype, scope)

    monkeypatch.setattr(Printer, "_index", wrong)
    assert not exactly(Weights(48, 21, block=16).model(3, level=level)).agrees


@pytest.mark.cuda
def test_on_a_gpu():
    """Weights are restored there, and the numbers are those of floats at any level."""
    weights, x = Weights(70, 33, zeros="packed"), draw(3, 70)
    emulated = replace(options_from_environment(), emulated=True)
    y = polyc.compile(weights.model(3, level=4), target="cuda:sm_80", options=emulated)(x)
    assert_near(y, x.astype(np.float64) @ weights.restored(), FLOATS)
