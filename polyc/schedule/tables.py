"""Tables that follow from sizes alone, such as the weights of a Resize to an open size, come first.

    y = Conv(x);  w[i] = …;  z = y + w*…     ->     w[i] = …;  y = Conv(x);  z = y + w*…

A statement joins the kernel of what it reads last: here that of the convolution.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyc.scop.scop import Scop, Statement
from polyc.scop.sizes import awaited_by


def order_tables(statements: Sequence[Statement], scop: Scop) -> tuple[Statement, ...]:
    """The statements, those that write tables in front of all others.

    A table is nobody's but the model's: what a state was is read before it is written.
    """
    writers: dict[str, list[Statement]] = {}
    for s in statements:
        writers.setdefault(s.array, []).append(s)
    plain = {
        name
        for name, found in writers.items()
        if scop.arrays[name].kind == "temporary" and not any(map(_is_tied, found))
    }
    while True:
        kept = {
            name
            for name in plain
            if all(load.array in plain for s in writers[name] for load in s.loads)
        }
        if kept == plain:
            break
        plain = kept
    tables = {name for name in plain if not awaited_by(writers[name], scop)}
    first = [s for s in statements if s.array in tables]
    return (*first, *(s for s in statements if s.array not in tables))


def _is_tied(s: Statement) -> bool:
    """Whether a statement has a place of its own: in a loop, in a branch, or with others."""
    return bool(s.step or s.branches or s.reduction or s.group)
