"""ONNX Runtime, with inputs and outputs bound to arrays beforehand."""

from __future__ import annotations

import onnxruntime

from bench.engines import Session, Task


def open(task: Task, threads: int) -> Session:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        str(task.model), options, providers=["CPUExecutionProvider"]
    )
    feeds, outputs = task.inputs(), task.outputs()
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    for info, array in zip(session.get_outputs(), outputs, strict=True):
        binding.bind_output(info.name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)

    def run() -> object:
        # The arrays are named here, so that they live as long as the session.
        return session.run_with_iobinding(binding), feeds, outputs

    return Session(run, lambda: outputs[0])
