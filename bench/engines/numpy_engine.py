"""NumPy: the problem's own function, or the model node by node, with convolutions by im2col."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from bench.engines import Session, Task
from polyc.commands.numpy_baseline import make_evaluator


def open(task: Task, threads: int) -> Session:
    """`threads` is what the process's environment told the BLAS."""
    model, feeds = task.proto(), task.inputs()
    if task.numpy is None:
        evaluate = make_evaluator(model)
        return Session(lambda: evaluate(feeds), lambda: evaluate(feeds))
    compute, out = task.numpy, task.outputs()[0]
    weights = [numpy_helper.to_array(t) for t in model.graph.initializer]
    operands = [*feeds.values(), *weights]

    def result() -> np.ndarray:
        return out

    return Session(lambda: compute(*operands, out=out), result)
