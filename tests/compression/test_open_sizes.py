"""Models of any length, smaller: they stay of any length, also in other engines."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
import onnxruntime
import pytest

import polyc
from bench.zoo.gpt2 import Gpt2, gpt2
from polyc.run.reference import relative_error
from tests.sampling import thorough

SIZES = Gpt2(layers=1, heads=2, width=32, vocabulary=50, positions=64)
LENGTHS = ((3, 1), (1, 5), (7, 2))
"""Tokens of a call and tokens before it."""

COMPRESSED = {
    "4 bits": lambda model: polyc.quantise_weights(model),
    "bytes": lambda model: polyc.quantise(model, [feeds(*at) for at in LENGTHS], threads=1),
    "pruned": lambda model: polyc.prune(model, 0.1),
}


@cache
def model() -> onnx.ModelProto:
    return gpt2(SIZES).model


def feeds(tokens: int, past: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(tokens)
    row = 1, SIZES.heads, past, SIZES.width // SIZES.heads
    cache = {name: random.standard_normal(row, np.float32) for name in SIZES.states}
    return {"input_ids": random.integers(0, SIZES.vocabulary, (1, tokens)), **cache}


def logits(proto: onnx.ModelProto, at: tuple[int, int]) -> np.ndarray:
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return np.asarray(session.run(["logits"], feeds(*at))[0])


@pytest.mark.parametrize("how", ["4 bits", thorough("bytes"), "pruned"])
def test_a_decoder_of_any_length(how):
    small = COMPRESSED[how](model())
    onnx.checker.check_model(small)
    compiled = polyc.compile(small, target="cpu", threads=1)
    for at in LENGTHS:
        wanted, theirs = logits(model(), at), logits(small, at)
        ours = compiled.run(feeds(*at))["logits"]
        assert ours.shape == theirs.shape == wanted.shape
        assert relative_error(ours, wanted) < 0.2
        # Where bytes are rounded, another order of a float sum may give the next one.
        assert relative_error(ours, theirs) < (0.05 if how == "bytes" else 1e-5)
