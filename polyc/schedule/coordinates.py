"""The directives that say what the loops of a kernel for a GPU are, before they are moved.

    S[i, j]   ->   S[e]   with   e = 64 i + j                   join i j as e

The loops of a grid are long and few, those of a model short and many; threads of a row share a sum,
and the factors of a product are copied in tiles. So these directives rewrite statements: what their
instances are called, and which of them there are (`mapping/cuda/rewrite.py`). They stand in front
of all others, and the loop tree is that of the statements as they are then.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyc.schedule.loops import LoopTree

DIGITS = ("b", "mt", "nt", "kt", "ki", "mr", "mi", "nr", "ni")
"""What the loops of a product in tiles are called: of the batch, of which tile of rows, columns and
the sum; and of the copies: a step of the sum, which run of rows or columns, and where in it."""


class _Before:
    """What is done before there is a tree."""

    def apply(self, tree: LoopTree) -> LoopTree:
        return tree


@dataclass(frozen=True)
class Join(_Before):
    """The loops that the statements share as one, the last of them fastest.

    S[i, j, k], T[i, j]   ->   S[e, k], T[e]                    join i j as e

    Arrays of the kernel's own with an element for each iteration are indexed by it as well. A last
    loop that is given an extent has nothing at its end: join i j as e of 16.
    """

    loops: tuple[str, ...]
    name: str
    multiple: int = 1


@dataclass(frozen=True)
class Cut(_Before):
    """Loops of the statements' own as digits of a number: of which tile, and of places in it.

    S[e, j]   ->   S[e, k, t, v]   with   j = 128 k + 4 t + v   cut j as k t v by 32 4

    Several loops, the last of them fastest, are joined before.
    """

    loops: tuple[str, ...]
    names: tuple[str, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Partial(_Before):
    """The sum of a statement as one for each value of a loop, and the sum of these.

    total[e] += x[e, k, t]   ->   total_parts[e, t] = 0                     partial S.t
                                  total_parts[e, t] += x[e, k, t]
                                  total[e] += total_parts[e, t]

    The first statement is called S_start, the last one S_combine.
    """

    loop: str


@dataclass(frozen=True)
class Stage(_Before):
    """What is read of arrays along another loop than is written, by way of a copy in tiles.

    y[j, i] = f(x[i, j])   ->   y_tile0[j, i] = x[i, j]        stage x by j i
                                y[j, i] = f(y_tile0[j, i])

    rows is the loop that y is written along, columns that along which the arrays are read.
    """

    arrays: tuple[str, ...]
    rows: str
    columns: str


@dataclass(frozen=True)
class Side:
    """A kind of loop of a product: the loops themselves, and the digits of a place in a tile."""

    loops: tuple[str, ...]
    digits: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Tile(_Before):
    """A product in tiles: rows by columns over the sum, at each iteration of a batch.

    acc[m, n] += a[m, k] * b[k, n]
    ->  acc_left[b, mt, nt, kt, ki, mr, mi] = a, zero outside        acc_right = b
        acc_tiles[b, mt, nt, …] += acc_left[…] * acc_right[…]

    tile m as tm 16 im 4 by n as tn 16 jn 4 over k as ki 16 into tm tn im jn

    Digits are names and extents, the most significant first: 4 tm + im is a row of a tile of 64.
    results: the digits of rows and columns in the order that the array of sums has them. run: rows,
    or columns, that lie together in the copies of factors; 0 for all. batch: the other loops.
    """

    rows: Side
    columns: Side
    sums: Side
    results: tuple[str, ...]
    run: int = 0
    batch: tuple[str, ...] = ()


COORDINATES = (Join, Cut, Partial, Stage, Tile)
"""Those that rewrite statements."""
