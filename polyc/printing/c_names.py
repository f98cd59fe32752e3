"""The arrays of a kernel by the names that they have in text of C and CUDA.

y[i] = add(x[i], add[i])   ->   y_[i] = add(x_[i], add_[i])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from polyc.loopnest.nodes import (
    Assign,
    Element,
    Kernel,
    Node,
    Transpose,
    rewrite_elements,
    rewrite_nodes,
)
from polyc.names import array_name


def name_for_c(kernel: Kernel) -> Kernel:
    """The kernel with the arrays that it is given renamed; its local arrays keep their names."""
    names = {p.name: array_name(p.name) for p in kernel.params}

    def rename(node: Node) -> Node:
        match node:
            case Assign():
                return rewrite_elements(node, lambda element: _renamed(element, names))
            case Transpose(array=array):
                return replace(node, array=names.get(array, array))
            case _:
                return node

    params = tuple(replace(p, name=names[p.name]) for p in kernel.params)
    return replace(kernel, params=params, body=rewrite_nodes(kernel.body, rename))


def _renamed(element: Element, names: Mapping[str, str]) -> Element:
    array = names.get(element.array)
    return element if array is None else replace(element, array=array)
