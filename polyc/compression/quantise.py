"""`polyc.quantise`: a model of floats and samples -> the model in bytes, as standard ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import onnx

from polyc.compression.balance import balance
from polyc.compression.calibrate import calibrate
from polyc.compression.calibration.network import Compile
from polyc.compression.calibration.ranges import Method
from polyc.compression.calibration.samples import Samples
from polyc.compression.calibration.scales import Activations
from polyc.compression.candidate import Calibrated, Candidate, make_candidate
from polyc.compression.judge import Judge
from polyc.compression.layers import Layers, find_layers
from polyc.compression.measure import Power, measure_ends, measure_layers
from polyc.compression.onnx_form import compile_plain, read_plain, write_plain
from polyc.compression.options import check_choice, check_names
from polyc.compression.places import find_places
from polyc.compression.report import CompressionReport, LayerRow, count_weights
from polyc.compression.shares import Prediction, predict
from polyc.errors import InvalidOption, UnsupportedOp
from polyc.graph.ir import Graph
from polyc.run.model import CompiledModel


def quantise(
    model: Any,
    data: Any,
    *,
    calibration: Method = "min-max",
    activations: Activations = "u8",
    keep: Collection[str] = (),
    balanced: bool = True,
    corrected: bool = True,
    budget: float | None = None,
    accuracy: Callable[[CompiledModel], float] | None = None,
    threads: int | None = None,
) -> onnx.ModelProto:
    """A model whose convolutions and matrix products multiply bytes, in standard QDQ form.

    Weights become signed bytes with a scale for each output channel and no zero point, activations
    bytes with one scale for each tensor, biases integers of 32 bits. polyc and other engines
    compute with integers what lies between; `CompressionReport.of` says what it cost.

    model: a path, bytes, an onnx.ModelProto or a Graph, of float32.
    data: samples as they come in use, each of the shapes that the model's inputs have: an iterable
    of arrays (for one input), tuples, or dicts by input, which is walked through once and of which
    few samples are held at a time; or a folder of .npz files (arrays by input) or .npy files.
    calibration: how the range of a tensor follows from what samples make of it. "min-max": all of
    it; "percentile": without the rarest 0.01%; "mse": that with the least mean square of errors;
    "entropy": that whose distribution differs least.
    activations: bytes without or with a sign; tensors on both sides of a product of two activations
    have no zero point, and signs where they need them.
    keep: names of nodes that stay floats.
    balanced: whether ranges are moved from activations into weights before, where less error is
    predicted then: between convolutions with nothing but Relu's and pools between them, and behind
    norms (cross-layer equalisation, SmoothQuant).
    corrected: whether biases take back what the mean of each channel is off by.
    budget: what may be lost, if not all layers must be of bytes: of what `accuracy` says, such as
    0.005 for half a point; without it, of the outputs, whose error over themselves, by the norms,
    it bounds. As few layers stay floats as that takes: those first whose effect on the outputs,
    measured for each alone, is large for the time that they are predicted to save.
    accuracy: what a compiled model is worth, the more the better; it is called for the float
    network, and for each network of bytes that is tried.
    threads: of the networks that are compiled to measure; by default all cores.

    Raises InvalidData for samples that are missing, do not fit or are not finite; UnsupportedOp if
    nothing can be quantised, or is already; InvalidOption for a name or a method that there is not;
    else what `polyc.compile` raises.
    """
    check_choice("calibration", calibration, Method)
    check_choice("activations", activations, Activations)
    if budget is None and accuracy is not None:
        raise InvalidOption("accuracy is given without a budget: say how much of it may be lost")
    if budget is not None and not 0 <= budget < math.inf:
        raise InvalidOption(f"budget is {budget!r}; it must be a number that is not negative")
    graph = read_plain(model)
    layers = _find(graph, keep)
    samples = Samples(data, graph.inputs)
    compile_float = partial(compile_plain, threads=threads)

    notes: list[str] = []
    if balanced:
        graph, notes = balance(graph, find_layers(graph).found, samples.probe, compile_float)
    tensors = list(find_places(graph, layers.found).groups)
    seen = calibrate(graph, tensors, samples.walk(), calibration, compile_float)
    known = Calibrated(graph, seen, calibration, activations)
    own = measure_layers(graph, known.plan(layers.found), samples.probe, compile_float)
    drifting = own if corrected else {}
    before = predict(graph, samples.probe[0], compile_float)
    if budget is not None:
        judge = Judge(known, layers.found, drifting, samples.probe, compile_float, accuracy)
        kept, told = judge.keep(budget, before)
        layers = layers.without(kept)
        notes += [told]

    made = make_candidate(known, layers.found, drifting)
    if made.corrected:
        notes += [f"corrected: the biases of {len(made.corrected)} layers"]
    proto = write_plain(made.graph)
    report = _report(graph, made, layers.others, own, before, samples, compile_float)
    replace(report, notes=(*notes, *report.notes)).attach(proto)
    return proto


def _find(graph: Graph, keep: Collection[str]) -> Layers:
    """The layers that become bytes, and why others do not."""
    if any(n.op in ("QuantizeLinear", "DequantizeLinear") for n in graph.nodes):
        raise UnsupportedOp(f"model {graph.name!r} is quantised already; give the model of floats")
    layers = find_layers(graph)
    check_names(keep, layers)
    layers = layers.without(dict.fromkeys(keep, "it was asked for"))
    if not layers.found:
        raise UnsupportedOp(
            f"model {graph.name!r} has nothing to quantise: no Conv, Gemm or MatMul of float32 "
            f"with constant weights, or of two matrices ({layers.told})"
        )
    return layers


def _report(
    graph: Graph,
    made: Candidate,
    others: Mapping[str, str],
    own: Mapping[str, Power],
    before: Prediction,
    samples: Samples,
    compile: Compile,
) -> CompressionReport:
    ends = {layer.name: layer.end for layer in made.plan.layers}
    outputs = {f"output {name}": name for name in graph.outputs}
    here = measure_ends(graph, made.graph, {**ends, **outputs}, samples.probe, compile)
    after = predict(made.graph, samples.probe[0], compile)
    rows = []
    for node in graph.nodes:
        share = before.share(node.name)
        if node.name in ends:
            alone = own[node.name]
            alone = alone.without_drift() if node.name in made.corrected else alone
            snr = here[node.name].snr
            why = after.floats.get(node.name, "")
            why = f"polyc multiplies floats here: {why}" if why else ""
            rows.append(LayerRow(node.name, node.op, "int8", alone.snr, snr, share, why))
        elif node.name in others:
            rows.append(LayerRow(node.name, node.op, "float32", share=share, why=others[node.name]))
    return CompressionReport(
        graph.name,
        tuple(rows),
        tuple((name, here[key].snr) for key, name in outputs.items()),
        samples.count,
        len(samples.probe),
        (count_weights(graph), count_weights(made.graph)),
        _tell_times(before, after),
    )


def _tell_times(before: Prediction, after: Prediction) -> tuple[str, ...]:
    """What polyc is predicted to take on this machine, where that is known."""
    if not before.total or not after.total:
        return ()
    less = before.total / after.total
    return (
        f"predicted for polyc here: {before.total * 1e3:.3g} ms of floats, "
        f"{after.total * 1e3:.3g} ms of bytes, {less:.1f} times as fast",
    )
