"""Compiled Winograd convolutions: values, what is fused into their transforms, and registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.options import Options
from polyc.pipeline import Compiled, run_pipeline
from polyc.run.cpu_model import CpuModel
from polyc.target.machine import Target, detect_target
from polyc.trace import make_trace
from tests.correlate import correlate
from tests.e2e.compare import find_difference
from tests.e2e.graph_builder import GraphBuilder, Value
from tests.sampling import thorough

RNG = np.random.default_rng(0)
POOL = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


class Builder(GraphBuilder):
    """Adds operators whose outputs are compared with a tolerance."""

    def one(self, op: str, *inputs: Value | None, **attributes: object) -> Value:
        return self.node(op, inputs, exact=False, **attributes)[0]

    def conv(
        self,
        x: Value,
        filters: int,
        kernel: Sequence[int],
        pads: Sequence[int],
        bias: bool = True,
        group: int = 1,
    ) -> Value:
        """A convolution whose outputs are about as large as its inputs."""
        channels = x.shape[1] // group
        size = channels * int(np.prod(kernel))
        w = self.constant(normal(filters, channels, *kernel) / np.float32(np.sqrt(size)))
        shift = self.constant(normal(filters)) if bias else None
        return self.one("Conv", x, w, shift, pads=pads, group=group)


def residual_block(late: bool = False) -> tuple[Builder, Value]:
    """conv, relu, conv, add, relu, max-pool; `late`: the other operand is a later convolution's."""
    b = Builder("residual")
    x = b.input(normal(1, 24, 13, 15))
    first = b.one("Relu", b.conv(x, 24, [3, 3], [1] * 4))
    second = b.conv(first, 24, [3, 3], [1] * 4)
    other = b.conv(x, 24, [1, 1], [0] * 4) if late else x
    return b, b.one("MaxPool", b.one("Relu", b.one("Add", second, other)), **POOL)


def many_forms() -> tuple[Builder, list[Value]]:
    """Kernels of one, two and three dimensions, each on an input of its own."""
    b = Builder("forms")
    signal = b.conv(b.input(normal(1, 64, 203)), 48, [3], [2, 0])
    large = b.conv(b.input(normal(2, 16, 17, 14)), 40, [5, 5], [2, 1, 2, 3], bias=False)
    rows = b.conv(b.input(normal(1, 48, 19, 21)), 48, [1, 3], [0, 1, 0, 1])
    columns = b.one("Sigmoid", b.conv(rows, 40, [3, 1], [1, 0, 1, 0]))
    small = b.one("Clip", b.conv(b.input(normal(2, 40, 14, 15)), 33, [2, 2], [1, 0, 0, 1]))
    volume = b.conv(b.input(normal(1, 16, 5, 9, 10)), 16, [1, 3, 3], [0, 1, 1, 0, 1, 1])
    groups = b.conv(b.input(normal(1, 96, 13, 11)), 60, [5, 5], [2, 2, 2, 2], group=3)
    others = [b.one("LeakyRelu", large), b.one("Relu", volume), b.one("Relu", groups)]
    return b, [signal, columns, small, *others]


@cache
def compiled_block(late: bool, minimal_filtering: bool = True) -> tuple[Builder, Compiled]:
    """A residual block as C text for AVX-512."""
    b, y = residual_block(late)
    options = Options(minimal_filtering=minimal_filtering)
    target = Target.named("avx512")
    return b, run_pipeline(b.model([y]), target, options, make_trace(options))


@pytest.mark.thorough
@pytest.mark.parametrize("threads", [1, 2])
def test_a_residual_block_with_a_pool(threads: int) -> None:
    b, y = residual_block()
    compiled = polyc.compile(b.model([y]), threads=threads)
    assert compiled.source.count("_minimal") >= 2
    result = compiled.run(b.feeds)[y.name]
    assert find_difference(result, y.array, atol=1e-5) is None


@pytest.mark.thorough
def test_many_forms() -> None:
    b, outputs = many_forms()
    compiled = polyc.compile(b.model(outputs), threads=2)
    for constant in [n.input[1] for n in b.nodes if n.op_type == "Conv"]:
        assert f"{constant}_minimal" in compiled.source
    results = compiled.run(b.feeds)
    for y in outputs:
        assert find_difference(results[y.name], y.array, atol=1e-5) is None


