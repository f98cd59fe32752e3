"""A contraction cut into tiles: its statements in coordinates of blocks and of places in a tile.

    acc[m, n] += a[m, k] * b[k, n]

    left[b, mt, nt, kt, ki, mr, mi]  = a, zero outside       right[b, mt, nt, kt, ki, nr, ni] = b
    sums[b, mt, nt, …] += left[b, mt, nt, kt, …] * right[b, mt, nt, kt, …]

The factors of a tile are copied by statements of their own, which is where windows are gathered,
types converted, and borders filled with zeros; so the product itself is always one of full tiles,
and only its results are asked whether they exist. Which digits a place in a tile consists of is
what a strategy says (`Tile`): they are the loops over threads, registers and instructions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import islpy as isl

from polyc.mapping.cuda.coordinates.change import change_coordinates, digits, free_name
from polyc.mapping.cuda.coordinates.gemm_form import GemmForm
from polyc.schedule.cluster import Cluster
from polyc.scop.expr import (
    Const,
    Expr,
    Load,
    Within,
    call,
    cast,
    pull_back,
    rebuild,
    restrict,
)
from polyc.scop.inline import simplify_indices
from polyc.scop.scop import Array, Statement


@dataclass(frozen=True)
class Digits:
    """A place in a tile as a number of several digits, the most significant first.

    (wm 2, am 4, im 2, gm 8)   ->   64 wm + 16 am + 8 im + gm
    """

    names: tuple[str, ...]
    extents: tuple[int, ...]

    @property
    def count(self) -> int:
        return prod(self.extents)

    def below(self, size: int) -> Digits:
        """The last digits, those of a place among `size` neighbours."""
        k = next(k for k in range(len(self.extents)) if prod(self.extents[k:]) == size)
        return Digits(self.names[k:], self.extents[k:])

    def above(self, size: int) -> Digits:
        """The other digits, those that count runs of `size` neighbours."""
        count = len(self.names) - len(self.below(size).names)
        return Digits(self.names[:count], self.extents[:count])

    @property
    def formula(self) -> str:
        weights = [prod(self.extents[k + 1 :]) for k in range(len(self.extents))]
        parts = (f"{w}*{name}" for name, w in zip(self.names, weights, strict=True))
        return " + ".join(parts) or "0"


@dataclass(frozen=True)
class Tile:
    """The part of a product that a block computes at a time, and how its loops count in it.

    results: the digits of rows and columns in the order in which the array of sums has them. run:
    rows, or columns, that lie together in the copies of factors; 0 for all of them.
    """

    rows: Digits
    columns: Digits
    depth: Digits
    results: tuple[str, ...]
    run: int = 0

    @property
    def counts(self) -> dict[str, int]:
        parts = (self.rows, self.columns, self.depth)
        return {n: e for part in parts for n, e in zip(part.names, part.extents, strict=True)}

    def __str__(self) -> str:
        return f"{self.rows.count}x{self.columns.count}x{self.depth.count}"


@dataclass(frozen=True)
class Tiled:
    """The statements of a product in tiles; `arrays` are its sums and the copies of factors."""

    init: Statement
    left: Statement
    right: Statement
    update: Statement
    rest: tuple[Statement, ...]
    arrays: Mapping[str, Array]

    @property
    def cluster(self) -> Cluster:
        statements = (self.init, self.left, self.right, self.update, *self.rest)
        shared = tuple({s.name: k for s in statements} for k in range(3))
        return Cluster(statements, shared, has_reuse=True)


OUTER = ("b", "mt", "nt")

STEP = len(OUTER)
"""The dimension of a factor's tiles that counts steps of the sum: kt in [b, mt, nt, kt, …]."""


