"""Schedule trees of GPU kernels: loops written down one by one, outermost first.

A strategy says what each loop walks, as a formula in the iterators of the statements below:

    Loop("block", "floor(e/256)")
    Loop("thread", "floor((e mod 256)/4)", width=64)
    Loop("vector", "e mod 4")

Loops that are cut in this way run over all of what is cut, in order, whatever the sizes are; which
instances there are is the domain's matter, and that the order is right is proven afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from polyc.codegen.generate import LoopMark
from polyc.loopnest.nodes import LoopKind
from polyc.schedule.legality import union_domain
from polyc.scop.scop import Statement


@dataclass(frozen=True)
class Loop:
    """A loop: what it walks, one formula for all statements or one for each.

    width: the iterations that a loop over threads has room for, `apart` threads apart.
    """

    kind: LoopKind
    formula: str | Mapping[str, str]
    width: int = 0
    apart: int = 1

    def of(self, statement: str) -> str:
        return self.formula if isinstance(self.formula, str) else self.formula[statement]


@dataclass(frozen=True)
class Part:
    """Loops around statements; inside, arrays that begin to live there, and parts in order.

    loops            for b … block
      scope          shared arrays and registers
        parts        fill; for k … { load; multiply }; store
    """

    statements: Sequence[Statement]
    loops: Sequence[Loop] = ()
    scope: str = ""
    parts: Sequence[Part] = ()


def build_tree(part: Part) -> isl.Schedule:
    """The schedule tree of all the statements of a part."""
    root = isl.Schedule.from_domain(union_domain(part.statements)).get_root()
    return _insert(root.child(0), part).get_schedule()


def _insert(node: isl.ScheduleNode, part: Part) -> isl.ScheduleNode:
    """A part inserted above a node; gives some node inside of it."""
    for loop in part.loops:
        node = _insert_loop(node, loop, part.statements)
    if part.scope:
        node = node.insert_mark(isl.Id(part.scope)).child(0)
    if len(part.parts) == 1:
        return _insert(node, part.parts[0])
    if part.parts:
        node = node.insert_sequence(_filters([p.statements for p in part.parts]))
        depth = node.get_tree_depth()
        for k, below in enumerate(part.parts):
            inner = _insert(node.child(k).child(0), below)
            node = inner.ancestor(inner.get_tree_depth() - depth)
    return node


def _insert_loop(
    node: isl.ScheduleNode, loop: Loop, statements: Sequence[Statement]
) -> isl.ScheduleNode:
    rows = [f"{s.name}[{', '.join(s.iterators)}] -> [({loop.of(s.name)})]" for s in statements]
    node = node.insert_partial_schedule(isl.MultiUnionPwAff(f"[{{ {'; '.join(rows)} }}]"))
    node = node.band_member_set_ast_loop_type(0, isl.ast_loop_type.atomic)
    mark = LoopMark(loop.kind, loop.width, loop.apart)
    if mark != LoopMark():
        node = node.insert_mark(isl.Id(str(mark))).child(0)
    return node.child(0)


def _filters(groups: Sequence[Sequence[Statement]]) -> isl.UnionSetList:
    """The filters of a sequence: the statements of each group, all their instances."""
    found = isl.UnionSetList.alloc(isl.DEFAULT_CONTEXT, len(groups))
    for group in groups:
        universe = "; ".join(f"{s.name}[{', '.join(s.iterators)}]" for s in group)
        found = found.add(isl.UnionSet(f"{{ {universe} }}"))
    return found
