"""A graph of PyTorch with operators that its exporter to ONNX does not know, in parts.

    h = relu(linear(x)); s = svd(h); y = tanh(s) + h     ->     part 1 ─ svd ─ part 2

What is between such operators is compiled, and they stay PyTorch's.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.onnx._internal.exporter._registration import ONNXRegistry

from polyc.run.torch_decompositions import DECOMPOSITIONS
from polyc.run.torch_graph import with_constants

Compile = Callable[[GraphModule, Sequence[torch.Tensor]], Callable[..., Any]]


def split(
    module: GraphModule, examples: Sequence[torch.Tensor], compile_part: Compile
) -> GraphModule | None:
    """The graph for arguments like these, in parts; None if the exporter knows all operators.

    compile_part: compiles a graph when it is first called, for such arguments. A warning names the
    operators that stay PyTorch's.
    """
    with torch.no_grad():
        exported = torch.export.export(module.eval(), tuple(examples))
        exported = exported.run_decompositions(dict(DECOMPOSITIONS)).run_decompositions()
    whole = exported.module(check_guards=False)
    known = _Known()
    unknown = {str(n.target) for n in whole.graph.nodes if _is_call(n) and not known.knows(n)}
    if not unknown:
        return None
    warnings.warn(
        f"polyc leaves {', '.join(sorted(unknown))} to PyTorch: its exporter to ONNX does not know "
        "them; what is between them is compiled",
        stacklevel=2,
    )
    partitioner = CapabilityBasedPartitioner(whole, known, allows_single_node_partition=True)
    parts: GraphModule = partitioner.partition_and_fuse()
    for node in parts.graph.nodes:
        if node.op == "call_module":
            weights = {
                k: _attribute(parts, str(a.target))
                for k, a in enumerate(node.args)
                if isinstance(a, Node) and a.op == "get_attr"
            }
            part = getattr(parts, str(node.target))
            setattr(parts, str(node.target), _Part(part, weights, compile_part))
    return parts


class _Known(OperatorSupportBase):
    """The operators that the exporter has a translation of."""

    def __init__(self) -> None:
        self.registry = ONNXRegistry.from_torchlib()

    def knows(self, node: Node) -> bool:
        if not isinstance(node.target, torch._ops.OpOverload):
            return node.target is operator.getitem
        return self.registry.is_registered(node.target)

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        return _is_call(node) and self.knows(node)


def _is_call(node: Node) -> bool:
    return node.op == "call_function"


class _Part(torch.nn.Module):
    """A part that is compiled at its first call; its weights are constants."""

    def __init__(
        self, part: GraphModule, weights: Mapping[int, torch.Tensor], compile_part: Compile
    ) -> None:
        super().__init__()
        self._part, self._weights, self._compile = part, weights, compile_part
        self._compiled: Callable[..., Any] | None = None

    def forward(self, *args: Any) -> Any:
        given = [a for k, a in enumerate(args) if k not in self._weights]
        if self._compiled is None:
            self._compiled = self._compile(with_constants(self._part, self._weights), given)
        return self._compiled(*given)


def _attribute(module: torch.nn.Module, path: str) -> Any:
    return operator.attrgetter(path)(module)
