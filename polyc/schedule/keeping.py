"""The directives about memory: what lives inside of a loop or in a result, is packed or fetched."""

from __future__ import annotations

from dataclasses import dataclass, replace

from polyc.errors import IllegalSchedule
from polyc.schedule.loops import Kept, LoopTree
from polyc.schedule.names import edit_loops


@dataclass(frozen=True)
class Keep:
    """Arrays of the kernel's own live inside of each iteration of a loop, or of no loop.

    i ─ S   ->   i ─ keep acc ─ S                      keep acc in registers at i

    space: "registers", for what fits there when loops are unrolled, or "stack"; on a GPU also
    "shared", for what the threads of a block see. arrays: None for
    whatever fits (`keep all at i`), which the compiler replaces by what that is; `in_place`: rows
    among these may live in the result that overwrites them.
    """

    arrays: tuple[str, ...] | None
    space: str = ""
    at: str = ""
    in_place: bool = False

    def apply(self, tree: LoopTree) -> LoopTree:
        if not self.at:
            return self._keep(tree)
        return edit_loops(tree, (self.at,), lambda n: replace(n, body=self._keep(n.body)))

    def _keep(self, body: LoopTree) -> LoopTree:
        space = self.space if self.arrays is None else ""
        if not isinstance(body, Kept) or body.at != self.at:
            return Kept(self.arrays, self.at, body, self.in_place, space)
        if not self.arrays and self.arrays is not None:
            return body
        if body.arrays == ():
            return replace(body, arrays=self.arrays, space=space)
        if body.arrays is None or self.arrays is None:
            raise IllegalSchedule("where all is kept that fits, nothing else may be said")
        return replace(body, arrays=(*body.arrays, *self.arrays))


@dataclass(frozen=True)
class KeepInPlace:
    """An array lives where the result that overwrites it, element by element, is going to be.

    row[j] = e(j);  y[i, j] = row[j]*s   ->   y[i, j] = e(j);  y[i, j] = y[i, j]*s

    The statements that read and write it are renamed (`promote/in_place.py`); it takes a place of
    its own in the tree as other arrays do, since nothing outlives an iteration of the loop `at`.
    """

    array: str
    home: str
    at: str = ""

    def apply(self, tree: LoopTree) -> LoopTree:
        return Keep((), at=self.at).apply(tree)


@dataclass(frozen=True)
class Pack:
    """Operands that are copied in front of the kernel, into the order in which tiles read them.

    Loops stay as they are; how arrays lie is decided before (`mapping/cpu/packing.py`).
    """

    arrays: tuple[str, ...]

    def apply(self, tree: LoopTree) -> LoopTree:
        return tree


@dataclass(frozen=True)
class Prefetch:
    """Arrays that are fetched from afar, panel by panel, before tiles read them.

    While the tiles that read one panel are computed, they bring the next one near, to equal parts
    (`codegen/fetch_ahead.py`); and so with rows that lie side by side. No loop changes, and no
    value; of what is read otherwise nothing is fetched.
    """

    arrays: tuple[str, ...]

    def apply(self, tree: LoopTree) -> LoopTree:
        return tree
