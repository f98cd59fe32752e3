"""A guard: did anything get slower between two runs?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.results import OURS, Results, Row


@dataclass(frozen=True)
class Change:
    """polyc's figure of a row in two runs; `after` is None where the row has none any more.

    Figures are seconds, or polyc's time over the best peer's: less is better.
    """

    problem: str
    threads: int
    before: float
    after: float | None

    def slower(self, tolerance: float) -> bool:
        """By more than the tolerance: 0.05 lets 5% pass. A row that is gone is slower."""
        return self.after is None or self.after > self.before * (1 + tolerance)

    def __str__(self) -> str:
        where = f"{self.problem}, {self.threads} thread{'s' if self.threads > 1 else ''}"
        if self.after is None:
            return f"{where}: no figure any more"
        return f"{where}: {self.after / self.before - 1:+.1%}"


def compare_results(before: Results, after: Results, relative: bool = False) -> Iterator[Change]:
    """The rows in which polyc had a figure before.

    relative: polyc's time over the best peer's in place of seconds. It cancels what slows a whole
    machine down for a while, and needs a peer that is the same in both runs.
    """
    later = {(r.problem, r.threads): r for r in after.rows}
    for row in before.rows:
        first = _figure(row, relative)
        if first is None:
            continue
        match = later.get((row.problem, row.threads))
        second = None if match is None else _figure(match, relative)
        yield Change(row.problem, row.threads, first, second)


def _figure(row: Row, relative: bool) -> float | None:
    if relative:
        return None if row.ratio is None else 1 / row.ratio
    return row.median.get(OURS)
