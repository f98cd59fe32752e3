"""The nine networks that the onnx package ships, with random weights in place of constant ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from bench.zoo.network import Example
from polyc.commands.demo import fill_weights


def light_files() -> dict[str, Path]:
    """{"resnet50": …/light_resnet50.onnx, …}; empty if the package does not hold them."""
    folder = Path(onnx.__file__).parent / "backend/test/data/light"
    return {f.stem.removeprefix("light_"): f for f in sorted(folder.glob("light_*.onnx"))}


def light(file: Path, seed: int = 0) -> Example:
    """A network of `light_files` up to its logits, and a random picture.

    The last Softmax goes: it flattens random logits, and would hide a wrong one.
    """
    model = fill_weights(onnx.load(file), seed)
    nodes, output = model.graph.node, model.graph.output[0]
    if nodes[-1].op_type == "Softmax" and nodes[-1].output[0] == output.name:
        output.name = nodes.pop().input[0]
    onnx.checker.check_model(model)
    generator = np.random.default_rng(seed)
    feeds = {
        i.name: generator.standard_normal(
            [d.dim_value for d in i.type.tensor_type.shape.dim], np.float32
        )
        for i in model.graph.input
    }
    return Example(model, feeds)
