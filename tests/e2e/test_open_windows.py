"""Windows of open sizes with taps along a diagonal: tiles of rows, and what is left of them."""

import numpy as np
import pytest

from polyc import Options, compile
from polyc.graph.ir import Node
from tests.graph.simplify.conftest import build_graph, run_session
from tests.sampling import sampled

rng = np.random.default_rng(17)

WINDOWS = {
    "depthwise 3x3": ("Conv", 3, 1),
    "depthwise 5x5": ("Conv", 5, 1),
    "depthwise 7x7": ("Conv", 7, 1),
    "depthwise 3x3 by 2": ("Conv", 3, 2),
    "maximum 3x3": ("MaxPool", 3, 1),
    "maximum 3x3 by 2": ("MaxPool", 3, 2),
    "mean 3x3": ("AveragePool", 3, 1),
}


@pytest.mark.parametrize("name", sampled(WINDOWS, often=["depthwise 3x3", "maximum 3x3 by 2"]))
def test_any_number_of_rows(name):
    op, taps, stride = WINDOWS[name]
    channels, pad = 4, taps // 2
    attributes = {"kernel_shape": (taps,) * 2, "pads": (pad,) * 4, "strides": (stride,) * 2}
    inputs, constants = ("x",), {}
    if op == "Conv":
        inputs, attributes["group"] = ("x", "w"), channels
        weight = rng.standard_normal((channels, 1, taps, taps)).astype(np.float32)
        constants["w"] = weight
    node = Node("window", op, inputs, ("y",), attributes)
    graph = build_graph({"x": ("float32", ("n", channels, "h", "w"))}, [node], ["y"], **constants)
    model = compile(graph, options=Options(threads=2))
    sizes = [(h, w) for h in (1, 2, 5, 8, 9, 10, 17, 18, 19, 28) for w in (1, 15, 50)]
    for h, w in [*sizes, (57, 113)]:
        x = rng.standard_normal((2, channels, h, w)).astype(np.float32)
        (expected,) = run_session(graph, {"x": x})
        np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=1e-4)


def test_taps_run_along_a_diagonal():
    node = Node(
        "window",
        "MaxPool",
        ("x",),
        ("y",),
        {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)},
    )
    graph = build_graph({"x": ("float32", ("n", 64, "h", "w"))}, [node], ["y"])
    model = compile(graph)
    assert any("skew" in schedule for schedule in model.schedules.values())
    # No tile asks how many rows there are: all of it is in registers.
    assert "pc_min(" not in model.source.partition("/* ---- k0_")[2]
