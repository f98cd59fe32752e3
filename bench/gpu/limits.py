"""What a GPU can do at most: operations as it is described, bytes as a copy is measured."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import polyc
from bench.roofline import Work
from polyc import ops
from polyc.options import Options
from polyc.run.cuda.model import CudaModel
from polyc.target.cuda import CudaTarget

COPIED = 1 << 30
"""Bytes, many times what the caches hold."""

ROUNDS = 20


@dataclass(frozen=True)
class Limits:
    """flops: operations a second, by precision; copy: bytes a second, read and written."""

    flops: dict[str, float]
    copy: float

    def floor_seconds(self, work: Work, precision: str) -> float:
        """The least time for a problem: by computing, or by moving what it reads and writes."""
        return max(work.flops / self.flops[precision], (work.reads + work.writes) / self.copy)


def measure_limits(target: CudaTarget, options: Options, size: int = COPIED) -> Limits:
    """Of the current device."""
    tensor = target.tensor_flops
    flops = {"float32": target.flops, "tf32": tensor / 2, "bfloat16": tensor, "float16": tensor}
    return Limits(flops, measure_copy(options, size))


def measure_copy(options: Options, size: int = COPIED) -> float:
    """Bytes a second that the device's own copy reads and writes, the median of several."""
    nothing = polyc.Graph.of(y=ops.relu(ops.input("x", (4,))))
    model = polyc.compile(nothing, target="cuda", options=options)
    assert isinstance(model, CudaModel)
    source, target = (model.to_device(np.zeros(size, np.uint8)) for _ in range(2))
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        target.copy_from(source)
        model.check()
        seconds.append(time.perf_counter() - start)
    return 2 * size / float(np.median(seconds))
