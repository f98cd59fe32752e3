"""A part of a model that can be compiled now, and the nodes that wait for what it computes.

i = NonZero(x); y = Gather(w, i)     w: float32[4, 8]

How many indices there are is known when the first kernel has run, so that the graph is cut there:
a stage that finds them, then one that is compiled for the size that was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from polyc.budget import UNLIMITED, Budget
from polyc.errors import NotFixed, UnsupportedOp
from polyc.graph.bodies import reads
from polyc.graph.containers import Structure
from polyc.graph.expand.control.unroll import is_left_of_loop, step_by_step
from polyc.graph.inference.infer import Walk
from polyc.graph.ir import Graph, Node, Tensor
from polyc.graph.run_time import RunTimeNode
from polyc.types.sizes import evaluate


@dataclass(frozen=True)
class Late:
    """A node that waits, and why the reference evaluator computes it where it does.

    is_direct: it is no kernel's, and runs as soon as its inputs are there; else it waits for them
    to be typed.
    """

    node: Node
    reason: str = ""
    is_direct: bool = False


@dataclass(frozen=True)
class Stage:
    """What can be compiled, and what is left.

    graph: its outputs are the tensors that somebody still needs; it may have no node. waiting:
    what is left, in order. wanted: tensors whose values must be known to go on. constants, sized
    and structures: what the nodes left, and the caller, may read besides; the elements of what is
    sized are sizes known only at run time.
    """

    graph: Graph
    waiting: tuple[Late, ...]
    wanted: tuple[str, ...]
    constants: Mapping[str, Tensor]
    sized: Mapping[str, Tensor]
    structures: Mapping[str, Structure]

    @cached_property
    def values(self) -> Mapping[str, np.ndarray]:
        """What is known of every call, by name."""
        return {n: t.value for n, t in self.constants.items() if t.value is not None}

    def evaluate(self, sizes: Mapping[str, int]) -> Mapping[str, np.ndarray]:
        """All that is known of a call without running a kernel, by name."""
        if not self.sized:
            return self.values
        known = dict(self.values)
        for name, tensor in self.sized.items():
            assert tensor.entries is not None
            entries = [evaluate(entry, sizes) for entry in tensor.entries.flat]
            known[name] = np.array(entries, tensor.dtype).reshape(tensor.entries.shape)
        return known


def infer_stage(
    name: str,
    nodes: Sequence[Node],
    known: Mapping[str, Tensor],
    structures: Mapping[str, Structure],
    outputs: Sequence[str],
    budget: Budget = UNLIMITED,
    decides: bool = False,
) -> Stage:
    """As much of the nodes as can be typed.

    `known` are the types of what is there, with values where they may decide; `structures` are
    those of sequences and optionals; `decides` is as for `infer_graph`. Raises as `infer_graph`,
    but postpones what needs values.
    """
    waiting: list[Late] = []
    wanted: list[str] = []

    def postpone(node: Node, reason: UnsupportedOp) -> None:
        if is_left_of_loop(node):
            waiting.append(Late(step_by_step(node), is_direct=True))
            return
        if isinstance(reason, NotFixed):
            wanted.append(reason.tensor)
        if isinstance(reason, RunTimeNode):
            waiting.append(Late(node, reason.reason, is_direct=True))
        else:
            waiting.append(Late(node))

    walk = Walk(nodes, known, postpone, structures, budget, decides=decides)
    walk.run()
    asked = [*outputs, *wanted, *(name for late in waiting for name in reads(late.node))]
    needed = dict.fromkeys(flatten(asked, walk.structures))
    computed = {o for n in walk.kept for o in n.outputs if o}
    read = {name for n in walk.kept for name in reads(n)}
    results = tuple(n for n in needed if n in computed)
    inputs = tuple(n for n, t in known.items() if n in read and not t.is_constant)
    graph = Graph(name, tuple(walk.kept), walk.table, inputs, results, tuple(walk.needs)).rewrite(
        walk.kept
    )
    known = {n: walk.table[n] for n in needed if n in walk.table and walk.table[n].is_known}
    constants = {n: t for n, t in known.items() if t.is_constant}
    sized = {n: t for n, t in known.items() if not t.is_constant}
    return Stage(graph, tuple(waiting), tuple(wanted), constants, sized, walk.structures)


def flatten(names: Iterable[str], structures: Mapping[str, Structure]) -> Iterator[str]:
    """The names, sequences as those of their elements."""
    for name in names:
        if name in structures:
            yield from flatten(structures[name] or (), structures)
        else:
            yield name


def split_direct(waiting: Sequence[Late]) -> tuple[tuple[Late, ...], tuple[Late, ...]]:
    """Those that can run before any other, and the rest."""
    direct, rest, later = [], [], set[str]()
    for late in waiting:
        if late.is_direct and later.isdisjoint(reads(late.node)):
            direct.append(late)
        else:
            rest.append(late)
            later.update(filter(None, late.node.outputs))
    return tuple(direct), tuple(rest)
