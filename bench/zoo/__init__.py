"""Well-known networks with random weights, as ONNX models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from bench.zoo.bert import bert
from bench.zoo.convnext import convnext
from bench.zoo.light import light, light_files
from bench.zoo.mobilenet import mobilenet
from bench.zoo.network import Example
from bench.zoo.vit import vit

LIGHT: Mapping[str, Callable[[], Example]] = {
    name: partial(light, file) for name, file in light_files().items()
}
"""Convolutional networks of 2012 to 2017, at batch 1."""

EXPORTED: Mapping[str, Callable[[], Example]] = {
    "bert_base": bert,
    "vit_base": vit,
    "mobilenetv2": mobilenet,
    "convnext_tiny": convnext,
}
"""Later ones, as torch.onnx.export writes them, at batch 1."""

MODELS = {**LIGHT, **EXPORTED}


def write_example(name: str, example: Example, folder: Path) -> dict[str, np.ndarray]:
    """NAME.onnx, and NAME.npz with the inputs by name and the first output as y; the outputs.

    The outputs are ONNX Runtime's, without its optimisations.
    """
    import onnxruntime

    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(example.model, folder / f"{name}.onnx")
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    plain.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        example.model.SerializeToString(), plain, providers=["CPUExecutionProvider"]
    )
    values = session.run(None, dict(example.feeds))
    arrays: dict[str, Any] = {**example.feeds, "y": values[0]}
    np.savez(folder / f"{name}.npz", **arrays)
    return {o.name: v for o, v in zip(session.get_outputs(), values, strict=True)}
