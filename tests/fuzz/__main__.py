"""`python -m tests.fuzz --graphs 5000 --first 1`: random graphs by polyc and by others.

Each seed is a graph. Findings are printed with their seeds; `--shrink SEED` makes a finding small
and prints it. With `--log FILE` what was judged is kept, and not judged again.

`--broken --seconds 120` runs broken models, wrong calls and damaged files instead (`broken/`), and
`--broken --seed N` one of them; the exit code is 1 if there are findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from polyc.target.machine import available_cores
from tests.fuzz.campaign import Record, judge_all, read_log, write_line
from tests.fuzz.operators import OPERATORS

_FINDINGS = ("mismatch", "crash", "refused", "hang", "died", "generator")


def main(
    graphs: Annotated[int, typer.Option(help="how many graphs")] = 100,
    first: Annotated[int, typer.Option(help="the first seed")] = 1,
    timeout: Annotated[float, typer.Option(help="seconds a graph may take")] = 90,
    log: Annotated[
        Path | None, typer.Option(help="a file of what was judged, to go on with")
    ] = None,
    again: Annotated[bool, typer.Option(help="judge the findings in the log anew")] = False,
    shrink: Annotated[int | None, typer.Option(help="make the graph of this seed small")] = None,
    exact: Annotated[
        bool, typer.Option(help="run the printed C in a prime field, with no tolerance")
    ] = False,
    broken: Annotated[bool, typer.Option(help="run broken models, wrong calls, bad files")] = False,
    seconds: Annotated[float | None, typer.Option(help="broken: how long")] = None,
    seed: Annotated[int | None, typer.Option(help="broken: only this case")] = None,
    only: Annotated[
        str | None, typer.Option(help="broken: structure, octets, calls, saved or cache")
    ] = None,
    processes: Annotated[int, typer.Option(help="broken: side by side")] = available_cores(),
) -> None:
    """Run random graphs, or make one that failed small."""
    if broken:
        from tests.fuzz.broken.campaign import run, run_one

        count = None if seconds is not None else graphs
        found = run(first, count, seconds, processes, only) if seed is None else run_one(seed)
        raise typer.Exit(1 if found else 0)
    console = Console()
    if shrink is not None:
        from tests.fuzz.shrink import shrink_seed

        console.print(shrink_seed(shrink), highlight=False, markup=False)
        return
    known = read_log(log) if log else {}
    if again:
        seeds = [s for s, r in known.items() if r.kind in _FINDINGS]
    else:
        seeds = [s for s in range(first, first + graphs) if s not in known]
    for record in judge_all(track(seeds, "graphs", console=console), timeout, exact):
        known[record.seed] = record
        if log:
            write_line(log, record)
        if record.kind in _FINDINGS:
            line = f"{record.seed} {record.kind}: {record.detail}"
            console.print(line, highlight=False, markup=False)
    chosen = known.values() if again else (known[s] for s in range(first, first + graphs))
    console.print(summarise(chosen), highlight=False, markup=False)


def summarise(records: Iterable[Record]) -> str:
    """Outcomes, and what the graphs had."""
    records = list(records)
    kinds = Counter(r.kind for r in records)
    operators = Counter(o for r in records for o in r.operators)
    count = lambda xs: ", ".join(f"{k} {n}" for k, n in xs.most_common())  # noqa: E731
    lines = [
        f"{len(records)} graphs: {count(kinds)}",
        f"equal to one peer only: {count(Counter(p for r in records for p in r.peers)) or 'none'}",
        f"operators: {len(operators)}: {count(operators)}",
        f"never: {', '.join(sorted(set(OPERATORS) - set(operators))) or 'none'}",
        f"types: {count(Counter(t for r in records for t in r.types))}",
        f"ranks: {count(Counter(k for r in records for k in r.ranks))}",
        f"graphs with: {count(Counter(t for r in records for t in r.traits))}",
        f"seconds: {sum(r.seconds for r in records):.0f}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    typer.run(main)
