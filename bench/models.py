"""How fast models run: polyc beside NumPy, ONNX Runtime and OpenVINO, in one run.

    python bench/models.py                                 # ResNet-50 with random weights
    python bench/models.py a.onnx b.onnx --threads 1 2 --seconds 10 --json models.json

Every engine gets the same inputs and number of threads. They are called in turn, one call a round,
so that whatever else the machine does slows all of them alike; a figure is the median of the
rounds. NumPy is the evaluator of `polyc demo`, where it knows the model's operators; its BLAS takes
as many threads as the environment says (OMP_NUM_THREADS). OpenVINO is measured if it is installed,
at float32.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import polyc
from polyc.commands.bench import Timing, measure_in_turn
from polyc.commands.demo import resnet50
from polyc.commands.feeds import random_feeds
from polyc.commands.numpy_baseline import make_evaluator
from polyc.commands.verify import relative_error
from polyc.errors import UnsupportedOp

Feeds = Mapping[str, np.ndarray]
Engine = Callable[[], np.ndarray]
"""Runs the model once; gives its first output."""


def polyc_engine(model: onnx.ModelProto, feeds: Feeds, threads: int) -> Engine:
    compiled = polyc.compile(model, threads=threads)
    first = compiled.outputs[0].name
    return lambda: compiled.run(feeds)[first]


def numpy_engine(model: onnx.ModelProto, feeds: Feeds, threads: int) -> Engine | None:
    try:
        evaluate = make_evaluator(model)
    except UnsupportedOp:
        return None
    return lambda: evaluate(feeds)


def onnxruntime_engine(model: onnx.ModelProto, feeds: Feeds, threads: int) -> Engine | None:
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, dict(feeds))[0]


def openvino_engine(model: onnx.ModelProto, feeds: Feeds, threads: int) -> Engine | None:
    try:
        import openvino
    except ImportError:
        return None
    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", settings)
    request = compiled.create_infer_request()
    ordered = [feeds[i.get_any_name()] for i in compiled.inputs]
    return lambda: request.infer(ordered)[0]


PEERS: Mapping[str, Callable[[onnx.ModelProto, Feeds, int], Engine | None]] = {
    "NumPy": numpy_engine,
    "ONNX Runtime": onnxruntime_engine,
    "OpenVINO": openvino_engine,
}


def measure_model(
    name: str, model: onnx.ModelProto, threads: int, seconds: float
) -> dict[str, Any]:
    """Medians of every engine that runs the model, and how far polyc's result is from each."""
    start = time.perf_counter()
    compiled = polyc.compile(model, threads=threads)
    compile_seconds = time.perf_counter() - start
    feeds = random_feeds(compiled.inputs, 0)
    made = {peer: make(model, feeds, threads) for peer, make in PEERS.items()}
    engines = {"polyc": polyc_engine(model, feeds, threads)}
    engines |= {peer: engine for peer, engine in made.items() if engine is not None}
    ours = engines["polyc"]()
    errors = {
        peer: relative_error(ours, np.asarray(engine()))
        for peer, engine in engines.items()
        if peer != "polyc"
    }
    times = measure_in_turn(engines, seconds)
    flops = sum(k.flops or 0 for k in compiled.explain().kernels)
    return {
        "model": name,
        "threads": threads,
        "gflop": flops / 1e9,
        "compile_seconds": compile_seconds,
        "milliseconds": {engine: _milliseconds(t) for engine, t in times.items()},
        "best": {engine: t.best * 1e3 for engine, t in times.items()},
        "errors": errors,
        "rounds": len(times["polyc"].seconds),
    }


def _milliseconds(timing: Timing) -> float:
    return timing.median * 1e3


def show(rows: Sequence[Mapping[str, Any]]) -> str:
    """A Markdown table: medians in milliseconds, and each peer's time over polyc's."""
    lines = [
        "| model | threads | polyc | Gflop/s | "
        + " | ".join(f"{peer} | ratio" for peer in PEERS)
        + " |",
        "|---|--:|--:|--:|" + "--:|--:|" * len(PEERS),
    ]
    for row in rows:
        times = row["milliseconds"]
        ours = times["polyc"]
        cells = [row["model"], str(row["threads"]), f"{ours:.2f} ms"]
        cells.append(f"{row['gflop'] / ours * 1e3:.1f}")
        for peer in PEERS:
            if peer in times:
                cells += [f"{times[peer]:.2f} ms", f"{times[peer] / ours:.2f}"]
            else:
                cells += ["-", "-"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", type=Path, nargs="*", help="ONNX files; default: ResNet-50")
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--seconds", type=float, default=10.0, help="for each model")
    parser.add_argument("--json", type=Path, help="also write every figure here")
    chosen = parser.parse_args(arguments)
    rows = []
    for path in chosen.models or [None]:
        name = "resnet50" if path is None else path.stem
        model = resnet50() if path is None else onnx.load(path)
        for threads in chosen.threads:
            rows.append(measure_model(name, model, threads, chosen.seconds))
            far = ", ".join(f"{peer} {e:.1e}" for peer, e in rows[-1]["errors"].items())
            sys.stderr.write(f"{name}, {threads} threads: difference from {far}\n")
    sys.stdout.write(show(rows) + "\n")
    if chosen.json:
        machine = {"machine": platform.processor() or platform.machine(), "rows": rows}
        chosen.json.write_text(json.dumps(machine, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
