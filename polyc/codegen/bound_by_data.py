"""Loops of which data says how far they go, or which iteration, in place of asking in each.

    for e in 0 .. 75:                                   for e in 0 .. min(75, n[o]):
      acc[l] add= e < n[o] ? x[C[o][e]][l] : 0    ->      acc[l] add= x[C[o][e]][l]

    for i in 0 .. 500:                                  for i in 0 .. (p[j] ? 500 : 0):
      c[i] = c[i] or (p[j] and x[j] > y[i])       ->      c[i] = c[i] or x[j] > y[i]

    for i in 0 .. 500:                                  for i in p[k], if it is one of 0 .. 500:
      y[i][l] add= p[k] == i ? u[k][l] : 0        ->      y[i][l] add= u[k][l]

    for i in 0 .. 500:                                  for i in p[k], if it is one of 0 .. 500:
      y[i] = p[k] == i ? u[k] : y[i]              ->      y[i] = u[k]

    for k in 0 .. n:                                    for k in max(0, b) .. min(n, e):
      y add= b <= k and k < e ? v[k] : 0          ->      y add= v[k]

All that such a loop does is update, and in other iterations what is added is neutral, or what is
there stays; what it declares is gone behind each iteration. It is done last, on loops that have
been proven with all their iterations: these are some of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from polyc.loopnest.index import Affine, Extremum, FloorDiv, Var, variables
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    LoopExpr,
    Node,
    Read,
    Test,
    Value,
    rewrite_nodes,
    walk_expr,
    walk_nodes,
)
from polyc.scop.expr import BOOL, INT64, Call, Cast, Const
from polyc.scop.scop import identity

ZERO = Affine(0, ())


def bound_by_data(block: Block) -> Block:
    """The nest with such loops bounded by data, those inside of others first."""

    def visit(node: Node) -> Node:
        if not isinstance(node, For) or node.kind != "sequential" or node.end is not None:
            return node
        end = _agreed(node, _find_end)
        if end is not None:
            node = replace(node, body=_rewritten(node, _without_end), end=end)
            begin = _agreed(node, _find_begin)
            if begin is not None:
                node = replace(node, body=_rewritten(node, _without_begin), begin=begin)
            return node
        only = _agreed(node, _find_only)
        if only is not None:
            return replace(node, body=_rewritten(node, _without_only), only=only)
        return node

    return _ask_once(rewrite_nodes(block, visit))


def _ask_once(block: Block) -> Block:
    """The nest where what has one answer for a loop is asked before it, the outermost such one."""
    asked: dict[int, LoopExpr] = {}
    inside: set[int] = set()
    for loop in (n for n in walk_nodes(block) if isinstance(n, For) and n.kind == "sequential"):
        if id(loop) in inside or loop.end is not None or loop.only is not None:
            continue
        if (question := _agreed(loop, _find_asked)) is not None:
            asked[id(loop)] = question
            inside.update(map(id, walk_nodes(loop.body)))

    def visit(node: Node) -> Node:
        if not isinstance(node, For) or id(node) not in asked:
            return node
        end = Call("select", (asked[id(node)], Value(node.upper), Value(node.lower)), INT64)
        return replace(node, body=_rewritten(node, _without_asked), end=end)

    return rewrite_nodes(block, visit)


def _agreed(loop: For, find: Callable[[Assign, For], LoopExpr | None]) -> LoopExpr | None:
    """What all updates in a loop say of it, but those of locals that each iteration has anew."""
    inside = [*walk_nodes(loop.body)]
    own = {local.name for node in inside if isinstance(node, Block) for local in node.locals}
    updates = (n for n in inside if isinstance(n, Assign) and n.target.array not in own)
    found = {find(node, loop) for node in updates}
    return found.pop() if len(found) == 1 else None


def _rewritten(loop: For, rewrite: Callable[[Assign, For], Assign]) -> Block:
    return rewrite_nodes(loop.body, lambda n: rewrite(n, loop) if isinstance(n, Assign) else n)


def _find_end(assign: Assign, loop: For) -> LoopExpr | None:
    """What the loop's variable is compared with, if from there on nothing is added."""
    for test in _tests(_condition(assign)):
        match test:
            case Call("lt", (Value(index), end)) if _is_behind(_rest(index, loop), loop):
                return end if _is_settled(end, loop) else None
    return None


