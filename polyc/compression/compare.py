"""What samples say of a model that was made smaller without them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from polyc.compression.calibration.samples import Samples
from polyc.compression.measure import measure_ends
from polyc.compression.onnx_form import compile_plain
from polyc.compression.report import CompressionReport
from polyc.graph.ir import Graph


def compare(
    graph: Graph, smaller: Graph, ends: Mapping[str, str], data: Any, threads: int | None
) -> tuple[CompressionReport, dict[str, float | None]]:
    """A report with the decibels of outputs, and those at the end of each layer, by its name.

    ends: tensors that both graphs have, by layer; data: samples as `quantise` takes them, or None:
    then nothing is known.
    """
    if data is None:
        return CompressionReport(graph.name, ()), {}
    samples = Samples(data, graph.inputs)
    outputs = {f"output {name}": name for name in graph.outputs}
    compile_float = partial(compile_plain, threads=threads)
    found = measure_ends(graph, smaller, {**ends, **outputs}, samples.probe, compile_float)
    count = len(samples.probe)
    report = CompressionReport(
        graph.name,
        (),
        outputs=tuple((name, found[key].snr) for key, name in outputs.items()),
        samples=count,
        compared=count,
    )
    return report, {name: found[name].snr for name in ends}
