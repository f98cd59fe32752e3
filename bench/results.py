"""Figures as data, and their file."""

from __future__ import annotations

import dataclasses
import json
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from polyc.commands.bench import Timing
from polyc.target.machine import Target

FORMAT = 1
OURS = "polyc"


@dataclass(frozen=True)
class Row:
    """A problem on a number of threads.

    flops, reads, writes: its `Work`; floor: the least seconds by the roofline; median, best,
    samples: of each engine's calls, in seconds; error: how far polyc's result is from each peer's,
    relative to the largest; opened: seconds to load or compile, with the first call; failed: why
    an engine has no figures; kernels: polyc's, with seconds of each.
    """

    problem: str
    group: str
    threads: int
    flops: int
    reads: int
    writes: int
    floor: float
    median: Mapping[str, float]
    best: Mapping[str, float]
    samples: Mapping[str, int]
    error: Mapping[str, float]
    opened: Mapping[str, float]
    failed: Mapping[str, str]
    kernels: Sequence[Mapping[str, Any]] = ()

    @property
    def best_peer(self) -> str | None:
        """The engine that is quickest beside polyc, however that is called."""
        peers = {e: s for e, s in self.median.items() if not e.startswith(OURS)}
        return min(peers, key=lambda e: peers[e]) if peers else None

    @property
    def ratio(self) -> float | None:
        """The best peer's time over polyc's: above 1 polyc is quicker."""
        peer = self.best_peer
        if peer is None or OURS not in self.median:
            return None
        return self.median[peer] / self.median[OURS]

    def share(self, engine: str = OURS) -> float | None:
        """The least time over the engine's: 1 is at the machine's limit."""
        return self.floor / self.median[engine] if engine in self.median else None


@dataclass(frozen=True)
class Results:
    """A run: where, with what, and its rows."""

    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    rows: Sequence[Row]

    def write(self, file: Path) -> None:
        data = {
            "format": FORMAT,
            "machine": self.machine,
            "versions": self.versions,
            "rows": [dataclasses.asdict(r) for r in self.rows],
        }
        file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def read(file: Path) -> Results:
        """Raises ValueError for a file that is none of ours."""
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            if data["format"] != FORMAT:
                raise ValueError(f"format {data['format']} where {FORMAT} is expected")
            rows = tuple(Row(**{**r, "kernels": tuple(r["kernels"])}) for r in data["rows"])
            return Results(data["machine"], data["versions"], rows)
        except (OSError, ValueError, TypeError, LookupError) as error:
            raise ValueError(f"{file} holds no results of this benchmark: {error}") from error


def describe_machine(target: Target) -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "target": str(target),
        "caches": [target.l1d, target.l2, target.l3],
        "rates": dataclasses.asdict(target.rates),
    }


def find_versions(packages: Sequence[str]) -> dict[str, str]:
    """Of those that are installed."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def summarise(times: Mapping[str, Sequence[float]]) -> dict[str, dict[str, Any]]:
    """{"median": {engine: seconds}, "best": …, "samples": …}"""
    timings = {engine: Timing(tuple(seconds)) for engine, seconds in times.items()}
    return {
        "median": {e: t.median for e, t in timings.items()},
        "best": {e: t.best for e, t in timings.items()},
        "samples": {e: len(t.seconds) for e, t in timings.items()},
    }


def geometric_mean(values: Sequence[float]) -> float:
    return statistics.geometric_mean(values)
