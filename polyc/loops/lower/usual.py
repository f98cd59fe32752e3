"""The sizes that a kernel is compiled for: the usual ones, in one piece.

For which sizes no access leaves its array is a union, since where a loop has no iteration nothing
is asked of what it would touch:

    for i in range(n): for j in range(m): B[i, j] = A[i, j]      (n <= n' and m <= m') or n = 0 or …

Each piece would be a case of its own in schedules and in loops. So a kernel is compiled for sizes
for which all of its statements are executed, of arrays that are not too small, where this is one
convex set; and for all others once more, in its original order, if it is ever called with them.
"""

from __future__ import annotations

import islpy as isl

from polyc.loops.lower.lowered import Lowered
from polyc.loops.read.sizes import Signature

LEAST = (1, 2, 3, 4)
"""Extents from which on a kernel may be compiled for; the first that will do is taken."""

PARAM = isl.dim_type.param


def usual_sizes(lowered: Lowered, signature: Signature) -> isl.Set:
    """# []: sizes without a special case, of those that a kernel may have; else all of these."""
    allowed = lowered.scop.context
    assert allowed is not None
    extents = [s.name for s in signature.sizes if s.lower >= 0]
    busy = allowed
    for s in lowered.scop.statements:
        executed = busy.intersect(s.domain.params())
        busy = busy if executed.is_empty() else executed
    for least in LEAST:
        some = busy
        for name in extents:
            position = some.find_dim_by_name(PARAM, name)
            some = some.lower_bound_val(PARAM, position, isl.Val(least))
        some = some.coalesce()
        if some.n_basic_set() == 1:
            return some
    return allowed
