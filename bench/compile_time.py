"""How compile time and memory grow with the number of layers.

    python bench/compile_time.py --layers 50 200 800 --json compile_time.json
    python bench/compile_time.py --chains pointwise softmax concat --sizes equal --layers 1000 10000

A chain of convolutions (3 x 3, ReLU) or of matrix products (bias, ReLU) is compiled in a new
process with an empty cache. `equal` layers share one kernel, so that what grows is what polyc does
for each node; `different` ones have channels that change from layer to layer, so that nearly every
layer is a kernel of its own, which isl schedules, the proof checks and gcc compiles.

Long models of one kind (`equal` only): a chain of pointwise nodes, cheap ones or also sines, a
chain of softmaxes, a Concat of as many inputs, a Split into as many outputs.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

POINTWISE = {
    "pointwise": ("Relu", "Add", "Mul", "Sub", "Abs", "Max"),
    "trigonometric": ("Sin", "Cos"),
    "softmax": ("Softmax",),
}
"""Operators in turn, the second operand of a binary one being a constant."""

LAYERS = ("conv", "gemm")
CHAINS = (*LAYERS, *POINTWISE, "concat", "split")
SIZES = ("equal", "different")


def channels(layers: int, sizes: str) -> list[int]:
    """layers + 1 channel counts; of `different` ones, hardly any two neighbours repeat.

    16 + (k (k + 1) / 2 + floor(k / 41)) mod 41: neighbours differ by k + 1, another number each of
    41 times, after which everything is shifted by one.
    """
    if sizes == "equal":
        return [32] * (layers + 1)
    return [16 + (k * (k + 1) // 2 + k // 41) % 41 for k in range(layers + 1)]


def make_chain(chain: str, layers: int, sizes: str) -> onnx.ModelProto:
    """x -> Conv or Gemm -> Relu -> … -> y, with random weights."""
    generator = np.random.default_rng(0)
    counts = channels(layers, sizes)
    nodes, weights, last = [], [], "x"
    for k, (before, after) in enumerate(pairwise(counts)):
        shape = (after, before, 3, 3) if chain == "conv" else (before, after)
        scale = np.sqrt(2 / (before * 9 if chain == "conv" else before))
        value = (generator.standard_normal(shape) * scale).astype(np.float32)
        weights.append(numpy_helper.from_array(value, f"w{k}"))
        weights.append(numpy_helper.from_array(np.zeros(after, np.float32), f"b{k}"))
        inputs = [last, f"w{k}", f"b{k}"]
        if chain == "conv":
            nodes.append(helper.make_node("Conv", inputs, [f"t{k}"], f"conv{k}", pads=[1] * 4))
        else:
            nodes.append(helper.make_node("Gemm", inputs, [f"t{k}"], f"gemm{k}"))
        nodes.append(helper.make_node("Relu", [f"t{k}"], [f"r{k}"], f"relu{k}"))
        last = f"r{k}"
    tail = [14, 14] if chain == "conv" else []
    rows = 1 if chain == "conv" else 32
    first, final = [rows, counts[0], *tail], [rows, counts[-1], *tail]
    return _model(f"{chain}_{sizes}_{layers}", nodes, {"x": first}, {last: final}, weights)


def make_pointwise(chain: str, count: int) -> onnx.ModelProto:
    """x -> Relu -> Add -> … -> y, of 64 x 48 floats."""
    nodes, last = [], "x"
    for k in range(count):
        operator = POINTWISE[chain][k % len(POINTWISE[chain])]
        inputs = [last, "w"] if operator in ("Add", "Mul", "Sub", "Max") else [last]
        nodes.append(helper.make_node(operator, inputs, [f"t{k}"], f"node{k}"))
        last = f"t{k}"
    weight = numpy_helper.from_array(np.full(48, 0.5, np.float32), "w")
    return _model(f"{chain}_{count}", nodes, {"x": [64, 48]}, {last: [64, 48]}, [weight])


def make_pieces(chain: str, count: int) -> onnx.ModelProto:
    """Concat of `count` inputs of 2 x 3 floats, or Split into as many outputs."""
    whole, parts = {"whole": [2 * count, 3]}, {f"part{k}": [2, 3] for k in range(count)}
    if chain == "concat":
        node = helper.make_node("Concat", list(parts), list(whole), "concat", axis=0)
        return _model(f"concat_{count}", [node], parts, whole)
    sizes = numpy_helper.from_array(np.full(count, 2, np.int64), "sizes")
    node = helper.make_node("Split", ["whole", "sizes"], list(parts), "split", axis=0)
    return _model(f"split_{count}", [node], whole, parts, [sizes])


def _model(
    name: str,
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int]],
    outputs: Mapping[str, Sequence[int]],
    weights: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    read, written = (
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in some.items()]
        for some in (inputs, outputs)
    )
    graph = helper.make_graph(nodes, name, read, written, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def make_any(chain: str, layers: int, sizes: str) -> onnx.ModelProto:
    """The model of a chain's kind."""
    if chain in LAYERS:
        return make_chain(chain, layers, sizes)
    return make_pointwise(chain, layers) if chain in POINTWISE else make_pieces(chain, layers)


