"""The sizes of a graph as parameters: what each is called in sets and in C, and what it may be.

x[h, w], y[floor(h/2), h*w]   ->   x[size_h, size_w], y[size_floor_h_2, size_h_w]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from polyc.errors import NotFixed
from polyc.graph.branches import is_choice, needs_of, with_needs_by
from polyc.graph.ir import Graph
from polyc.graph.shapes.ratios import Ratio, as_ratio
from polyc.types.derived import Derived
from polyc.types.equal_sizes import find_equal
from polyc.types.estimate import typical_sizes, with_hints
from polyc.types.parameters import (
    Parameter,
    Renaming,
    derive,
    find_derived,
    identify,
    needed_ranges,
    tightened,
    with_needs,
)
from polyc.types.ranges import STEP, assume
from polyc.types.sizes import Extent, Size, names_in


def find_parameters(graph: Graph) -> tuple[Graph, tuple[Parameter, ...]]:
    """The graph with identifiers for the names of its sizes and steps, and what the sizes may be.

    A product of sizes, and what is derived from them, gets an identifier too, so that shapes are
    sums; those that a call says come first, and each behind those that it follows from.

        x[h, w], y[floor(h/2), h*w]   ->   x[size_h, size_w], y[size_floor_h_2, size_h_w]

    Sizes that a call finds stand between the two. To be called where the ranges of those that are
    told are assumed by their own names. Raises NotFixed for a size that no input has or holds.
    """
    with assume(graph.found):
        if equal := find_equal(graph.needs, _follows_by_sums):
            graph = _with_sizes(graph, lambda e: e.at(equal) if isinstance(e, Size) else e)
        return _find_parameters(graph)


def _follows_by_sums(name: str) -> bool:
    """Whether a size follows from others, and from no product, of which sets know less."""
    if not isinstance(name, Derived):
        return False
    return all(not isinstance(part, Size) or part.is_affine for part in name.operands)


def _find_parameters(graph: Graph) -> tuple[Graph, tuple[Parameter, ...]]:
    given = [graph.tensors[name] for name in graph.inputs]
    told = [(tensor.shape, tensor.dtype) for tensor in given]
    told += [((e,), t.dtype) for t in given if t.entries is not None for e in t.entries.flat]
    inputs, typical = [shape for shape, _ in told], typical_sizes(told)
    plain = sorted(set[str]().union(*map(names_in, inputs)))
    plain += [size.name for size in graph.found]
    lists = (t.entries for t in graph.tensors.values() if t.entries is not None)
    ratios = [[as_ratio(entry) for entry in listed.flat] for listed in lists]
    entries = [[part for r in listed for part in (r.above, r.below)] for listed in ratios]
    seen = sorted(set[str]().union(*map(names_in, entries)))
    lost = [name for name in seen if not name.startswith(STEP) and name not in plain]
    if lost:  # of a model in stages: nothing that this stage reads has the size
        raise NotFixed(f"the size {lost[0]} is that of no input", "give it in dims")
    steps = {name: f"{STEP}{k}" for k, name in enumerate(s for s in seen if s.startswith(STEP))}
    shapes: list[Iterable[Any]] = [*inputs, *(t.shape for t in graph.tensors.values()), *entries]
    choices = filter(is_choice, graph.nodes)
    sides = [need for node in choices for side in needs_of(node) for need in side]
    with assume(needed_ranges(graph.needs)):
        ranges = [tightened(n) for n in plain]
        ranges = with_hints(ranges, typical, [*graph.needs, *sides], _extents_of_signals(graph))
    needs = [*graph.needs, *(need for size in ranges for need in size.needs)]
    needs += [size.most for size in graph.found if isinstance(size.most, Size)]
    needs += sides
    derived, products = find_derived([*(extent for shape in shapes for extent in shape), *needs])
    known = Renaming({**identify([*plain, *derived]), **steps}, products)
    parameters = [Parameter.of(size, known) for size in with_needs(ranges, graph.needs)]
    graph = replace(graph, found=tuple(p for p in parameters if p.most is not None))
    with assume(needed_ranges(graph.needs)):
        parameters += derive(derived, known)
    return (_with_sizes(graph, known.extent) if known.names else graph), tuple(parameters)


def _extents_of_signals(graph: Graph) -> set[Size]:
    """All extents but those of texts, which are inputs of integers."""
    given = [graph.tensors[name] for name in graph.inputs]
    texts = names_in(extent for t in given if t.dtype.kind in "iu" for extent in t.shape)
    extents = (extent for t in graph.tensors.values() for extent in t.shape)
    return {e for e in extents if isinstance(e, Size) and texts.isdisjoint(e.names)}


def rename_found(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The graph with other names for sizes that a call finds."""
    known = Renaming(names, {})

    def needs_of(needs: Iterable[Size]) -> tuple[Size, ...]:
        renamed = map(known.extent, needs)
        return tuple(need for need in renamed if isinstance(need, Size))

    found = [
        replace(
            size,
            name=names.get(size.name, size.name),
            needs=needs_of(size.needs),
            most=None if size.most is None else known.extent(size.most),
        )
        for size in graph.found
    ]
    return replace(
        _with_sizes(graph, known.extent), found=tuple(found), needs=needs_of(graph.needs)
    )


def _with_sizes(graph: Graph, change: Callable[[Extent], Extent]) -> Graph:
    """The graph in terms of other sizes."""

    def change_entry(entry: Any) -> Any:
        if isinstance(entry, Ratio):
            return Ratio(change(entry.above), change(entry.below))
        return change(entry)

    tensors = {}
    for name, tensor in graph.tensors.items():
        shape, entries = tuple(map(change, tensor.shape)), tensor.entries
        if entries is not None:
            entries = np.asarray(np.frompyfunc(change_entry, 1, 1)(entries), object)
        tensors[name] = replace(tensor, shape=shape, entries=entries)
    nodes = tuple(with_needs_by(node, change) for node in graph.nodes)
    return replace(graph, nodes=nodes, tensors=tensors)