def _without_end(assign: Assign, loop: For) -> Assign:
    """The update without the question, where it is the one that ends the loop."""

    def is_end(test: LoopExpr) -> bool:
        match test:
            case Call("lt", (Value(index), end)):
                return _rest(index, loop) == ZERO and _is_settled(end, loop)
        return False

    return _without(assign, is_end)


def _find_begin(assign: Assign, loop: For) -> LoopExpr | None:
    """What the loop's variable is compared with, if before that nothing is added."""
    found = (test for test in _tests(_condition(assign)) if _is_begin(test, loop))
    test = next(found, None)
    return None if test is None or loop.step != 1 else _arguments(test)[0]


def _without_begin(assign: Assign, loop: For) -> Assign:
    """The update without that question."""
    return _without(assign, lambda test: _is_begin(test, loop))


def _is_begin(test: LoopExpr, loop: For) -> bool:
    match test:
        case Call("le", (begin, Value(index))):
            return _rest(index, loop) == ZERO and _is_settled(begin, loop)
    return False


def _without(assign: Assign, is_answered: Callable[[LoopExpr], bool]) -> Assign:
    """An assignment without the first test of its condition that has been answered."""
    match assign.value:
        case Call("select", (condition, value, other)):
            tests = _tests(condition)
            answered = next(filter(is_answered, tests), None)
            if answered is None:
                return assign
            left = [test for test in tests if test is not answered]
            value = _granted(value, answered)
            if not left:
                return replace(assign, value=value)
            arguments = (_all(left), value, other)
            return replace(assign, value=replace(assign.value, arguments=arguments))
    return assign


def _granted(expr: LoopExpr, test: LoopExpr) -> LoopExpr:
    """An expression where a test holds.

    x[b <= k and k < e ? c[k] : 0], where b <= k   ->   x[k < e ? c[k] : 0]
    """
    if expr == test:
        return Const(True, BOOL)
    match expr:
        case Call(function, arguments):
            parts = tuple(_granted(part, test) for part in arguments)
            if function == "select" and parts[0] == Const(True, BOOL):
                return parts[1]
            if function == "and" and Const(True, BOOL) in parts:
                return parts[1] if parts[0] == Const(True, BOOL) else parts[0]
            return replace(expr, arguments=parts)
        case Cast(argument):
            return replace(expr, argument=_granted(argument, test))
        case Read(dynamic=dynamic):
            places = tuple((d, _granted(place, test)) for d, place in dynamic)
            return replace(expr, dynamic=places)
    return expr


def _find_only(assign: Assign, loop: For) -> LoopExpr | None:
    """The one value of the loop's variable with which something is added."""
    picks = [test for test in _tests(_condition(assign)) if _is_pick(test, loop)]
    if not picks or loop.step != 1:
        return None
    place, index = _arguments(picks[0])
    rest = _rest(index.index, loop)
    return place if rest == ZERO else Call("sub", (place, Value(rest)), INT64)


def _without_only(assign: Assign, loop: For) -> Assign:
    """The update without the test that picks the loop's iteration."""
    return _without(assign, lambda test: _is_pick(test, loop))


def _find_asked(assign: Assign, loop: For) -> LoopExpr | None:
    """What is asked in each iteration, and has one answer for the loop: else nothing is done."""
    asked = [test for test in _tests(_condition(assign)) if _is_settled(test, loop)]
    return _all(asked) if asked and _keeps(assign) is not None else None


def _without_asked(assign: Assign, loop: For) -> Assign:
    """The update without these questions."""
    assert isinstance(assign.value, Call)
    kept, condition = assign.value.arguments
    others = [test for test in _tests(condition) if not _is_settled(test, loop)]
    value = _all(others) if others else Const(True, BOOL)
    return replace(assign, value=replace(assign.value, arguments=(kept, value)))


def _all(tests: Sequence[LoopExpr]) -> LoopExpr:
    return reduce(lambda a, b: Call("and", (a, b), BOOL), tests)


def _keeps(assign: Assign) -> LoopExpr | None:
    """What has to hold for an update to change the truth that it reads, and writes again."""
    match assign.value:
        case Call("or", (Read(element, dynamic=()), condition)) if element == assign.target:
            return None if assign.reduction else condition
    return None


