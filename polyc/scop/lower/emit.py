"""What writes statements: arrays by name, boxes of iterators, and assignments over them.

An `Emitter` is mutable, and lives as long as what it writes is not whole: the lowering of a graph
(`context.py`), or a rewrite of a scop that adds statements to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod

import islpy as isl
import numpy as np

from polyc.budget import UNLIMITED, Budget
from polyc.graph.ir import Node
from polyc.names import RUNTIME_PREFIX, fresh, identifier, is_derived
from polyc.poly.affine import outputs, simplify
from polyc.poly.boxes import box
from polyc.poly.conditions import spell
from polyc.poly.parameters import among_own_sizes, read
from polyc.scop.expr import Call, Const, Expr, cast, loads, pull_back
from polyc.scop.lower.functions import wrap_index
from polyc.scop.lower.space import Ref, Space
from polyc.scop.scop import Array, Group, Kind, Reduction, Scop, Statement, identity
from polyc.scop.sizes import among_its_sizes
from polyc.types.branches import BRANCH, Branches
from polyc.types.parameters import named
from polyc.types.ranges import PREFIX, STEP, Step, assume, assumed_ranges, forget_steps
from polyc.types.sizes import Size, bounds


class Emitter:
    """Arrays and statements, and in which loop over steps and branches new ones are."""

    def __init__(self, budget: Budget = UNLIMITED) -> None:
        self._budget = budget
        self.arrays: dict[str, Array] = {}
        self.statements: list[Statement] = []
        self._names: set[str] = set()
        self._group: Group | None = None
        self.step: Step | None = None
        self.branches: Branches = ()

    @staticmethod
    def beside(scop: Scop, s: Statement, budget: Budget = UNLIMITED) -> Emitter:
        """One for statements of a scop that are executed whenever `s` is; it has the arrays."""
        made = Emitter(budget)
        made.arrays = dict(scop.arrays)
        made._names = {*scop.arrays, *(each.name for each in scop.statements)}
        made.step, made.branches = s.step, s.branches
        return made

    # -- arrays -------------------------------------------------------------------------------

    def array(
        self,
        hint: str,
        dtype: np.dtype,
        shape: Sequence[int],
        kind: Kind = "temporary",
        value: np.ndarray | None = None,
    ) -> Ref:
        """A new array, seen by the identity view; `hint` is made a unique C identifier."""
        name = self._unique(hint)
        extents = tuple(named(n) if isinstance(n, Size) else int(n) for n in shape)
        if value is None:
            least = prod(n for n in extents if isinstance(n, int)) * np.dtype(dtype).itemsize
            self._budget.require(least, f"array {name!r}")
        self.arrays[name] = Array(name, np.dtype(dtype), extents, kind, value)
        indices = ", ".join(f"i{k}" for k in range(len(extents)))
        identity_map = isl.PwMultiAff(f"{{ [{indices}] -> {name}[{indices}] }}")
        return Ref(name, identity_map, np.dtype(dtype), extents)

    def constant(self, hint: str, value: np.ndarray) -> Ref:
        """A constant array that the lowering itself computed."""
        return self.array(hint, value.dtype, value.shape, "constant", np.asarray(value, order="C"))

    def filled(
        self, hint: str, value: int | float | bool, dtype: np.dtype, shape: Sequence[int]
    ) -> Ref:
        """A tensor that is one value everywhere: a view of a single constant."""
        indices = ", ".join(f"i{k}" for k in range(len(shape)))
        return self.constant(hint, np.array(value, dtype)).through(
            f"{{ [{indices}] -> [] }}", shape
        )

    def is_whole(self, ref: Ref) -> bool:
        """Whether a view is its array itself: all of it, element for element."""
        if self.arrays[ref.array].shape != ref.shape:
            return False
        indices = ", ".join(f"i{k}" for k in range(ref.rank))
        # [tensor indices] -> A
        plain = read(isl.Map, f"{{ [{indices}] -> {ref.array}[{indices}] }}")
        plain = plain.intersect_domain(among_own_sizes(box("", ref.shape), ref.map))
        return bool(ref.map.as_map().intersect_domain(plain.domain()).is_equal(plain))

    def whole(self, node: Node, ref: Ref) -> Ref:
        """A view that is its array itself: `ref` if it is, else a copy; for access by data."""
        if self.is_whole(ref):
            return ref
        target = self.array(f"{ref.array}_whole", ref.dtype, ref.shape)
        self.copy(node, ref, target)
        return target

    def unbroken(self, node: Node, ref: Ref) -> Ref:
        """A view that is one formula between the borders of its tensor, or else a copy of it.

            x[h], as in a mirror     { [i] -> [2 - i] : i < 2;  [i - 2] : 2 <= i < h + 2;  … }

        For what reads an element many times: where a piece ends is known to a call alone, so that
        no loop is cut there, and each access would ask which piece it is in.
        """
        sizes = ref.map.dim(isl.dim_type.param)
        if ref.map.isa_multi_aff() or not ref.map.involves_dims(isl.dim_type.param, 0, sizes):
            return ref
        seen = simplify(ref.map, box("", ref.shape))
        if all(formula.n_piece() == 1 for formula in outputs(seen)):
            return ref
        return self.whole(node, ref)

    def regrouped(self, node: Node, ref: Ref, shape: Sequence[int]) -> Ref:
        """The elements of a tensor in their order under another shape, in the same memory.

        What no function of integer sets says, as [h, w] -> [h*w], is no view, but it costs nothing
        either: the tensor is written as it is, and read as another array.
        """
        array = self.arrays[ref.array]
        if not self.is_whole(ref) or (array.kind in ("input", "constant") and not array.memory):
            whole = self.array(f"{ref.array}_whole", ref.dtype, ref.shape)
            self.copy(node, ref, whole)
            ref, array = whole, self.arrays[whole.array]
        if not array.memory:
            self.declare_output(ref)  # which is row-major, and stays where it is
        seen = self.array(f"{node.name}_regrouped", ref.dtype, shape, "input")
        memory = array.memory or array.name
        self.arrays[seen.array] = replace(self.arrays[seen.array], memory=memory)
        return seen

    def declare_output(self, ref: Ref) -> None:
        """Let the array of a whole view be an output of the program."""
        self.arrays[ref.array] = replace(self.arrays[ref.array], kind="output")

    # -- statements ---------------------------------------------------------------------------

    def space(self, node: Node, **extents: int) -> Space:
        """A new iteration box for a statement of this node."""
        return Space(self._unique(f"S_{node.name}"), extents)

    @contextmanager
    def together(self, node: Node, *shared: str) -> Iterator[None]:
        """Statements emitted inside belong in one nest over the iterators `shared`."""
        self._group = Group(self._unique(node.name), shared)
        try:
            yield
        finally:
            self._group = None

    @contextmanager
    def repeated(self, step: Step | None) -> Iterator[None]:
        """Statements emitted inside are executed in each step of a loop, if one is given."""
        self.step = step
        with assume([step] if step else []):
            try:
                yield
            finally:
                self.step = None

    @contextmanager
    def before_steps(self) -> Iterator[None]:
        """Statements emitted inside are in no loop over steps, though the node is."""
        step, self.step = self.step, None
        with forget_steps():
            try:
                yield
            finally:
                self.step = step

    @contextmanager
    def in_branches(self, branches: Branches) -> Iterator[None]:
        """Statements emitted inside are executed in these branches only, whatever the node's."""
        around, self.branches = self.branches, branches
        try:
            yield
        finally:
            self.branches = around

    def grid(self, node: Node, shape: Sequence[int]) -> Space:
        """A box with iterators i0, i1, … over a shape."""
        return self.space(node, **{f"i{k}": n for k, n in enumerate(shape)})

    def assign(
        self,
        node: Node,
        space: Space,
        target: Ref,
        at: Sequence[str],
        value: Expr,
        empty: Expr | None = None,
    ) -> None:
        """target[at] = value, for each point of the space.

        A coordinate that is data needs an extent of at least 1: where there is none, by the sizes
        of a call too, the value is `empty`, or any index is out of range unless that is given.

            y[i] = x[index(k[i], n)]   ->   y[i] = x[index(k[i], n)] where n >= 1
                                            y[i] = index(k[i], 0)    where n <= 0
        """
        unsure = [
            (index, extent)
            for load in loads(value)
            for dimension, index in load.dynamic
            if bounds(extent := self.arrays[load.array].shape[dimension])[0] < 1
        ]
        if not unsure:
            self._emit(node, space, target, at, value, None)
            return
        if empty is None:
            assert isinstance(unsure[0][0], Call), "an index that nothing keeps in range"
            empty = cast(wrap_index(unsure[0][0].arguments[0], 0), target.dtype)
        filled = space.restricted(" and ".join(f"{spell(n)} >= 1" for _, n in unsure))
        if not filled.domain.is_empty():
            self._emit(node, filled, target, at, value, None)
        rest = space.restricted(" or ".join(f"{spell(n)} <= 0" for _, n in unsure))
        rest = replace(rest, name=self._unique(f"{space.name}_empty"))
        self._emit(node, rest, target, at, pull_back(empty, rest.onto(space)), None)

    def reduce(
        self,
        node: Node,
        space: Space,
        target: Ref,
        at: Sequence[str],
        value: Expr,
        operator: Reduction,
        where: str = "",
    ) -> None:
        """target[at] = identity; target[at] op= value over the space.

        `at` must be plain iterators of the space: those are the parallel ones, the rest reduce.
        `where` says which results there are, if not all in the box; the space says so as well.
        """
        name = self._unique(f"{space.name}_init")
        start = Space(name, {i: space.extents[i] for i in at}, where)
        neutral = Const(identity(operator, target.dtype), target.dtype)
        self._emit(node, start, target, at, neutral, None)
        self._emit(node, space, target, at, value, operator)

    def copy(self, node: Node, source: Ref, target: Ref, view: str | None = None) -> None:
        """target[view(i)] = source[i]; `view` is { [source indices] -> [target indices] }."""
        space = self.grid(node, source.shape)
        seen = target if view is None else target.through(view, source.shape)
        self._emit(node, space, seen, space.iterators, space.load(source, *space.iterators), None)

    def _emit(
        self,
        node: Node,
        space: Space,
        target: Ref,
        at: Sequence[str],
        value: Expr,
        reduction: Reduction | None,
    ) -> None:
        assert value.dtype == target.dtype, f"{node}: {value.dtype} into {target.dtype}"
        if 0 in space.extents.values() or (assumed_ranges() and space.domain.is_empty()):
            return  # nothing to execute, in any call
        statement = Statement(
            name=space.name,
            domain=space.domain,
            iterators=space.iterators,
            array=target.array,
            write=space.at(target, *at),
            value=value,
            reduction=reduction,
            origin=(node.name,),
            group=self._group,
            step=self.step,
            branches=self.branches,
        )
        self.statements.append(among_its_sizes(statement))

    def _unique(self, hint: str) -> str:
        """A fresh identifier that resembles the hint; model names reach no text otherwise."""
        base = identifier(hint) or "t"
        # Parameters of sets, and the runtime, are told by how their names begin.
        of_runtime = base.upper().startswith(RUNTIME_PREFIX)
        if base[0].isdigit() or base.startswith((PREFIX, STEP, BRANCH)) or of_runtime:
            base = f"t{base}"
        name = fresh(f"{base}_" if is_derived(base) else base, self._names)
        self._names.add(name)
        return name
