"""Locals that are names of affine expressions: `n = A.shape[0]`, `k = n - 1 - i`."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyc.loops.lower.affine import Scope, affine
from polyc.loops.lower.arms import mentions
from polyc.loops.read.syntax import Assign, Command, Function, Name, commands


def alias_of(
    command: Assign, scope: Scope, behind: Sequence[Command], function: Function
) -> isl.PwAff | None:
    """The value of a local that is assigned once, is affine, and is used behind that only.

    n = A.shape[0]; for i in range(n): k = n - 1 - i; x[k] = …

    behind: the commands that follow in the same body.
    """
    if not isinstance(command.target, Name) or command.operator:
        return None
    name, value = command.target.name, affine(command.value, scope)
    if value is None:
        return None
    assigned = (c.target for c in commands(function.body) if isinstance(c, Assign))
    once = sum(isinstance(t, Name) and t.name == name for t in assigned) == 1
    only_behind = mentions(function.body)[name] == mentions(behind)[name] + 1
    return value if once and only_behind else None
