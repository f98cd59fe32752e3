"""How compile time and memory grow with the number of layers.

    python bench/compile_time.py --layers 50 200 800 --json compile_time.json

A chain of convolutions (3 x 3, ReLU) or of matrix products (bias, ReLU) is compiled in a new
process with an empty cache. `equal` layers share one kernel, so that what grows is what polyc does
for each node; `different` ones have channels that change from layer to layer, so that nearly every
layer is a kernel of its own, which isl schedules, the proof checks and gcc compiles.
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

CHAINS = ("conv", "gemm")
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
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, count, *tail])
        for name, count in (("x", counts[0]), (last, counts[-1]))
    ]
    graph = helper.make_graph(nodes, f"{chain}_{sizes}_{layers}", infos[:1], infos[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def measure(chain: str, layers: int, sizes: str) -> dict[str, Any]:
    """One cold compilation in this process: seconds, by stage too, kernels, and peak memory."""
    import polyc
    from polyc.options import Options

    model = make_chain(chain, layers, sizes)
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
        f"{row['chain']:5} {row['sizes']:9} {row['layers']:5} layers {row['kernels']:4} kernels "
        f"{row['seconds']:7.2f} s, CPU ms a layer: polyc {own:6.1f} gcc {gcc:6.1f}, "
        f"{row['megabytes']:5.0f} MB; {stages}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--layers", type=int, nargs="+", default=[50, 200, 800])
    parser.add_argument("--chains", nargs="+", choices=CHAINS, default=CHAINS)
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
            for layers in chosen.layers:
                rows.append(measure_apart(chain, layers, sizes))
                sys.stdout.write(show(rows[-1]) + "\n")
                sys.stdout.flush()
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
