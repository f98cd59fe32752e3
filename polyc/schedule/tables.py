"""Tables that follow from sizes alone, such as the weights of a Resize to an open size, come first.

    y = Conv(x);  w[i] = …;  z = y + w*…     ->     w[i] = …;  y = Conv(x);  z = y + w*…

A statement joins the kernel of what it reads last: here that of the convolution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyc.scop.scop import Scop, Statement
from polyc.scop.sizes import awaited_by


def order_tables(statements: Sequence[Statement], scop: Scop) -> tuple[Statement, ...]:
    """The statements, those that write tables in front of all others.

    A table is nobody's but the model's, as what a state was is read before it is written; and it
    waits for no size that a call finds.
    """
    writers: dict[str, list[Statement]] = {}
    for s in statements:
        writers.setdefault(s.array, []).append(s)
    plain = {
        name
        for name, found in writers.items()
        if scop.arrays[name].kind == "temporary" and not any(map(_is_tied, found))
    }
    tables = _closed(plain, writers)
    tables = _closed({t for t in tables if not awaited_by(writers[t], scop)}, writers)
    first = [s for s in statements if s.array in tables]
    return (*first, *(s for s in statements if s.array not in tables))


def _closed(arrays: set[str], writers: Mapping[str, Sequence[Statement]]) -> set[str]:
    """Those of some arrays that are computed from each other alone."""
    while True:
        kept = {
            name
            for name in arrays
            if all(load.array in arrays for s in writers[name] for load in s.loads)
        }
        if kept == arrays:
            return kept
        arrays = kept


def _is_tied(s: Statement) -> bool:
    """Whether a statement has a place of its own: in a loop, in a branch, or with others."""
    return bool(s.step or s.branches or s.reduction or s.group)
