"""The networks of bench/zoo, two layers each and on odd sizes, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

import polyc
from bench.zoo.bert import Bert, bert
from bench.zoo.convnext import ConvNext, convnext
from bench.zoo.gpt2 import Gpt2, gpt2
from bench.zoo.mobilenet import MobileNet, Stage, mobilenet
from bench.zoo.network import Example
from bench.zoo.vit import Vit, vit
from polyc.commands.demo import judged
from polyc.run.reference import LIMITS, relative_error
from tests.programs import options

pytest.importorskip("onnxruntime")

BERT = Bert(tokens=11, layers=2, heads=3, width=36, inner=70, vocabulary=50)
VIT = Vit(pixels=24, patch=8, layers=2, heads=2, width=20, inner=42, classes=7)
MOBILENET = MobileNet(37, 8, (Stage(1, 6, 1, 1), Stage(6, 10, 2, 2)), 22, 9)
GPT2 = Gpt2(tokens=3, past=7, layers=2, heads=3, width=24, vocabulary=50, positions=40)
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


@pytest.mark.thorough
@pytest.mark.parametrize("name", SMALL)
def test_small_networks_agree_with_onnxruntime(tmp_path, name):
    example = SMALL[name]()
    compiled = polyc.compile(example.model, options=options(tmp_path))
    ours = compiled.run(example.feeds)
    _, expected = judged(example.model, example.feeds)
    assert set(ours) == set(expected)
    errors = {n: relative_error(ours[n], value) for n, value in expected.items()}
    assert max(errors.values()) <= LIMITS["float32"], errors


@pytest.mark.thorough
def test_a_small_decoder_goes_on_from_its_own_states(tmp_path):
    """A prompt, then token by token; the reference is given what it returned."""
    example = gpt2(GPT2)
    model = polyc.compile(
        example.model, options=options(tmp_path), state=GPT2.states,
        dims={"past": (0, GPT2.positions), "tokens": (1, GPT2.positions)}, hint={"tokens": 1},
    )  # fmt: skip
    assert all(state.in_place for state in model.states)
    session = model.start()
    past = {name: example.feeds[name][:, :, :0] for name in GPT2.states}
    for step in range(5):
        ids = example.feeds["input_ids"] if step == 0 else np.array([[7 * step]])
        _, expected = judged(example.model, {"input_ids": ids, **past})
        past = {given: expected[result] for given, result in GPT2.states.items()}
        assert relative_error(session(ids), expected["logits"]) <= LIMITS["float32"]
    for name, value in session.state.items():
        assert relative_error(value, past[name]) <= LIMITS["float32"]
