"""Webs: a local that is used for several things becomes several locals.

    for i: w = b[i]; …; y[i] = w                 for i: w = b[i]; …; y[i] = w
    for i: w = y[i]; …; x[i] = w        ->       for i: w_1 = y[i]; …; x[i] = w_1

A web is what hangs together by reads: all assignments that some read may get its value from share
one (Muchnick 1997, "Advanced Compiler Design and Implementation", section 16.3.3). The loops that
all users of a web share are more than those that all users of the local share, and so more of them
get an element of their own (`expand.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import islpy as isl

from polyc.analysis.dependences import Dependences, maps
from polyc.loops.lower.lowered import Lowered
from polyc.names import fresh
from polyc.scop.expr import Expr, Load, rebuild
from polyc.scop.scop import Scop, Statement

OUT = isl.dim_type.out

Web = Mapping[str, str]
"""Statement -> the array that it uses in place of a local."""


def split_locals(lowered: Lowered, dependences: Dependences) -> Lowered:
    """The kernel with a local of its own for each web."""
    scop = lowered.bare
    for local in [a for a in scop.arrays.values() if a.kind == "temporary"]:
        reads = _sources(scop, dependences, local.name)
        webs = _webs(scop, reads, local.name)
        if len(webs) < 2:
            continue
        taken = {*lowered.scop.arrays}
        names = [local.name]
        for _ in webs[1:]:
            names.append(fresh(local.name, taken | {*names}))
        writes = {s: name for web, name in zip(webs, names, strict=True) for s in web}
        loads = {t: writes[next(iter(s))] for t, s in reads.items()}
        lowered = replace(
            lowered,
            scop=_renamed(lowered.scop, local.name, writes, loads),
            bare=_renamed(lowered.bare, local.name, writes, loads),
        )
    return lowered


def _sources(scop: Scop, dependences: Dependences, local: str) -> dict[str, set[str]]:
    """Statement -> those whose values of a local it reads."""
    written = {s.name: s.array for s in scop.statements}
    found: dict[str, set[str]] = {}
    for source, sink, _ in maps(dependences.flow):
        if written[source] == local:
            found.setdefault(sink, set()).add(source)
    return found


def _webs(scop: Scop, reads: Mapping[str, set[str]], local: str) -> list[set[str]]:
    """The assignments to a local, those together that share a read, in textual order."""
    webs: list[set[str]] = []
    for s in scop.statements:
        if s.array == local:
            own = {s.name} | (reads.get(s.name, set()) if s.reduction else set())
            webs = _joined(webs, own)
    for sources in reads.values():
        webs = _joined(webs, sources)
    return webs


def _joined(webs: list[set[str]], own: set[str]) -> list[set[str]]:
    meeting = [web for web in webs if web & own]
    if not meeting:
        return [*webs, own]
    whole = own.union(*meeting)
    first, *others = meeting
    return [whole if web is first else web for web in webs if web not in others]


def _renamed(scop: Scop, local: str, writes: Web, loads: Web) -> Scop:
    array = scop.arrays[local]
    made = {name: replace(array, name=name) for name in dict.fromkeys(writes.values())}
    arrays = {n: a for n, a in scop.arrays.items() if n != local}
    statements = tuple(_using(s, local, writes, loads) for s in scop.statements)
    return replace(scop, statements=statements, arrays={**arrays, **made})


def _using(s: Statement, local: str, writes: Web, loads: Web) -> Statement:
    def leaf(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.array == local and s.name in loads:
            name = loads[s.name]
            return replace(expr, array=name, index=_into(expr.index, name))
        return expr

    value = rebuild(s.value, leaf)
    if s.array != local:
        return replace(s, value=value)
    name = writes[s.name]
    return replace(s, array=name, write=_into(s.write, name), value=value)


def _into(index: isl.PwMultiAff, array: str) -> isl.PwMultiAff:
    """# S -> array[]: a local by another name."""
    space = isl.Space.set_alloc(index.get_ctx(), 0, 0).set_tuple_name(isl.dim_type.set, array)
    return index.set_tuple_id(OUT, space.get_tuple_id(isl.dim_type.set))
