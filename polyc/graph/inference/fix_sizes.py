"""Symbolic sizes become numbers: x: float32[batch, 3], batch = 4  ->  x: float32[4, 3]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from polyc.budget import UNLIMITED, Budget
from polyc.graph.branches import with_needs_by
from polyc.graph.inference.infer import infer_graph
from polyc.graph.ir import Graph, Tensor
from polyc.types.sizes import Extent, Size


def fix_tensor(tensor: Tensor, sizes: Mapping[str, Extent]) -> Tensor:
    """The tensor with the sizes that are known in place of their names."""
    shape = tuple(d.at(sizes) if isinstance(d, Size) else d for d in tensor.shape)
    entries = tensor.entries
    if entries is not None:
        fixed = [e.at(sizes) if isinstance(e, Size) else e for e in entries.flat]
        entries = np.asarray(fixed, object).reshape(entries.shape)
        if not any(isinstance(e, Size) for e in fixed):
            return Tensor(tensor.name, tensor.dtype, shape, entries.astype(tensor.dtype))
    return replace(tensor, shape=shape, entries=entries)


def fix_graph(graph: Graph, sizes: Mapping[str, Extent], budget: Budget = UNLIMITED) -> Graph:
    """The graph for inputs of these sizes: types are inferred anew."""
    if not sizes:
        return graph
    inputs = {name: fix_tensor(graph.tensors[name], sizes) for name in graph.inputs}
    constants = {t.name: fix_tensor(t, sizes) for t in graph.tensors.values() if t.is_known}
    found = [
        replace(size, most=size.most.at(sizes) if isinstance(size.most, Size) else size.most)
        for size in graph.found
    ]
    known = {**constants, **inputs}
    nodes = [with_needs_by(node, lambda need: need.at(sizes)) for node in graph.nodes]
    return infer_graph(graph.name, nodes, known, graph.inputs, graph.outputs, budget, found=found)
