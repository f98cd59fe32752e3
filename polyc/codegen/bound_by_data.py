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

    for k in 0 .. n:                                    for k in 0 .. n until left:
      y add= not left ? v[k] : 0                  ->      y add= v[k]
      left = not left and v[k] > 9 ? true : left          left = v[k] > 9 ? true : left

All that such a loop does is update, and in other iterations what is added is neutral, or what is
there stays; what it declares is gone behind each iteration. It is done last, on loops that have
been proven with all their iterations: these are some of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

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
from polyc.loopnest.questions import all_of, condition_of, keeps, tests_of, without
from polyc.scop.expr import BOOL, INT64, Call, Const

ZERO = Affine(0, ())


def bound_by_data(block: Block) -> Block:
    """The nest with such loops bounded by data, those inside of others first."""

    def visit(node: Node) -> Node:
        if not isinstance(node, For) or node.kind != "sequential" or node.end is not None:
            return node
        left = _agreed(node, _find_left)
        if left is not None:
            node = replace(node, body=_still(node.body, left), left=left)
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

    return _ask_once(rewrite_nodes(rewrite_nodes(block, visit), _ask_of_picked))


def _ask_of_picked(node: Node) -> Node:
    """What else is asked about an iteration that data picks, asked once for it."""
    if not isinstance(node, For) or node.only is None:
        return node
    asked = _agreed(node, _find_settled)
    if asked is None:
        return node
    body = _rewritten(node, _without_settled)
    return replace(node, body=body, left=Call("not", (asked,), BOOL))


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
    own = _own(loop)
    found = {
        find(node, loop)
        for node in walk_nodes(loop.body)
        if isinstance(node, Assign) and node.target.array not in own
    }
    return found.pop() if len(found) == 1 else None


def _own(loop: For) -> set[str]:
    """The locals that each iteration of a loop has anew."""
    blocks = (node for node in walk_nodes(loop.body) if isinstance(node, Block))
    return {local.name for block in blocks for local in block.locals}


def _rewritten(loop: For, rewrite: Callable[[Assign, For], Assign]) -> Block:
    return rewrite_nodes(loop.body, lambda n: rewrite(n, loop) if isinstance(n, Assign) else n)


def _find_end(assign: Assign, loop: For) -> LoopExpr | None:
    """What the loop's variable is compared with, if from there on nothing is added."""
    for test in tests_of(condition_of(assign)):
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

    return without(assign, is_end)


def _find_begin(assign: Assign, loop: For) -> LoopExpr | None:
    """What the loop's variable is compared with, if before that nothing is added."""
    found = (test for test in tests_of(condition_of(assign)) if _is_begin(test, loop))
    test = next(found, None)
    return None if test is None or loop.step != 1 else _arguments(test)[0]


def _without_begin(assign: Assign, loop: For) -> Assign:
    """The update without that question."""
    return without(assign, lambda test: _is_begin(test, loop))


def _is_begin(test: LoopExpr, loop: For) -> bool:
    match test:
        case Call("le", (begin, Value(index))):
            return _rest(index, loop) == ZERO and _is_settled(begin, loop)
    return False


def _find_left(assign: Assign, loop: For) -> Read | None:
    """What some iteration sets, behind which nothing is done in others."""
    own = _own(loop)
    assigns = (n for n in walk_nodes(loop.body) if isinstance(n, Assign))
    written = {n.target for n in assigns if n.target.array not in own}
    for test in tests_of(condition_of(assign)):
        match test:
            case Call("not", (Read(element, dynamic=()) as left,)) if element in written:
                if _inside(loop).isdisjoint(v for index in element.index for v in variables(index)):
                    return left
    return None


def _still(body: Block, left: LoopExpr) -> Block:
    """The body of a loop that ends when it is left: up to where it may be, nobody asks."""
    assert isinstance(left, Read)
    nodes = list(body.body)
    for k, node in enumerate(nodes):
        inside = [n for n in walk_nodes(node) if isinstance(n, Assign)]
        if isinstance(node, Assign):
            nodes[k] = without(node, lambda test: test == Call("not", (left,), BOOL))
        if any(n.target == left.element for n in inside):
            break
    return replace(body, body=tuple(nodes))


def _find_only(assign: Assign, loop: For) -> LoopExpr | None:
    """The one value of the loop's variable with which something is added."""
    picks = [test for test in tests_of(condition_of(assign)) if _is_pick(test, loop)]
    if not picks or loop.step != 1:
        return None
    place, index = _arguments(picks[0])
    rest = _rest(index.index, loop)
    return place if rest == ZERO else Call("sub", (place, Value(rest)), INT64)


def _without_only(assign: Assign, loop: For) -> Assign:
    """The update without the test that picks the loop's iteration."""
    return without(assign, lambda test: _is_pick(test, loop))


def _find_settled(assign: Assign, loop: For) -> LoopExpr | None:
    """What else is asked, and has one answer for the loop."""
    asked = [test for test in tests_of(condition_of(assign)) if _is_settled(test, loop)]
    return all_of(asked) if asked else None


def _without_settled(assign: Assign, loop: For) -> Assign:
    """The update without these questions."""
    for test in tests_of(condition_of(assign)):
        if _is_settled(test, loop):
            assign = without(assign, lambda one, test=test: one == test)  # type: ignore[misc]
    return assign


def _find_asked(assign: Assign, loop: For) -> LoopExpr | None:
    """What is asked in each iteration, and has one answer for the loop: else nothing is done."""
    asked = [test for test in tests_of(condition_of(assign)) if _is_settled(test, loop)]
    return all_of(asked) if asked and keeps(assign) is not None else None


def _without_asked(assign: Assign, loop: For) -> Assign:
    """The update without these questions."""
    assert isinstance(assign.value, Call)
    kept, condition = assign.value.arguments
    others = [test for test in tests_of(condition) if not _is_settled(test, loop)]
    value = all_of(others) if others else Const(True, BOOL)
    return replace(assign, value=replace(assign.value, arguments=(kept, value)))


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
