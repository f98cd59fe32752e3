"""Contractions on tensor cores: results, layouts of fragments, banks, races and resources."""

from __future__ import annotations

import shutil
from pathlib import Path

import islpy as isl
import ml_dtypes
import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.api import CompiledModel
from polyc.mapping.cuda.contraction import choose_shape
from polyc.mapping.cuda.tiles import Shape
from polyc.mapping.cuda.warp_tiles import BF16, F16, TF32, list_warp_shapes
from polyc.target.cuda import CudaTarget
from polyc.types.element_types import BFLOAT16, FLOAT16, FLOAT32
from tests.cuda import emulated as emulator
from tests.cuda.emulated import COUNTS, RACES
from tests.cuda.models import compile_model
from tests.programs import options

SM_80 = CudaTarget.named("sm_80")


INSTRUCTIONS = {FLOAT32: TF32, FLOAT16: F16, BFLOAT16: BF16}
TYPES = pytest.mark.parametrize("dtype", INSTRUCTIONS, ids=str)


def normal(*shape: int, dtype: np.dtype = FLOAT32) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    return rng.standard_normal(shape, dtype=np.float32).astype(dtype)


def build(graph: Graph, folder: Path, emulated: bool) -> CompiledModel:
    chosen = options(folder, emulated=emulated, tf32=True)
    return polyc.compile(graph, target="cuda", options=chosen)


def factor(x: np.ndarray) -> np.ndarray:
    """What an instruction multiplies, as float64: tf32, ties away from zero, for float32."""
    if x.dtype != FLOAT32:
        return x.astype(np.float64)
    bits = (x.view(np.uint32) + 0x1000) & 0xFFFFE000
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("batch", "rows", "columns", "depth"),
    [((), 128, 64, 64), ((), 37, 53, 29), ((3,), 33, 66, 17), ((), 130, 131, 40)],
    ids=str,
)
@pytest.mark.parametrize("transposed", ["", "a", "b", "ab"])
@TYPES
def test_products_with_epilogues(
    batch, rows, columns, depth, transposed, dtype, tmp_path, emulated
):
    left, right, residual, bias = (
        normal(*shape, dtype=dtype)
        for shape in (
            (*batch, rows, depth),
            (*batch, depth, columns),
            (*batch, rows, columns),
            (columns,),
        )
    )

    def operand(name: str, value: np.ndarray) -> tuple[ops.Tensor, np.ndarray]:
        if name not in transposed:
            return ops.input(name, value.shape, dtype), value
        last = (*range(value.ndim - 2), value.ndim - 1, value.ndim - 2)
        stored = np.ascontiguousarray(value.transpose(last))
        return ops.transpose(ops.input(name, stored.shape, dtype), last), stored

    (a, given), (b, also) = operand("a", left), operand("b", right)
    y = ops.relu(a @ b + bias) + ops.input("r", residual.shape, dtype)
    model = build(Graph.of(y=y), tmp_path, emulated)
    feeds = {"a": given, "b": also, "r": residual}
    wanted = np.maximum(factor(left) @ factor(right) + bias, 0) + residual
    result = model(*(feeds[spec.name] for spec in model.inputs)).astype(np.float64)
    step = 0 if dtype == FLOAT32 else float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(result, wanted, atol=2e-5, rtol=step)
    (kernel,) = model.explain().kernels
    assert INSTRUCTIONS[dtype].name in kernel.schedule
    assert "barrier" in kernel.proof


@pytest.mark.thorough
@TYPES
def test_what_is_multiplied_is_stored_in_its_own_type(dtype, tmp_path):
    """Weights and intermediate results reach the tensor cores without a conversion."""
    x, w = ops.input("x", (64, 64), dtype), normal(64, 64, dtype=dtype)
    model = build(Graph.of(y=ops.relu(x + 1.0) @ w), tmp_path, True)
    *_, product = model.explain().kernels
    assert INSTRUCTIONS[dtype].name in product.schedule
    data = normal(64, 64, dtype=dtype)
    middle = np.maximum(data.astype(np.float64) + 1, 0).astype(dtype)
    wanted = factor(middle) @ factor(w)
    eps = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(model(data).astype(np.float64), wanted, rtol=eps, atol=2e-5)


