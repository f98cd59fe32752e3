"""Generation: schedule tree -> LoopNest, by isl's AST generator.

isl scans the tree into loops; at each statement it meets, the accesses are rewritten as functions
of the loops just generated. What comes out is plain data: no isl object lives past `generate_nest`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

import islpy as isl

from polyc.codegen.from_isl import apply_affine, to_condition, to_index
from polyc.loopnest.index import Affine, Compare, Logic, const, var, variables
from polyc.loopnest.marks import LoopMark
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    If,
    Local,
    LoopExpr,
    Near,
    Node,
    Read,
    Test,
    Value,
    walk_nodes,
)
from polyc.loopnest.registers import elements
from polyc.memory.storage import Storage
from polyc.poly.context import isl_options
from polyc.poly.parameters import assumptions
from polyc.poly.tree import count_members
from polyc.promote.local_arrays import CPU_MARKS, LIMITS, LocalArray, kind_of
from polyc.promote.near import NearArray
from polyc.scop.expr import Call, Cast, Const, Expr, Index, Load, Within
from polyc.scop.scop import Statement


@dataclass
class _Scan:
    """What the callback collects while isl generates: one Assign per statement met."""

    statements: Mapping[str, Statement]
    storages: Mapping[str, Storage]
    promoted: Mapping[str, LocalArray]
    near: Mapping[str, NearArray] = field(default_factory=dict)
    assigns: list[Assign] = field(default_factory=list)
    firsts: dict[int, Mapping[str, Element]] = field(default_factory=dict)  # by id of an Assign
    depth: int = 0  # marks around that may declare arrays
    members: Mapping[str, frozenset[int]] = field(default_factory=dict)  # see `count_members`
    error: BaseException | None = None

    def at_domain(self, node: isl.AstNode, build: isl.AstBuild) -> isl.AstNode:
        """isl's callback: an exception would take the process down in C, so it is raised later."""
        try:
            call = node.user_get_expr()
            name = call.get_op_arg(0).get_id().get_name()
            instance = tuple(to_index(call.get_op_arg(k)) for k in range(1, call.get_op_n_arg()))
            access = _Access(self, self.statements[name], instance, build)
            self.assigns.append(access.assign())
            self.firsts[id(self.assigns[-1])] = access.firsts()
            return node.set_annotation(isl.Id(f"assign_{len(self.assigns) - 1}"))
        except BaseException as error:
            self.error = self.error or error
            return node


def generate_nest(
    schedule: isl.Schedule,
    statements: Mapping[str, Statement],
    storages: Mapping[str, Storage],
    promoted: Mapping[str, LocalArray],
    context: isl.Set | None = None,
    near: Mapping[str, NearArray] = MappingProxyType({}),
) -> Block:
    """The loops that execute a schedule tree, with every access placed in storage.

    context: what holds of the sizes, besides their ranges (`Scop.context`); near: arrays that may
    live in a tile.
    """
    scan = _Scan(statements, storages, promoted, near, members=count_members(schedule.get_root()))
    with isl_options(detect_min_max=1, atomic_upper_bound=1, group_coscheduled=1):
        known = assumptions() if context is None else assumptions().intersect(context)
        build, handle = isl.AstBuild.from_context(known).set_at_each_domain(scan.at_domain)
        try:
            tree = build.node_from_schedule(schedule)
        finally:
            del handle
            if scan.error is not None:
                raise scan.error
    return _block(_convert(tree, scan, LoopMark()))


