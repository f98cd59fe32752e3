"""What part of a network's time its layers are predicted to take."""

from __future__ import annotations

from collections import defaultdict

from polyc.compression.calibrate import Compile
from polyc.compression.layers import PRODUCTS
from polyc.graph.ir import Graph


def predict_shares(graph: Graph, compile: Compile) -> dict[str, float]:
    """{node: its share of the predicted time}; empty if the time depends on sizes of a call.

    A kernel that several layers are fused into counts for all of them alike; what has no layer in
    it counts for none.
    """
    layers = {n.name for n in graph.nodes if n.op in PRODUCTS}
    seconds: dict[str, float] = defaultdict(float)
    total = 0.0
    for kernel in compile(graph).explain().kernels:
        if kernel.predicted is None:
            return {}
        total += kernel.predicted
        inside = [name for name in kernel.whole_nodes if name in layers]
        for name in inside:
            seconds[name] += kernel.predicted / len(inside)
    return {name: took / total for name, took in seconds.items()} if total else {}
