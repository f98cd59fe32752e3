"""OpenVINO at float32, with inputs and outputs bound to arrays beforehand."""

from __future__ import annotations

import openvino

from bench.engines import Session, Task


def open(task: Task, threads: int) -> Session:
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    core = openvino.Core()
    request = core.compile_model(core.read_model(task.model), "CPU", settings)
    request = request.create_infer_request()
    feeds, outputs = task.inputs(), task.outputs()
    for name, value in feeds.items():
        request.set_tensor(name, openvino.Tensor(value, shared_memory=True))
    for k, array in enumerate(outputs):
        request.set_output_tensor(k, openvino.Tensor(array, shared_memory=True))

    def run() -> object:
        # The arrays are named here, so that they live as long as the session.
        return request.infer(share_outputs=True), feeds, outputs

    return Session(run, lambda: outputs[0])
