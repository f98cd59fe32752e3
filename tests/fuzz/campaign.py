"""Many graphs in a child process, which may hang or die of one without harm."""

from __future__ import annotations

import json
import multiprocessing
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from tests.fuzz.generate import Case, generate

GRAPHS_A_CHILD = 150
"""After so many graphs a fresh process takes over: libraries that were loaded stay in memory."""


@dataclass(frozen=True)
class Record:
    """What became of a seed, and what its graph has."""

    seed: int
    kind: str
    detail: str = ""
    peers: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    seconds: float = 0.0
    traits: dict[str, object] = field(default_factory=dict)


def judge(seed: int, exact: bool = False) -> Record:
    """Generate the graph of a seed and check it, in this process; `exact`: by the exact run."""
    from tests.fuzz.compare import check, check_exactly

    try:
        case = generate(seed)
    except Exception:
        return Record(seed, "generator", traceback.format_exc(limit=-6))
    begin = time.perf_counter()
    outcome = check_exactly(case) if exact else check(case)
    seconds = time.perf_counter() - begin
    return Record(
        seed, outcome.kind, outcome.detail, outcome.peers, **describe(case), seconds=seconds
    )


def describe(case: Case) -> dict[str, object]:
    """The operators, element types and ranks of a graph."""
    values = (*case.inputs, *case.results)
    traits = {
        k: v for k, v in asdict(case.traits).items() if k in ("zeros", "special", "symbolic") and v
    }
    return {
        "operators": tuple(sorted({n.op_type for n in case.model.graph.node})),
        "types": tuple(sorted({str(v.dtype) for v in values})),
        "ranks": tuple(sorted({len(v.shape) for v in values})),
        "traits": traits,
    }


def judge_all(seeds: Iterable[int], timeout: float, exact: bool = False) -> Iterator[Record]:
    """A record for each seed; one that takes longer than `timeout` seconds is a "hang"."""
    child: _Child | None = None
    for seed in seeds:
        if child is None or child.served >= GRAPHS_A_CHILD:
            if child:
                child.end()
            child = _Child(exact)
        record = child.judge(seed, timeout)
        if record.kind in ("hang", "died"):
            child.end()
            child = None
        yield record
    if child:
        child.end()


class _Child:
    """A process that judges seeds, one after another."""

    def __init__(self, exact: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, exact), daemon=True)
        self._process.start()
        theirs.close()
        self.served = 0

    def judge(self, seed: int, timeout: float) -> Record:
        """What the process says, or how it failed to."""
        self.served += 1
        try:
            self._pipe.send(seed)
            if not self._pipe.poll(timeout):
                return Record(seed, "hang", f"no answer in {timeout:.0f} s", **_described(seed))
            return self._pipe.recv()
        except (EOFError, ConnectionError, OSError):
            self._process.join(5)
            return Record(seed, "died", f"exit code {self._process.exitcode}", **_described(seed))

    def end(self) -> None:
        """Stop the process, kindly if it listens."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _described(seed: int) -> dict[str, object]:
    try:
        return describe(generate(seed))
    except Exception:
        return {}


def _serve(pipe: Connection, exact: bool) -> None:
    """Judge the seeds that come; what is compiled goes into a folder that is removed."""
    while True:
        pipe.send(judge(pipe.recv(), exact))


def read_log(path: Path) -> dict[int, Record]:
    """Seeds that were judged, from a file of one JSON object a line."""
    if not path.exists():
        return {}
    lines = path.read_text("utf-8").splitlines()
    return {r["seed"]: Record(**r) for r in map(json.loads, lines)}


def write_line(path: Path, record: Record) -> None:
    """Append a record."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(record)) + "\n")
