"""Races as a Markdown table, what failed, and one line for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.polybench.compilers import OURS
from bench.polybench.race import Row
from bench.results import geometric_mean


def show_rows(rows: Sequence[Row], engines: Sequence[str]) -> str:
    """Seconds of each engine by kernel, the best compiler's over polyc's, then the summary."""
    lines = [
        f"| kernel | {' | '.join(engines)} | best compiler / polyc |",
        f"|---{'|--:' * (len(engines) + 1)}|",
        *(show_row(row, engines) for row in rows),
        "",
        *_notes(rows),
        summarise(rows),
    ]
    return "\n".join(lines)


def show_row(row: Row, engines: Sequence[str]) -> str:
    """A line of the table; of what failed it says so."""
    cells = [_cell(row, name) for name in engines]
    ratio = "failed" if row.ratio is None else f"{row.ratio:.2f}"
    return f"| {row.kernel} | {' | '.join(cells)} | {ratio} |"


def _cell(row: Row, engine: str) -> str:
    if engine in row.seconds:
        return f"{row.seconds[engine]:.4g}"
    is_absent = engine == "NumPy" or (engine not in row.failed and OURS not in row.failed)
    return "-" if is_absent and engine not in row.compilers else "failed"


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    found = False
    for row in rows:
        for engine, reason in row.failed.items():
            if engine in row.compilers or not row.compilers or engine == OURS:
                found = True
                yield f"{row.kernel}: {engine} failed: {reason}"
    if found:
        yield ""


def summarise(rows: Sequence[Row]) -> str:
    """geomean best compiler / polyc X, worst Y, over 30; and those that failed."""
    ratios = [row.ratio for row in rows if row.ratio is not None]
    failed = [row.kernel for row in rows if row.ratio is None]
    worst = f"{min(ratios):.2f}" if ratios else "-"
    mean = f"{geometric_mean(ratios):.2f}" if ratios else "-"
    text = f"geomean best compiler / polyc {mean}, worst {worst}, over {len(ratios)}"
    return f"{text}; failed {len(failed)}: {', '.join(failed)}" if failed else text
