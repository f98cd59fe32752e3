"""Types for a whole graph, and the values of what does not depend on its inputs.

One walk in topological order. Models compute many of their shapes: Shape, Gather, Concat, then a
Reshape by the result. Those values are needed here, so such nodes are evaluated on the way and
vanish from the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import numpy as np

from polyc.budget import UNLIMITED, Budget
from polyc.errors import (
    NeedsValues,
    NotFixed,
    PolycError,
    UnsupportedOp,
    leaving_to_calls,
    naming_defects,
)
from polyc.graph.bodies import Names, reads
from polyc.graph.branches import list_needed
from polyc.graph.containers import Structure, resolve_container
from polyc.graph.expand.control.repeat import Around, Cases, Typed
from polyc.graph.expand.expand import expand_node
from polyc.graph.inference.cases import decide_cases, find_cases
from polyc.graph.inference.computed import find_computed
from polyc.graph.inference.definitions import find_operands, require_fresh, require_known
from polyc.graph.inference.folding import Folds
from polyc.graph.inference.found import Found, is_found, most_of
from polyc.graph.inference.one_node import infer_or_fold, with_entries
from polyc.graph.inference.sizes import find_lacks
from polyc.graph.inference.sources import find_counts, mark_assigned, name_inputs
from polyc.graph.inference.whole import Origins
from polyc.graph.ir import INTERNAL, Graph, Node, Tensor
from polyc.graph.onnx.nodes import TEXT
from polyc.graph.run_time import require_compilable
from polyc.graph.steps import read_extent, step_of
from polyc.types.found import found_in
from polyc.types.needs import has_smaller, read_needs
from polyc.types.parameters import needed_ranges
from polyc.types.ranges import SizeRange, Step, assume
from polyc.types.sizes import Extent, Size


def infer_graph(
    name: str,
    nodes: Sequence[Node],
    known: Mapping[str, Tensor],
    inputs: Sequence[str],
    outputs: Sequence[str],
    budget: Budget = UNLIMITED,
    decides: bool = False,
    found: Sequence[SizeRange] = (),
    whole: bool = False,
) -> Graph:
    """A graph whose tensors all have types, without the nodes whose value is known already.

    Nodes that stand for others, such as Attention, are replaced by them (`graph/expand/expand.py`).

        s = Shape(x); r = Gather(s, 0); y = Reshape(x, [r, -1])    x: float32[2,3,4]
        ->  y = Reshape(x, (2, -1))                                y: float32[2,12]

    `nodes` are in topological order; `known` has the types of the inputs and the constants. A
    graph output may be a constant: then no node writes it and its tensor has a value. `decides`:
    where a call decides between branches both are kept, and what it finds may be sizes, whose
    values become further outputs; `found` are those that the last outputs are already. `whole`:
    a node stays as it is if what it stands for has no form in ONNX, and what it finds is none of
    the outputs. Raises
    InvalidModel for a name read before it is written or written twice, NeedsValues where only a
    call completes the model, TooLarge for a tensor beyond the budget, else as `infer_node`.
    """
    what = (name, nodes, known, inputs, outputs, budget, decides, found, whole)
    return decide_cases(lambda needs: _infer_where(needs, *what))


def _infer_where(
    needed: Sequence[Size],
    name: str,
    nodes: Sequence[Node],
    known: Mapping[str, Tensor],
    inputs: Sequence[str],
    outputs: Sequence[str],
    budget: Budget,
    decides: bool,
    found: Sequence[SizeRange],
    whole: bool,
) -> Graph:
    """`infer_graph` for calls where some sizes are not negative."""

    def refuse(node: Node, reason: UnsupportedOp) -> NoReturn:
        if isinstance(reason, NotFixed):
            missing.append(reason.tensor)
            walk.needs += walk.lacks.get(reason.tensor, ())
            raise name_inputs(reason, walk.kept, inputs) from reason
        raise reason

    stated = nodes
    nodes = mark_assigned(nodes) if decides else nodes
    flat = Graph(name, tuple(nodes), known, tuple(inputs), tuple(outputs))
    within = dict(zip((node.name for node in nodes), list_needed(flat), strict=True))

    def walk_with(needs: Sequence[Size]) -> Walk:
        walk = Walk(nodes, known, refuse, budget=budget, decides=decides, finds=decides)
        walk.within |= within
        walk.found.sizes += found
        walk.needs += needs
        return walk

    needs = tuple(needed)
    missing: list[str] = []
    while True:
        walk = walk_with(needs)
        try:
            with leaving_to_calls(walk.found.sizes):
                walk.run()
            if set(walk.needs) == set(needs) or not walk.has_smaller():
                break
            # Where all that is needed holds, the smaller of two may always be the same one.
            needs = tuple(walk.needs)
        except UnsupportedOp:
            found_by = _find_found(missing.pop(), nodes, walk.table) if decides and missing else {}
            if not found_by and set(walk.needs) == set(needs):
                raise
            nodes = [found_by.get(node.name, node) for node in nodes]
            # What later nodes need of sizes may be what earlier ones lacked.
            needs = tuple(walk.needs)
    kept = walk.origins.keep_whole(walk.kept, stated, walk.table) if whole else walk.kept
    outputs = tuple(outputs) if whole else (*outputs, *walk.found.values)
    walk.require_tensors(outputs)
    require_known(name, (*inputs, *outputs), walk.table)
    typed = Graph(
        name,
        tuple(kept),
        walk.table,
        tuple(inputs),
        outputs,
        walk.list_needs(),
        tuple(walk.found.sizes),
    )
    return typed.rewrite(kept)


def _find_found(tensor: str, nodes: Sequence[Node], table: Mapping[str, Tensor]) -> dict[str, Node]:
    """Of what a tensor is computed by, nodes in a form that says which sizes a call finds."""
    return find_counts(tensor, nodes, table) or find_computed(tensor, nodes, table)


class Walk:
    """Inference over nodes in topological order; `postpone` gets those that have to wait.

    table: the types, and values, of all tensors so far; structures: the sequences and optionals;
    kept: the nodes that are left, and `origins` what they come from; needs: what must not be
    negative, which is assumed from then on if `assumes`; lacks: of tensors, what would have to be
    needed so that their values follow from sizes; within: what is assumed besides of nodes, by
    their names, because the branches that they are in need it; postpone: called with a node that
    reads what is known only when the model runs, or that no kernel computes, and with the reason;
    decides: whether both branches of an If are kept where a call decides between them; finds:
    whether sizes may be what kernels find, as `found` then says.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        known: Mapping[str, Tensor],
        postpone: Callable[[Node, UnsupportedOp], None],
        structures: Mapping[str, Structure] | None = None,
        budget: Budget = UNLIMITED,
        assumes: bool = True,
        decides: bool = False,
        finds: bool = False,
    ) -> None:
        self.needs: list[Size] = []
        self.lacks: dict[str, tuple[Size, ...]] = {}
        self.within: dict[str, tuple[Size, ...]] = {}
        self.found, self._finds = Found(), finds
        self._assumes, self._decides = assumes, decides
        self.table = dict(known)
        self.structures = dict(structures or {})
        self.kept: list[Node] = []
        self.origins = Origins()
        self._postpone, self._budget = postpone, budget
        self._folds = Folds()
        self._cases: dict[str, Cases] = {}
        self._steps: list[SizeRange] = []
        self._late: set[str] = set()
        written = {name for n in nodes for name in (n.name, *n.outputs)}
        self._names = Names({*self.table, *self.structures, *written})
        self._waiting = list(reversed(nodes))

    def run(self) -> None:
        """Type all nodes, assuming what they need of sizes."""
        while not self._run():
            pass

    def require_tensors(self, outputs: Sequence[str]) -> None:
        """Raise NeedsValues for an output that no kernel writes."""
        for output in outputs:
            if output in self.structures:
                what = "is no tensor, but a sequence or an optional"
            elif output in self.table and self.table[output].dtype == TEXT:
                what = "holds strings, which no kernel writes"
            else:
                continue
            raise NeedsValues(f"output {output!r} {what}", ())

    def has_smaller(self) -> bool:
        """Whether an extent is made of the smaller of two, of sizes that a call is told."""
        return not self.found.sizes and has_smaller(
            extent for tensor in self.table.values() for extent in tensor.shape
        )

    def list_needs(self) -> tuple[Size, ...]:
        """What is needed, and before it what that says where all of it holds."""
        return tuple(self.needs) if self.found.sizes else read_needs(self.needs)

    def _run(self) -> bool:
        """Type nodes until more is known or needed of sizes; whether all are typed."""
        known = (*self.found.sizes, *self._steps)
        with assume(known), assume(needed_ranges(self.needs)):
            return self._walk(len(known))

    def _walk(self, known: int) -> bool:
        while self._waiting:
            node = self._waiting.pop()
            self._budget.check("import")
            self._budget.check_nodes(len(self.kept) + len(self._waiting), "the graph")
            if not self._late.isdisjoint(reads(node)):
                self._leave(node, NeedsValues(f"{node.op} {node.name!r} waits for others", ()))
                continue
            needed, before = self.within.get(node.name, ()), len(self.kept)
            try:
                with assume(needed_ranges(needed)):
                    parts = self._step(node)
            except NeedsValues as reason:
                self._leave(node, reason)
                continue
            except NotFixed as reason:
                if reason.needs and self._assumes and not self._knows(reason):
                    if (late := _two_found(node, reason.needs)) is not None:
                        self._leave(node, late)
                        continue
                    self.needs += reason.needs
                    self._waiting.append(node)
                    return False
                if not reason.tensor:
                    raise
                self._leave(node, reason)
                continue
            self._waiting += reversed(parts)
            self.origins.enter(node, before, (*parts, *self.kept[before:]))
            if needed:
                self.within |= dict.fromkeys((part.name for part in parts), needed)
            if self.found.grew() or len(self.found.sizes) + len(self._steps) > known:
                return False
        return True

    def _knows(self, reason: NotFixed) -> bool:
        """Whether all of what a node needs is assumed already, and was of no help."""
        return all(need in self.needs for need in reason.needs)

    def _leave(self, node: Node, reason: UnsupportedOp) -> None:
        self._postpone(node, reason)
        self._late.update(filter(None, node.outputs))

    def _attempt(self, nodes: Sequence[Node], assumes: bool, finds: bool) -> Typed | PolycError:
        """What nodes would be if they stood here, or why they cannot be typed now."""

        def refuse(node: Node, reason: UnsupportedOp) -> NoReturn:
            raise reason

        def infer(needs: tuple[Size, ...]) -> Typed:
            table, structures = self.table, self.structures
            trial = Walk(
                nodes, table, refuse, structures, self._budget, assumes, self._decides, finds
            )
            trial._names, trial._folds, trial._cases = self._names, self._folds, dict(self._cases)
            trial.needs += needs
            trial.run()
            return Typed(trial.kept, trial.table, trial.needs, cases=trial._cases)

        try:
            return decide_cases(infer) if assumes else infer(())
        except PolycError as refused:
            return refused

    def _number(self, extent: Extent) -> str:
        """The name of a new tensor that is an extent."""
        name = self._names.fresh("number")
        number = Tensor(name, np.dtype(np.int64), ())
        self.table[name] = with_entries(number, np.asarray(extent, object))
        return name

    def _step(self, node: Node) -> Sequence[Node]:
        """What a node stands for; nothing once its outputs are in the tables."""
        with naming_defects(f"{node.op} {node.name!r}"):
            return self._resolve(node)

    def _resolve(self, node: Node) -> Sequence[Node]:
        """`_step`, whatever it raises."""
        parts = resolve_container(node, self.table, self.structures, self._names)
        if parts is not None:
            return parts
        operands = find_operands(node, self.table, self.structures)
        require_compilable(node, operands, self._finds)
        if is_found(node):
            self.table[node.outputs[0]] = (
                self.found.enter(node, operands, self.kept, self.table)
                if self._finds
                else most_of(node, operands)
            )
            return ()
        around = Around(
            self._names, self._attempt, self._number, self._decides, self._finds, self._cases
        )
        expanded = expand_node(node, operands, self._names, around, self._budget)
        if isinstance(expanded, Typed):
            self.table.update(expanded.tensors)
            self.kept += expanded.nodes
            return expanded.rest
        if expanded is not None:
            return expanded
        results = infer_or_fold(node, operands, self._folds, self._budget)
        require_fresh(node, self.table)
        self.table.update((t.name, t) for t in results if t.name)
        if node.op == "Step" and node.domain == INTERNAL:
            steps = read_extent(self.table[node.inputs[0]])
            self._steps.append(Step.of(step_of(results[0]), steps))
        if not all(t.is_known for t in results if t.name):
            self.kept.append(node)
            if lacks := find_lacks(node, operands, self.lacks):
                self.lacks |= dict.fromkeys(filter(None, node.outputs), lacks)
            if cases := find_cases(node, operands, self._cases):
                self._cases[node.outputs[0]] = cases
        return ()


def _two_found(node: Node, needs: Sequence[Size]) -> NeedsValues | None:
    """Why a node waits that needs more than one size of those that a call finds to fit."""
    for need in needs:
        if len(names := found_in([need])) > 1:
            told = f"is right only where {need} is not negative, of which a call finds"
            return NeedsValues(f"{node.op} {node.name!r} {told} {' and '.join(sorted(names))}", ())
    return None
