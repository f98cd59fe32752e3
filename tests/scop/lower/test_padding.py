"""The shared padded array against np.pad."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.graph.ir import Graph, Node, Tensor
from polyc.scop.lower.context import Lowering
from polyc.scop.lower.movement.padding import padded
from polyc.scop.lower.space import Ref
from polyc.scop.scop import Scop
from tests.scop.interpreter import interpret

F4 = np.dtype("f4")
READER = Node("reader", "Other", ("x",), ("y",))
POOL = {"kernel_shape": [3], "strides": [1]}


def start(x: np.ndarray, *readers: Node) -> tuple[Lowering, Ref]:
    """The lowering of a graph whose input x the given nodes read."""
    tensors = {"x": Tensor("x", x.dtype, x.shape)}
    tensors |= {n.outputs[0]: Tensor(n.outputs[0], x.dtype, x.shape) for n in readers}
    ctx = Lowering(Graph("g", readers, tensors, ("x",), ()))
    ref = ctx.array("x", x.dtype, x.shape, "input")
    ctx.bind("x", ref)
    return ctx, ref


def run(ctx: Lowering, ref: Ref, x: np.ndarray) -> np.ndarray:
    """The value of a view, copied into an output."""
    out = ctx.array("out", ref.dtype, ref.shape, "output")
    ctx.copy(READER, ref, out)
    scop: Scop = ctx.freeze("g", ("x",), (out.array,))
    return interpret(scop, {"x": x})[out.array]


extents = st.tuples(st.integers(0, 3), st.integers(-1, 2), st.integers(-1, 2)).filter(
    lambda d: d[0] + min(d[1], 0) + min(d[2], 0) >= 0
)


@settings(max_examples=25, deadline=None)
@given(st.lists(extents, min_size=1, max_size=3))
def test_padded_is_np_pad(dimensions: list[tuple[int, int, int]]) -> None:
    shape, begin, end = ([d[k] for d in dimensions] for k in range(3))
    x = np.arange(np.prod(shape, dtype=int), dtype="f4").reshape(shape)
    crop = tuple(
        slice(max(-b, 0), n - max(-e, 0)) for n, b, e in zip(shape, begin, end, strict=True)
    )
    added = [(max(b, 0), max(e, 0)) for b, e in zip(begin, end, strict=True)]
    ctx, ref = start(x, READER)
    result = run(ctx, padded(ctx, READER, "x", ref, begin, end, 7), x)
    np.testing.assert_array_equal(result, np.pad(x[crop], added, constant_values=7))


@pytest.mark.parametrize("fill", [np.nan, -np.inf, 0.0, 3])
def test_fill(fill: float) -> None:
    x = np.ones((2, 2), "f4")
    ctx, ref = start(x, READER)
    result = run(ctx, padded(ctx, READER, "x", ref, (1, 0), (0, 2), fill), x)
    np.testing.assert_array_equal(result, np.pad(x, ((1, 0), (0, 2)), constant_values=fill))


def test_cropping_copies_nothing() -> None:
    ctx, ref = start(np.ones((4, 4), "f4"), READER)
    view = padded(ctx, READER, "x", ref, (-1, 0), (0, -2), 0)
    assert view.array == "x"
    assert view.shape == (3, 2)
    assert not ctx.statements


def test_readers_of_one_fill_share_the_largest_frame() -> None:
    x = np.arange(6, dtype="f4").reshape(1, 1, 6)
    average = Node("a", "AveragePool", ("x",), ("y",), POOL | {"pads": [1, 1]})
    norm = Node("l", "LpPool", ("x",), ("z",), POOL | {"pads": [0, 2]})
    largest = Node("m", "MaxPool", ("x",), ("w",), POOL | {"pads": [2, 0]})
    ctx, ref = start(x, average, norm, largest)
    first = padded(ctx, average, "x", ref, (0, 0, 1), (0, 0, 1), 0)
    second = padded(ctx, norm, "x", ref, (0, 0, 0), (0, 0, 2), 0)
    third = padded(ctx, largest, "x", ref, (0, 0, 2), (0, 0, 0), -np.inf)
    assert first.array == second.array != third.array
    assert ctx.arrays[first.array].shape == (1, 1, 1 + 6 + 2)
    assert ctx.arrays[third.array].shape == (1, 1, 2 + 6)
    np.testing.assert_array_equal(run(ctx, second, x), np.pad(x, ((0, 0), (0, 0), (0, 2))))


def test_the_frame_is_written_once_and_in_full() -> None:
    x = np.ones((2, 3), "f4")
    ctx, ref = start(x, READER)
    view = padded(ctx, READER, "x", ref, (1, 2), (1, 0), 0)
    frame = [s for s in ctx.statements if s.array == view.array]
    points = sum(s.domain.count_val().to_python() for s in frame)
    assert points == 4 * 5
    assert all(s.domain.n_basic_set() == 1 for s in frame)