def test_float32_stays_float32_unless_asked(tmp_path):
    graph = Graph.of(y=ops.input("a", (64, 64)) @ ops.input("b", (64, 64)))
    model = polyc.compile(graph, target="cuda", options=options(tmp_path, emulated=True))
    assert "mma" not in model.source


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "pad", "group"),
    [(23, 7, 2, 3, 1), (14, 3, 1, 1, 1), (7, 1, 1, 0, 1), (14, 3, 1, 1, 4)],
    ids=str,
)
@TYPES
def test_convolutions(size, kernel, stride, pad, group, dtype, tmp_path, emulated):
    weights, bias = normal(32, 16 // group, kernel, kernel, dtype=dtype), normal(32, dtype=dtype)
    x = ops.input("x", (2, 16, size, size), dtype)
    y = ops.conv(x, weights, bias, strides=[stride] * 2, pads=[pad] * 4, group=group)
    graph = Graph.of(y=ops.relu(y))
    model = build(graph, tmp_path, emulated)
    plain = polyc.compile(graph, options=options(tmp_path, minimal_filtering=False))
    data = normal(2, 16, size, size, dtype=dtype)
    wanted, result = plain(data).astype(np.float64), model(data).astype(np.float64)
    np.testing.assert_allclose(result, wanted, atol=4e-3 * np.abs(wanted).max())
    assert any("mma" in kernel.schedule for kernel in model.explain().kernels)


def threads_apart(shape: Shape) -> dict[str, int]:
    """How many threads lie between two values of each digit, as `warp` and `thread` have it."""
    found = {}
    for digits, apart in ((shape.lanes, 1), (shape.warps, 32)):
        for digit in reversed(digits):
            found[digit] = apart
            apart *= shape.tile.counts[digit]
    return found


@pytest.mark.parametrize(
    "shape",
    [s for kind in (TF32, BF16) for s in list_warp_shapes(kind)],
    ids=lambda s: f"{s.tile} by {s.instruction.name}",
)
def test_lanes_and_registers_have_each_result_once(shape):
    """The layout of the instruction's sums, {lane, register} <-> {row, column}, a bijection."""
    rows, columns = shape.tile.rows, shape.tile.columns
    names = (*rows.names, *columns.names)
    bounds = " and ".join(f"0 <= {n} < {shape.tile.counts[n]}" for n in names)
    lane = " + ".join(f"{n}*{digit}" for digit, n in threads_apart(shape).items())

    def layout(registers: str, condition: str) -> isl.Map:
        """# [lane, register…] -> [row, column]"""
        space, holds = ", ".join(names), f"{bounds} and {condition}"
        held = isl.Map(f"{{ [{space}] -> [{lane}, {registers}] : {holds} }}")
        place = isl.Map(f"{{ [{space}] -> [{rows.formula}, {columns.formula}] : {holds} }}")
        return held.reverse().apply_range(place)

    whole = layout(", ".join(shape.own), "true")
    assert whole.is_bijective()
    tile = f"{{ [m, n] : 0 <= m < {rows.count} and 0 <= n < {columns.count} }}"
    assert whole.range().is_equal(isl.Set(tile))
    # PTX ISA, "Matrix Fragments for mma.m16n8k8": row g + 8 (r >> 1), column 2t + (r & 1)
    one = layout("2*im + jn", "wm = 0 and wn = 0 and am = 0 and an = 0")
    wanted = "[l, r] -> [floor(l/4) + 8*floor(r/2), 2*(l mod 4) + (r mod 2)]"
    assert one.is_equal(isl.Map(f"{{ {wanted} : 0 <= l < 32 and 0 <= r < 4 }}"))


@pytest.mark.thorough
@pytest.mark.cuda
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize(
    ("arch", "dtype", "tf32", "words"),
    [
        ("sm_80", FLOAT32, False, "as rm 2 wm 4 lm 2 pm 2 im 4 by j as rn 4 "),
        ("sm_80", FLOAT32, True, "mma.m16n8k8.tf32"),
        ("sm_90", BFLOAT16, False, "mma.m16n8k16.bf16"),
        ("sm_90a", FLOAT16, False, "wgmma.m64k16.f16"),
    ],
)
def test_registers_are_enough(arch, dtype, tf32, words, tmp_path):
    a, b, bias = (
        ops.input(n, s, dtype) for n, s in (("a", (4096,) * 2), ("b", (4096,) * 2), ("c", (4096,)))
    )
    graph = Graph.of(y=ops.relu(a @ b + bias))
    model = polyc.compile(graph, target=f"cuda:{arch}", options=options(tmp_path, tf32=tf32))
    (kernel,) = model.explain().kernels
    assert words in kernel.schedule
    (function,) = kernel.functions
    assert function.spilled == 0
    assert 0 < function.registers <= 255
    limit = CudaTarget.named(arch).shared_per_block
    assert 32 * 1024 < function.shared <= limit


def test_large_products_take_large_tiles():
    tiles = [choose_shape((1, n, n, n), SM_80, TF32).tile for n in (64, 1024, 4096)]
    sizes = [tile.rows.count * tile.columns.count for tile in tiles]
    assert sizes == sorted(sizes)
    assert sizes[-1] >= 128 * 128


PRODUCTS = {
    "as it lies": lambda t: ops.input("a", (64, 64), t) @ ops.input("b", (64, 96), t),
    "both transposed": lambda t: (
        ops.transpose(ops.input("a", (64, 64), t), (1, 0))
        @ ops.transpose(ops.input("b", (96, 64), t), (1, 0))
    ),
}


@pytest.mark.thorough
@pytest.mark.cuda
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", [*INSTRUCTIONS, None], ids=str)
def test_no_two_lanes_meet_in_a_bank(name, dtype, tmp_path):
    """Of products by tensor cores, and of those of float32 by threads."""
    if not emulator.has_sanitizers(COUNTS):
        pytest.skip("g++ has no sanitizers here")
    tf32, dtype = dtype is not None, dtype or FLOAT32
    model = compile_model(Graph.of(y=PRODUCTS[name](dtype)), tf32=tf32)
    inputs = model.compiled.program.inputs
    feeds = [normal(*map(int, spec.shape), dtype=dtype) for spec, _ in inputs]
    outcome = emulator.run(
        emulator.build(model.text, tmp_path, COUNTS), model.buffers(feeds), workspace=64
    )
    assert not outcome.found, outcome.report
    shared = {k: v for k, v in outcome.counts.items() if k[1] != "global"}
    assert len(shared) == 2
    for (_, array), (accesses, parts, least) in shared.items():
        assert accesses, array
        assert parts == least, array


@pytest.mark.cuda
def test_no_races(tmp_path):
    if not emulator.has_sanitizers(RACES):
        pytest.skip("g++ has no sanitizers here")
    model = compile_model(
        Graph.of(y=ops.input("a", (40, 40)) @ ops.input("b", (40, 36))), tf32=True
    )
    feeds = [normal(40, 40), normal(40, 36)]
    outcome = emulator.run(
        emulator.build(model.text, tmp_path, RACES), model.buffers(feeds), workspace=64
    )
    assert not outcome.found, outcome.report
