"""Many seeds, and what came of them in a few lines."""

from __future__ import annotations

import pickle
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path

from rich.console import Console

from tests.fuzz.broken.bases import read_bases
from tests.fuzz.broken.judge import Verdict, judge, kind_of
from tests.fuzz.broken.pool import judge_all


def run(
    first: int, cases: int | None, seconds: float | None, processes: int, only: str | None = None
) -> int:
    """Judge seeds from `first` on, or those of one kind; findings are printed, one of each.

    Returns the number of findings.
    """
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"cases from seed {first} on, {processes} processes")
    outcomes: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    seen: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory(prefix="polyc-broken-") as folder:
        bases = Path(folder) / "bases"
        bases.write_bytes(pickle.dumps(read_bases()))
        begin = time.monotonic()
        chosen = (s for s in count(first) if only is None or kind_of(s) == only)
        seeds = _until(islice(chosen, cases), None if seconds is None else begin + seconds)
        for seed, verdict in judge_all(seeds, bases, processes):
            outcomes[verdict.outcome] += 1
            kinds[verdict.kind] += 1
            if verdict.is_finding:
                seen[verdict.outcome, verdict.place] += 1
                if seen[verdict.outcome, verdict.place] == 1:
                    console.print(_show(seed, verdict))
        spent = time.monotonic() - begin
    console.print(f"{outcomes.total()} cases in {spent:.0f} s: {_counts(outcomes)}")
    console.print(f"kinds: {_counts(kinds)}")
    for (outcome, place), times in seen.most_common():
        console.print(f"  {times} x {outcome} in {place}")
    return seen.total()


def run_one(seed: int) -> int:
    """Judge one seed here, with the error as it is raised."""
    with tempfile.TemporaryDirectory(prefix="polyc-broken-") as folder:
        verdict = judge(seed, Path(folder))
    Console(highlight=False, markup=False, soft_wrap=True).print(_show(seed, verdict))
    return int(verdict.is_finding)


def _until(seeds: Iterable[int], end: float | None) -> Iterator[int]:
    for seed in seeds:
        if end is not None and time.monotonic() > end:
            return
        yield seed


def _show(seed: int, verdict: Verdict) -> str:
    where = f" in {verdict.place}" if verdict.place else ""
    return f"--broken --seed {seed}: {verdict.kind}: {verdict.outcome}{where}: {verdict.detail!r}"


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counter.most_common())
