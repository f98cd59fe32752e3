"""Networks of a few layers on odd sizes, on the emulator and on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import polyc
from polyc.commands.demo import judged
from polyc.run.reference import LIMITS, relative_error
from tests import networks
from tests.e2e.compare import find_difference
from tests.e2e.test_zoo import SMALL
from tests.programs import options

MINIATURES = (
    networks.resnet,
    networks.inception,
    networks.densenet,
    networks.mobilenet,
    networks.transformer,
)


@pytest.mark.thorough
@pytest.mark.parametrize("build", MINIATURES, ids=lambda n: n.__name__)
def test_miniatures(tmp_path, emulated, build):
    graph = build()
    chosen = options(tmp_path, emulated=emulated)
    model = polyc.compile(graph, target="cuda", options=chosen)
    feeds = networks.feeds(graph)
    fault = find_difference(model.run(feeds)["y"], networks.reference(graph), 1e-4, 1e-5)
    assert fault is None, fault
    (x,) = (model.to_device(feeds[s.name]) for s in model.inputs)
    captured = model.capture(x)
    np.testing.assert_array_equal(captured.replay()[0].numpy(), model(x).numpy())


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["bert", "vit", "convnext, norms in nodes"])
def test_small_networks_agree_with_onnxruntime(tmp_path, emulated, name):
    pytest.importorskip("onnxruntime")
    example = SMALL[name]()
    chosen = options(tmp_path, emulated=emulated)
    ours = polyc.compile(example.model, target="cuda", options=chosen).run(example.feeds)
    _, expected = judged(example.model, example.feeds)
    errors = {n: relative_error(ours[n], value) for n, value in expected.items()}
    assert max(errors.values()) <= LIMITS["float32"], errors
