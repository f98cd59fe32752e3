"""Sizes as the command line says them."""

import numpy as np
import pytest

from polyc.commands.sizes import parse_sizes
from polyc.errors import InvalidModel
from polyc.run.feeds import random_feeds
from polyc.types.ranges import SizeRange
from polyc.types.spec import TensorSpec


def test_what_is_said():
    assert parse_sizes(["batch=1", "seq=1:512:128", "a=b=2:3"]) == {
        "dims": {"batch": 1, "seq": (1, 512), "a=b": (2, 3)},
        "hint": {"seq": 128},
    }
    assert parse_sizes(["all=past + seq"]) == {"dims": {"all": "past + seq"}, "hint": {}}
    assert parse_sizes(None) == {"dims": {}, "hint": {}}


@pytest.mark.parametrize("text", ["seq", "seq=", "=3", "seq=a", "seq=1:2:3:4", "seq=-1"])
def test_what_makes_no_sense(text):
    with pytest.raises(InvalidModel, match="--size"):
        parse_sizes([text])


def test_random_inputs_are_as_large_as_the_hint():
    specs = [TensorSpec("x", np.dtype("f4"), ("n", 3)), TensorSpec("y", np.dtype("f4"), ("m",))]
    feeds = random_feeds(specs, 0, [SizeRange("n", 1, None, 7)])
    assert (feeds["x"].shape, feeds["y"].shape) == ((7, 3), (128,))
