"""A graph with QuantizeLinear and DequantizeLinear where bytes stand: what engines look for.

x ── Q ── DQ ──┐
w_bytes ── DQ ─┴ Conv ── Relu ── Q ── DQ ── …          bias: int32 ── DQ, by x_scale * w_scale
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from polyc.compression.calibration.scales import Scale, quantise_weights, weight_scales
from polyc.compression.layers import Layer, weights_of
from polyc.compression.places import Places
from polyc.compression.sketch import Sketch
from polyc.graph.ir import Graph, Node


@dataclass(frozen=True)
class Bytes:
    """What becomes bytes: layers, the places of bytes between them, and a scale for each group."""

    layers: tuple[Layer, ...]
    places: Places
    scales: Mapping[str, Scale]

    def scale(self, tensor: str) -> Scale:
        return self.scales[self.places.groups[tensor]]


def insert_bytes(graph: Graph, plan: Bytes) -> Graph:
    """The graph in standard QDQ form, with the names of its inputs and outputs."""
    writer = QdqWriter(graph, plan)
    for name in graph.inputs:
        writer.restore(name)
    for node in graph.nodes:
        writer.add(node)
    return writer.sketch.finish()


class QdqWriter:
    """Writes nodes one by one, restored bytes behind those that give what becomes bytes."""

    def __init__(self, graph: Graph, plan: Bytes) -> None:
        self.graph = graph
        self.plan = plan
        self.sketch = Sketch(graph)
        self._layers = {layer.name: layer for layer in plan.layers}
        self._sums = {layer.adds: layer for layer in plan.layers if layer.adds}
        self._restored: dict[str, str] = {}
        self._weights: dict[tuple[str, int, bytes], str] = {}
        self._scales: dict[str, tuple[str, str]] = {}

    def add(self, node: Node) -> None:
        """Write a node, and what its results are restored from."""
        reads = self.plan.places.readers.get(node.name, ())
        inputs = [self._restored[i] if i in reads else i for i in node.inputs]
        layer = self._layers.get(node.name)
        if layer is not None and layer.weight:
            inputs = self.restored_factors(layer, inputs)
        if node.name in self._sums:
            inputs = self._widen_bias(self._sums[node.name], node, inputs)
        renamed = self._rename_replaced(node.outputs)
        outputs = tuple(renamed.get(o, o) for o in node.outputs)
        self.sketch.nodes.append(replace(node, inputs=tuple(inputs), outputs=outputs))
        for name in node.outputs:
            self.restore(name, renamed.get(name))

    def _widen_bias(self, layer: Layer, node: Node, inputs: list[str]) -> list[str]:
        """The inputs of an Add behind a product, with its vector in the rank of the result.

        ONNX Runtime makes of a product and a vector one Gemm of floats, before it looks for bytes.
        """
        value, rank = self.graph.value(layer.bias), self.graph.tensors[node.outputs[0]].rank
        assert value is not None
        wide = self.sketch.constant(layer.bias, value.reshape(*[1] * (rank - 1), -1))
        return [wide if name == layer.bias else name for name in inputs]

    def add_twin(self, layer: Layer) -> str:
        """Write a layer of bytes beside the one of floats; its result."""
        inputs = [self._restored[i] for i in layer.activations]
        inputs += layer.node.inputs[len(inputs) :]
        if layer.weight:
            inputs = self.restored_factors(layer, inputs)
        (result,) = layer.node.outputs
        twin = self.sketch.moved(result, f"{result}_twin")
        title = self.sketch.name(f"{layer.name}_twin")
        node = replace(layer.node, name=title, inputs=tuple(inputs), outputs=(twin,))
        self.sketch.nodes.append(node)
        return twin

    def _rename_replaced(self, outputs: Collection[str]) -> dict[str, str]:
        """{tensor that is bytes for all its readers: what the floats are called now}"""
        replaced = self.plan.places.replaced
        return {o: self.sketch.moved(o, f"{o}_float") for o in outputs if o in replaced}

    def restore(self, name: str, source: str | None = None) -> None:
        """Write bytes, and what is restored from them, for a tensor that becomes bytes.

        source: the floats, where the tensor's own name is that of what is restored.
        """
        if name not in self.plan.places.groups:
            return
        if source is None:
            self._restored[name] = self.round_trip(name, name)
        else:
            self._restored[name] = self.round_trip(name, source, name)

    def round_trip(self, name: str, source: str, result: str | None = None) -> str:
        """Write bytes, by the scale of a tensor, of the floats in `source`, and restore them.

        result: the tensor to restore into, which exists; by default one of a fresh name.
        """
        tensor, scale = self.graph.tensors[name], self.plan.scale(name)
        parameters = self._scale(self.plan.places.groups[name], scale)
        stored = self.sketch.call(
            "QuantizeLinear", (source, *parameters), f"{name}_bytes", tensor.shape, scale.zero.dtype
        )
        taken, title = (stored, *parameters), f"{name}_restored"
        if result is None:
            return self.sketch.call("DequantizeLinear", taken, title, tensor.shape)
        self.sketch.nodes.append(
            Node(self.sketch.name(title), "DequantizeLinear", taken, (result,))
        )
        return result

    def restored_factors(self, layer: Layer, inputs: list[str]) -> list[str]:
        """The inputs of a layer with weights and bias as bytes and integers that are restored."""
        x_scale = self.plan.scale(layer.activations[0]).scale
        channels = weights_of(self.graph, layer)
        bias = self.graph.value(layer.bias) if layer.bias and not layer.adds else None
        scales = weight_scales(channels, bias, float(x_scale))
        key = (layer.weight, layer.axis, scales.tobytes())
        if key not in self._weights:
            whole = np.moveaxis(quantise_weights(channels, scales), 0, layer.axis)
            self._weights[key] = self._constant(layer.weight, whole, scales, layer.axis)
        inputs[1] = self._weights[key]
        if bias is not None:
            steps = (x_scale * scales).astype(np.float32)
            whole = np.rint(bias.astype(np.float64) / steps.astype(np.float64)).astype(np.int32)
            inputs[2] = self._constant(layer.bias, whole, steps, 0)
        return inputs

    def _constant(self, name: str, whole: np.ndarray, scales: np.ndarray, axis: int) -> str:
        """A restored constant of integers, with a scale for each channel along an axis."""
        stored = self.sketch.constant(f"{name}_bytes", np.ascontiguousarray(whole))
        scale = self.sketch.constant(f"{name}_scale", scales)
        zero = self.sketch.constant(f"{name}_zero", np.zeros(scales.shape, whole.dtype))
        given, title = (stored, scale, zero), f"{name}_restored"
        return self.sketch.call("DequantizeLinear", given, title, whole.shape, axis=axis)

    def _scale(self, group: str, scale: Scale) -> tuple[str, str]:
        """The constants of a group: its scale and its zero point."""
        if group not in self._scales:
            step = self.sketch.constant(f"{group}_scale", np.asarray(scale.scale))
            self._scales[group] = step, self.sketch.constant(f"{group}_zero", scale.zero)
        return self._scales[group]
