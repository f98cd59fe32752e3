"""CuPy: matrix products alone, by cuBLAS, where torch is not installed."""

from __future__ import annotations

import os

import cupy

from bench.engines import Session, Task
from bench.gpu.queue import queue_calls


def open(task: Task, threads: int) -> Session:
    """ValueError for a model that is not one product."""
    kinds = [node.op_type for node in task.proto().graph.node]
    if kinds != ["MatMul"]:
        raise ValueError(f"CuPy is compared in products alone, this is {', '.join(kinds[:5])}")
    os.environ["CUPY_TF32"] = "1" if task.precision == "tf32" else "0"
    a, b = (cupy.asarray(value) for value in task.typed_inputs().values())
    y = cupy.empty((a.shape[0], b.shape[1]), a.dtype)
    synchronise = cupy.cuda.get_current_stream().synchronize
    run, calls = queue_calls(lambda: cupy.matmul(a, b, out=y), synchronise)
    return Session(run, lambda: cupy.asnumpy(y).astype("float32"), calls=calls)
