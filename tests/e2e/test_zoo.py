"""The networks of bench/zoo, two layers each and on odd sizes, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

import polyc
from bench.zoo.bert import Bert, bert
from bench.zoo.convnext import ConvNext, convnext
from bench.zoo.mobilenet import MobileNet, Stage, mobilenet
from bench.zoo.network import Example
from bench.zoo.vit import Vit, vit
from polyc.commands.demo import judged
from polyc.commands.verify import LIMITS, relative_error
from tests.programs import options

pytest.importorskip("onnxruntime")

BERT = Bert(tokens=11, layers=2, heads=3, width=36, inner=70, vocabulary=50)
VIT = Vit(pixels=24, patch=8, layers=2, heads=2, width=20, inner=42, classes=7)
MOBILENET = MobileNet(37, 8, (Stage(1, 6, 1, 1), Stage(6, 10, 2, 2)), 22, 9)
CONVNEXT = ConvNext(pixels=36, depths=(1, 2), widths=(12, 22), classes=5)

SMALL: Mapping[str, Callable[[], Example]] = {
    "bert": lambda: bert(BERT),
    "bert, norms in nodes": lambda: bert(BERT, fused_norms=False),
    "vit": lambda: vit(VIT),
    "vit, norms in nodes": lambda: vit(VIT, fused_norms=False),
    "mobilenet": lambda: mobilenet(MOBILENET),
    "convnext": lambda: convnext(CONVNEXT),
    "convnext, norms in nodes": lambda: convnext(CONVNEXT, fused_norms=False),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_networks_agree_with_onnxruntime(tmp_path, name):
    example = SMALL[name]()
    compiled = polyc.compile(example.model, options=options(tmp_path))
    ours = compiled.run(example.feeds)
    _, expected = judged(example.model, example.feeds)
    assert set(ours) == set(expected)
    errors = {n: relative_error(ours[n], value) for n, value in expected.items()}
    assert max(errors.values()) <= LIMITS["float32"], errors
