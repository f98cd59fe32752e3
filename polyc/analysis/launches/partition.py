"""All launches together execute the statements of the scop, each once, in an order that it allows.

    scop       Z: a[i] = 0    S: a[i] += x[i, k]    T: y[i] = a[i]
    launches   { Z, S }, { T }

Each kernel's proof says that a launch does what its own statements say, in the order of their text.
Then the launches one after another are the scop in another order of its statements. That changes
nothing if any two statements that change places touch nothing in common that one of them writes.

A statement that is not of the scop may copy:  B[i] = A[i].  Who reads B reads A then, as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import islpy as isl

from polyc.analysis.launches.branches import where_taken
from polyc.analysis.same import Renaming, same_dynamic, same_tree
from polyc.analysis.steps import by_loop, in_any_step
from polyc.analysis.witness import illegal, show_first
from polyc.poly.boxes import box
from polyc.poly.parameters import among_sizes, without_known
from polyc.scop.accesses import read_map, write_map
from polyc.scop.expr import Const, Expr, Load
from polyc.scop.literals import content_of
from polyc.scop.scop import Array, Scop, Statement
from polyc.types.branches import Branches, show_branches
from polyc.types.ranges import Step

OUT = isl.dim_type.out


@dataclass(frozen=True)
class Part:
    """The statements that a launch is there for, in the order of its kernel's text."""

    launch: str
    statements: tuple[Statement, ...]
    step: Step | None = None
    branches: Branches = ()


@dataclass(frozen=True)
class Copy:
    """A statement that is not of the scop, and where what it makes comes from."""

    statement: Statement
    launch: str
    source: str
    origin: isl.Map  # B -> A


def verify_partition(scop: Scop, parts: Sequence[Part], arrays: Mapping[str, Array]) -> int:
    """Launches do what the scop says: its statements, each once, and copies, in a right order.

    `scop` is the model before it is cut into kernels; `arrays` are those of the parts, copies
    included. Gives the number of pairs of accesses whose order had to be looked at.
    """
    _check_steps(scop, parts)
    copies = _find_copies(scop, parts)
    home: dict[str, str] = {}
    statements = {s.name: s for s in scop.statements}
    for part in parts:
        for s in part.statements:
            if s.name in home:
                raise illegal(f"launch {part.launch}", f"{s.name} is in {home[s.name]} as well")
            home[s.name] = part.launch
            if s.name in statements:
                _check_same(part.launch, statements[s.name], s, copies, arrays)
    for name in statements:
        if name not in home:
            raise illegal(f"scop {scop.name}", f"statement {name} is in no launch")
    launched = {s.name: s for part in parts for s in part.statements}
    stated = _insert_copies([launched[name] for name in statements], copies)
    return _check_order(stated, parts, arrays)


def _check_steps(scop: Scop, parts: Sequence[Part]) -> None:
    """A loop over steps stands in one piece, and holds the statements that are repeated in it."""
    for listed in (scop.statements, parts):
        loops = [step for step, _ in by_loop(listed) if step]
        for step in loops:
            if loops.count(step) > 1:
                raise illegal(f"loop {step.name}", "what is repeated in it does not stand together")
    for part in parts:
        for s in part.statements:
            if s.step != part.step:
                rule = f"{s.name} is repeated with {s.step}, but its launch with {part.step}"
                raise illegal(f"launch {part.launch}", rule)
            if s.branches != part.branches:
                told = [show_branches(b) or "every call" for b in (s.branches, part.branches)]
                rule = f"{s.name} is executed in {told[0]}, but its launch in {told[1]}"
                raise illegal(f"launch {part.launch}", rule)


