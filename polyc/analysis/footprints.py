"""Footprints: the elements of each array that a scop reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import islpy as isl

from polyc.poly.coalesce import unite
from polyc.scop.accesses import read_map, write_map
from polyc.scop.scop import Scop


@dataclass(frozen=True)
class Footprints:
    """Array name -> the elements touched; a reduction reads what it updates."""

    reads: Mapping[str, isl.Set]  # A
    writes: Mapping[str, isl.Set]  # A


def compute_footprints(scop: Scop) -> Footprints:
    """The images of all accesses; a computed coordinate may go anywhere along its dimension."""
    reads: list[tuple[str, isl.Set]] = []
    writes: list[tuple[str, isl.Set]] = []
    for statement in scop.statements:
        for load in statement.loads:
            array = scop.arrays[load.array]
            reads.append((load.array, read_map(statement, load, array).range()))
        target = write_map(statement).range()
        writes.append((statement.array, target))
        if statement.reduction:
            reads.append((statement.array, target))
    return Footprints(_united(reads), _united(writes))


def _united(parts: Iterable[tuple[str, isl.Set]]) -> dict[str, isl.Set]:
    found: dict[str, list[isl.Set]] = {}
    for name, part in parts:
        found.setdefault(name, []).append(part)
    return {name: unite(sets) for name, sets in found.items()}