def measure(chain: str, layers: int, sizes: str) -> dict[str, Any]:
    """One cold compilation in this process: seconds, by stage too, kernels, and peak memory."""
    import polyc
    from polyc.options import Options

    model = make_any(chain, layers, sizes)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        compiled = polyc.compile(model, options=Options(cache_dir=Path(folder), progress=False))
        seconds = time.perf_counter() - start
        report = compiled.explain()
    own = resource.getrusage(resource.RUSAGE_SELF)
    gcc = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "chain": chain,
        "sizes": sizes,
        "layers": layers,
        "launches": len(report.kernels),
        "kernels": len({k.name for k in report.kernels}),
        "seconds": seconds,
        "polyc_cpu_seconds": own.ru_utime + own.ru_stime,
        "gcc_cpu_seconds": gcc.ru_utime + gcc.ru_stime,
        "megabytes": own.ru_maxrss / 1024,
        "stages": dict(report.stage_seconds),
    }


def measure_apart(chain: str, layers: int, sizes: str) -> dict[str, Any]:
    """`measure` in a new process, whose memory nobody else has used."""
    command = [sys.executable, __file__, "--one", chain, str(layers), sizes]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def show(row: Mapping[str, Any]) -> str:
    """One line: totals, CPU time a layer, then the stages that took longest."""
    longest = sorted(row["stages"].items(), key=lambda item: -item[1])[:6]
    stages = ", ".join(f"{name} {value:.2f}" for name, value in longest)
    own, gcc = (1e3 * row[f"{who}_cpu_seconds"] / row["layers"] for who in ("polyc", "gcc"))
    return (
        f"{row['chain']:13} {row['sizes']:9} {row['layers']:5} layers {row['kernels']:4} kernels "
        f"{row['seconds']:7.2f} s, CPU ms a layer: polyc {own:6.1f} gcc {gcc:6.1f}, "
        f"{row['megabytes']:5.0f} MB; {stages}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--layers", type=int, nargs="+", default=[50, 200, 800])
    parser.add_argument("--chains", nargs="+", choices=CHAINS, default=LAYERS)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--json", type=Path, help="also write every figure here")
    parser.add_argument("--one", nargs=3, metavar=("CHAIN", "LAYERS", "SIZES"))
    chosen = parser.parse_args(arguments)
    if chosen.one:
        chain, layers, sizes = chosen.one
        json.dump(measure(chain, int(layers), sizes), sys.stdout)
        return
    rows = []
    for chain in chosen.chains:
        for sizes in chosen.sizes:
            if chain not in LAYERS and sizes != "equal":
                continue
            for layers in chosen.layers:
                rows.append(measure_apart(chain, layers, sizes))
                sys.stdout.write(show(rows[-1]) + "\n")
                sys.stdout.flush()
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