class _Access:
    """The accesses of one statement instance, in terms of the loops around it."""

    def __init__(
        self,
        scan: _Scan,
        statement: Statement,
        instance: tuple[Affine, ...],
        build: isl.AstBuild,
    ) -> None:
        self.scan = scan
        self.statement = statement
        self.instance = instance
        self.build = build

    @cached_property
    def inverse(self) -> isl.PwMultiAff:
        """# loops -> S"""
        schedule = self.build.get_schedule()  # S -> loops
        return isl.PwMultiAff.from_map(schedule.as_map().reverse())

    @cached_property
    def loops(self) -> tuple[Affine, ...]:
        """What the loops around are at: a variable of the text, or what isl has found it to be."""
        here = isl.MultiAff.identity_on_domain_space(self.build.get_schedule_space())
        return tuple(
            to_index(self.build.expr_from_pw_aff(here.get_aff(k).to_pw_aff()))
            for k in range(here.dim(isl.dim_type.out))
        )

    def assign(self) -> Assign:
        s = self.statement
        return Assign(
            statement=s.name,
            instance=self.instance,
            target=self.element(s.array, s.write),
            value=self.expr(s.value),
            dtype=s.value.dtype,
            reduction=s.reduction,
        )

    def firsts(self) -> dict[str, Element]:
        """Of arrays that may live in a tile: the first place there, if that is plain."""
        found = {}
        for name in {self.statement.array, *(load.array for load in self.statement.loads)}:
            if (near := self.scan.near.get(name)) is not None:
                around = self.loops[: near.corner.dim(isl.dim_type.in_)]
                place = apply_affine(near.corner, around)
                if place is not None:
                    found[name] = Element(name, place)
        return found

    def element(self, array: str, index: isl.PwMultiAff) -> Element:
        """The stored place of an access  S -> A."""
        local = self.scan.promoted.get(array)
        if local is not None:
            plain = self._plain_local(local, index)
            if plain is not None:
                return Element(local.name, plain)
            return self._as_isl_says(local.name, local.place(self.statement.name, index))
        storage = self.scan.storages[array].map.to_pw_multi_aff()
        plain = self._plain_place(storage, index)
        if plain is not None:
            return Element(array, plain)
        return self._as_isl_says(array, storage.pullback_pw_multi_aff(index))

    def _plain_place(
        self, storage: isl.PwMultiAff, index: isl.PwMultiAff
    ) -> tuple[Affine, ...] | None:
        """The place of an access in memory, if neither it nor the storage divides."""
        element = apply_affine(index, self.instance)
        return None if element is None else apply_affine(storage, element)

    def _plain_local(self, local: LocalArray, index: isl.PwMultiAff) -> tuple[Affine, ...] | None:
        """The place of an access in a local, where it is plain that the loops around cancel out.

        isl leaves out loops of one iteration, which the corner counts, from what it says of loops.
        """
        if len(self.loops) not in self.scan.members[self.statement.name]:
            return None
        around = self.loops[: local.corner.dim(isl.dim_type.in_)]
        element, corner = apply_affine(index, self.instance), apply_affine(local.corner, around)
        if element is not None and local.numbers is not None:
            element = apply_affine(local.numbers, element)
        if element is None or corner is None or local.folds:
            return None
        placed = tuple(element[d] - corner[d] for d in local.order)
        outer = frozenset[str]().union(*map(variables, around))
        return None if any(outer & variables(place) for place in placed) else placed

    def _as_isl_says(self, name: str, placed: isl.PwMultiAff) -> Element:
        """The place  S -> M  of an access, in the text that isl makes of it."""
        here = placed.pullback_pw_multi_aff(self.inverse)
        if here.domain().is_empty():  # a guard that never holds here: any place will do
            return Element(name, (const(0),) * here.dim(isl.dim_type.out))
        expr = self.build.access_from_pw_multi_aff(here)
        return Element(
            name, tuple(to_index(expr.get_op_arg(k)) for k in range(1, expr.get_op_n_arg()))
        )

    def expr(self, expr: Expr) -> LoopExpr:
        match expr:
            case Load(array, index, dtype, dynamic):
                order = self.scan.storages[array].permutation if dynamic else ()
                places = tuple((order.index(d), self.expr(e)) for d, e in dynamic)
                guarded = not self.statement.domain.is_subset(index.domain())
                return Read(self.element(array, index), dtype, places, guarded)
            case Index(value, dtype):
                return Value(
                    to_index(
                        self.build.expr_from_pw_aff(value.pullback_pw_multi_aff(self.inverse))
                    ),
                    dtype,
                )
            case Within(domain):
                inside = domain.preimage_pw_multi_aff(self.inverse)
                return Test(to_condition(self.build.expr_from_set(inside)))
            case Call(function, arguments, dtype):
                return Call(function, tuple(self.expr(a) for a in arguments), dtype)
            case Cast(argument, dtype):
                return Cast(self.expr(argument), dtype)  # for storage or not: there it is stored
            case Const():
                return expr


