"""torch on a GPU, and with it cuBLAS and cuDNN: eagerly, as a CUDA graph, or compiled."""

from __future__ import annotations

from collections.abc import Callable
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


def open_graph(task: Task, threads: int) -> Session:
    """The calls of one eager run captured once as a CUDA graph, and replayed."""
    function, inputs = _load(task)
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.inference_mode(), torch.cuda.stream(beside):  # what is chosen at the first calls
        for _ in range(3):
            function(*inputs)
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode(), torch.cuda.graph(graph):
        result = function(*inputs)

    # A graph does not keep what it reads.
    def call(_kept: object = (function, inputs)) -> None:
        graph.replay()

    run, calls = queue_calls(call, _synchronise)
    return Session(run, lambda: result.float().cpu().numpy(), calls=calls)


def _session(task: Task, compiled: bool) -> Session:
    function, inputs = _load(task)
    if compiled:
        function = torch.compile(function, mode="reduce-overhead")
    last: list[Any] = [None]

    def call() -> None:
        with torch.inference_mode():
            last[0] = function(*inputs)

    run, calls = queue_calls(call, _synchronise)
    return Session(run, lambda: last[0].float().cpu().numpy(), calls=calls)


def _load(task: Task) -> tuple[Callable[..., Any], list[Any]]:
    """The model as a function, and its inputs where it runs."""
    torch.backends.cuda.matmul.allow_tf32 = task.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = task.precision == "tf32"
    function = read_model(task.proto(), DEVICE)
    # Of 16-bit floats NumPy knows one only: they become what they are on the way.
    inputs = [
        torch.from_numpy(value).to(DEVICE, _TYPES.get(task.precision))
        if value.dtype.kind == "f"
        else torch.from_numpy(value).to(DEVICE)
        for value in task.inputs().values()
    ]
    return function, inputs


_TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def _synchronise() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()
