"""The order of nodes: ONNX asks for one in which each tensor is written before it is read.

Files that people ship are not always so: converters to float16 append the casts of inputs. Runtimes
sort what they read, and so does this.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, NodeProto

from polyc.graph.sorting import sort_stably


def sort_nodes(graph: GraphProto) -> None:
    """Put each node behind those that write what it reads, in the graph and in all bodies in it.

        y = Relu(c);  c = Cast(x)   ->   c = Cast(x);  y = Relu(c)

    Else they keep their order; where they go in circles all stays, and is refused as it stands.
    """
    for node in graph.node:
        for body in _bodies(node):
            sort_nodes(body)
    writers = {name: k for k, node in enumerate(graph.node) for name in node.output if name}
    needed = [{writers[name] for name in _reads(node) if name in writers} for node in graph.node]
    if all(k < position for position, before in enumerate(needed) for k in before):
        return
    order = sort_stably(needed)
    if len(order) == len(needed):
        nodes = [graph.node[position] for position in order]
        del graph.node[:]
        graph.node.extend(nodes)


def _bodies(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _reads(node: NodeProto) -> Iterator[str]:
    """What a node reads, and what its bodies read of the graph around it."""
    yield from node.input
    for body in _bodies(node):
        own = {name for inner in body.node for name in inner.output}
        own |= {given.name for given in body.input} | {t.name for t in body.initializer}
        inside = (name for inner in body.node for name in _reads(inner))
        yield from (name for name in inside if name not in own)
        yield from (output.name for output in body.output if output.name not in own)
