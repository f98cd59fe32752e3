"""Graphs of PyTorch with inputs that are known: constants, numbers, and sizes of other inputs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch.fx import GraphModule, Node

NONE: Mapping[int, tuple[int, int]] = MappingProxyType({})


def inputs_of(module: GraphModule) -> list[Node]:
    """The inputs of a graph, in order."""
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def with_constants(
    module: GraphModule, values: Mapping[int, Any], sizes: Mapping[int, tuple[int, int]] = NONE
) -> GraphModule:
    """The graph with some of its inputs as buffers or numbers, and some as sizes of others.

    values: by the position of an input. sizes: of one, the position of a tensor and its dimension.
    """
    graph, whole = torch.fx.Graph(), torch.nn.Module()
    inputs = inputs_of(module)
    known = {inputs[k]: value for k, value in values.items()}
    renamed: dict[Node, Any] = {}
    for position, node in enumerate(inputs):
        if position not in sizes and node not in known:
            renamed[node] = graph.node_copy(node)
    for position, (tensor, dimension) in sizes.items():
        size = (renamed[inputs[tensor]], dimension)
        renamed[inputs[position]] = graph.call_function(torch.ops.aten.sym_size.int, size)
    for node in module.graph.nodes:
        if node.target == "item" and node.args[0] in known:  # a number of Python's, unwrapped
            renamed[node] = known[node.args[0]].item()
        elif node in renamed:
            continue
        elif node not in known:
            renamed[node] = graph.node_copy(node, lambda n: renamed[n])
            if node.op == "get_attr":
                _copy_attribute(module, whole, str(node.target))
        elif isinstance(known[node], torch.Tensor):
            whole.register_buffer(node.name, known[node].detach())
            renamed[node] = graph.get_attr(node.name)
        else:
            renamed[node] = known[node]
    for name, child in module.named_children():
        if not hasattr(whole, name):
            whole.add_module(name, child)
    return GraphModule(whole, graph)


def _copy_attribute(source: torch.nn.Module, target: torch.nn.Module, name: str) -> None:
    first, _, _ = name.partition(".")
    if not hasattr(target, first):
        setattr(target, first, getattr(source, first))
