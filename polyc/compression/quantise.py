"""`polyc.quantise`: a model of floats and samples -> the model in bytes, as standard ONNX."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, get_args

import onnx

from polyc.api import compile
from polyc.compression.balance import balance
from polyc.compression.biases import correct_biases
from polyc.compression.calibrate import Compile, calibrate
from polyc.compression.insert import Bytes, insert_bytes
from polyc.compression.layers import Layers, find_layers
from polyc.compression.measure import Power, measure_ends, measure_layers
from polyc.compression.onnx_form import read_plain, write_plain
from polyc.compression.places import Places, find_places
from polyc.compression.ranges import Histogram, Method, choose_range
from polyc.compression.report import LayerRow, QuantisationReport
from polyc.compression.samples import Samples
from polyc.compression.scales import Activations, Scale, activation_scale
from polyc.compression.shares import predict_shares
from polyc.errors import InvalidOption, UnsupportedOp
from polyc.graph.ir import Graph


def quantise(
    model: Any,
    data: Any,
    *,
    calibration: Method = "min-max",
    activations: Activations = "u8",
    keep: Collection[str] = (),
    balanced: bool = True,
    corrected: bool = True,
    threads: int | None = None,
) -> onnx.ModelProto:
    """A model whose convolutions and matrix products multiply bytes, in standard QDQ form.

    Weights become signed bytes with a scale for each output channel and no zero point, activations
    bytes with one scale for each tensor, biases integers of 32 bits. polyc and other engines
    compute with integers what lies between; `QuantisationReport.of` says what it cost.

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
    threads: of the networks that are compiled to measure; by default all cores.

    Raises InvalidData for samples that are missing, do not fit or are not finite; UnsupportedOp if
    nothing can be quantised, or is already; InvalidOption for a name or a method that there is not;
    else what `polyc.compile` raises.
    """
    _check_choice("calibration", calibration, Method)
    _check_choice("activations", activations, Activations)
    graph = read_plain(model)
    layers = _find(graph, keep)
    samples = Samples(data, graph.inputs)
    compile_float = partial(compile, target="cpu", threads=threads)

    notes: list[str] = []
    if balanced:
        every = find_layers(graph).found
        graph, notes = balance(graph, every, samples.probe, compile_float)
    places = find_places(graph, layers.found)
    seen = calibrate(graph, list(places.groups), samples.walk(), calibration, compile_float)
    plan = Bytes(layers.found, places, choose_scales(places, seen, calibration, activations))
    own = measure_layers(graph, plan, samples.probe, compile_float)
    if corrected:
        graph, done = correct_biases(graph, layers.found, own)
        plan = replace(plan, layers=_find(graph, keep).found)
        own = {name: own[name].without_drift() if name in done else own[name] for name in own}
        notes += [f"corrected: the biases of {len(done)} layers"] if done else []

    quantised = insert_bytes(graph, plan)
    proto = write_plain(quantised)
    report = _report(graph, quantised, plan, layers.others, own, samples, compile_float)
    replace(report, notes=tuple(notes)).attach(proto)
    return proto


def _check_choice(name: str, value: str, choices: Any) -> None:
    known = get_args(choices)
    if value not in known:
        raise InvalidOption(f"{name} is {value!r}; it must be one of {', '.join(known)}")


def _find(graph: Graph, keep: Collection[str]) -> Layers:
    """The layers that become bytes, and why others do not."""
    if any(n.op in ("QuantizeLinear", "DequantizeLinear") for n in graph.nodes):
        raise UnsupportedOp(f"model {graph.name!r} is quantised already; give the model of floats")
    layers = find_layers(graph)
    unknown = sorted(set(keep) - layers.by_name.keys() - layers.others.keys())
    if unknown:
        raise InvalidOption(
            f"keep names {', '.join(map(repr, unknown))}; the layers that could become bytes are "
            f"{', '.join(map(repr, layers.by_name))}"
        )
    others = dict(layers.others)
    for layer in layers.found:
        if layer.name in keep:
            others[layer.name] = "it was asked for"
    found = tuple(layer for layer in layers.found if layer.name not in others)
    if not found:
        reasons = "; ".join(f"{name!r} stays: {why}" for name, why in others.items())
        raise UnsupportedOp(
            f"model {graph.name!r} has nothing to quantise: no Conv, Gemm or MatMul of float32 "
            f"with constant weights, or of two matrices ({reasons or 'none at all'})"
        )
    return Layers(found, others)


def choose_scales(
    places: Places, seen: Mapping[str, Histogram], method: Method, kind: Activations
) -> dict[str, Scale]:
    """The scale of each group of tensors, from what was seen of all of them together."""
    scales = {}
    for group, names in places.members().items():
        together = Histogram()
        for name in names:
            together.join(seen[name])
        symmetric, signed = group in places.symmetric, group in places.signed
        fit = partial(activation_scale, kind=kind, symmetric=symmetric, signed=signed)
        scales[group] = fit(*choose_range(together, method, fit))
    return scales


def _report(
    graph: Graph,
    quantised: Graph,
    plan: Bytes,
    others: Mapping[str, str],
    own: Mapping[str, Power],
    samples: Samples,
    compile: Compile,
) -> QuantisationReport:
    ends = {layer.name: layer.end for layer in plan.layers}
    outputs = {f"output {name}": name for name in graph.outputs}
    here = measure_ends(graph, quantised, {**ends, **outputs}, samples.probe, compile)
    shares = predict_shares(graph, compile)
    rows = []
    for node in graph.nodes:
        share = shares.get(node.name)
        if node.name in ends:
            snr = here[node.name].snr
            rows.append(LayerRow(node.name, node.op, "int8", own[node.name].snr, snr, share))
        elif node.name in others:
            rows.append(LayerRow(node.name, node.op, "float32", share=share, why=others[node.name]))
    return QuantisationReport(
        graph.name,
        tuple(rows),
        tuple((name, here[key].snr) for key, name in outputs.items()),
        samples.count,
        len(samples.probe),
        (_bytes(graph), _bytes(quantised)),
    )


def _bytes(graph: Graph) -> int:
    return sum(t.value.nbytes for t in graph.tensors.values() if t.value is not None)
