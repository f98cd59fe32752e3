"""The polyhedral program: statements with integer-set domains over arrays.

A `Scop` is the tensor graph with its operators opened up: each statement executes one scalar
assignment for every point of its domain,

    { S[i, j, k] : 0 <= i < M … }      A[w(i, j, k)]  =  value(i, j, k)
                                       A[w(i, j, k)] op=  value(i, j, k)     (a declared reduction)

The textual order of `statements` is the original schedule, unless they say their `time`: all
instances of a statement before the first of the next, each in lexicographic order; those of a loop
over steps stand together, and are executed so in each step, one step after the other. In tensor
graphs every array element is written by one statement, or by an initialisation followed by one
reduction, in each of the branches that a call may take; loops of users (`polyc/loops/`) write as
they like.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol, TypeVar

import islpy as isl
import numpy as np

from polyc.poly.affine import Column, columns_of, estimated_extents, exact_extents
from polyc.poly.show import show_function
from polyc.scop.expr import Expr, Load, loads, show, weight
from polyc.scop.structure import Structure, compute_structure
from polyc.types.branches import Branches, Demands, show_branches
from polyc.types.estimate import LENGTH, estimate, long_extent
from polyc.types.ranges import STEP, Step

Kind = Literal["input", "output", "state", "constant", "temporary"]
Reduction = Literal["add", "mul", "max", "min", "larger", "smaller", "and", "or"]
"""`larger` and `smaller` are Python's `max` and `min` of floats, which pass over what is no number;
those of ONNX, `max` and `min`, give NaN for it."""

ORDERLESS = frozenset({"max", "min", "larger", "smaller", "and", "or"})
"""Reductions that give the same in any order, but for the sign of a zero; sums of floats do not."""


@dataclass(frozen=True)
class Array:
    """Storage that statements read and write.

    `value` is the content of a constant. Inputs, outputs and states, which are both, are laid out
    row-major over `shape`, as the caller's arrays are; how the others are stored is decided later
    (`mapping/cpu/layout.py`).
    `is_partial`: partial results of a reduction, which are there to be computed in parallel.
    `memory`: the array of which this one is the memory, in the same order under another shape: all
    of that has been written where this is read, and nobody writes this.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    kind: Kind
    value: np.ndarray | None = field(default=None, compare=False, repr=False)
    is_partial: bool = False
    memory: str = ""

    @property
    def bytes(self) -> int:
        """What it takes, for sizes as they are estimated."""
        return math.prod(map(estimate, self.shape)) * self.dtype.itemsize

    @property
    def long_bytes(self) -> int:
        """The same in a long call."""
        return math.prod(map(long_extent, self.shape)) * self.dtype.itemsize


@dataclass(frozen=True)
class Group:
    """Statements that belong in one loop nest: all have the iterators `shared`, by these names."""

    name: str
    shared: tuple[str, ...]


