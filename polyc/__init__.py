"""polyc: a polyhedral compiler for tensor graphs, and for loops that people write.

model = polyc.compile("resnet50.onnx")
y = model(x)
print(model.explain())
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyc.api import compile, from_torch, load, verify
    from polyc.compression.gguf.block_weights import BlockWeights
    from polyc.compression.gguf.read import gguf_weights
    from polyc.compression.prune import prune
    from polyc.compression.quantise import quantise
    from polyc.compression.quantise_weights import quantise_weights
    from polyc.compression.report import CompressionReport
    from polyc.graph.ir import Graph
    from polyc.loops.read.types import (
        b8,
        f16,
        f32,
        f64,
        i8,
        i16,
        i32,
        i64,
        u8,
        u16,
        u32,
        u64,
    )
    from polyc.loops.run.kernel import kernel
    from polyc.options import Options
    from polyc.report.report import Report
    from polyc.run.model import CompiledModel
    from polyc.run.session import Session
    from polyc.target.cuda import CudaTarget
    from polyc.target.machine import Target
    from polyc.types.spec import TensorSpec

__version__ = "0.1.0"

__all__ = [
    "BlockWeights",
    "CompiledModel",
    "CompressionReport",
    "CudaTarget",
    "Graph",
    "Options",
    "Report",
    "Session",
    "Target",
    "TensorSpec",
    "__version__",
    "b8",
    "compile",
    "errors",
    "f16",
    "f32",
    "f64",
    "from_torch",
    "gguf_weights",
    "i8",
    "i16",
    "i32",
    "i64",
    "kernel",
    "load",
    "prune",
    "quantise",
    "quantise_weights",
    "u8",
    "u16",
    "u32",
    "u64",
    "verify",
]

_HOMES = {
    "BlockWeights": "polyc.compression.gguf.block_weights",
    "CompiledModel": "polyc.run.model",
    "CompressionReport": "polyc.compression.report",
    "CudaTarget": "polyc.target.cuda",
    "Graph": "polyc.graph.ir",
    "Options": "polyc.options",
    "Report": "polyc.report.report",
    "Session": "polyc.run.session",
    "Target": "polyc.target.machine",
    "TensorSpec": "polyc.types.spec",
    "compile": "polyc.api",
    "from_torch": "polyc.api",
    "gguf_weights": "polyc.compression.gguf.read",
    "kernel": "polyc.loops.run.kernel",
    **dict.fromkeys(
        ["b8", "f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"],
        "polyc.loops.read.types",
    ),
    "load": "polyc.api",
    "prune": "polyc.compression.prune",
    "quantise": "polyc.compression.quantise",
    "quantise_weights": "polyc.compression.quantise_weights",
    "verify": "polyc.api",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used (PEP 562)."""
    if name in ("errors", "ops"):
        return importlib.import_module(f"polyc.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'polyc' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
