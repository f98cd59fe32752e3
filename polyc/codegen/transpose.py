"""Register transposes: accesses that move in memory across the lanes of a vector loop.

    for u in 0 .. 16:  # unroll          for u in 0 .. 16:  for v in 0 .. 16:  # vector
      for v in 0 .. 16:  # vector   ->     tile[u][v] = x[v0 + u][u0 + v]
        y[u0 + u][v0 + v] = x[v0 + v][u0 + u]  transpose tile
                                         for u in 0 .. 16:  for v in 0 .. 16:  # vector
                                           y[u0 + u][v0 + v] = tile[u][v]

A read that has unit step along the unrolled loop, and not along the vector loop, is loaded in
vectors along the former and transposed; a write of that kind is transposed before it is stored.
Where the unrolled loop walks whole rows, such as the four channels that stand together for an
instruction, the rows that it writes lie one behind the other: their elements are stored in turns.
So it is with two unrolled loops that walk a row together, as the columns and phases of a transposed
convolution do. Each cache line is touched once, and no lane is moved alone. A tile at the border is
a square as well, of which rows are missing and lanes are idle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from polyc.loopnest.index import Affine, const, floordiv, stride, substitute, var, variables
from polyc.loopnest.lanes import cut_lanes
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    Local,
    LoopExpr,
    Node,
    Read,
    Transpose,
    extent_of,
    lanes_of,
    rewrite_nodes,
    walk_expr,
    walk_nodes,
)
from polyc.loopnest.substitute import substitute_node
from polyc.scop.expr import Call, Cast, Const
from polyc.target.vectors import Vectors

LARGEST_SIDE = 16
"""Lanes of a tile: one of bytes with 64 rows would need more registers than there are."""


Shapes = Mapping[str, tuple[int, ...]]


def transpose_tiles(
    block: Block, vectors: Vectors, names: Iterator[int], shapes: Shapes = MappingProxyType({})
) -> Block:
    """The nest with the accesses to memory across the lanes of vector loops made transposes.

    shapes: of arrays in memory.
    """
    nodes = tuple(walk_nodes(block))
    locals_ = frozenset(lo.name for n in nodes if isinstance(n, Block) for lo in n.locals)

    def rewrite(node: Node) -> Node:
        tile = _find_tile(node, locals_, shapes)
        if tile is None or not (tile.crossing or tile.stores_across):
            return node
        parts = tile.pieces(min(vectors.bytes // tile.assign.widest, LARGEST_SIDE), vectors.masked)
        return Block(tuple(p.transposed(names) if p.is_square else p.plain() for p in parts))

    return rewrite_nodes(block, rewrite)


@dataclass(frozen=True)
class _Tile:
    """An assignment in a vector loop and an unrolled loop, both of constant extent.

    Accesses to `locals` are left alone: those in registers are vectors along the vector loop, of so
    many `lanes`, some of them idle at the border.
    """

    vector: For
    unroll: For
    assign: Assign
    locals: frozenset[str]
    shapes: Shapes
    lanes: int = 2

    @property
    def width(self) -> int:
        return extent_of(self.vector) or 0

    @property
    def height(self) -> int:
        return extent_of(self.unroll) or 0

    @property
    def is_square(self) -> bool:
        """Whether there is something to transpose."""
        return self.width > 1 and self.height > 1

    def pieces(self, side: int, masked: bool) -> Iterator[_Tile]:
        """Tiles of at most `side` each way.

        Where registers are accessed, vectors are cut as they are everywhere else, and a tile is no
        higher than they are wide.
        """
        reads = {e.element.array for e in walk_expr(self.assign.value) if isinstance(e, Read)}
        fixed = bool(self.locals & {self.assign.target.array, *reads})
        for v in cut_lanes(self.vector, side, masked or not fixed):
            lanes = lanes_of(v) if fixed else self.lanes
            for u in cut_lanes(self.unroll, lanes if fixed else side, masked=True):
                whole, rows = replace(v, idle=0), replace(u, idle=0)
                yield replace(self, vector=whole, unroll=rows, lanes=lanes)

    @property
    def crossing(self) -> tuple[Element, ...]:
        """The elements read that lie side by side along the unrolled loop only."""
        reads = (e for e in walk_expr(self.assign.value) if isinstance(e, Read))
        plain = (r.element for r in reads if not (r.dynamic or r.guarded))
        return tuple(dict.fromkeys(e for e in plain if self._is_across(e)))

    @property
    def stores_across(self) -> bool:
        return self._is_across(self.assign.target)

    def _is_across(self, element: Element) -> bool:
        if element.array in self.locals:
            return False
        lies_along = _steps(element, self.unroll.var)
        moves = _steps(element, self.vector.var)
        return (
            bool(lies_along)
            and lies_along[-1] == 1
            and not any(lies_along[:-1])
            and None not in moves
            and any(moves[:-1])
            and moves[-1] == 0
        )

    def lies_in_turns(self, side: int) -> bool:
        """Whether what is stored across is one run of memory, `side` lanes of each row."""
        element, height = self.assign.target, self.height
        shape = self.shapes.get(element.array, ())
        moves = _steps(element, self.vector.var)
        return (
            self.width == side
            and height in (2, 4, 8)
            and height < side
            and len(shape) == len(element.index) > 1
            and shape[-1] == height
            and self.unroll.lower == const(0)
            and moves == (*(0,) * (len(moves) - 2), 1, 0)
        )

    def plain(self) -> Node:
        """The loops, as they would be printed without a transpose."""
        unroll = replace(self.unroll, body=Block((self.assign,)))
        return replace(self.vector, body=Block((unroll,)))

    def transposed(self, names: Iterator[int]) -> Node:
        """Rows loaded along the unrolled loop, transposed; columns computed; stored."""
        side = self.lanes
        while side < max(self.width, self.height):
            side *= 2
        locals_: list[Local] = []
        loads: list[Node] = []
        table: dict[Element, Element] = {}
        for element in self.crossing:
            dtype = next(
                e.dtype
                for e in walk_expr(self.assign.value)
                if isinstance(e, Read) and e.element == element
            )
            local = Local(f"tile_{next(names)}", dtype, (side, side), element.array, is_tile=True)
            locals_.append(local)
            loads += self._load(element, local)
            table[element] = Element(local.name, (self._row(), self._column()))
        body = replace(self.assign, value=_replace_reads(self.assign.value, table))
        stores: list[Node] = []
        if self.stores_across:
            dtype = self.assign.dtype
            array = self.assign.target.array
            in_turns = self.lies_in_turns(side)
            shape = (self.height if in_turns else side, side)
            local = Local(f"tile_{next(names)}", dtype, shape, array, is_tile=True)
            locals_.append(local)
            stores = self._store_in_turns(local) if in_turns else self._store(local)
            body = replace(body, target=Element(local.name, (self._row(), self._column())))
        return Block((*loads, *self._rows(body, side), *stores), tuple(locals_))

    def _row(self) -> Affine:
        return var(self.unroll.var) - self.unroll.lower

    def _column(self) -> Affine:
        return var(self.vector.var) - self.vector.lower

    def _load(self, element: Element, local: Local) -> Iterator[Node]:
        """tile[k][l] = x[… v0 + k …][u0 + l], transposed; rows that are not there are zero."""
        side = local.shape[0]
        place = Element(local.name, (self._column(), self._row()))
        copy = replace(
            self.assign, target=place, value=Read(element, local.dtype), dtype=local.dtype
        )
        yield from self._columns(copy, side)
        for k in range(self.width, side):
            zero = Const(False if local.dtype == bool else 0, local.dtype)
            lane = Element(local.name, (const(k), var(self.unroll.var)))
            empty = replace(copy, target=lane, value=zero)
            yield replace(
                self.unroll,
                kind="vector",
                lower=const(0),
                upper=const(side),
                body=Block((empty,)),
            )
        yield Transpose(local.name, local.dtype, side)

    def _store(self, local: Local) -> list[Node]:
        """The tile transposed, and y[… v0 + k …][u0 + l] = tile[k][l]."""
        side = local.shape[0]
        place = Element(local.name, (self._column(), self._row()))
        copy = replace(self.assign, value=Read(place, local.dtype))
        return [Transpose(local.name, local.dtype, side), *self._columns(copy, side)]

    def _store_in_turns(self, local: Local) -> list[Node]:
        """The rows of the tile interleaved, and y[… v0][l] = tile[0][l], … row after row.

        A row of y has as many elements as the tile has rows, so a vector goes on in the next ones.
        """
        rows, side = local.shape
        lane, element = var(self.unroll.var), self.assign.target
        nodes: list[Node] = [Transpose(local.name, local.dtype, side, rows)]
        for k in range(rows):
            start = self.vector.lower + k * (side // rows)
            index = [substitute(i, {self.vector.var: start}) for i in element.index]
            target = replace(element, index=(*index[:-1], lane))
            value = Read(Element(local.name, (const(k), lane)), local.dtype)
            body = Block((replace(self.assign, target=target, value=value),))
            upper = const(side)
            nodes.append(
                replace(self.unroll, kind="vector", lower=const(0), upper=upper, body=body)
            )
        return nodes

    def _rows(self, assign: Assign, side: int) -> Iterator[Node]:
        """A vector along the vector loop for each value of the unrolled one."""
        loop = replace(self.vector, body=Block((assign,)), idle=side - self.width)
        for k in range(self.height):
            yield substitute_node(loop, {self.unroll.var: self.unroll.lower + k})

    def _columns(self, assign: Assign, side: int) -> Iterator[Node]:
        """A vector along the unrolled loop for each value of the vector loop."""
        loop = replace(self.unroll, kind="vector", body=Block((assign,)), idle=side - self.height)
        for k in range(self.width):
            yield substitute_node(loop, {self.vector.var: self.vector.lower + k})


def _find_tile(node: Node, locals_: frozenset[str], shapes: Shapes) -> _Tile | None:
    """A vector loop and an unrolled loop around nothing but an assignment, in either order.

    Two unrolled loops count as one, in which the inner one runs fastest.
    """
    loops: list[For] = []
    inner = node
    while isinstance(inner, For) and len(inner.body.body) == 1:
        loops.append(inner)
        inner = inner.body.body[0]
    vectors = [loop for loop in loops if loop.kind == "vector"]
    unrolled = [loop for loop in loops if loop.kind == "unroll"]
    if len(vectors) != 1 or len(unrolled) not in (1, 2) or len(loops) > 1 + len(unrolled):
        return None
    if not isinstance(inner, Assign) or inner.reduction:
        return None
    if any(extent_of(loop) is None or loop.step != 1 for loop in loops):
        return None
    if any(a.var in variables(b.lower) for k, a in enumerate(loops) for b in loops[k + 1 :]):
        return None
    reads = (e.element.array for e in walk_expr(inner.value) if isinstance(e, Read))
    if inner.target.array in reads:
        return None
    unroll, assign = unrolled[0], inner
    if len(unrolled) == 2:
        unroll, assign = _as_one(unroll, unrolled[1], assign)
    return _Tile(vectors[0], unroll, assign, locals_, shapes)


def _as_one(outer: For, inner: For, assign: Assign) -> tuple[For, Assign]:
    """Two unrolled loops as one of both extents, and the assignment in terms of it.

    for p in 0 .. 7: for b in 0 .. 2: y[2p + b] = t[p][b]
    ->   for p in 0 .. 14: y[p] = t[p / 2][p - 2 (p / 2)]
    """
    across, along = extent_of(outer) or 0, extent_of(inner) or 0
    number = var(outer.var) - outer.lower
    row = floordiv(number, along)
    values = {outer.var: outer.lower + row, inner.var: inner.lower + number - row * along}
    rewritten = substitute_node(assign, values)
    assert isinstance(rewritten, Assign)
    return replace(outer, upper=outer.lower + across * along), rewritten


def _steps(element: Element, name: str) -> tuple[int | None, ...]:
    """How far each index moves when a loop variable grows by one."""
    return tuple(stride(index, name) for index in element.index)


def _replace_reads(expr: LoopExpr, table: Mapping[Element, Element]) -> LoopExpr:
    """expr with the elements read replaced."""
    match expr:
        case Read(element):
            return replace(expr, element=table.get(element, element))
        case Call(arguments=arguments):
            return replace(expr, arguments=tuple(_replace_reads(a, table) for a in arguments))
        case Cast(argument=argument):
            return replace(expr, argument=_replace_reads(argument, table))
        case _:
            return expr
