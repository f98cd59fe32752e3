"""The demo's model: ResNet-50 as the onnx package ships it, with weights drawn at random.

The file has the real network, but every weight is one repeated number, to be small. Random weights
make a wrong index visible.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from polyc.errors import InvalidModel, RuntimeFailure
from polyc.run.reference import LIMITS, relative_error, run_reference

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
    return generator.standard_normal(shape, np.float32) / np.float32(math.sqrt(fan_in))


def check(
    model: onnx.ModelProto, ours: Mapping[str, np.ndarray], feeds: Mapping[str, np.ndarray]
) -> tuple[str, float]:
    """(the judge's name, how far our outputs are from its): ONNX Runtime, or onnx's evaluator.

    Raises RuntimeFailure if that is further than float32 allows.
    """
    judge, expected = judged(model, feeds)
    error = max(relative_error(ours[name], value) for name, value in expected.items())
    if error > LIMITS["float32"]:
        raise RuntimeFailure(
            f"ResNet-50 differs from {judge} by {error:.1e}; run `polyc verify`, and report this"
        )
    return judge, error


def judged(
    model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]
) -> tuple[str, dict[str, np.ndarray]]:
    """(the judge's name, its outputs)."""
    try:
        import onnxruntime  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return "onnx's reference evaluator", run_reference(model, feeds)
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3  # errors; the model has weights that nobody reads
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), quiet, providers=["CPUExecutionProvider"]
    )
    values = session.run(None, dict(feeds))
    return "ONNX Runtime", {o.name: v for o, v in zip(session.get_outputs(), values, strict=True)}


def show_demo(threads: int | None, seed: int) -> Iterator[str]:
    """Compile the demo's model, check it, and time it beside NumPy; lines of what to tell."""
    import polyc
    from polyc.commands.bench import measure_in_turn
    from polyc.commands.numpy_baseline import make_evaluator
    from polyc.report.text import print_report
    from polyc.run.feeds import random_feeds

    model = resnet50(seed)
    yield f"ResNet-50, {len(model.graph.node)} nodes: compiling (from the cache if it was before)"
    start = time.perf_counter()
    compiled = polyc.compile(model, threads=threads)
    yield f"compiled in {time.perf_counter() - start:.1f} s; the ten kernels that take longest:\n"
    feeds = random_feeds(compiled.inputs, seed)
    yield print_report(compiled.explain(feeds), most=10)
    judge, error = check(model, compiled.run(feeds), feeds)
    yield f"checked: within {error:.1e} of {judge}\n"
    evaluate = make_evaluator(model)
    calls = {"polyc": lambda: compiled.run(feeds), "numpy": lambda: evaluate(feeds)}
    times = measure_in_turn(calls, budget=3)
    yield f"polyc, {compiled.place}: {times['polyc']}"
    yield f"NumPy, im2col and its BLAS: {times['numpy']}"
    yield f"polyc is {times['numpy'].median / times['polyc'].median:.1f} times as fast"