def _condition(assign: Assign) -> LoopExpr | None:
    """What has to hold for an update to change anything: to add what is not neutral, to be true."""
    match assign.value:
        case Call("select", (condition, _, Const(neutral))) if assign.reduction:
            nothing = bool(neutral == identity(assign.reduction, assign.dtype))
            return condition if nothing else None
        case Call("select", (condition, _, Read(element, dynamic=()))) if element == assign.target:
            return None if assign.reduction else condition
    return _keeps(assign)


def _tests(condition: LoopExpr | None) -> list[LoopExpr]:
    """The parts of a condition, all of which have to hold."""
    match condition:
        case None:
            return []
        case Call("and", parts):
            return [test for part in parts for test in _tests(part)]
    return [condition]


def _is_pick(test: LoopExpr, loop: For) -> bool:
    """Whether a test holds for one value of a loop's variable, which is known before the loop."""
    match test:
        case Call("eq", (place, Value(index))) if place.dtype == INT64:
            rest = variables(_rest(index, loop))
            return _inside(loop).isdisjoint(rest) and _is_settled(place, loop)
    return False


def _arguments(test: LoopExpr) -> tuple[LoopExpr, Value]:
    assert isinstance(test, Call)
    place, index = test.arguments
    assert isinstance(index, Value)
    return place, index


def _is_settled(expr: LoopExpr, loop: For) -> bool:
    """Whether an expression has one value in all iterations; one that asks for places may not."""
    if any(isinstance(part, Test) for part in walk_expr(expr)):
        return False
    used = {v for part in walk_expr(expr) for v in _variables(part)}
    written = [a.target for a in walk_nodes(loop.body) if isinstance(a, Assign)]
    read = [part for part in walk_expr(expr) if isinstance(part, Read)]
    return _inside(loop).isdisjoint(used) and all(
        target.array != part.element.array or _is_another(target, part, loop)
        for target in written
        for part in read
    )


def _is_another(target: Element, read: Read, loop: For) -> bool:
    """Whether an element that a loop writes lies behind one that is read, in all iterations."""
    starts = {n.var: n.lower for n in (loop, *walk_nodes(loop.body)) if isinstance(n, For)}
    apart = (one - other for one, other in zip(target.index, read.element.index, strict=True))
    return not read.dynamic and any(_least(index, starts) > 0 for index in apart)


def _least(index: Affine, starts: Mapping[str, Affine]) -> float:
    """A lower bound of an index, by where the loops begin of which it has the variables.

    c1 + c2 - c0, where c2 begins at max(0, c0 + 1 - c1)   ->   1
    """
    found = index.constant if index.is_constant else -math.inf
    for atom, count in index.terms:
        rest = index - Affine(0, ((atom, count),))
        options: tuple[Affine, ...] = ()
        match atom:
            case Var(name) if name in starts and count > 0:
                options = (starts[name],)
            case Extremum("max", arguments) if count > 0:
                options = arguments
            case FloorDiv(argument, divisor) if count > 0:
                least = _least(argument, starts)
                options = () if math.isinf(least) else (Affine(int(least // divisor)),)
        found = max([found, *(_least(rest + option * count, starts) for option in options)])
    return found


def _inside(loop: For) -> set[str]:
    """The variables that change within the loop."""
    return {loop.var, *(node.var for node in walk_nodes(loop.body) if isinstance(node, For))}


def _rest(index: Affine, loop: For) -> Affine:
    """What is added to the loop's variable."""
    return index - Affine(0, ((Var(loop.var), 1),))


def _variables(expr: LoopExpr) -> Iterator[str]:
    match expr:
        case Read(element):
            for index in element.index:
                yield from variables(index)
        case Value(index):
            yield from variables(index)


def _is_behind(rest: Affine, loop: For) -> bool:
    """Whether what is added to the loop's variable is never negative."""
    starts = {n.var: n.lower for n in walk_nodes(loop.body) if isinstance(n, For)}
    own = (
        isinstance(atom, Var)
        and factor > 0
        and (start := starts.get(atom.name)) is not None
        and start.is_constant
        and start.constant >= 0
        for atom, factor in rest.terms
    )
    return rest.constant >= 0 and all(own)
