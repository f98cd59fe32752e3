"""Iteration spaces and views, written the way they are read.

A lowering says its domain as a box of named iterators and its accesses as index formulas:

    s = ctx.space(node, n=N, o=O, y=Y, x=X, c=C, r=R, q=Q)
    s.load(x, "n", "c", "2*y + r", "2*x + q")    # { S[n,o,y,x,c,r,q] -> X[n, c, 2y + r, 2x + q] }

The formulas are isl's quasi-affine expressions: `+ - *` with integer literals, `floor(e/4)`,
`e mod 4`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce

import islpy as isl
import numpy as np

from polyc.poly.affine import simplify
from polyc.poly.conditions import spell
from polyc.poly.parameters import among_own_sizes, read
from polyc.scop.expr import INT64, Const, Expr, Index, Load, Within, call, cast
from polyc.types.parameters import named
from polyc.types.sizes import Extent, Size


@dataclass(frozen=True)
class Ref:
    """A tensor seen as a view of an array: element [i…] of the tensor lies at map([i…])."""

    array: str
    map: isl.PwMultiAff  # [tensor indices] -> A
    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    def through(self, view: str | isl.PwMultiAff, shape: Sequence[int]) -> Ref:
        """The tensor that reads this one through a view  { [new indices] -> [old indices] }."""
        function = read(isl.PwMultiAff, view) if isinstance(view, str) else view
        composed = self.map.pullback_pw_multi_aff(function)
        return Ref(self.array, composed.coalesce(), self.dtype, tuple(shape))


@dataclass(frozen=True)
class Space:
    """A named box of iterators: the domain of a statement that is being built.

    `where` restricts the box by a condition on the iterators, e.g. "4*t + p < 7".
    """

    name: str
    extents: dict[str, int]
    where: str = ""

    @property
    def iterators(self) -> tuple[str, ...]:
        return tuple(self.extents)

    @property
    def tuple(self) -> str:
        return f"{self.name}[{', '.join(self.extents)}]"

    @property
    def _nameless(self) -> str:
        """The tuple as spaces that are alike have it."""
        return f"[{', '.join(self.extents)}]"

    @cached_property
    def domain(self) -> isl.Set:
        """# S"""
        bounds = [f"0 <= {i} < {spell(n)}" for i, n in self.extents.items()]
        condition = " and ".join([*bounds, *([f"({self.where})"] if self.where else [])])
        box = read(isl.Set, f"{{ {self._nameless} : {condition or 'true'} }}")
        return among_own_sizes(box).set_tuple_name(self.name)

    def restricted(self, condition: str) -> Space:
        """The box where another condition holds as well."""
        where = f"({self.where}) and ({condition})" if self.where else condition
        return replace(self, where=where)

    def onto(self, other: Space) -> isl.PwMultiAff:
        """# S -> T: the same point of a box with the same iterators."""
        return isl.PwMultiAff(f"{{ {self.tuple} -> {other.tuple} }}")

    def map(self, indices: Sequence[str]) -> isl.PwMultiAff:
        """# S -> [tensor indices]"""
        place = read(isl.PwMultiAff, f"{{ {self._nameless} -> [{', '.join(indices)}] }}")
        return place.set_tuple_id(isl.dim_type.in_, self.domain.get_tuple_id())

    def at(self, ref: Ref, *indices: str) -> isl.PwMultiAff:
        """# S -> A, reading through the view."""
        assert len(indices) == ref.rank, f"{self.name}: {len(indices)} indices for {ref.shape}"
        return simplify(ref.map.pullback_pw_multi_aff(self.map(indices)), self.domain)

    def load(self, ref: Ref, *indices: str) -> Load:
        return Load(ref.array, self.at(ref, *indices), ref.dtype)

    def gather(self, ref: Ref, indices: Sequence[str | Expr]) -> Load:
        """An element of which some coordinates are data; `ref` must not be a reordering view there.

        Each expression must already be kept inside its dimension by the function "index".
        """
        fixed = [i if isinstance(i, str) else "0" for i in indices]
        dynamic = tuple((k, i) for k, i in enumerate(indices) if not isinstance(i, str))
        return Load(ref.array, self.at(ref, *fixed), ref.dtype, dynamic)

    def index(self, formula: str, dtype: np.dtype = INT64) -> Index:
        """The value of an index formula, as data."""
        return Index(read(isl.PwAff, f"{{ {self.tuple} -> [({formula})] }}"), np.dtype(dtype))

    def number(self, extent: Extent, dtype: np.dtype = INT64) -> Expr | int:
        """An extent as data: a number, or what a size is at run time."""
        extent = named(extent)
        if not isinstance(extent, Size):
            return extent
        if extent.is_affine:
            return cast(self.index(spell(extent)), dtype)
        terms = []
        for product, coefficient in extent.terms:
            factors: list[Expr] = [Const(coefficient, INT64), *map(self.index, product)]
            terms.append(reduce(partial(call, "mul"), factors))
        total: Expr = reduce(partial(call, "add"), terms)
        return cast(total, dtype)

    def within(self, condition: str) -> Within:
        """Whether a condition on the iterators holds, e.g. "i >= 2 and j < 5"."""
        return Within(read(isl.Set, f"{{ {self.tuple} : {condition} }}"))
