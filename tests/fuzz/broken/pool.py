"""Processes that judge seeds, with little memory and time; one that dies is replaced."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path

from tests.fuzz.broken.judge import Verdict, judge

MEMORY = 4 << 30
"""Bytes that a process may have."""

PATIENCE = 60.0
"""Seconds of its own time that a case may take; by the clock it may be three times as many."""

CASES_A_PROCESS = 400
"""After so many a fresh process takes over: libraries that were loaded stay in memory."""


def judge_all(
    seeds: Iterable[int], bases: Path, processes: int, patience: float = PATIENCE
) -> Iterator[tuple[int, Verdict]]:
    """(seed, verdict) of each seed, as they come."""
    waiting = iter(seeds)
    workers = [_Worker(bases, patience) for _ in range(processes)]
    try:
        for worker in workers:
            worker.take(next(waiting, None))
        while busy := [w for w in workers if w.seed is not None]:
            wait([w.pipe for w in busy], timeout=1.0)
            for position, worker in enumerate(workers):
                if worker.seed is None:
                    continue
                verdict = worker.answer()
                if verdict is None:
                    continue
                yield worker.seed, verdict
                if worker.is_spent:
                    worker.end()
                    workers[position] = worker = _Worker(bases, patience)
                worker.take(next(waiting, None))
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process, and the seed that it is at."""

    def __init__(self, bases: Path, patience: float) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, bases, patience), daemon=True)
        self._process.start()
        theirs.close()
        self.seed: int | None = None
        self.is_spent = False
        self._patience, self._served, self._since = patience, 0, 0.0

    def take(self, seed: int | None) -> None:
        self.seed, self._since = seed, time.monotonic()
        if seed is not None:
            self.pipe.send(seed)

    def answer(self) -> Verdict | None:
        """The verdict on the seed, or that the process hangs or is dead; None if it is at work."""
        try:
            if self.pipe.poll():
                verdict = self.pipe.recv()
                self._served += 1
                self.is_spent = self._served >= CASES_A_PROCESS
                return verdict
        except (EOFError, OSError):
            self._process.join(5)
            self.is_spent = True
            return Verdict("?", "died", f"exit code {self._process.exitcode}")
        if time.monotonic() - self._since > 3 * self._patience:
            self.is_spent = True
            return Verdict("?", "hang", f"no answer in {3 * self._patience:.0f} s")
        return None

    def end(self) -> None:
        """Stop the process, and the compilers that it has started."""
        if self._process.pid is not None and self._process.is_alive():
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                self._process.kill()
        self._process.join()
        self.pipe.close()


def _serve(pipe: Connection, bases: Path, patience: float) -> None:
    """Judge the seeds that come; what is compiled goes into a folder that is removed."""
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="polyc-broken-") as folder:
        os.environ["POLYC_CACHE_DIR"] = folder
        os.chdir(folder)
        while True:
            pipe.send(judge(pipe.recv(), Path(folder), bases, patience))
