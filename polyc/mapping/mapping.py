"""What a strategy decides about a cluster, as plain data; `cpu.py` makes a tree of it."""

from __future__ import annotations

from collections.abc import Mapping as Table
from dataclasses import dataclass, field

from polyc.mapping.columns import Columns
from polyc.schedule.cluster import Cluster


@dataclass(frozen=True)
class Mapping:
    """The choices of a strategy, in terms of a cluster's shared loops.

    order: the shared loops, outermost first; sizes: their tile sizes (1: not tiled); blocks: sizes
    of larger tiles around these, for the loops that have them; columns: how a strip is walked;
    parallel: how many leading loops run on threads; inner: for a statement, its inner loops in the
    order in which they are to end, and the tile size of the last one (0: not vectorised).
    """

    strategy: str
    order: tuple[int, ...]
    sizes: Table[int, int]
    vector: int | None
    unroll: int | None
    parallel: int
    inner: Table[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)
    blocks: Table[int, int] = field(default_factory=dict)
    columns: Columns | None = None

    def describe(self, cluster: Cluster) -> str:
        """One line for a human: `contraction: o/32 y x/14, unroll x, vector o`."""
        names = cluster.statements[-1]

        def loop(d: int) -> str:
            return names.iterators[cluster.shared[d][names.name]]

        loops = [
            loop(d) + (f"/{self.sizes[d]}" if self.sizes.get(d, 1) > 1 else "") for d in self.order
        ]
        parts = [f"{self.strategy}: {' '.join(loops) or 'no shared loop'}"]
        if self.unroll is not None:
            parts.append(f"unroll {loop(self.unroll)}")
        if self.vector is not None:
            parts.append(f"vector {loop(self.vector)}")
        parts += [f"vector {s}.{loops_[-1]}" for s, (loops_, t) in self.inner.items() if t]
        return ", ".join(parts)

    @property
    def threads(self) -> str:
        """For a human: `2 parallel`, or `one thread`."""
        return f"{self.parallel} parallel" if self.parallel else "one thread"
