"""PyTorch in: a module by `from_torch`, and a backend of torch.compile.

    model = polyc.from_torch(module, (x,))
    y = model(x)                                  # tensors in, tensors out

    fast = torch.compile(module, backend="polyc")

Both go through torch.export and PyTorch's exporter to ONNX. For inference: parameters and buffers
are constants, as they are when the module is compiled, and gradients are not computed. Needs the
extra `polyc[torch]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from polyc.api import from_torch
from polyc.run.torch_model import TorchModel


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
            model = from_torch(whole, [args[k] for k in rest], **(options or {}))
            compiled[key] = model, rest
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