def _find_copies(scop: Scop, parts: Sequence[Part]) -> dict[str, Copy]:
    """The arrays that are not of the scop, as copies of those that are."""
    known = {s.name for s in scop.statements}
    copies: dict[str, Copy] = {}
    for part in parts:
        for s in part.statements:
            if s.name in known:
                continue
            where, value = f"launch {part.launch}", s.value
            if not isinstance(value, Load) or value.dynamic or s.reduction:
                raise illegal(where, f"{s.name} is no statement of the scop, and no copy")
            if s.array in scop.arrays or s.array in copies:
                raise illegal(where, f"{s.name} copies to {s.array}, which is written elsewhere")
            if value.array not in scop.arrays:
                raise illegal(where, f"{s.name} copies {value.array}, which the scop does not have")
            written = write_map(s)  # C -> B
            if not written.is_injective():
                raise illegal(where, f"{s.name} writes an element of {s.array} twice")
            origin = written.reverse().apply_range(value.index.as_map())
            copies[s.array] = Copy(s, part.launch, value.array, origin)
    return copies


def _check_same(
    launch: str,
    stated: Statement,
    s: Statement,
    copies: Mapping[str, Copy],
    arrays: Mapping[str, Array],
) -> None:
    """A launched statement is that of the scop, but for reading copies, and literals in arrays."""
    if s is stated:
        return
    domain = stated.domain

    def leaf(a: Expr, b: Expr) -> bool:
        if isinstance(a, Const) and isinstance(b, Load):
            return _holds(arrays[b.array], b, domain, a)
        if not (isinstance(a, Load) and isinstance(b, Load)):
            return Renaming().same_leaf(a, b, (domain, domain))
        read, wanted = (x.index.as_map().intersect_domain(domain) for x in (b, a))
        if b.array in copies:
            read = read.apply_range(copies[b.array].origin)
        if read.get_tuple_name(OUT) != wanted.get_tuple_name(OUT):
            return False
        same = read.plain_is_equal(wanted) or read.is_equal(wanted)
        return bool(same) and same_dynamic(a, b, leaf)

    same = (
        (s.domain.plain_is_equal(domain) or s.domain.is_equal(domain))
        and s.array == stated.array
        and write_map(s).is_equal(write_map(stated))
        and (s.reduction, s.step) == (stated.reduction, stated.step)
        and s.branches == stated.branches
        and same_tree(stated.value, s.value, leaf)
    )
    if not same:
        raise illegal(f"launch {launch}", f"{s.name} is not what the scop says:\n{stated}\n{s}\n")


def _holds(array: Array, load: Load, domain: isl.Set, literal: Const) -> bool:
    """Whether what is read, in each instance, is one element of a constant: the literal's bits."""
    read = load.index.as_map().intersect_domain(domain)
    if array.value is None or load.dynamic or not domain.is_subset(read.domain()):
        return False
    element = read.range()
    if not element.is_singleton() or element.get_tuple_name() != array.name:
        return False
    point = element.sample_point().get_multi_val()
    place = tuple(point.get_val(d).to_python() for d in range(array.value.ndim))
    inside = all(0 <= p < size for p, size in zip(place, array.value.shape, strict=True))
    return inside and array.value[place].tobytes() == content_of(literal).tobytes()


Time = tuple[int, int]
"""The loop over steps that a statement is in, or none; and its place there. Loops have numbers."""


def _times(statements: Sequence[Statement]) -> dict[str, Time]:
    """When each statement is executed; those of one loop in each step anew, in this order."""
    return {
        s.name: (loop, place)
        for loop, (_, group) in enumerate(by_loop(statements))
        for place, s in enumerate(group)
    }


def _insert_copies(stated: Sequence[Statement], copies: Mapping[str, Copy]) -> list[Statement]:
    """The statements with each copy in front of the first that reads it, or of the loop around it.

    Who reads a copy is meant to read its source. So it does if, up to the last reader, nothing is
    written to elements that were copied.
    """
    inside: dict[Step | None, list[int]] = {}  # a loop -> the positions of its statements
    readers: dict[str, list[int]] = {}
    writers: dict[str, list[int]] = {}
    for k, s in enumerate(stated):
        inside.setdefault(s.step, []).append(k)
        writers.setdefault(s.array, []).append(k)
        for array in {load.array for load in s.loads}:
            readers.setdefault(array, []).append(k)
    before: dict[int, list[Statement]] = {}
    for copy in copies.values():
        made = copy.statement
        span = list(readers.get(made.array, ()))
        steps = {stated[k].step for k in span} - {made.step}
        if made.step and steps:
            rule = f"{made.array} is read outside of the loop in which it is copied"
            raise illegal(f"launch {copy.launch}", rule)
        for step in steps:
            span += inside[step] if step else []
        if not span:
            continue
        for k in writers.get(copy.source, ()):
            if min(span) <= k <= max(span):
                _check_untouched(copy, stated[k])
        before.setdefault(min(span), []).append(made)
    return [s for k, one in enumerate(stated) for s in (*before.get(k, ()), one)]