def _convert(node: isl.AstNode, scan: _Scan, mark: LoopMark) -> tuple[Node, ...]:
    """An isl AST as LoopNest nodes; `mark` is what stands just above the next loop."""
    match isl.ast_node_type(node.get_type()).name:
        case "block":
            children = node.block_get_children()
            return tuple(
                n
                for k in range(children.n_ast_node())
                for n in _convert(children.get_at(k), scan, mark)
            )
        case "mark":
            return _convert_mark(node, scan)
        case "if_":
            otherwise = node.if_get_else_node() if node.if_has_else_node() else None
            return (
                If(
                    to_condition(node.if_get_cond()),
                    _block(_convert(node.if_get_then_node(), scan, mark)),
                    _block(_convert(otherwise, scan, mark)) if otherwise else None,
                ),
            )
        case "for_":
            return (_convert_for(node, scan, mark),)
        case "user":
            position = node.get_annotation().get_name().removeprefix("assign_")
            return (scan.assigns[int(position)],)
    raise AssertionError(f"isl generated a node that polyc does not know: {node}")


def _convert_mark(node: isl.AstNode, scan: _Scan) -> tuple[Node, ...]:
    name = node.mark_get_id().get_name()
    if kind_of(name) not in LIMITS:
        mark, below = LoopMark.parse(name), node.mark_get_node()
        if mark.at is not None and isl.ast_node_type(below.get_type()).name != "for_":
            # isl has left the loop out, which runs once, on one of the threads it has room for.
            inner, only = _block(_convert(below, scan, LoopMark())), const(mark.at)
            name = f"only{mark.apart}" if mark.width > 1 else "one"  # which nothing depends on
            return (_marked(For(name, only, only + 1, 1, inner), mark),)
        return _convert(below, scan, mark)
    scan.depth += 1
    body = _convert(node.mark_get_node(), scan, LoopMark())
    scan.depth -= 1
    named = {element.array for n in body for element, _ in elements(n, None)}
    locals_ = tuple(
        Local(p.name, p.dtype, p.shape, p.source)
        for p in scan.promoted.values()
        if (p.mark, p.depth) == (name, scan.depth) and p.name in named
    )
    near = tuple(_find_near(name, body, scan))
    if not (locals_ or near) and kind_of(name) in CPU_MARKS:
        return body
    return (Block(body, locals_, near=near),)


def _find_near(mark: str, body: tuple[Node, ...], scan: _Scan) -> Iterator[Near]:
    """What may live in the block of a mark, from where some access says in terms of loops around.

    isl may have said a loop around by one inside, where these are one.
    """
    nodes = [n for top in body for n in walk_nodes(top)]
    inner = {n.var for n in nodes if isinstance(n, For)}
    for name, array in scan.near.items():
        if (array.mark, array.depth) == (mark, scan.depth):
            firsts = [scan.firsts[id(n)].get(name) for n in nodes if isinstance(n, Assign)]
            outside = (f for f in firsts if f and inner.isdisjoint(_named(f)))
            if (first := next(outside, None)) is not None:
                yield Near(first, array.dimension, array.rows)


def _named(element: Element) -> frozenset[str]:
    return frozenset[str]().union(*map(variables, element.index))


def _convert_for(node: isl.AstNode, scan: _Scan, mark: LoopMark) -> For:
    """for (c = init; c < bound or c <= bound; c += inc)."""
    name = node.for_get_iterator().get_id().get_name()
    lower = to_index(node.for_get_init())
    body = _block(_convert(node.for_get_body(), scan, LoopMark()))
    if node.for_is_degenerate():
        return _marked(For(name, lower, lower + 1, 1, body), mark)
    condition = node.for_get_cond()
    bound = to_index(condition.get_op_arg(1))
    inclusive = condition.get_op_type() == isl.ast_expr_op_type.le
    step = to_index(node.for_get_inc())
    assert step.is_constant, f"the loop {name} has no constant step"
    return _marked(For(name, lower, bound + 1 if inclusive else bound, step.constant, body), mark)


def _marked(loop: For, mark: LoopMark) -> For:
    """The loop as its mark says; one with a width runs all of it, and asks inside what is due."""
    if not mark.width:
        return replace(loop, kind=mark.kind, instruction=mark.instruction)
    assert loop.step == 1, f"the loop {loop.var} is not one of single steps"
    due = (Compare("ge", var(loop.var) - loop.lower), Compare("ge", loop.upper - 1 - var(loop.var)))
    body = Block((If(Logic("and", due), loop.body),))
    return For(loop.var, const(0), const(mark.width), 1, body, mark.kind, apart=mark.apart)


def _block(body: tuple[Node, ...]) -> Block:
    if len(body) == 1 and isinstance(body[0], Block):
        return body[0]
    return Block(body)
