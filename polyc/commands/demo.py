"""The demo's model: ResNet-50 as the onnx package ships it, with weights drawn at random.

The file has the real network, but every weight is one repeated number, to be small. Random weights
make a wrong index visible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from polyc.commands.verify import run_reference
from polyc.errors import InvalidModel

_FILE = "backend/test/data/light/light_resnet50.onnx"

# Inputs of BatchNormalization that must be positive: the scale, by choice, and the variance.
_POSITIVE = (1, 4)


def resnet50(seed: int = 0) -> onnx.ModelProto:
    """ResNet-50 for one 224 x 224 picture, with normal weights scaled by 1/sqrt(fan-in)."""
    file = Path(onnx.__file__).parent / _FILE
    if not file.is_file():
        raise InvalidModel(f"the onnx package lacks {_FILE}; install onnx 1.19 or newer")
    return fill_weights(onnx.load(file), seed)


def fill_weights(light: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """A light model with each ConstantOfShape replaced by an initializer of random values."""
    generator = np.random.default_rng(seed)
    shapes = {t.name: numpy_helper.to_array(t) for t in light.graph.initializer}
    positive = {
        node.input[k]
        for node in light.graph.node
        if node.op_type == "BatchNormalization"
        for k in _POSITIVE
    }
    model = onnx.ModelProto()
    model.CopyFrom(light)
    model.ir_version = 8  # from version 4 on, initializers need not be inputs
    graph = model.graph
    del graph.node[:], graph.initializer[:], graph.input[:]
    filled = set()
    for node in light.graph.node:
        if node.op_type != "ConstantOfShape":
            graph.node.append(node)
            continue
        name, shape = node.output[0], tuple(map(int, shapes[node.input[0]]))
        value = random_weight(shape, name in positive, generator)
        graph.initializer.append(numpy_helper.from_array(value, name))
        filled.add(node.input[0])
    graph.initializer.extend(t for t in light.graph.initializer if t.name not in filled)
    constants = {t.name for t in (*graph.initializer, *light.graph.initializer)}
    graph.input.extend(i for i in light.graph.input if i.name not in constants)
    return model


def random_weight(
    shape: tuple[int, ...], positive: bool, generator: np.random.Generator
) -> np.ndarray:
    """normal / sqrt(fan-in) for matrices and filters; about 1 or about 0 for vectors."""
    if positive:
        return generator.uniform(0.5, 1.5, shape).astype(np.float32)
    fan_in = math.prod(shape[1:]) if len(shape) > 1 else 100
    return (generator.standard_normal(shape) / math.sqrt(fan_in)).astype(np.float32)


def reference(model: onnx.ModelProto) -> tuple[str, Callable[[Mapping[str, np.ndarray]], object]]:
    """The judge's name, and feeds -> its first output: ONNX Runtime, or else onnx's evaluator."""
    try:
        import onnxruntime  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return "onnx's reference evaluator", lambda feeds: next(
            iter(run_reference(model, feeds).values())
        )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return "ONNX Runtime", lambda feeds: session.run(None, dict(feeds))[0]
