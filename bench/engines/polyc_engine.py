"""polyc, called as model(*inputs, out=outputs)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polyc
from bench.engines import Row, Session, Task
from polyc.options import options_from_environment
from polyc.report.report import Report


def open(task: Task, threads: int, target: str = "cpu") -> Session:
    options = replace(options_from_environment(), progress=False)
    model = polyc.compile(task.model, target=target, threads=threads, options=options)
    feeds = task.inputs()
    inputs = [feeds[s.name] for s in model.inputs]
    outputs = task.outputs()
    out = outputs[0] if len(outputs) == 1 else outputs

    def kernels() -> Sequence[Row]:
        return list_kernels(model.explain(feeds))

    return Session(lambda: model(*inputs, out=out), lambda: outputs[0], kernels)


def open_avx2(task: Task, threads: int) -> Session:
    return open(task, threads, "avx2")


def list_kernels(report: Report) -> Sequence[Row]:
    """A row a launch, of a report with times."""
    return [
        {
            "kernel": k.name,
            "nodes": list(k.nodes),
            "schedule": k.schedule,
            "flops": k.flops or 0,
            "bytes": k.bytes or 0,
            "seconds": k.seconds or 0.0,
            "predicted": k.predicted,
        }
        for k in report.kernels
    ]
