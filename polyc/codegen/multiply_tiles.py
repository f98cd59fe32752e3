"""Loops that an instruction for matrices runs, as loads, products and stores of its registers.

    for m in 0 .. 28: acc[m][…] = 0                  zero tiles 0, 1, 2, 3
    for k in 0 .. 256 step 64:                       for k in 0 .. 256 step 64:
      for m in 0 .. 28:  # instruction tile.u8s8       load tiles 4, 5: x[0][k], x[14][k]
        for n in 0 .. 32:                              load tiles 6, 7: w[k / 4][0], w[k / 4][16]
          for c in 0 .. 64 step 4:             ->      tile 0 += tile 4 * tile 6
            for r in 0 .. 4:                           tile 1 += tile 4 * tile 7
              acc[m][n] add= x[m][k + c + r] *         …
                             w[(k + c) / 4][n][r]    store tiles 0, 1, 2, 3: acc[0][0], …

Rows, columns and words are cut to what a register holds: 28 rows are 14 and 14, as a product takes
as long as it has rows. Loops that the result does not move with are run while it stays in
registers; each group of parts of it for which these suffice runs them by itself. The proof has
judged the loops; here only registers are filled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from polyc.codegen.tile_groups import Group, group_parts, move_part, result_part
from polyc.loopnest.index import Affine, Compare, modulo, stride, var, variables
from polyc.loopnest.matrices import MatrixNest, list_loops, match_matrices
from polyc.loopnest.nodes import (
    Assign,
    Block,
    For,
    If,
    Node,
    TileProduct,
    TileShapes,
    extent_of,
    walk_nodes,
)
from polyc.loopnest.place import Place
from polyc.loopnest.prototype import Param
from polyc.loopnest.registers import elements
from polyc.loopnest.substitute import substitute_element
from polyc.scop.expr import Const
from polyc.target.costs import MATRIX_AWAKE
from polyc.target.vectors import Vectors


def multiply_tiles(block: Block, params: Sequence[Param], vectors: Vectors) -> Block:
    """The nest with products of matrices in registers; their loops must be instructions."""
    if not any(
        isinstance(n, For) and n.instruction and vectors.find_matrices(str(n.instruction))
        for n in walk_nodes(block)
    ):
        return block
    return _Walk(vectors).block(block, Place.of(params))


@dataclass(frozen=True)
class _Sum:
    """What the leaves of a tree of loops have in common: the part of a result that they add to.

    start: the place of its first element; apart: by each loop over rows, how far these are; nest:
    one of them.
    """

    nest: MatrixNest
    start: Affine
    apart: tuple[int, ...]

    def adds_to_the_same(self, other: _Sum) -> bool:
        return (
            self.nest.row == other.nest.row
            and self.nest.assign.target.array == other.nest.assign.target.array
            and (self.nest.extents, self.start, self.apart)
            == (other.nest.extents, other.start, other.apart)
        )

    @property
    def box(self) -> set[tuple[int, int]]:
        """(step, iterations) of the loops over the part."""
        loops = zip((*self.apart, 1), (*self.nest.rows, self.nest.others[0]), strict=True)
        return {(s, n) for s, loop in loops if (n := extent_of(loop) or 1) > 1}


@dataclass(frozen=True)
class _Walk:
    vectors: Vectors

    def block(self, block: Block, place: Place) -> Block:
        place = place.with_locals(block.locals)
        body: list[Node] = []
        waiting = list(block.body)
        while waiting:
            run = self._find_run(waiting, place)
            if not run:
                body.append(self._node(waiting.pop(0), place))
                continue
            found, count = run
            is_zero = _take_zeros(body, found, place)
            tree = waiting[:count]
            del waiting[:count]
            groups = group_parts(*found.nest.extents)
            for group in groups:
                body += self._run_group(group, found.nest, tree, is_zero, place)
            if waiting:
                waiting[0] = _stay_awake(waiting[0], found.nest, groups[-1])
        return replace(block, body=tuple(body))

    def _node(self, node: Node, place: Place) -> Node:
        match node:
            case Block():
                return self.block(node, place)
            case If(then=then, otherwise=otherwise):
                other = self.block(otherwise, place) if otherwise else None
                return replace(node, then=self.block(then, place), otherwise=other)
            case For(instruction=str(name)) if self.vectors.find_matrices(name):
                return _run_one_by_one(node)
            case For(body=body):
                return replace(node, body=self.block(body, place.inside(node)))
            case _:
                return node

    def _find_run(self, nodes: Sequence[Node], place: Place) -> tuple[_Sum, int] | None:
        """(a sum, how many of the first nodes belong to it); None if the first is none."""
        first = self._sum_of(nodes[0], place)
        if first is None:
            return None
        count = 1
        for node in nodes[1:]:
            other = self._sum_of(node, place)
            if other is None or not first.adds_to_the_same(other):
                break
            count += 1
        return first, count

    def _sum_of(self, node: Node, place: Place) -> _Sum | None:
        """What a tree of loops adds to, if all of it adds to one part of a result."""
        match node:
            case For(instruction=str(name)) if name:
                return self._leaf(name, node, place)
            case For(kind="sequential", end=None, body=body):
                found = self._common(body.body, place.inside(node)) if not body.locals else None
                return found if found and node.var not in variables(found.start) else None
            case Block(locals=(), concurrent=False, team=False, body=nodes):
                return self._common(nodes, place)
            case If(then=then, otherwise=None) if not then.locals:
                return self._common(then.body, place)
            case _:
                return None

    def _common(self, nodes: Sequence[Node], place: Place) -> _Sum | None:
        run = self._find_run(nodes, place) if nodes else None
        return run[0] if run and run[1] == len(nodes) else None

    def _leaf(self, name: str, loop: For, place: Place) -> _Sum | None:
        row = self.vectors.find_matrices(name)
        nest = match_matrices(row, loop, place) if row else None
        if not isinstance(nest, MatrixNest):
            return None
        inside = place.inside(*nest.rows, *nest.others)
        result = inside.address(nest.assign.target)
        apart = tuple((stride(result, loop.var) or 0) * loop.step for loop in nest.rows)
        start = inside.address(substitute_element(nest.assign.target, nest.starts))
        return _Sum(nest, start, apart)

    def _run_group(
        self, group: Group, nest: MatrixNest, tree: Sequence[Node], is_zero: bool, place: Place
    ) -> Iterator[Node]:
        """The loops of a sum for some parts of the result, which stay in registers meanwhile."""
        yield TileShapes(group.shapes)
        for register, (r, c) in enumerate(group.sums):
            yield move_part("zero" if is_zero else "load", register, result_part(nest, r, c))
        for node in tree:
            yield self._multiply(node, group, place)
        for register, (r, c) in enumerate(group.sums):
            yield move_part("store", register, result_part(nest, r, c))

    def _multiply(self, node: Node, group: Group, place: Place) -> Node:
        match node:
            case For(instruction=str(name)) if name:
                leaf = self._leaf(name, node, place)
                assert leaf is not None
                return Block(tuple(group.products(leaf.nest)))
            case For(body=body):
                inner = place.inside(node)
                nodes = tuple(self._multiply(n, group, inner) for n in body.body)
                return replace(node, body=replace(body, body=nodes))
            case Block(body=body):
                return replace(node, body=tuple(self._multiply(n, group, place) for n in body))
            case If(then=then):
                nodes = tuple(self._multiply(n, group, place) for n in then.body)
                return replace(node, then=replace(then, body=nodes))
            case _:
                raise AssertionError("a tree of a sum has loops, conditions, and what is summed")


def _take_zeros(body: list[Node], found: _Sum, place: Place) -> bool:
    """Whether the part of a result is filled with zeros before: these loops are taken away."""
    array = found.nest.assign.target.array
    for k in reversed(range(len(body))):
        if _fills(body[k], found, place):
            del body[k]
            return True
        if any(element.array == array for element, _ in elements(body[k], None)):
            return False
    return False


def _fills(node: Node, found: _Sum, place: Place) -> bool:
    """Whether loops do nothing but to assign 0 to all of the part."""
    loops: list[For] = []
    while isinstance(node, For) and len(node.body.body) == 1 and not node.body.locals:
        loops.append(node)
        node = node.body.body[0]
    match node:
        case Assign(target=target, value=Const(value=value), reduction=None) if value == 0:
            if target.array != found.nest.assign.target.array:
                return False
        case _:
            return False
    inside = place.inside(*loops)
    steps = [(stride(inside.address(target), n.var), n.step, extent_of(n)) for n in loops]
    box = {(s * step if s is not None else None, n) for s, step, n in steps if n != 1}
    start = inside.address(substitute_element(target, {n.var: n.lower for n in loops}))
    return box == found.box and start == found.start and len(box) == sum(n != 1 for *_, n in steps)


def _stay_awake(node: Node, nest: MatrixNest, group: Group) -> Node:
    """Loops over rows that take the result, with a product now and then that nobody takes.

    Without work for some hundred nanoseconds the unit for matrices of a Sapphire or Emerald Rapids
    falls asleep, and its next product costs 300 ns more: a layer of 64 channels took 1.5 times as
    long. A product takes 16 cycles itself, as long as a vector of 16 results, so there is one for
    some of these. The registers have been stored; what they hold does not matter any more.
    """
    reads = any(e.array == nest.assign.target.array for e, _ in elements(node, None))
    if not (isinstance(node, For) and node.kind == "sequential" and reads):
        return node
    first = next(n for n in group.products(nest) if isinstance(n, TileProduct))
    below = (n for n in walk_nodes(node.body) if isinstance(n, For) and n.kind == "vector")
    apart = max(1, MATRIX_AWAKE // max((extent_of(n) or 1 for n in below), default=1))
    now = Compare("eq", modulo(var(node.var), apart))
    product = first if apart == 1 else If(now, Block((first,)))
    return replace(node, body=replace(node.body, body=(product, *node.body.body)))


def _run_one_by_one(loop: For) -> For:
    """Loops over what is left of a sum, whose words are no whole ones."""
    loops, inside = list_loops(loop)
    body = replace(loops[-1].body, body=inside)
    for each in reversed(loops):
        body = Block((replace(each, kind="sequential", instruction="", body=body),))
    (outer,) = body.body
    assert isinstance(outer, For)
    return outer
