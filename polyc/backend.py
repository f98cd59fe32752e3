"""ONNX's backend interface: what `onnx.backend.test` and other tools ask a runtime for.

    import polyc.backend as backend

    outputs = backend.prepare(model).run([x, y])
    outputs = backend.run_node(node, [x, y])

See https://github.com/onnx/onnx/blob/main/docs/ImplementingAnOnnxBackend.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from polyc.api import compile
from polyc.errors import UnsupportedOp
from polyc.run.model import CompiledModel

__all__ = ["PolycBackend", "PolycRep", "prepare", "run_model", "run_node", "supports_device"]

_TARGETS = {"CPU": "cpu", "CUDA": "cuda"}


class PolycRep(BackendRep):
    """A compiled model that is run on inputs in order; outputs are in the graph's order.

    model: the `polyc.CompiledModel` itself.
    """

    def __init__(self, model: CompiledModel, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.model = model
        self._inputs, self._outputs = list(inputs), list(outputs)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """A list of arrays, or one array; None stands for an optional input that is left out."""
        given = inputs if isinstance(inputs, list | tuple) else [inputs]
        pairs = zip(self._inputs, given, strict=False)
        results = self.model.run({name: x for name, x in pairs if x is not None})
        values = [results[name] for name in self._outputs]
        return namedtupledict("Outputs", self._outputs)(*values)


class PolycBackend(Backend):
    """polyc as onnx's tools see it."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> PolycRep:
        """Compile a model; further arguments are those of `polyc.compile`."""
        kind = device.partition(":")[0].upper()
        if kind not in _TARGETS:
            raise UnsupportedOp(f"device {device!r} is not supported; use one of {list(_TARGETS)}")
        compiled = compile(model, target=_TARGETS[kind], **kwargs)
        constants = {t.name for t in model.graph.initializer}
        inputs = [i.name for i in model.graph.input if i.name not in constants]
        return PolycRep(compiled, inputs, [o.name for o in model.graph.output])

    @classmethod
    def run_model(
        cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """Compile a model and run it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Compile one node, in the newest operator set or that of `opset_version`, and run it.

        `outputs_info` is not needed: types are inferred.
        """
        named = _name_inputs(node, inputs)
        opset = int(kwargs.pop("opset_version", onnx.defs.onnx_opset_version()))
        infos = [_describe(name, value) for name, value in named.items()]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], "node", infos, outputs)
        imports = [helper.make_opsetid("", opset)]
        if node.domain:
            imports.append(helper.make_opsetid(node.domain, kwargs.pop("domain_version", 1)))
        model = helper.make_model(graph, opset_imports=imports)
        model.ir_version = helper.find_min_ir_version_for(imports, ignore_unknown=True)
        return cls.run_model(model, list(named.values()), device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """CPU always; CUDA where there is a GPU with its driver."""
        kind = device.partition(":")[0].upper()
        if kind == "CUDA":
            from polyc.target.resolve import ask_driver

            return not ask_driver().missing
        return kind == "CPU"


def _name_inputs(node: NodeProto, inputs: Any) -> dict[str, Any]:
    """Inputs by name: a mapping as it is, a list in the order of those that the node has."""
    if isinstance(inputs, Mapping):
        return dict(inputs)
    given = inputs if isinstance(inputs, list | tuple) else [inputs]
    return dict(zip(filter(None, node.input), given, strict=True))


def _describe(name: str, value: Any) -> onnx.ValueInfoProto:
    if isinstance(value, list):
        element = np.asarray(value[0]).dtype if value else np.dtype(np.float32)
        code = helper.np_dtype_to_tensor_dtype(element)
        return helper.make_tensor_sequence_value_info(name, code, None)
    array = np.asarray(value)
    is_text = array.dtype.kind in "OU"
    code = TensorProto.STRING if is_text else helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, code, array.shape)


prepare = PolycBackend.prepare
run_model = PolycBackend.run_model
run_node = PolycBackend.run_node
supports_device = PolycBackend.supports_device
