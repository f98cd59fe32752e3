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
import numpy as np

from polyc.mapping.cuda.coordinates import change_coordinates, digits
from polyc.memory.layout import accesses
from polyc.poly.affine import box_extents, coefficients, outputs, plain_iterator
from polyc.schedule.cluster import Cluster
from polyc.scop.expr import (
    Call,
    Const,
    Expr,
    Index,
    Load,
    Within,
    call,
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
class Tile:
    """Extents of the part of a product that a block computes at a time."""

    rows: int
    columns: int
    depth: int


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
INNER = ("mi", "ni")


def cut_tiles(form: GemmForm, cluster: Cluster, tile: Tile, arrays: Mapping[str, Array]) -> Tiled:
    """The product in coordinates [b, mt, nt, (kt,) mi, ni (, ki)]: tiles, and places in a tile."""
    batch, rows, columns, depth = form.extents
    counts = {
        "b": batch,
        "mt": -(-rows // tile.rows),
        "nt": -(-columns // tile.columns),
        "kt": -(-depth // tile.depth),
        "mi": tile.rows,
        "ni": tile.columns,
        "ki": tile.depth,
    }
    cut = _Cut(form, cluster, tile, counts)
    name = form.update.array
    dtype = arrays[name].dtype
    space = [*OUTER, *INNER]
    sums = Array(f"{name}_tiles", dtype, tuple(counts[i] for i in space), "temporary")
    init = replace(
        form.init,
        domain=cut.box(form.init.name, space),
        iterators=tuple(space),
        array=sums.name,
        write=cut.place(form.init.name, space, sums.name, space),
    )
    left, a = cut.copy(form.left, f"{name}_left", ["ki", "mi"], dtype)
    right, b = cut.copy(form.right, f"{name}_right", ["ki", "ni"], dtype)
    inside = [*OUTER, "kt", *INNER, "ki"]
    update = replace(
        form.update,
        domain=cut.box(form.update.name, inside),
        iterators=tuple(inside),
        array=sums.name,
        write=cut.place(form.update.name, inside, sums.name, space),
        value=call(
            "mul",
            *(
                Load(c.array, cut.place(form.update.name, inside, c.array, c.iterators), x.dtype)
                for c, x in ((left, a), (right, b))
            ),
        ),
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

    def formulas(self, s: Statement, present: Collection[str]) -> list[str]:
        """A statement's iterators in the cluster in terms of the new ones; 0 for absent ones."""
        form, sizes = self.form, box_extents(self.form.update.domain)
        found = ["0"] * len(s.iterators)

        def extents(loops: Sequence[int]) -> list[int]:
            return [sizes[self.cluster.shared[d][form.update.name]] for d in loops]

        groups = [
            (form.batch, "b", "b"),
            (form.rows, "mi", f"({self.tile.rows}*mt + mi)"),
            (form.columns, "ni", f"({self.tile.columns}*nt + ni)"),
        ]
        for loops, iterator, text in groups:
            if iterator in present:
                for d, digit in zip(loops, digits(text, extents(loops)), strict=True):
                    found[self.cluster.shared[d][s.name]] = digit
        if "ki" in present:
            text = f"({self.tile.depth}*kt + ki)"
            for p, digit in zip(
                form.sums, digits(text, [sizes[p] for p in form.sums]), strict=True
            ):
                found[p] = digit
        return found

    def copy(
        self, factor: Expr, name: str, inside: Sequence[str], dtype: np.dtype
    ) -> tuple[Statement, Array]:
        """The statement that copies a tile of a factor, zero where there is none; its target."""
        form, title = self.form, f"S_{name}"
        iterators = (*OUTER, "kt", *inside)
        joined = ", ".join(iterators)
        formulas = ", ".join(self.formulas(form.update, iterators))
        onto = isl.PwMultiAff(
            f"{{ {title}[{joined}] -> {form.update.name}[{formulas}] }}"
        )  # T -> S
        domain = self.box(title, iterators)
        valid = self.valid(title, iterators)
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

    def valid(self, name: str, iterators: Sequence[str]) -> isl.Set:
        """Where a place of a tile lies inside the product."""
        _, rows, columns, depth = self.form.extents
        limits = {
            "mi": f"{self.tile.rows}*mt + mi < {rows}",
            "ni": f"{self.tile.columns}*nt + ni < {columns}",
            "ki": f"{self.tile.depth}*kt + ki < {depth}",
        }
        text = " and ".join(limits[i] for i in iterators if i in limits)
        return isl.Set(f"{{ {name}[{', '.join(iterators)}] : {text} }}")

    def finish(self, s: Statement, array: str, sums: str) -> Statement:
        """A statement after the product, which reads its sums from the tile."""
        space = [*OUTER, *INNER]
        inside = self.place(s.name, space, sums, space)

        def leaf(e: Expr) -> Expr:
            if isinstance(e, Load) and e.array == array:
                return replace(e, array=sums, index=inside)
            return e

        new = change_coordinates(
            s, space, self.formulas(s, space), f"{self.bounds(space)} and {self._limits()}"
        )
        return replace(new, value=rebuild(new.value, leaf))

    def _limits(self) -> str:
        _, rows, columns, _ = self.form.extents
        return f"{self.tile.rows}*mt + mi < {rows} and {self.tile.columns}*nt + ni < {columns}"
