"""PyTorch in: a module by `from_torch`, and a backend of torch.compile.

    model = polyc.from_torch(module, (x,))
    y = model(x)                                  # tensors in, tensors out

    fast = torch.compile(module, backend="polyc")

Both go through torch.export and PyTorch's exporter to ONNX. For inference: parameters and buffers
are constants, as they are when the module is compiled, and gradients are not computed. Needs the
extra `polyc[torch]`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch.fx import GraphModule
from torch.utils import _pytree as pytree

from polyc.api import compile as compile_model
from polyc.errors import InvalidModel, UnsupportedOp
from polyc.model import CompiledModel


class TorchModel:
    """A compiled module, called as that is, with tensors; `model` is what polyc made of it."""

    def __init__(self, model: CompiledModel, results: pytree.TreeSpec | None) -> None:
        self.model = model
        self._results = results

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module returns for these arguments; anything but tensors is as it was exported.

        Raises ShapeError for tensors that do not fit.
        """
        tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        found = self.model(*map(self._give, tensors))
        flat = [_to_tensor(y) for y in (found if isinstance(found, tuple) else (found,))]
        return flat if self._results is None else pytree.tree_unflatten(flat, self._results)

    def _give(self, tensor: torch.Tensor) -> Any:
        return tensor.detach() if tensor.is_cuda else _to_array(tensor)

    def __repr__(self) -> str:
        return f"TorchModel({self.model!r})"


def compile_module(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    **choices: Any,
) -> TorchModel:
    """See `polyc.from_torch`."""
    with torch.no_grad(), _quiet():
        try:
            exported = torch.export.export(
                module.eval(), tuple(args), dict(kwargs or {}), dynamic_shapes=dynamic_shapes
            )
            program = torch.onnx.export(exported, dynamo=True, verbose=False)
        except Exception as error:  # PyTorch's own errors share no base
            reason = str(error).strip().split("\n\n")[0]
            raise UnsupportedOp(
                f"{type(module).__name__}: PyTorch cannot export it: {reason[:800]}"
            ) from error
    if program is None:
        raise InvalidModel(f"{type(module).__name__}: PyTorch exported nothing")
    dims = {**_read_ranges(exported), **(choices.pop("dims", None) or {})}
    model = compile_model(program.model_proto, dims=dims, **choices)
    return TorchModel(model, exported.call_spec.out_spec)


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


def backend(
    module: GraphModule, examples: Sequence[Any], options: Mapping[str, Any] | None = None
) -> Callable[..., Sequence[torch.Tensor]]:
    """A backend of torch.compile; its `options` are the arguments of `polyc.compile`, by name.

    Where torch.compile leaves sizes open (dynamic=True), the graph is compiled for those of a call.
    """
    fixed = {k: e for k, e in enumerate(examples) if _is_parameter(e)}
    compiled: dict[tuple[Any, ...], tuple[TorchModel, list[int]]] = {}

    def run(*args: Any) -> Sequence[torch.Tensor]:
        known = {k: a for k, a in enumerate(args) if k in fixed or _is_number(a)}
        rest = [k for k in range(len(args)) if k not in known]
        numbers = tuple(a.item() if isinstance(a, torch.Tensor) else int(a)
                        for k, a in known.items() if k not in fixed)  # fmt: skip
        key = (numbers, *((args[k].shape, args[k].dtype) for k in rest))
        if key not in compiled:
            whole = _with_constants(module, {**known, **fixed})
            compiled[key] = compile_module(whole, [args[k] for k in rest], **(options or {})), rest
        model, given = compiled[key]
        return list(model(*(args[k] for k in given)))

    if all(_is_parameter(e) or isinstance(e, torch.Tensor) for e in examples):
        run(*examples)  # errors while compiling, not in the first call
    return run


def _is_parameter(value: Any) -> bool:
    """Whether torch.compile passes a parameter or a buffer, which stays what it is."""
    marked = getattr(value, "_dynamo_static_input_type", None) is not None
    return isinstance(value, torch.nn.Parameter) or marked


def _is_number(value: Any) -> bool:
    """Whether an argument is a number of Python's, which torch.compile may wrap in a tensor."""
    return not isinstance(value, torch.Tensor) or (value.ndim == 0 and not value.is_cuda)


def _with_constants(module: GraphModule, values: Mapping[int, Any]) -> GraphModule:
    """The graph with some of its inputs as buffers or numbers."""
    graph, whole = torch.fx.Graph(), torch.nn.Module()
    renamed: dict[torch.fx.Node, Any] = {}
    known: dict[torch.fx.Node, Any] = {}
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    for position, node in enumerate(inputs):
        if position in values:
            known[node] = values[position]
    for node in module.graph.nodes:
        if node.target == "item" and node.args[0] in known:  # a number of Python's, unwrapped
            renamed[node] = known[node.args[0]].item()
        elif node not in known:
            renamed[node] = graph.node_copy(node, lambda n: renamed[n])
            if node.op == "get_attr":
                _copy_attribute(module, whole, str(node.target))
        elif isinstance(known[node], torch.Tensor):
            whole.register_buffer(node.name, known[node].detach())
            renamed[node] = graph.get_attr(node.name)
        else:
            renamed[node] = int(known[node])
    for name, child in module.named_children():
        if not hasattr(whole, name):
            whole.add_module(name, child)
    return GraphModule(whole, graph)


def _copy_attribute(source: torch.nn.Module, target: torch.nn.Module, name: str) -> None:
    first, _, _ = name.partition(".")
    if not hasattr(target, first):
        setattr(target, first, getattr(source, first))


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
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