@pytest.mark.thorough
@pytest.mark.parametrize("late", [False, True])
def test_the_epilogue_is_in_the_output_transform(late: bool) -> None:
    b, compiled = compiled_block(late)
    names = {n.op_type: n.name for n in b.nodes if n.op_type in ("Add", "MaxPool")}
    (launch,) = [one for one in compiled.program.launches if names["Add"] in one.origin]
    operators = {n.name: n.op_type for n in b.nodes}
    assert {operators.get(name) for name in launch.origin} >= {"Conv", "Add", "Relu"}
    assert f"{names['MaxPool']}.pad" in launch.origin
    schedules = {row.name: row.schedule for row in compiled.rows}
    assert "unroll e1 e0" in schedules[launch.kernel]
    for one in compiled.program.launches:  # none is pointwise alone
        assert {operators.get(name) for name in one.origin} - {"Add", "Relu"}


def test_what_the_stages_of_a_transform_exchange_is_in_registers() -> None:
    _, compiled = compiled_block(False)
    transforms = [row.name for row in compiled.rows if "unroll e1 e0" in row.schedule]
    # Not that of the model's input, which the caller has laid out channel by channel.
    assert len(transforms) == 3
    for name in transforms:
        source = compiled.sources[f"{name}.c"]
        assert "f32x16 " in source
        assert "aligned" not in source


def test_switched_off() -> None:
    _, compiled = compiled_block(False, minimal_filtering=False)
    sources = "".join(compiled.sources.values())
    assert "_minimal" not in sources
    assert "transform" not in sources


@pytest.mark.parametrize(
    ("spatial", "kernel"),
    [
        thorough(("w",), [3]),
        (("h", "w"), [3, 3]),
        thorough((7, "w"), [5, 5]),
        thorough(("h", 6), [2, 2]),
        thorough((9, 5), [3, 3]),
        thorough(("h", 4, "w"), [1, 3, 3]),
    ],
    ids=str,
)
def test_images_of_any_size(
    tmp_path: Path, spatial: tuple[int | str, ...], kernel: list[int]
) -> None:
    """Compiled once for any batch; the last tile is cut off where a side is no multiple of it."""
    w, bias = normal(32, 32, *kernel), normal(32)
    pads = [*(r // 2 for r in kernel), *((r - 1) // 2 for r in kernel)]
    y = ops.relu(ops.conv(ops.input("x", ("n", 32, *spatial)), w, bias, pads=pads))
    model = polyc.compile(Graph.of(y=y), options=Options(cache_dir=tmp_path, threads=2))
    assert type(model) is CpuModel
    assert "_minimal" in model.source
    for sizes in ((1, 1, 1), (2, 5, 6), (3, 8, 13), (1, 9, 4)):
        known = dict(zip("nhw", sizes, strict=True))
        x = normal(known["n"], 32, *(known[d] if isinstance(d, str) else d for d in spatial))
        wanted = np.maximum(correlate(x, w, bias, pads), 0)
        assert np.abs(model(x) - wanted).max() <= 2e-5 * np.abs(wanted).max(), sizes


@pytest.mark.parametrize(
    ("spatial", "minimal"), [((20, 23), True), (("h", "w"), False)], ids=["fixed", "open"]
)
def test_windows_with_gaps(tmp_path: Path, spatial: tuple[int | str, ...], minimal: bool) -> None:
    """In any batch phase by phase; directly where tiles of phases would be sizes of their own."""
    w, bias, window = normal(48, 48, 3, 3), normal(48), {"pads": [2, 3] * 2, "dilations": [2, 3]}
    y = ops.relu(ops.conv(ops.input("x", ("n", 48, *spatial)), w, bias, **window))
    model = polyc.compile(Graph.of(y=y), options=Options(cache_dir=tmp_path, threads=2))
    assert ("_minimal" in model.source) == minimal
    for n in (1, 3):
        x = normal(n, 48, 20, 23)
        wanted = np.maximum(correlate(x, w, bias, **window), 0)
        assert np.abs(model(x) - wanted).max() <= 2e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("threads", [1, thorough(2)])
def test_what_large_images_are_transformed_to_stays_in_the_cache(threads: int) -> None:
    """Both transforms and the products run row by row of tiles, on a CPU with small caches."""
    b = Builder("large")
    x = b.input(normal(2, 24, 117, 130))
    y = b.one("Relu", b.conv(x, 20, [3, 3], [1] * 4))
    small = replace(detect_target(), l2=128 << 10, l3=256 << 10)
    compiled = polyc.compile(b.model([y]), target=small, threads=threads)
    (fused,) = [text for text in compiled.schedules.values() if text.startswith("fuse")]
    conv = b.nodes[0].output[0]
    assert f"keep {conv}_inputs {conv}_products in stack" in fused
    assert find_difference(compiled.run(b.feeds)[y.name], y.array, atol=1e-5) is None
