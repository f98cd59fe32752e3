"""Where arrays live that a kernel for a GPU has to itself: as its schedule says, or where they fit.

    keep all at nt   ->   keep tiles in registers at nt | keep left right in shared at nt

Outside of loops over threads an array is a block's: each thread has its part in registers if no
thread needs another's, or else all of it is shared (`spaces.py`). Inside of one it is a thread's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from polyc.errors import IllegalSchedule
from polyc.loopnest.nodes import Block, Local, Space, walk_nodes
from polyc.names import show
from polyc.promote.local_arrays import LIMITS, LocalArray, kind_of
from polyc.schedule.keeping import Keep
from polyc.schedule.loops import Kept, LoopTree, mark_names, walk
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import AnyDirective, spell

SPACES: dict[Space, str] = {"register": "registers", "shared": "shared", "stack": "stack"}
"""What directives call the spaces of locals."""


def list_kept(tree: LoopTree) -> dict[str, tuple[str, ...] | None]:
    """The arrays that each mark may declare; None for whatever fits."""
    marks = mark_names(tree, counted=True)
    return {marks[node.at]: node.arrays for node in walk(tree) if isinstance(node, Kept)}


def shared_by_name(schedule: Schedule) -> frozenset[str]:
    """The arrays of which a schedule says that they are shared."""
    found = (d for d in schedule.directives if isinstance(d, Keep) and d.space == "shared")
    return frozenset(name for keep in found for name in keep.arrays or ())


def check_kept(
    schedule: Schedule,
    tree: LoopTree,
    local: Mapping[str, LocalArray],
    private: frozenset[str],
    made: Sequence[str],
) -> None:
    """Raise IllegalSchedule for an array that cannot be kept, or was made and lives nowhere."""
    marks = mark_names(tree, counted=True)
    for directive in schedule.directives:
        if not isinstance(directive, Keep):
            continue
        mark = marks[directive.at]
        by_thread, said = kind_of(mark) == "stack", directive.space
        if said and by_thread != (said == "stack"):
            where, whose = ("inside of", "a thread") if by_thread else ("outside of", "a block")
            way = "in stack" if by_thread else "in registers or in shared"
            raise IllegalSchedule(
                f"{spell(directive)}: {directive.at or 'the top'} is {where} loops over threads, "
                f"and what lives there is {whose}'s; say {way}, or keep it at another loop"
            )
        for name in directive.arrays or ():
            if name not in private:
                raise IllegalSchedule(
                    f"{spell(directive)}: {show(name)} is no array that this kernel has to itself; "
                    f"those are {', '.join(map(show, sorted(private))) or 'none'}"
                )
            if name not in local or local[name].mark != mark:
                raise IllegalSchedule(
                    f"{spell(directive)}: {show(name)} cannot live there: all that touches it has "
                    "to be inside, and what is touched a box of known size of at most "
                    f"{LIMITS[kind_of(mark)]} bytes; keep it at another loop"
                )
    homeless = [name for name in made if name in private and name not in local]
    if homeless:
        raise IllegalSchedule(
            f"{', '.join(map(show, homeless))}: made by this schedule, and kept nowhere; say keep "
            f"{show(homeless[0])} in shared at a loop that is around all that touches it"
        )


def resolve(
    schedule: Schedule, tree: LoopTree, local: Mapping[str, LocalArray], nest: Block
) -> Schedule:
    """The schedule with what `keep all` has come to.

    Raises IllegalSchedule for what is said to be in registers and is not a thread's alone.
    """
    marks = mark_names(tree, counted=True)
    spaces = {
        x.source: "stack" if kind_of(local[x.source].mark) == "stack" else SPACES[x.space]
        for x in _list_locals(nest)
        if x.source in local
    }
    steps: list[AnyDirective] = []
    for directive in schedule.directives:
        if not isinstance(directive, Keep):
            steps.append(directive)
        elif directive.arrays is None:
            mark = marks[directive.at]
            here = [n for n in sorted(local) if local[n].mark == mark and n in spaces]
            steps += _spell_out(directive, here, spaces)
        else:
            _check_space(directive, spaces)
            steps.append(directive)
    return Schedule(tuple(steps))


def _list_locals(nest: Block) -> Iterator[Local]:
    return (x for node in walk_nodes(nest) if isinstance(node, Block) for x in node.locals)


def _spell_out(
    keep: Keep, here: Sequence[str], spaces: Mapping[str, str]
) -> Iterator[AnyDirective]:
    for space in SPACES.values():
        names = tuple(name for name in here if spaces[name] == space)
        if names:
            yield Keep(names, space, keep.at)


def _check_space(keep: Keep, spaces: Mapping[str, str]) -> None:
    for name in keep.arrays or ():
        found = spaces.get(name, keep.space)
        if found != keep.space:
            raise IllegalSchedule(
                f"{spell(keep)}: threads need elements of {show(name)} that others have, or which "
                f"they are is not known when loops are unrolled; say in {found}"
            )
