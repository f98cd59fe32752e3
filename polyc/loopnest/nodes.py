"""LoopNest: the generated loops, as plain data. No isl object lives past its construction.

A kernel is a tree of `For`, `If`, `Block` and `Assign`. Expressions are those of `polyc.scop.expr`
with other leaves: `Read` an element, the `Value` of an index, a `Test` of a condition. An `Assign`
remembers the statement instance that it executes, as a function of the loop variables: that is what
the proof (`analysis/verify.py`) reads the time map from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from polyc.loopnest.index import Affine, Condition
from polyc.loopnest.marks import LoopKind
from polyc.loopnest.prototype import Prototype
from polyc.loopnest.swizzle import Swizzle
from polyc.scop.expr import BOOL, INT64, Call, Cast, Const
from polyc.scop.scop import Reduction
from polyc.target.instructions.rows import Spelled
from polyc.types.sizes import Extent

Space = Literal["stack", "shared", "register"]


@dataclass(frozen=True)
class Element:
    """A place in storage: one index per dimension of the array *as stored* (see `Param.shape`)."""

    array: str
    index: tuple[Affine, ...]


@dataclass(frozen=True)
class Read:
    """The value of an element; coordinates in `dynamic` are replaced by computed integers.

    A `guarded` element exists only where the `Test` of a select around it says so.
    """

    element: Element
    dtype: np.dtype
    dynamic: tuple[tuple[int, LoopExpr], ...] = ()
    guarded: bool = False


@dataclass(frozen=True)
class Value:
    """An index as data."""

    index: Affine
    dtype: np.dtype = INT64


@dataclass(frozen=True)
class Test:
    """A condition as a boolean."""

    condition: Condition
    dtype: np.dtype = BOOL


LoopExpr: TypeAlias = Const | Call["LoopExpr"] | Cast["LoopExpr"] | Read | Value | Test


@dataclass(frozen=True)
class Assign:
    """target = value, or target op= value; executes `statement` at `instance`(loop variables)."""

    statement: str
    instance: tuple[Affine, ...]
    target: Element
    value: LoopExpr
    dtype: np.dtype
    reduction: Reduction | None = None

    @property
    def widest(self) -> int:
        """Bytes of the widest element that the assignment computes with."""
        types = [self.dtype, *(e.dtype for e in walk_expr(self.value))]
        return max(np.dtype(t).itemsize for t in types)


@dataclass(frozen=True)
class Local:
    """Storage private to one execution of the `Block` that declares it.

    `source` is the scop's array that lives here, not in memory. `in_registers`: every index is a
    literal after unrolling, so that each element is a named variable. `is_tile`: its rows are whole
    vectors; idle lanes of an access belong to it. `is_operand`: a product's tile multiplies it.

    On a GPU a block of threads works on one execution of a nest. A `space` of "shared" is memory
    that all of them see; of "register", each thread has the array once, in named variables: what
    stands outside of thread loops is then done by every thread, each in its own. "stack" stands for
    the memory of who executes the block alone.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    source: str
    in_registers: bool = False
    is_tile: bool = False
    is_operand: bool = False
    space: Space = "stack"
    swizzle: Swizzle | None = None


@dataclass(frozen=True)
class Near:
    """An array of the kernel's own that may be on the stack in an execution of a `Block`: used from
    `first` on, `rows` at most along a dimension, and all behind that (`printing/near.py`)."""

    first: Element
    dimension: int
    rows: Extent


@dataclass(frozen=True)
class Block:
    """Nodes in order, with the local arrays that live as long as the block.

    The nodes of a `concurrent` block may run at the same time, on different threads. All threads of
    a `team` go through its nodes: parallel loops, which they share out; other blocks, which one of
    them executes; loops, conditions and blocks around such. These may run at the same time, unless
    a barrier stands between (`threads/team.py`).
    """

    body: tuple[Node, ...]
    locals: tuple[Local, ...] = ()
    concurrent: bool = False
    team: bool = False
    near: tuple[Near, ...] = ()


@dataclass(frozen=True)
class For:
    """for (var = lower; var < upper; var += step) body.

    kind "parallel": iterations run on different threads; "vector": in SIMD lanes, all at once;
    "unroll": replaced by copies before printing. A vector has `idle` lanes behind its iterations;
    where their number is known only at run time, `lanes` says how many lanes there are. "simd": in
    SIMD lanes as well, which the C compiler cuts; `reduces` are the results of its reductions.
    "hold": one after another, while what they update at places that stay is kept in registers.
    "instruction": in each lane of the vector loop around it, by an instruction of that name; or
    directly inside one another, by one that multiplies matrices (`target/instructions/`).
    On a GPU: "block": on different blocks of the grid; "thread": on different threads of a block.
    Neighbouring iterations are `apart` threads apart: number t runs iteration  (t / apart) mod n
    of n. "combine": a reduction of what the threads of a "thread" loop like it have each, by all of
    them together, who get the result each. "mma": loops directly inside one another around a
    multiply-add, which the tensor cores of a warp run at once; what is read, any lane may read.
    "wgmma": the same for a warpgroup, in the background until an `Await`. "copy": a vector loop
    whose copies to shared memory go on in the background, until a barrier that waits. "box": loops
    around such a copy, which the tensor memory accelerator brings at once; a tensor map says of
    which array. begin, end, only, left: where data begins and ends it, which one of its iterations
    there is, if any, and when there are no more (`codegen/bound_by_data.py`). ahead: places to
    fetch. forgets: an iteration begins with nothing in registers that was read from memory before
    (`codegen/forget.py`).
    """

    var: str
    lower: Affine
    upper: Affine
    step: int
    body: Block
    kind: LoopKind = "sequential"
    idle: int = 0
    apart: int = 1
    lanes: int = 0
    reduces: tuple[tuple[Reduction, str], ...] = ()
    instruction: str | Spelled = ""
    begin: LoopExpr | None = None
    end: LoopExpr | None = None
    only: LoopExpr | None = None
    left: LoopExpr | None = None
    ahead: tuple[Element, ...] = ()
    forgets: bool = False

    @property
    def asked(self) -> tuple[LoopExpr, ...]:
        """The data that says which iterations there are."""
        return tuple(e for e in (self.begin, self.end, self.only, self.left) if e is not None)


