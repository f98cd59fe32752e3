"""polyc on a GPU: on arrays that are there, called one by one, or as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import polyc
from bench.engines import Row, Session, Task
from bench.engines.polyc_engine import list_kernels
from bench.gpu.queue import queue_calls
from polyc.options import Options, options_from_environment
from polyc.run.cuda.array import DeviceArray
from polyc.run.cuda.model import CudaModel


def open(task: Task, threads: int) -> Session:
    """Each call is put into the default stream: model(*inputs, out=outputs)."""
    model, inputs, outputs = _load(task)
    out = outputs[0] if len(outputs) == 1 else outputs
    return _session(task, model, lambda: model(*inputs, out=out), outputs)


def open_graph(task: Task, threads: int) -> Session:
    """A call captured once, and replayed."""
    model, inputs, outputs = _load(task)
    captured = model.capture(*inputs, out=outputs)
    return _session(task, model, captured.replay, outputs)


def _load(task: Task) -> tuple[CudaModel, list[DeviceArray], list[DeviceArray]]:
    model = polyc.compile(task.model, target="cuda", options=_options(task.precision))
    assert isinstance(model, CudaModel)
    feeds = task.typed_inputs()
    inputs = [model.to_device(feeds[s.name]) for s in model.inputs]
    outputs = [model.to_device(np.zeros(shape, dtype)) for shape, dtype in task.results]
    return model, inputs, outputs


def _options(precision: str) -> Options:
    return replace(options_from_environment(), progress=False, tf32=precision == "tf32")


def _session(
    task: Task, model: CudaModel, call: Callable[[], Any], outputs: Sequence[DeviceArray]
) -> Session:
    run, calls = queue_calls(call, model.check)

    def kernels() -> Sequence[Row]:
        return list_kernels(model.explain(task.typed_inputs()))

    return Session(run, lambda: outputs[0].numpy().astype(np.float32), kernels, calls)