def cut_tiles(form: GemmForm, cluster: Cluster, tile: Tile, arrays: Mapping[str, Array]) -> Tiled:
    """The product in coordinates [b, mt, nt, (kt,) place in the tile]: tiles, and digits in them.

    The copies have a place as [ki, mr, mi] and [ki, nr, ni], whatever the digits are: which run of
    rows or columns, and where in it.
    """
    batch, rows, columns, depth = form.extents
    counts = {
        "b": batch,
        "mt": -(-rows // tile.rows.count),
        "nt": -(-columns // tile.columns.count),
        "kt": -(-depth // tile.depth.count),
        "mr": tile.rows.count // (tile.run or tile.rows.count),
        "mi": tile.run or tile.rows.count,
        "nr": tile.columns.count // (tile.run or tile.columns.count),
        "ni": tile.run or tile.columns.count,
        "ki": tile.depth.count,
        **tile.counts,
    }
    cut = _Cut(form, cluster, tile, counts)
    name = form.update.array
    dtype = arrays[name].dtype
    space = cut.results
    sums = Array(
        free_name(f"{name}_tiles", arrays), dtype, tuple(counts[i] for i in space), "temporary"
    )
    init = replace(
        form.init,
        domain=cut.box(form.init.name, space),
        iterators=tuple(space),
        array=sums.name,
        write=cut.place(form.init.name, space, sums.name, space),
    )
    left, a = cut.copy(form.left, free_name(f"{name}_left", arrays), ("ki", "mr", "mi"))
    right, b = cut.copy(form.right, free_name(f"{name}_right", arrays), ("ki", "nr", "ni"))
    inside = [*OUTER, "kt", *tile.results, *tile.depth.names]

    def factor(array: Array, place: Digits) -> Expr:
        run = tile.run or place.count
        where = (place.above(run).formula, place.below(run).formula)
        indices = [*OUTER, "kt", tile.depth.formula, *where]
        index = cut.place(form.update.name, inside, array.name, indices)
        return cast(Load(array.name, index, array.dtype), dtype)

    update = replace(
        form.update,
        domain=cut.box(form.update.name, inside),
        iterators=tuple(inside),
        array=sums.name,
        write=cut.place(form.update.name, inside, sums.name, space),
        value=call("mul", factor(a, tile.rows), factor(b, tile.columns)),
    )
    rest = tuple(cut.finish(s, name, sums.name) for s in form.rest)
    return Tiled(init, left, right, update, rest, {x.name: x for x in (sums, a, b)})


@dataclass(frozen=True)
class _Cut:
    form: GemmForm
    cluster: Cluster
    tile: Tile
    counts: Mapping[str, int]

    def bounds(self, iterators: Sequence[str]) -> str:
        return " and ".join(f"0 <= {i} < {self.counts[i]}" for i in iterators)

    def box(self, name: str, iterators: Sequence[str]) -> isl.Set:
        return isl.Set(f"{{ {name}[{', '.join(iterators)}] : {self.bounds(iterators)} }}")

    def place(
        self, name: str, iterators: Sequence[str], array: str, indices: Sequence[str]
    ) -> isl.PwMultiAff:
        """# S -> A, an element for some of the iterators."""
        text = f"{{ {name}[{', '.join(iterators)}] -> {array}[{', '.join(indices)}] }}"
        return isl.PwMultiAff(text)

    @property
    def results(self) -> list[str]:
        return [*OUTER, *self.tile.results]

    def formulas(self, s: Statement, rows: str, columns: str, depth: str) -> list[str]:
        """A statement's iterators in the cluster in terms of the new ones.

        The places in a tile are formulas, empty for those that the statement has no iterator for.
        """
        form, tile, sizes = self.form, self.tile, self.form.update.estimated_extents
        found = ["0"] * len(s.iterators)
        groups = [
            (form.batch, "b"),
            (form.rows, f"({tile.rows.count}*mt + {rows})" if rows else ""),
            (form.columns, f"({tile.columns.count}*nt + {columns})" if columns else ""),
        ]
        for loops, text in groups:
            if text:
                extents = [sizes[self.cluster.shared[d][form.update.name]] for d in loops]
                for d, digit in zip(loops, digits(text, extents), strict=True):
                    found[self.cluster.shared[d][s.name]] = digit
        if depth:
            text = f"({tile.depth.count}*kt + {depth})"
            extents = [sizes[p] for p in form.sums]
            for p, digit in zip(form.sums, digits(text, extents), strict=True):
                found[p] = digit
        return found

    def copy(
        self, factor: Expr, name: str, inside: tuple[str, str, str]
    ) -> tuple[Statement, Array]:
        """The statement that copies a tile of a factor, zero where there is none; its target."""
        form, title = self.form, f"S_{name}"
        iterators = (*OUTER, "kt", *inside)
        joined = ", ".join(iterators)
        _, run, place = inside
        where = f"({self.counts[place]}*{run} + {place})"
        present = (where, "", "ki") if place == "mi" else ("", where, "ki")
        formulas = ", ".join(self.formulas(form.update, *present))
        onto = isl.PwMultiAff(
            f"{{ {title}[{joined}] -> {form.update.name}[{formulas}] }}"
        )  # T -> S
        domain = self.box(title, iterators)
        valid = self.valid(title, iterators, *present)
        value = pull_back(factor, onto)
        if domain.is_subset(valid):
            value = simplify_indices(value, domain)
        else:
            inner = restrict(simplify_indices(value, domain.intersect(valid)), valid)
            value = call("select", Within(valid), inner, Const(0, factor.dtype))
        array = Array(name, factor.dtype, tuple(self.counts[i] for i in iterators), "temporary")
        write = self.place(title, iterators, name, iterators)
        copy = Statement(title, domain, iterators, name, write, value, None, form.update.origin)
        return copy, array

    def valid(
        self, name: str, iterators: Sequence[str], rows: str, columns: str, depth: str
    ) -> isl.Set:
        """Where a place of a tile lies inside the product."""
        text = self.limits(rows, columns, depth)
        return isl.Set(f"{{ {name}[{', '.join(iterators)}] : {text} }}")

    def limits(self, rows: str, columns: str, depth: str) -> str:
        tile, (_, height, width, length) = self.tile, self.form.extents
        parts = (
            (rows, f"{tile.rows.count}*mt + {rows} < {height}"),
            (columns, f"{tile.columns.count}*nt + {columns} < {width}"),
            (depth, f"{tile.depth.count}*kt + {depth} < {length}"),
        )
        return " and ".join(limit for place, limit in parts if place)

    def finish(self, s: Statement, array: str, sums: str) -> Statement:
        """A statement after the product, which reads its sums from the tile."""
        space, places = self.results, (self.tile.rows.formula, self.tile.columns.formula, "")
        inside = self.place(s.name, space, sums, space)

        def leaf(e: Expr) -> Expr:
            if isinstance(e, Load) and e.array == array:
                return replace(e, array=sums, index=inside)
            return e

        bounds = f"{self.bounds(space)} and {self.limits(*places)}"
        new = change_coordinates(s, space, self.formulas(s, *places), bounds)
        return replace(new, value=rebuild(new.value, leaf))
