"""Where arrays live that a kernel has to itself: as its schedule says, or where they fit.

    keep all at i     ->     keep matmul_0_acc in registers at i
    keep all in place at i   ->   keep exp in place of y at i | keep max sum in registers at i

`keep all` is what strategies emit: what fits is known when the loops are. It is replaced by what it
comes to, so that a schedule says where each array lives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import islpy as isl

from polyc.analysis.dependences import Dependences
from polyc.errors import IllegalSchedule
from polyc.memory.storage import Storage
from polyc.names import show
from polyc.promote.in_place import Moved, keep_in_place, move_named
from polyc.promote.local_arrays import LIMITS, LocalArray, kind_of, promote_to_locals
from polyc.promote.near import NearArray, find_near
from polyc.promote.numbering import find_numbers
from polyc.schedule.keeping import Keep, KeepInPlace
from polyc.schedule.loops import Instances, Kept, Loop, LoopTree, mark_names, paths, restrict, walk
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import AnyDirective
from polyc.scop.scop import Scop
from polyc.target.instructions.matrices import MATRICES
from polyc.target.machine import Target


@dataclass(frozen=True)
class Places:
    """Where the arrays of a kernel live, and its schedule, which now says so.

    part: what the kernel computes, with rows in the results that overwrite them. local, near: by
    array, those that live in a tile, and those that may.
    """

    schedule: Schedule
    part: Scop
    dependences: Dependences
    local: Mapping[str, LocalArray]
    near: Mapping[str, NearArray] = field(default_factory=dict)


def keep_arrays(
    schedule: Schedule,
    tree: LoopTree,
    lowered: isl.Schedule,
    part: Scop,
    dependences: Dependences,
    private: frozenset[str],
    storages: Mapping[str, Storage],
    target: Target,
) -> Places:
    """Local storage for the `private` arrays that a schedule keeps; `lowered` is its tree.

    Raises IllegalSchedule if it names an array that cannot be kept so.
    """
    start = Moved(part, dependences)
    for directive in schedule.directives:
        if isinstance(directive, KeepInPlace):
            _refuse_foreign(directive.array, private)
            start = move_named(start, lowered, directive.array, directive.home)
    rows = dict(_find_rows(tree))
    moved = keep_in_place(start, lowered, rows, storages) if rows else start
    left = private.intersection(moved.part.arrays)
    marks = mark_names(tree)
    named = {marks[node.at]: node.arrays for node in walk(tree) if isinstance(node, Kept)}
    statements, numbers = moved.part.statements, find_numbers(tree)
    local = promote_to_locals(
        lowered, statements, left, part.arrays, storages, named=named, numbers=numbers
    )
    near = find_near(lowered, statements, left - local.keys(), storages, named)
    homes = moved.homes[len(start.homes) :]
    resolved: list[AnyDirective] = []
    for directive in schedule.directives:
        if isinstance(directive, Keep):
            here = [a for a in local.values() if a.mark == marks[directive.at]]
            if directive.arrays is None:
                resolved += _spell_out(directive, tree, here, homes, moved.part, target)
                continue
            _check_kept(directive, here, marks[directive.at], private, target)
        resolved.append(directive)
    return Places(Schedule(tuple(resolved)), moved.part, moved.dependences, local, near)


def _find_rows(tree: LoopTree) -> Iterator[tuple[str, tuple[int, int]]]:
    """Statements below `keep all in place` with a vector loop of their own that is cut in tiles.

    (the position of the iterator, the size of a tile)
    """
    for path, leaf in zip(paths(tree), _leaves(tree), strict=True):
        if not any(isinstance(node, Kept) and node.in_place for node in path):
            continue
        for loop in path:
            if isinstance(loop, Loop) and loop.kind == "vector" and loop.size:
                function = restrict(loop.function, leaf).get_pw_aff_list().get_at(0)
                moving = [
                    p
                    for p in range(function.dim(isl.dim_type.in_))
                    if function.involves_dims(isl.dim_type.in_, p, 1)
                ]
                if len(moving) == 1:
                    yield leaf.statement, (moving[0], loop.size)


def _leaves(tree: LoopTree) -> Iterator[Instances]:
    return (node for node in walk(tree) if isinstance(node, Instances))


def _spell_out(
    keep: Keep,
    tree: LoopTree,
    here: list[LocalArray],
    homes: tuple[tuple[str, str], ...],
    part: Scop,
    target: Target,
) -> Iterator[AnyDirective]:
    """What `keep all` comes to."""
    if keep.in_place:
        writers = {s.array: s.name for s in part.statements}
        for array, home in reversed(homes):  # a home may have got a home in its turn
            writers[array] = writers[home]
        below = {
            leaf.statement
            for node in walk(tree)
            if isinstance(node, Kept) and node.at == keep.at
            for leaf in _leaves(node)
        }
        yield from (KeepInPlace(a, home, keep.at) for a, home in homes if writers[home] in below)
    stored = set(_stored_as_matrices(tree, part))
    fitting = [a.name for a in here if _fits_registers(a, target) and a.source not in stored]
    others = [a.name for a in here if a.name not in fitting]
    sources = {a.name: a.source for a in here}
    for space, names in (("registers", fitting), ("stack", others)):
        if names:
            yield Keep(tuple(sources[name] for name in names), space, keep.at)


def _stored_as_matrices(tree: LoopTree, part: Scop) -> Iterator[str]:
    """The arrays that instructions for matrices store, to memory."""
    writes = {s.name: s.array for s in part.statements}
    rows = {row.name for row in MATRICES}
    for loop in walk(tree):
        if isinstance(loop, Loop) and loop.instruction in rows:
            yield from (writes[leaf.statement] for leaf in _leaves(loop))


def _fits_registers(array: LocalArray, target: Target) -> bool:
    return array.bytes <= target.vectors.registers * target.vectors.bytes


def _check_kept(
    keep: Keep, here: list[LocalArray], mark: str, private: frozenset[str], target: Target
) -> None:
    """Raise IllegalSchedule for a named array that does not live at the mark, where it should."""
    found = {a.source: a for a in here}
    for name in keep.arrays or ():
        _refuse_foreign(name, private)
        where = f"keep {show(name)} in {keep.space}" + (f" at {keep.at}" if keep.at else "")
        if name not in found:
            raise IllegalSchedule(
                f"{where}: all statements that touch it have to run there, in one iteration, and "
                "what they touch has to be a box of known size of at most "
                f"{LIMITS[kind_of(mark)]} bytes; keep it at another loop, or not at all"
            )
        if keep.space == "registers" and not _fits_registers(found[name], target):
            raise IllegalSchedule(
                f"{where}: it takes {found[name].bytes} bytes, and all registers have "
                f"{target.vectors.registers * target.vectors.bytes}; keep it in stack"
            )


def _refuse_foreign(array: str, private: frozenset[str]) -> None:
    if array not in private:
        raise IllegalSchedule(
            f"{show(array)} is no array that this kernel has to itself; those are "
            f"{', '.join(map(show, sorted(private))) or 'none'}"
        )
