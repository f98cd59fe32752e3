"""torch on a GPU, and with it cuBLAS and cuDNN: eagerly, or compiled."""

from __future__ import annotations

from typing import Any

import torch

from bench.engines import Session, Task
from bench.engines.torch_engine import read_model
from bench.gpu.queue import queue_calls

DEVICE = "cuda"


def open(task: Task, threads: int) -> Session:
    """Node by node; matrix products are cuBLAS's."""
    return _session(task, compiled=False)


def open_compiled(task: Task, threads: int) -> Session:
    """By torch.compile, with CUDA graphs where it can."""
    return _session(task, compiled=True)


def _session(task: Task, compiled: bool) -> Session:
    torch.backends.cuda.matmul.allow_tf32 = task.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = task.precision == "tf32"
    function = read_model(task.proto(), DEVICE)
    if compiled:
        function = torch.compile(function, mode="reduce-overhead")
    # Of 16-bit floats NumPy knows one only: they become what they are on the way.
    inputs = [
        torch.from_numpy(value).to(DEVICE, _TYPES.get(task.precision))
        if value.dtype.kind == "f"
        else torch.from_numpy(value).to(DEVICE)
        for value in task.inputs().values()
    ]
    last: list[Any] = [None]

    def call() -> None:
        with torch.inference_mode():
            last[0] = function(*inputs)

    run, calls = queue_calls(call, _synchronise)
    return Session(run, lambda: last[0].float().cpu().numpy(), calls=calls)


_TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def _synchronise() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()
