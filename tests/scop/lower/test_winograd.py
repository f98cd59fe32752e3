"""Winograd's convolution as statements: values, rounding, special values, and when it is chosen."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from polyc.graph.ir import Graph, Node, Tensor
from polyc.scop.lower import lower_graph
from polyc.scop.lower.windows import window
from polyc.scop.lower.windows.choose_filters import CHANNELS, LARGEST_GROWTH, choose_filters
from polyc.scop.lower.windows.minimal_filter import (
    MinimalFilter,
    compute_growth,
    error_bound,
    minimal_filter,
)
from polyc.scop.scop import Scop
from tests.correlate import correlate
from tests.sampling import thorough
from tests.scop.interpreter import interpret

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


def conv_graph(x: np.ndarray, w: np.ndarray, bias: np.ndarray | None, **attributes: Any) -> Graph:
    """x, w constant, bias constant or absent."""
    shape = correlate(x, w, bias, **attributes).shape
    tensors = {
        "x": Tensor("x", x.dtype, x.shape),
        "w": Tensor("w", w.dtype, w.shape, w),
        "y": Tensor("y", x.dtype, shape),
    }
    if bias is not None:
        tensors["b"] = Tensor("b", bias.dtype, bias.shape, bias)
    inputs = ("x", "w") if bias is None else ("x", "w", "b")
    node = Node("conv", "Conv", inputs, ("y",), attributes)
    return Graph("conv", (node,), tensors, ("x",), ("y",))


def force(monkeypatch: pytest.MonkeyPatch, *ms: int) -> None:
    """Let every convolution that may use minimal filters use F(ms, kernel)."""

    def choose(*arguments: Any, **costs: float) -> tuple[MinimalFilter, ...]:
        kernel = arguments[4]
        return tuple(minimal_filter(m, r) for m, r in zip(ms, kernel, strict=True))

    monkeypatch.setattr(window, "choose_filters", choose)


def run(graph: Graph, x: np.ndarray) -> np.ndarray:
    scop = lower_graph(graph)
    assert is_minimal(scop)
    return interpret(scop, {"x": x})["y"]


def is_minimal(scop: Scop) -> bool:
    return any(a.name.endswith("_minimal") for a in scop.arrays.values())


CASES = [
    # F(m, r) along each dimension, batch, spatial size, pads
    ([(4, 3)], 1, [9], [1, 1]),
    ([(2, 5)], 3, [8], [0, 3]),
    ([(2, 3), (2, 3)], 1, [6, 6], [0, 0, 0, 0]),
    ([(4, 3), (4, 3)], 1, [7, 9], [1, 1, 1, 1]),
    ([(4, 3), (4, 3)], 3, [5, 6], [2, 0, 1, 3]),
    ([(4, 3), (4, 3)], 1, [3, 3], [0, 0, 0, 0]),
    ([(2, 5), (2, 5)], 2, [6, 7], [2, 2, 2, 2]),
    ([(1, 1), (4, 3)], 2, [3, 7], [0, 1, 0, 1]),
    ([(4, 3), (1, 1)], 1, [7, 3], [1, 0, 0, 0]),
    ([(5, 2), (3, 2)], 2, [6, 8], [1, 0, 0, 1]),
    ([(3, 4), (2, 3)], 1, [8, 5], [1, 1, 2, 1]),
    ([(2, 3), (4, 3), (3, 2)], 2, [4, 5, 4], [1, 1, 0, 1, 0, 1]),
    ([(1, 1), (2, 3), (2, 3)], 1, [2, 4, 3], [0, 1, 1, 0, 1, 1]),
]
GAPS = [
    # the same, and dilations
    ([(4, 3)], 2, [13], [2, 2], [2]),
    ([(2, 3), (4, 3)], 1, [8, 13], [2, 3, 2, 3], [2, 3]),
    ([(2, 3), (2, 3)], 2, [7, 6], [1, 4, 1, 4], [1, 4]),
    ([(4, 3), (1, 1)], 1, [9, 5], [5, 0, 5, 0], [5, 2]),
    ([(3, 2), (2, 3)], 1, [5, 9], [0, 0, 0, 0], [3, 2]),
]


@pytest.mark.parametrize("with_bias", [thorough(False), True])
@pytest.mark.parametrize(("sizes", "batch", "spatial", "pads"), CASES)
def test_equals_the_direct_sum(
    monkeypatch: pytest.MonkeyPatch,
    sizes: list[tuple[int, int]],
    batch: int,
    spatial: list[int],
    pads: list[int],
    with_bias: bool,
) -> None:
    force(monkeypatch, *(m for m, _ in sizes))
    for dtype, tolerance in (("f4", 1e-5), ("f8", 1e-13)):
        x = normal(batch, 2, *spatial).astype(dtype)
        w = normal(3, 2, *(r for _, r in sizes)).astype(dtype)
        bias = normal(3).astype(dtype) if with_bias else None
        wanted = correlate(x, w, bias, pads)
        result = run(conv_graph(x, w, bias, pads=pads), x)
        assert result.dtype == dtype
        np.testing.assert_allclose(result, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


@pytest.mark.parametrize(("sizes", "batch", "spatial", "pads", "dilations"), GAPS)
def test_a_window_with_gaps_is_one_of_each_phase(
    monkeypatch: pytest.MonkeyPatch,
    sizes: list[tuple[int, int]],
    batch: int,
    spatial: list[int],
    pads: list[int],
    dilations: list[int],
) -> None:
    force(monkeypatch, *(m for m, _ in sizes))
    x, bias = normal(batch, 2, *spatial), normal(3)
    w = normal(3, 2, *(r for _, r in sizes))
    wanted = correlate(x, w, bias, pads, dilations)
    result = run(conv_graph(x, w, bias, pads=pads, dilations=dilations), x)
    np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("channels", [16, thorough(128), 512])
@pytest.mark.parametrize(
    "sizes", [[(2, 3)] * 2, [(4, 3)] * 2, [(2, 5)] * 2, [(5, 2)] * 2, [(2, 3)] * 3]
)
def test_rounding(
    monkeypatch: pytest.MonkeyPatch, sizes: list[tuple[int, int]], channels: int
) -> None:
    filters = [minimal_filter(m, r) for m, r in sizes]
    force(monkeypatch, *(f.m for f in filters))
    x = normal(1, channels, *(f.n for f in filters))
    w = normal(3, channels, *(f.r for f in filters))
    wanted = correlate(x, w, None)
    error = np.abs(run(conv_graph(x, w, None), x) - wanted).max()
    largest = np.abs(x).max() * np.abs(w).max() * w[0].size
    assert 0 < error < error_bound(filters, channels) * largest
    assert error < 1e-4 * np.abs(wanted).max()


def test_weights_are_transformed_in_double_and_rounded_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    force(monkeypatch, 4, 2)
    x, w = normal(1, 2, 6, 4), normal(3, 2, 3, 3)
    (weights,) = [
        a for a in lower_graph(conv_graph(x, w, None)).arrays.values() if a.name == "w_minimal"
    ]
    g, h = (np.array(minimal_filter(m, 3).taps, float) for m in (4, 2))
    wanted = np.einsum("ar,bq,ocrq->aboc", g, h, w.astype("f8"))
    assert weights.shape == (6, 4, 3, 2)
    assert weights.value is not None
    np.testing.assert_array_max_ulp(weights.value, wanted.astype("f4"), 1)


@pytest.mark.parametrize("special", [np.nan, thorough(np.inf), thorough(-np.inf)])
def test_special_values_stay_in_the_tiles_that_read_them(
    monkeypatch: pytest.MonkeyPatch, special: float
) -> None:
    force(monkeypatch, 4, 2)
    w, pads = normal(2, 2, 3, 3), [1, 1, 1, 1]
    for place in product((0, 3, 4, 8), (0, 2, 9)):
        x = normal(1, 2, 9, 10)
        x[(0, 1, *place)] = special
        with np.errstate(invalid="ignore"):
            direct = correlate(x, w, None, pads)
        result = run(conv_graph(x, w, None, pads=pads), x)
        reached = ~np.isfinite(direct)
        assert reached.any()
        assert not np.isfinite(result[reached]).any()
        # tiles of 6 x 4 inputs, 4 x 2 apart, the first one starting in the padding
        read = [
            (m * (np.arange(size) // m) <= at + 1) & (at + 1 < m * (np.arange(size) // m) + m + 2)
            for size, at, m in zip((9, 10), place, (4, 2), strict=True)
        ]
        tiles = np.broadcast_to(np.logical_and.outer(*read), result.shape)
        assert (reached <= tiles).all()
        assert np.isfinite(result[~tiles]).all()
        np.testing.assert_allclose(result[~tiles], direct[~tiles], rtol=1e-4, atol=1e-4)


def test_the_transforms_are_groups_around_a_matrix_product(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    force(monkeypatch, 4, 4)
    scop = lower_graph(conv_graph(normal(2, 2, 9, 9), normal(3, 2, 3, 3), normal(3)))
    groups = dict.fromkeys(s.group for s in scop.statements if s.group)
    assert [g.shared for g in groups] == [("n", "t0", "t1", "c"), ("n", "t0", "t1", "o")]
    members = [[s for s in scop.statements if s.group == g] for g in groups]
    assert [len(m) for m in members] == [6 + 6, 4 + 4]
    for group, statements in zip(groups, members, strict=True):
        assert all(s.iterators[:3] == group.shared[:3] for s in statements)
        assert all(s.iterators[-1] == group.shared[-1] for s in statements)
        assert not any(s.reduction for s in statements)
    update = next(s for s in scop.statements if s.reduction)
    assert update.iterators == ("e0", "e1", "t", "o", "c")
    assert update.group is None
    assert [load.array for load in update.loads] == ["y_inputs", "w_minimal"]


def test_a_dimension_of_one_tap_has_no_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, 1, 4)
    scop = lower_graph(conv_graph(normal(1, 2, 3, 9), normal(3, 2, 1, 3), None))
    assert len([s for s in scop.statements if s.group]) == 6 + 4
    update = next(s for s in scop.statements if s.reduction)
    assert update.iterators == ("e1", "t", "o", "c")


@pytest.mark.parametrize(
    ("channels", "filters", "kernel", "output"),
    [
        (CHANNELS - 1, 64, [3, 3], [56, 56]),
        (64, CHANNELS - 1, [3, 3], [56, 56]),
        (3, 64, [3, 3], [224, 224]),
        (64, 64, [1, 1], [56, 56]),
        (64, 64, [1], [56]),
        (64, 64, [7, 7], [56, 56]),
        (64, 64, [6, 1], [56, 56]),
        (64, 64, [3, 3], [0, 56]),
        (64, 64, [3, 3], [1, 1]),
    ],
)
def test_the_direct_form_stays(
    channels: int, filters: int, kernel: list[int], output: list[int]
) -> None:
    assert choose_filters(1, 1, channels, filters, kernel, output) is None


def test_an_empty_batch_has_no_tiles() -> None:
    assert choose_filters(0, 1, 64, 64, [3, 3], [56, 56]) is None


@pytest.mark.parametrize("kernel", [[3], [3, 3], [1, 3], [3, 1], [2, 2], [5, 5], [3] * 3, [2] * 3])
def test_chosen_where_it_pays(kernel: list[int]) -> None:
    output = [100] if len(kernel) == 1 else [20] * len(kernel)
    chosen = choose_filters(1, 1, 64, 64, kernel, output)
    assert chosen is not None
    assert [f.r for f in chosen] == kernel
    assert all((f.m == 1) == (f.r == 1) for f in chosen)
    assert compute_growth(chosen) <= LARGEST_GROWTH


def test_tiles_fit_the_image() -> None:
    chosen = [choose_filters(1, 1, 64, 64, [3, 3], [n, n]) for n in (1, 9, 56)]
    assert [f and [g.m for g in f] for f in chosen] == [None, [3, 3], [4, 4]]


def test_chosen_for_other_sizes_as_well() -> None:
    """Of those that take hardly longer, the filters that suit a half and twice the size."""
    layer = 1, 1, 256, 256, [3, 3], [14, 14]
    chosen = [choose_filters(*layer), choose_filters(*layer, others=([7, 7], [28, 28]))]
    assert [f and [g.m for g in f] for f in chosen] == [[4, 4], [3, 4]]


def test_what_suits_other_sizes_alone_is_not_chosen() -> None:
    """512 channels on 7 x 7 pixels: F(2, 3) is best on 4 x 4, and takes 1.25 times as long here."""
    layer = 1, 1, 512, 512, [3, 3], [7, 7]
    chosen = [choose_filters(*layer), choose_filters(*layer, others=([4, 4],))]
    assert [f and [g.m for g in f] for f in chosen] == [[2, 4], [2, 4]]


def test_switched_off() -> None:
    graph = conv_graph(normal(1, 64, 20, 20), normal(64, 64, 3, 3), None)
    assert is_minimal(lower_graph(graph))
    assert not is_minimal(lower_graph(graph, streamed=None))


@pytest.mark.parametrize("attributes", [{"strides": [2, 2]}, {"group": 16}, {"strides": [1, 2]}])
def test_only_for_dense_unit_stride(attributes: dict[str, Any]) -> None:
    x, w = normal(1, 64, 24, 24), normal(64, 64 // attributes.get("group", 1), 3, 3)
    step = attributes.get("strides", [1, 1])
    shape = (1, 64, *((24 - 3) // s + 1 for s in step))
    tensors = {
        "x": Tensor("x", x.dtype, x.shape),
        "w": Tensor("w", w.dtype, w.shape, w),
        "y": Tensor("y", x.dtype, shape),
    }
    node = Node("conv", "Conv", ("x", "w"), ("y",), attributes)
    assert not is_minimal(lower_graph(Graph("conv", (node,), tensors, ("x",), ("y",))))


def test_only_for_constant_weights() -> None:
    graph = conv_graph(normal(1, 64, 20, 20), normal(64, 64, 3, 3), None)
    tensors = {**graph.tensors, "w": Tensor("w", np.dtype("f4"), (64, 64, 3, 3))}
    fed = Graph("conv", graph.nodes, tensors, ("x", "w"), ("y",))
    assert not is_minimal(lower_graph(fed))


def test_convolutions_in_both_forms_share_one_padded_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One reads to the end of its last tile, the other only its own windows."""
    chosen = {3: (minimal_filter(4, 3), minimal_filter(4, 3)), 5: None}
    monkeypatch.setattr(window, "choose_filters", lambda *args, **_: chosen[args[4][0]])
    x, weights = normal(1, 2, 7, 7), {"small": normal(2, 2, 3, 3), "large": normal(2, 2, 5, 5)}
    pads = {"small": [1] * 4, "large": [2] * 4}
    tensors = {"x": Tensor("x", x.dtype, x.shape)}
    tensors |= {k: Tensor(k, w.dtype, w.shape, w) for k, w in weights.items()}
    tensors |= {f"y_{k}": Tensor(f"y_{k}", x.dtype, (1, 2, 7, 7)) for k in weights}
    nodes = tuple(Node(f"c_{k}", "Conv", ("x", k), (f"y_{k}",), {"pads": pads[k]}) for k in weights)
    scop = lower_graph(Graph("two", nodes, tensors, ("x",), ("y_small", "y_large")))
    assert is_minimal(scop)
    assert len([a for a in scop.arrays if "padded" in a]) == 1
    results = interpret(scop, {"x": x})
    for k, w in weights.items():
        wanted = correlate(x, w, None, pads[k])
        np.testing.assert_allclose(results[f"y_{k}"], wanted, rtol=1e-4, atol=1e-4)