@dataclass(frozen=True)
class Statement:
    """One scalar assignment over a domain; `reduction` names the operator of `op=`.

    `group` is a hint to clustering, not a promise: what it leads to is proven like everything else.
    `step`: the loop over steps that the statement is in, whose number is a parameter of its sets.
    `branches`: the arrays, of one boolean, that decide in a call whether it is executed.
    `time`: when an instance is executed in the original order (`order.py`), of statements that are
    interleaved; all of a scop have one, of one length, or none.
    """

    name: str
    domain: isl.Set  # S
    iterators: tuple[str, ...]
    array: str
    write: isl.PwMultiAff  # S -> A
    value: Expr
    reduction: Reduction | None = None
    origin: tuple[str, ...] = ()
    group: Group | None = None
    step: Step | None = None
    branches: Branches = ()
    time: isl.MultiAff | None = None  # S -> [t]

    @cached_property
    def loads(self) -> tuple[Load, ...]:
        """Explicit loads of the value; a reduction also reads the element that it updates."""
        return tuple(loads(self.value))

    @cached_property
    def weight(self) -> int:
        """What the value is for the C compiler."""
        return weight(self.value)

    @cached_property
    def exact_extents(self) -> tuple[int | None, ...]:
        """One more than the largest value of each iterator; None where sizes decide it."""
        return exact_extents(self.domain)

    @cached_property
    def estimated_extents(self) -> tuple[int, ...]:
        """The same for the sizes that kernels are chosen for: for costs, never for meaning."""
        return estimated_extents(self.domain)

    @property
    def long_extents(self) -> tuple[int, ...]:
        """The same in a long call."""
        found = zip(self.estimated_extents, self.exact_extents, strict=True)
        return tuple(n if exact is not None else max(n, LENGTH) for n, exact in found)

    @cached_property
    def columns(self) -> tuple[tuple[Column, ...], ...]:
        """How the iterators move in the array that is written, and in that of each load."""
        return tuple(columns_of(index) for index in (self.write, *(x.index for x in self.loads)))

    @cached_property
    def structure(self) -> Structure:
        """What it computes, whatever it and its arrays, iterators and step are called."""
        step = {self.step.name: STEP} if self.step else {}
        return compute_structure(
            self.domain, self.array, self.write, self.value, self.reduction, step
        )

    def __str__(self) -> str:
        operator = f"{self.reduction}=" if self.reduction else "="
        target = f"{self.array}[{show_function(self.write)}]"
        where = f"if {show_branches(self.branches)}: " if self.branches else ""
        return f"{self.name}: {self.domain}\n    {where}{target} {operator} {show(self.value)}"


@dataclass(frozen=True)
class Scop:
    """Statements in textual order over a table of arrays.

    `context`: what holds of the sizes in every call, besides their ranges; whoever calls checks it.
    `found`: the array of one integer that holds each size that a call finds. `demands`: what calls
    that take branches need of sizes; the driver ends all others there.
    """

    name: str
    statements: tuple[Statement, ...]
    arrays: Mapping[str, Array]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    context: isl.Set | None = None  # of parameters alone
    found: Mapping[str, str] = field(default_factory=dict)
    demands: Demands = field(default_factory=dict)

    def home(self, array: str) -> str:
        """The array that an array is the memory of: itself, but for those that say another."""
        return self.arrays[array].memory or array

    def __str__(self) -> str:
        arrays = [f"{a.kind} {a.name}: {a.dtype}{list(a.shape)}" for a in self.arrays.values()]
        return "\n".join([f"scop {self.name}", *arrays, *map(str, self.statements)])


class Repeatable(Protocol):
    """What may be in a loop over steps."""

    @property
    def step(self) -> Step | None: ...


R = TypeVar("R", bound=Repeatable)


def gather_steps(parts: Iterable[R]) -> tuple[R, ...]:
    """The parts with those of one loop over steps together, where the last of them stood.

    a0 b a1 c   ->   b a0 a1 c      a0 and a1 in a loop; what stands between cannot depend on it
    """
    listed = list(parts)
    last = {part.step: k for k, part in enumerate(listed) if part.step}
    places = [last[part.step] if part.step else k for k, part in enumerate(listed)]
    return tuple(listed[k] for k in sorted(range(len(listed)), key=places.__getitem__))


def identity(reduction: Reduction, dtype: np.dtype) -> int | float | bool:
    """The neutral element e of a reduction: op(e, x) = x."""
    if reduction in ("add", "or"):
        return False if dtype == np.bool_ else 0
    if reduction in ("mul", "and"):
        return True if dtype == np.bool_ else 1
    lowest = reduction in ("max", "larger")
    if dtype == np.bool_:
        return not lowest
    if np.issubdtype(dtype, np.floating):
        return float("-inf") if lowest else float("inf")
    limits = np.iinfo(dtype)
    return int(limits.min if lowest else limits.max)
