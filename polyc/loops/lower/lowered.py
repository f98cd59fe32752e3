"""What lowering makes of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import islpy as isl

from polyc.loops.lower.order import OrderNode
from polyc.loops.read.syntax import Place
from polyc.scop.scop import Scop


@dataclass(frozen=True)
class Requirement:
    """Sizes for which a kernel would do what it may not: `sizes`, what happens, and where."""

    sizes: isl.Set  # of parameters alone
    what: str
    place: Place


@dataclass(frozen=True)
class Lowered:
    """A kernel as a scop, with its original order as a tree, and what calls are checked for.

    bare: the same scop without its context. Its domains are as simple as the text, which isl's
    scheduler needs, and are supersets of those that are executed. sizes: what it is lowered for.
    left: locals that say whether a loop was left.
    """

    scop: Scop
    bare: Scop
    sizes: isl.Set  # of parameters alone
    order: tuple[OrderNode, ...]
    places: Mapping[str, Place]  # statement -> where it stands
    requirements: tuple[Requirement, ...]
    left: frozenset[str] = frozenset()
