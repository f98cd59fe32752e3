"""A schedule: what is decided about the loops of a kernel, as a value with a text form.

    order j i | split j 32 | split i 13 | vector j' | unroll i' | sink j' i' | parallel j i
    | keep matmul_0_acc in registers at i

Directives are applied in order to the loop tree of the kernel (`schedule/initial.py`). What a
strategy emits, what `explain()` prints, what tuning stores and what a user writes is this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain

from polyc.errors import IllegalSchedule
from polyc.schedule.coordinates import Partial, Stage, Tile
from polyc.schedule.directives import Shift, Skew
from polyc.schedule.keeping import Keep, KeepInPlace, Pack, Prefetch
from polyc.schedule.loops import LoopTree
from polyc.schedule.text import AnyDirective, parse, spell
from polyc.schedule.threads import Lay, Swizzled

Renaming = Callable[[str], tuple[str, ...]]
"""From the name of a loop to those that it has instead."""


@dataclass(frozen=True)
class Schedule:
    """Directives, applied one after the other."""

    directives: tuple[AnyDirective, ...] = ()

    @staticmethod
    def parse(text: str) -> Schedule:
        """The schedule that a text spells; `parse(str(s)) == s`.

        Raises IllegalSchedule, which names the directive that cannot be read.
        """
        return Schedule(parse(text))

    def __str__(self) -> str:
        return " | ".join(map(spell, self.directives))

    def __add__(self, other: Schedule) -> Schedule:
        return Schedule(self.directives + other.directives)

    def apply(self, tree: LoopTree) -> LoopTree:
        """The tree after all directives; IllegalSchedule, which names one, if it cannot be."""
        return reduce(lambda _, step: step[1], self.steps(tree), tree)

    def steps(self, tree: LoopTree) -> Iterator[tuple[AnyDirective, LoopTree]]:
        """Each directive, and the tree after it."""
        for directive in self.directives:
            try:
                tree = directive.apply(tree)
            except IllegalSchedule as error:
                raise IllegalSchedule(f"{spell(directive)}: {error}") from None
            yield directive, tree

    def rename(self, loops: Renaming, array: Callable[[str], str]) -> Schedule:
        """The schedule with other names for arrays and loops, of which one may become several."""
        return Schedule(tuple(_rename(d, loops, array) for d in self.directives))


def _rename(directive: AnyDirective, loops: Renaming, array: Callable[[str], str]) -> AnyDirective:
    match directive:
        case Pack(arrays) | Prefetch(arrays):
            return replace(directive, arrays=tuple(map(array, arrays)))
        case Lay(one) | Swizzled(one):
            return replace(directive, array=array(one))
        case Partial(one):
            return Partial(_one(loops, one))
        case Stage(arrays, rows, columns):
            return Stage(tuple(map(array, arrays)), _one(loops, rows), _one(loops, columns))
        case Tile(rows, columns, sums, batch=batch):
            first, second, third = (
                replace(side, loops=_all(loops, side.loops)) for side in (rows, columns, sums)
            )
            rest = _all(loops, batch)
            return Tile(first, second, third, directive.results, directive.run, rest)
        case KeepInPlace(kept, home, at):
            return KeepInPlace(array(kept), array(home), at and _one(loops, at))
        case Keep(arrays, _, at):
            renamed = None if arrays is None else tuple(map(array, arrays))
            return replace(directive, arrays=renamed, at=at and _one(loops, at))
        case Shift(one):
            return replace(directive, loop=_one(loops, one))
        case Skew(one, by):
            return replace(directive, loop=_one(loops, one), by=_one(loops, by))
        case _:
            return replace(directive, loops=_all(loops, directive.loops))


def _all(loops: Renaming, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(chain.from_iterable(map(loops, names)))


def _one(loops: Renaming, name: str) -> str:
    """The new name of a loop that there is one of."""
    (renamed,) = loops(name)
    return renamed
