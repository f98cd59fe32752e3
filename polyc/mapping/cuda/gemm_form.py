"""Contractions written as batched products of tiles, whatever they index.

    y[o, y, x] += w[o, c, r, s] * x[c, y + r, x + s]

    m = o, n = (y, x), k = (c, r, s):      acc[m, n] += a[m, k] * b[k, n]

The shared loops are sorted by which factor they move: rows move the one, columns the other, and
what moves both is a batch. Each kind is joined into one long loop and cut into tiles, as are the
loops of the sum. The factors of a tile are copied by statements of their own, which is where
windows are gathered, types converted, and borders filled with zeros; so the product itself is
always one of full tiles, and only its results are asked whether they exist.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import islpy as isl

from polyc.element_types import is_narrow, wide
from polyc.mapping.cuda.coordinates import change_coordinates, digits
from polyc.memory.layout import accesses
from polyc.poly.affine import box_extents, coefficients, outputs, plain_iterator
from polyc.schedule.cluster import Cluster
from polyc.scop.expr import (
    Call,
    Cast,
    Const,
    Expr,
    Index,
    Load,
    Within,
    call,
    cast,
    pull_back,
    rebuild,
    restrict,
    walk,
)
from polyc.scop.inline import simplify_indices
from polyc.scop.scop import Array, Statement

SMALLEST = 8
"""Rows, or columns, of which a tile would be mostly empty if there were fewer."""


@dataclass(frozen=True)
class GemmForm:
    """Which shared loops of a contraction are its batch, rows and columns, and what it multiplies.

    The lists hold shared loops; `sums` are positions of the update's own iterators. `left` moves
    with the rows, `right` with the columns. extents: of batch, rows, columns and sum.
    """

    init: Statement
    update: Statement
    rest: tuple[Statement, ...]
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    sums: tuple[int, ...]
    left: Expr
    right: Expr
    extents: tuple[int, int, int, int]


def find_gemm_form(cluster: Cluster, private: Collection[str]) -> GemmForm | None:
    """The form of a cluster, if it is a sum of products of two factors, and what follows it."""
    if not cluster.has_reuse or len(cluster.statements) < 2:
        return None
    init, update, *rest = cluster.statements
    if update.reduction != "add" or init.array != update.array or update.array not in private:
        return None
    if any(s.reduction for s in rest) or not isinstance(init.value, Const):
        return None
    match update.value:
        case Call("mul", (left, right)) if update.domain.is_box():
            factors = (left, right)
        case _:
            return None
    shared = [loop[update.name] for loop in cluster.shared]
    sums = tuple(p for p in range(len(update.iterators)) if p not in shared)
    moves = [_moving(factor) for factor in factors]
    sizes = box_extents(update.domain)
    kinds: dict[tuple[bool, bool], list[int]] = {}
    for d, p in enumerate(shared):
        kinds.setdefault((p in moves[0], p in moves[1]), []).append(d)
    first, second = kinds.get((True, False), []), kinds.get((False, True), [])
    batch = [*kinds.get((True, True), []), *kinds.get((False, False), [])]
    if not sums or not all(_is_plain(s, cluster, update.array) for s in cluster.statements):
        return None
    if not all(len(s.iterators) == len(cluster.shared) for s in (init, *rest)):
        return None
    if _walks_last(cluster, first):
        first, second, factors = second, first, (right, left)

    def extent(loops: Sequence[int]) -> int:
        return prod(sizes[shared[d]] for d in loops)

    extents = (extent(batch), extent(first), extent(second), prod(sizes[p] for p in sums))
    if min(extents[1:3]) < SMALLEST:
        return None
    return GemmForm(
        init,
        update,
        tuple(rest),
        tuple(batch),
        tuple(first),
        tuple(second),
        sums,
        *factors,
        extents,
    )


def in_stored_types(form: GemmForm) -> GemmForm:
    """The form with factors as memory has them, if both are of one narrow type."""
    left, right = _stored(form.left), _stored(form.right)
    if left is None or right is None or left.dtype != right.dtype:
        return form
    return replace(form, left=left, right=right)


def _stored(factor: Expr) -> Expr | None:
    """The expression in a narrow type of which a factor is the wide value; None if it is none."""
    match factor:
        case Cast(argument, dtype) if is_narrow(argument.dtype) and dtype == wide(argument.dtype):
            return argument
        case Call("select", (Within() as inside, value, Const(0))):
            stored = _stored(value)
            return stored and call("select", inside, stored, Const(0, stored.dtype))
    return None


def share_out(form: GemmForm, cluster: Cluster, batch: Sequence[int], row: int) -> GemmForm | None:
    """The form with given loops for its batch and its rows; None if a factor moves otherwise."""
    update, kept = form.update, {*batch, row}
    sizes, shared = box_extents(update.domain), [loop[update.name] for loop in cluster.shared]
    columns = tuple(d for d in range(len(shared)) if d not in kept)
    left, right = form.left, form.right
    if shared[row] in _moving(right):
        left, right = right, left
    across = {shared[d] for d in columns}
    if not columns or shared[row] in _moving(right) or across & _moving(left):
        return None

    def extent(loops: Sequence[int]) -> int:
        return prod(sizes[shared[d]] for d in loops)

    return replace(
        form,
        batch=tuple(batch),
        rows=(row,),
        columns=columns,
        left=left,
        right=right,
        extents=(extent(batch), extent([row]), extent(columns), form.extents[-1]),
    )


def _moving(expr: Expr) -> set[int]:
    """The iterators that an expression depends on."""
    found: set[int] = set()
    for e in walk(expr):
        match e:
            case Load(index=index):
                for function in outputs(index):
                    found |= {p for p, c in enumerate(coefficients(function)) if c != 0}
                found |= _involved(index.domain())
            case Index(value=value):
                found |= {p for p, c in enumerate(coefficients(value)) if c != 0}
            case Within(domain=domain):
                found |= _involved(domain)
    return found


def _involved(domain: isl.Set) -> set[int]:
    count = domain.dim(isl.dim_type.set)
    return {p for p in range(count) if domain.involves_dims(isl.dim_type.set, p, 1)}


def _is_plain(s: Statement, cluster: Cluster, array: str) -> bool:
    """Whether all accesses of a statement to the sums are at the shared loops."""
    wanted = {loop[s.name] for loop in cluster.shared}
    for name, index, _ in accesses(s):
        if name != array:
            continue
        plain = [plain_iterator(function) for function in outputs(index)]
        found = {p[0] for p in plain if p is not None and p[1] == 0}
        moving = {p for p in wanted if box_extents(s.domain)[p] > 1}
        if not moving <= found or not found <= wanted:
            return False
    return True


def _walks_last(cluster: Cluster, loops: Collection[int]) -> bool:
    """Whether some of the loops walk the last dimension of what the cluster writes."""
    s = cluster.statements[-1]
    *_, last = outputs(s.write)
    column = coefficients(last)
    return any(column[cluster.shared[d][s.name]] != 0 for d in loops)


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
    sums = Array(f"{name}_tiles", dtype, tuple(counts[i] for i in space), "temporary")
    init = replace(
        form.init,
        domain=cut.box(form.init.name, space),
        iterators=tuple(space),
        array=sums.name,
        write=cut.place(form.init.name, space, sums.name, space),
    )
    left, a = cut.copy(form.left, f"{name}_left", ("ki", "mr", "mi"))
    right, b = cut.copy(form.right, f"{name}_right", ("ki", "nr", "ni"))
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
        form, tile, sizes = self.form, self.tile, box_extents(self.form.update.domain)
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