def _check_untouched(copy: Copy, s: Statement) -> None:
    """A statement behind a copy leaves alone what was copied."""
    kept, written = copy.origin.range(), write_map(s).range()
    if s.step and s.step != copy.statement.step:
        written = in_any_step(written, s.step)
    lost = kept.intersect(written)
    if not lost.is_empty():
        rule = f"{copy.statement.name} copies what {s.name} overwrites before it is read"
        raise illegal(f"launch {copy.launch}", rule, show_first(lost))


@dataclass(frozen=True)
class _Access:
    """An access of a statement; `load` is None for what it writes."""

    statement: Statement
    load: Load | None

    arrays: Mapping[str, Array]

    @cached_property
    def elements(self) -> isl.Set:
        """# A: the elements touched, by calls that take its branches."""
        return self._elements(anywhen=False)

    @cached_property
    def elements_anywhen(self) -> isl.Set:
        """# A: the same of all steps of the loop that it is in, if it is."""
        return self._elements(anywhen=True) if self.statement.step else self.elements

    def _elements(self, anywhen: bool) -> isl.Set:
        s, load = self.statement, self.load
        if load and (home := self.arrays[load.array].memory):
            touched = box(home, self.arrays[home].shape)  # of which no set says more
        else:
            relation = read_map(s, load, self.arrays[load.array]) if load else write_map(s)
            touched = relation.range()
            touched = in_any_step(touched, s.step) if anywhen and s.step else touched
        return touched.intersect_params(where_taken(s.branches)) if s.branches else touched


def _check_order(
    stated: Sequence[Statement], parts: Sequence[Part], arrays: Mapping[str, Array]
) -> int:
    """Statements that are launched in another order than stated touch nothing in common."""
    before = _times(stated)
    after = _times([s for part in parts for s in part.statements])
    home = {s.name: part.launch for part in parts for s in part.statements}
    checked = 0
    for accesses in _list_accesses(stated, arrays).values():
        order = sorted({x.statement.name for x in accesses}, key=before.__getitem__)
        if all(after[a] <= after[b] for a, b in pairwise(order)):
            continue  # nobody changes places
        for one in accesses:
            if one.load:
                continue
            for other in accesses:
                names = one.statement.name, other.statement.name
                a, b = sorted(names, key=before.__getitem__)
                if after[a] <= after[b]:
                    continue
                anywhen = before[a][0] != before[b][0]
                touched = [x.elements_anywhen if anywhen else x.elements for x in (one, other)]
                if not _are_apart(*touched):
                    rule = f"{b} of launch {home[b]} is executed before {a}, on which it depends"
                    raise illegal(
                        f"launch {home[a]}", rule, show_first(touched[0].intersect(touched[1]))
                    )
                checked += 1
    return checked


def _are_apart(one: isl.Set, other: isl.Set) -> bool:
    """Whether two sets of elements are disjoint: parts of an array are, of whatever size it is.

    What is assumed of sizes makes isl's question larger, and is asked of those that still meet.
    """
    bare = without_known(one).is_disjoint(without_known(other))
    return bool(bare or among_sizes(one, other).is_disjoint(other))


def _list_accesses(
    statements: Sequence[Statement], arrays: Mapping[str, Array]
) -> dict[str, list[_Access]]:
    """All accesses, by the array whose memory it is; a reduction reads where it writes."""
    found: dict[str, list[_Access]] = {}
    for s in statements:
        found.setdefault(s.array, []).append(_Access(s, None, arrays))
        for load in s.loads:
            home = arrays[load.array].memory or load.array
            found.setdefault(home, []).append(_Access(s, load, arrays))
    return found
