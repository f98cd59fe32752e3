"""PyTorch's modules as models: exported once, and called with tensors afterwards."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import torch
from torch.utils import _pytree as pytree

from polyc.errors import InvalidModel, UnsupportedOp
from polyc.run.model import CompiledModel
from polyc.run.torch_decompositions import DECOMPOSITIONS


@dataclass(frozen=True)
class Exported:
    """A module as ONNX: its open sizes, and the structure of what it returns.

    dims: the ranges that were stated of them; hint: what they are in the examples.
    """

    model: onnx.ModelProto
    dims: Mapping[str, tuple[int, int]]
    hint: Mapping[str, int]
    results: pytree.TreeSpec | None


def export_module(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> Exported:
    """A module for arguments like these, by `torch.export`; see `polyc.from_torch`."""
    with torch.no_grad(), _quiet():
        try:
            exported = torch.export.export(
                module.eval(), tuple(args), dict(kwargs or {}), dynamic_shapes=dynamic_shapes
            )
            _check_inference(exported)
            exported = exported.run_decompositions(dict(DECOMPOSITIONS))
            program = torch.onnx.export(exported, dynamo=True, verbose=False)
        except UnsupportedOp:
            raise
        except Exception as error:  # PyTorch's own errors share no base
            reason = str(error).strip().split("\n\n")[0]
            raise UnsupportedOp(
                f"{type(module).__name__}: PyTorch cannot export it: {reason[:800]}"
            ) from error
    if program is None:
        raise InvalidModel(f"{type(module).__name__}: PyTorch exported nothing")
    proto = program.model_proto
    _state_numbers(proto)
    hint = _read_sizes(proto, _tensors_in(args, kwargs or {}))
    return Exported(proto, _read_ranges(exported), hint, exported.call_spec.out_spec)


class TorchModel:
    """A compiled module, called as that is, with tensors; `model` is what polyc made of it."""

    def __init__(self, model: CompiledModel, results: pytree.TreeSpec | None) -> None:
        self.model = model
        self._results = results

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module returns for these arguments; anything but tensors is as it was exported.

        Raises ShapeError for tensors that do not fit.
        """
        found = self.model(*map(self._give, _tensors_in(args, kwargs)))
        flat = [_to_tensor(y) for y in (found if isinstance(found, tuple) else (found,))]
        return flat if self._results is None else pytree.tree_unflatten(flat, self._results)

    def _give(self, tensor: torch.Tensor) -> Any:
        return tensor.detach() if tensor.is_cuda else _to_array(tensor)

    def __repr__(self) -> str:
        return f"TorchModel({self.model!r})"


def _tensors_in(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    leaves = pytree.tree_leaves((tuple(args), dict(kwargs)))
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _check_inference(exported: torch.export.ExportedProgram) -> None:
    """Raise UnsupportedOp for what draws random numbers, or learns statistics, as in training."""
    for node in exported.graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        names = [a.name for a in node.target._schema.arguments]
        said = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
        if any(said.get(name) is True for name in ("train", "training", "use_input_stats")):
            raise UnsupportedOp(
                f"the graph trains: {node.name} is {node.target} in its training mode; polyc "
                "compiles for inference: call module.eval() first"
            )


def _state_numbers(model: onnx.ModelProto) -> None:
    """A size that PyTorch found to be a number is one, though its exporter writes it as a name."""
    graph = model.graph
    for info in (*graph.input, *graph.output, *graph.value_info):
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param.isdecimal():
                dim.dim_value = int(dim.dim_param)


def _read_sizes(model: onnx.ModelProto, examples: Sequence[torch.Tensor]) -> dict[str, int]:
    """What the open sizes of the inputs are in the examples, by name."""
    sizes: dict[str, int] = {}
    for value, tensor in zip(model.graph.input, examples, strict=False):
        for dim, size in zip(value.type.tensor_type.shape.dim, tensor.shape, strict=False):
            if dim.dim_param.isidentifier():
                sizes.setdefault(dim.dim_param, int(size))
    return sizes


def _read_ranges(exported: torch.export.ExportedProgram) -> dict[str, tuple[int, int]]:
    """The largest values that were stated of open sizes; the exporter to ONNX drops them.

    PyTorch takes sizes to be at least 2 where nobody says, to keep 1 for broadcasting; here 1 is a
    size like others.
    """
    ranges = {}
    for symbol, bounds in exported.range_constraints.items():
        if bounds.upper.is_Integer and int(bounds.upper) < 2**31:
            lower = int(bounds.lower)
            ranges[str(symbol)] = (1 if lower <= 2 else lower, int(bounds.upper))
    return ranges


def _to_array(tensor: torch.Tensor) -> np.ndarray:
    """The same memory as a NumPy array."""
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def _to_tensor(result: Any) -> torch.Tensor:
    """The same memory as a tensor."""
    if not isinstance(result, np.ndarray):
        return torch.from_dlpack(result)
    if result.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(result.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(result)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The exporter tells what it does, and of packages that are not needed."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
