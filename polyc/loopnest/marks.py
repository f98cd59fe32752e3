"""How loops may be run, and how marks in a schedule tree say so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, cast

LoopKind = Literal[
    "sequential",
    "parallel",
    "vector",
    "simd",
    "unroll",
    "hold",
    "instruction",
    "block",
    "thread",
    "combine",
    "mma",
    "wgmma",
    "copy",
    "box",
]


@dataclass(frozen=True)
class LoopMark:
    """What a mark in a schedule tree says of the loop below it: "parallel", "thread 16 32".

    width: the iterations that a loop over threads has room for, or 0; apart: the threads between
    two of them; at: the only iteration that it runs, for which isl makes no loop; instruction: the
    row of the table that runs the loop.
    """

    kind: LoopKind = "sequential"
    width: int = 0
    apart: int = 1
    at: int | None = None
    instruction: str = field(default="", kw_only=True)

    def __str__(self) -> str:
        numbers = f" {self.width} {self.apart}" if self.width else ""
        numbers += f" {self.at}" if self.at is not None else ""
        return f"{self.kind}{numbers} {self.instruction}".rstrip()

    @staticmethod
    def parse(text: str) -> LoopMark:
        kind, *rest = text.split()
        if kind == "instruction":
            return LoopMark("instruction", instruction=rest[0])
        return LoopMark(cast(LoopKind, kind), *map(int, rest))
