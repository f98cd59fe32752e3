"""The arrays of a kernel by the names that they have in text of C and CUDA.

y[i] = add(x[i], add[i])   ->   y_[i] = add(x_[i], add_[i])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    Kernel,
    Local,
    Node,
    TileMove,
    Transpose,
    rewrite_nodes,
    walk_nodes,
)
from polyc.loopnest.rewrite import rewrite_elements, rewrite_loop
from polyc.names import array_name, local_name


def name_for_c(kernel: Kernel, called: Mapping[str, str] = MappingProxyType({})) -> Kernel:
    """The kernel with the arrays that it is given renamed; its local arrays keep their names.

    called: other names of arrays, which local ones are then named by as well: x_local.
    """
    names = {p.name: array_name(called.get(p.name, p.name)) for p in kernel.params}
    if called:
        names |= {x.name: _local_name(x, called) for x in _locals(kernel.body)}

    def rename(node: Node) -> Node:
        match node:
            case Assign():
                return rewrite_elements(node, lambda element: _renamed(element, names))
            case For():
                return rewrite_loop(node, lambda element: _renamed(element, names))
            case TileMove(first=first, second=second):
                return replace(node, first=_renamed(first, names), second=_renamed(second, names))
            case Transpose(array=array):
                return replace(node, array=names.get(array, array))
            case Block(locals=locals_, near=near) if near or (called and locals_):
                renamed = (replace(x, name=names.get(x.name, x.name)) for x in locals_)
                nearby = (replace(x, first=_renamed(x.first, names)) for x in near)
                return replace(node, locals=tuple(renamed), near=tuple(nearby))
            case _:
                return node

    params = tuple(replace(p, name=names[p.name]) for p in kernel.params)
    return replace(kernel, params=params, body=rewrite_nodes(kernel.body, rename))


def _locals(block: Block) -> Iterator[Local]:
    return (x for node in walk_nodes(block) if isinstance(node, Block) for x in node.locals)


def _local_name(local: Local, called: Mapping[str, str]) -> str:
    """That of a local array where arrays have other names: x_local -> y_local; tile_0 -> tile_0."""
    if local.name == local_name(local.source):
        return local_name(called.get(local.source, local.source))
    return local.name


def _renamed(element: Element, names: Mapping[str, str]) -> Element:
    array = names.get(element.array)
    return element if array is None else Element(array, element.index)