@dataclass(frozen=True)
class If:
    condition: Condition
    then: Block
    otherwise: Block | None = None


@dataclass(frozen=True)
class Transpose:
    """A square local array of `lanes` vectors, transposed in place: a[i][j] <-> a[j][i].

    rows: of one that has fewer, whose elements then lie in turns: a[0][0], a[1][0], … a[0][1], …
    """

    array: str
    dtype: np.dtype
    lanes: int
    rows: int = 0


@dataclass(frozen=True)
class Group:
    """The number of a group of boxes, from 0 on; no more than `places` are on their way at a time.

    Barrier  number mod places  of those in shared memory completes its phase  number / places  when
    all of the group have arrived.
    """

    number: Affine
    places: int


@dataclass(frozen=True)
class Commit:
    """Closes a group of copies: those of loops of kind "copy" since the last; or of kind "box"."""

    group: Group | None = None


@dataclass(frozen=True)
class Await:
    """A warpgroup waits for products (nests of kind "wgmma") until so many are left at most."""

    pending: int


@dataclass(frozen=True)
class Barrier:
    """All threads of a block, or of a team, wait for one another.

    pending: before that each waits for its own copies in the background, until so many groups are
    left at most; None: for none. group: and for this one, of boxes, if its number is 0 or more.
    """

    pending: int | None = None
    group: Group | None = None


@dataclass(frozen=True)
class TileShapes:
    """What the registers for matrices hold from here on: (rows, bytes of a row), (0, 0) if nothing.

    Registers that had another shape before lose what they hold.
    """

    shapes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TileMove:
    """A register for matrices is loaded, stored, or filled with zeros.

    first: the place in memory of its first element, for which zeros stand as well; second: that of
    the first element of its second row. Each row lies as far behind the one before.
    """

    kind: Literal["load", "store", "zero"]
    register: int
    first: Element
    second: Element


@dataclass(frozen=True)
class TileProduct:
    """result += a * b, of registers for matrices, as the row of an instruction says."""

    instruction: str
    result: int
    a: int
    b: int


Tiled = TileShapes | TileMove | TileProduct

Node = For | If | Assign | Block | Transpose | Commit | Await | Barrier | Tiled


Products = tuple[tuple[str, Extent], ...]
"""Sizes that a kernel computes itself, by name."""


@dataclass(frozen=True)
class Kernel(Prototype):
    """One generated function; `products`: sizes that it computes itself, of those it is given."""

    body: Block
    comment: tuple[str, ...] = ()
    products: Products = ()

    @property
    def known(self) -> tuple[str, ...]:
        """All sizes that its loops may name."""
        return (*self.sizes, *(name for name, _ in self.products))

    def __str__(self) -> str:
        from polyc.loopnest.show import show_kernel  # which depends on this module

        return show_kernel(self)


def walk_nodes(node: Node) -> Iterator[Node]:
    """Every node below and including `node`, in textual order."""
    waiting = [node]
    while waiting:
        top = waiting.pop()
        yield top
        match top:
            case Block(body=body):
                waiting.extend(reversed(body))
            case For(body=body):
                waiting.append(body)
            case If(then=then, otherwise=otherwise):
                waiting.extend((otherwise, then) if otherwise else (then,))


def rewrite_nodes(block: Block, rewrite: Callable[[Node], Node]) -> Block:
    """The block with `rewrite` applied to every node, itself included, innermost first.

    What stays as it is stays the same object: to make another takes most of the time.
    """

    def visit(node: Node) -> Node:
        match node:
            case Block(body=body):
                nodes = tuple(map(visit, body))
                if any(new is not old for new, old in zip(nodes, body, strict=True)):
                    node = replace(node, body=nodes)
            case For(body=body):
                new = inside(body)
                if new is not body:
                    node = replace(node, body=new)
            case If(then=then, otherwise=otherwise):
                branches = inside(then), inside(otherwise) if otherwise else None
                if branches[0] is not then or branches[1] is not otherwise:
                    node = replace(node, then=branches[0], otherwise=branches[1])
        return rewrite(node)

    def inside(block: Block) -> Block:
        new = visit(block)
        return new if isinstance(new, Block) else Block((new,))

    return inside(block)


def extent_of(loop: For) -> int | None:
    """The number of iterations of a loop, if it is a constant."""
    if loop.upper.terms != loop.lower.terms:
        return None
    size = loop.upper.constant - loop.lower.constant
    return max(0, -(-size // loop.step))


def lanes_of(loop: For) -> int:
    """The lanes of the vector that a vector loop stands for."""
    return loop.lanes or (extent_of(loop) or 1) + loop.idle


def walk_expr(expr: LoopExpr) -> Iterator[LoopExpr]:
    """Every sub-expression, parents first."""
    waiting = [expr]
    while waiting:
        top = waiting.pop()
        yield top
        waiting.extend(reversed(children(top)))


def children(expr: LoopExpr) -> tuple[LoopExpr, ...]:
    """The expressions that an expression is applied to; of a `Read`, its computed coordinates."""
    match expr:
        case Call(arguments=arguments):
            return arguments
        case Cast(argument=argument):
            return (argument,)
        case Read(dynamic=dynamic):
            return tuple(e for _, e in dynamic)
        case _:
            return ()
