"""A nest of loops as launches: what runs over blocks is one, and the host runs the loops around it.

    for t in 0 .. 100:                             for (int t = 0; t < 100 && !error; t += 1) {
      for b in 0 .. 64:  # block                       error = PC_LAUNCH(k0_0, …, A_, t, status);
        for i in 0 .. 256:  # thread         ->        error = PC_LAUNCH(k0_1, …, A_, t, status);
          …                                        }
      A[t] = …

A launch begins when the one before is over, which is what keeps the iterations of the host's loops
in order. What has no loop over blocks, nor any inside, is one block, and without a loop over
threads one thread runs it, loops and all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from polyc.codegen.cuda.grid import DeviceText, Grid, HostNode, Steps, When
from polyc.codegen.cuda.print_kernel import print_device
from polyc.loopnest.index import const
from polyc.loopnest.index_text import show_condition, show_index
from polyc.loopnest.marks import LoopKind
from polyc.loopnest.nodes import Block, For, If, Kernel, Node, extent_of, walk_nodes
from polyc.loopnest.prototype import Prototype
from polyc.loopnest.registers import elements
from polyc.loopnest.substitute import depends_on
from polyc.names import array_name
from polyc.printing.host_text import checked_name
from polyc.printing.scope import Uses

OVER_THREADS: tuple[LoopKind, ...] = ("thread", "combine")


def place_launches(nest: Block) -> Block:
    """The nest with all that is executed inside of loops over blocks, and of threads in these."""
    if not nest.locals:
        return Block(tuple(_launches(nest.body)))
    assert not _has(nest, ("block",)), "memory of the host's is none of a kernel's"
    return Block(tuple(_launches((nest,))))


def _launches(body: Sequence[Node]) -> Iterator[Node]:
    """Nodes on the host; those without a loop over blocks are launched together."""
    for has_blocks, run in groupby(body, lambda n: _has(n, ("block",))):
        if not has_blocks:
            yield _once("block", Block(tuple(_phases(tuple(run)))))
            continue
        for node in run:
            yield _launch(node)


def _launch(node: Node) -> Node:
    """A node with loops over blocks: one of these, or what the host runs around them.

    Loops over blocks are numbered as one, so they are directly inside one another, of fixed size. A
    condition between two of them goes into the inner one; if there is more between, the outer one
    is the host's, which may run its iterations in any order.
    """
    match node:
        case For(kind="block", body=body) if not _has(body, ("block",)):
            return replace(node, body=replace(body, body=tuple(_phases(body.body))))
        case For(kind="block", body=Block(body=(For(kind="block") as inner,))):
            return _nested(node, _launch(inner))
        case For(kind="block", body=Block(body=(If(condition, Block(body=(inner,)), None),))) if (
            isinstance(inner, For) and inner.kind == "block"
        ):
            asked = replace(inner, body=Block((If(condition, inner.body),)))
            return _nested(node, _launch(asked))
        case For(kind="block", body=body):
            return replace(node, kind="sequential", body=place_launches(body))
        case For(kind="sequential", body=body):
            return replace(node, body=place_launches(body))
        case If(then=then, otherwise=otherwise):
            other = place_launches(otherwise) if otherwise else None
            return replace(node, then=place_launches(then), otherwise=other)
        case Block():
            return place_launches(node)
    raise AssertionError(f"a launch stands inside of {node}")


def _nested(outer: For, inner: Node) -> For:
    """A loop over blocks around what has become of the one inside."""
    assert isinstance(inner, For)
    kind: LoopKind = "block" if inner.kind == "block" else "sequential"
    return replace(outer, kind=kind, body=Block((inner,)))


def _phases(body: Sequence[Node]) -> Iterator[Node]:
    """Nodes in a block; those without a loop over threads are run by one."""
    for has_threads, run in groupby(body, lambda n: _has(n, OVER_THREADS)):
        if not has_threads:
            yield _once("thread", Block(tuple(run)))
            continue
        for node in run:
            yield _phase(node)


def _phase(node: Node) -> Node:
    match node:
        case For(kind="thread" | "combine"):
            return node
        case For(body=body):
            return replace(node, body=replace(body, body=tuple(_phases(body.body))))
        case If(then=then, otherwise=other):
            new = replace(then, body=tuple(_phases(then.body)))
            rest = replace(other, body=tuple(_phases(other.body))) if other else None
            return replace(node, then=new, otherwise=rest)
        case Block(body=body):
            return replace(node, body=tuple(_phases(body)))
    return node


def _once(kind: LoopKind, body: Block) -> For:
    """A loop that runs once, so that it is clear who does it."""
    return For("one", const(0), const(1), 1, body, kind)


def _has(node: Node, kinds: Sequence[LoopKind]) -> bool:
    return any(isinstance(n, For) and n.kind in kinds for n in walk_nodes(node))


# -- text -----------------------------------------------------------------------------------------


def print_launches(kernel: Kernel) -> DeviceText:
    """The text of a kernel of several launches, each a function of its own."""
    printer = _Printer(kernel)
    order = printer.nodes(kernel.body.body, ())
    uses = Uses()
    for part in printer.parts:
        uses.functions |= part.uses.functions
        uses.casts |= part.uses.casts
        uses.headers |= part.uses.headers
    grids = tuple(grid for part in printer.parts for grid in part.grids)
    return DeviceText("\n".join(part.text for part in printer.parts), uses, grids, order)


@dataclass
class _Printer:
    """Walks what the host does, and prints the launches that it meets."""

    kernel: Kernel
    parts: list[DeviceText] = field(default_factory=list)

    def nodes(self, body: Sequence[Node], counters: tuple[str, ...]) -> tuple[HostNode, ...]:
        return tuple(one for node in body for one in self.node(node, counters))

    def node(self, node: Node, counters: tuple[str, ...]) -> Iterator[HostNode]:
        match node:
            case For(kind="block"):
                yield self.launch(node, counters)
            case For(var=name, lower=lower, upper=upper, step=step, body=body):
                below = self.nodes(body.body, (*counters, name))
                yield Steps(name, lower, upper, step, below)
            case If(condition, then, otherwise):
                other = self.nodes(otherwise.body, counters) if otherwise else ()
                yield When(condition, self.nodes(then.body, counters), other)
            case Block(body=body):
                yield from self.nodes(body, counters)
            case _:
                raise AssertionError("on the host nothing is computed")

    def launch(self, node: For, counters: tuple[str, ...]) -> int:
        position = len(self.parts)
        threads = max(
            (extent_of(n) or 1) * n.apart
            for n in walk_nodes(node)
            if isinstance(n, For) and n.kind in OVER_THREADS
        )
        name = f"{self.kernel.name}_{position}"
        comment = self.kernel.comment if position == 0 else ()
        body = Block((node,))
        used = {element.array for element, _ in elements(body, None)}
        params = tuple(p for p in self.kernel.params if p.name in used)
        around = tuple(c for c in counters if depends_on(body, c))
        part = Kernel(name, params, body, comment)
        printed = print_device(part, threads, around)
        arrays = tuple(p.name for p in params)
        grids = tuple(replace(grid, arrays=arrays) for grid in printed.grids)
        self.parts.append(replace(printed, grids=grids))
        return position


def print_host(
    nodes: Sequence[HostNode], grids: Sequence[Grid], kernel: Prototype, indent: str
) -> Iterator[str]:
    """The host's loops and launches, until one of them meets an error."""
    for node in nodes:
        match node:
            case int():
                yield from _print_launch(grids[node], kernel, indent)
            case Steps(name, lower, upper, step, body):
                bounds = f"int {name} = {show_index(lower)}; {name} < {show_index(upper)} && !error"
                yield f"{indent}for ({bounds}; {name} += {step}) {{"
                yield from print_host(body, grids, kernel, f"{indent}    ")
                yield f"{indent}}}"
            case When(condition, then, otherwise):
                yield f"{indent}if ({show_condition(condition)}) {{"
                yield from print_host(then, grids, kernel, f"{indent}    ")
                if otherwise:
                    yield f"{indent}}} else {{"
                    yield from print_host(otherwise, grids, kernel, f"{indent}    ")
                yield f"{indent}}}"


def _print_launch(grid: Grid, kernel: Prototype, indent: str) -> Iterator[str]:
    for tensor_map in grid.maps:
        yield f"{indent}pc_tensor_map {tensor_map.name};"
        yield f"{indent}if (!error)"
        yield f"{indent}    error = {tensor_map.print_make()};"
    names = [
        *(
            array_name(p.name)
            for p in kernel.params
            if grid.arrays is None or p.name in grid.arrays
        ),
        *(m.name for m in grid.maps),
        *grid.counters,
        "status",
    ]
    blocks, threads = (
        f"pc_dim3({', '.join(map(str, extents))})" for extents in (grid.blocks, grid.threads)
    )
    yield f"{indent}if (!error)"
    yield (
        f"{indent}    error = PC_LAUNCH({checked_name(grid.function)}, {blocks}, {threads}, "
        f"{grid.shared_bytes}, stream, {', '.join(names)});"
    )
