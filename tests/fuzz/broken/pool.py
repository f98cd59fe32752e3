"""Processes that judge seeds, with little memory and time; one that dies is replaced."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path

from tests.fuzz.broken.judge import Verdict, judge

MEMORY = 4 << 30
"""Bytes that a process may have."""

PATIENCE = 60.0
"""Seconds of its own time that a case may take; by the clock it may be three times as many."""

START = 120.0
"""Seconds in which a process has imported what it needs."""

CASES_A_PROCESS = 400
"""After so many a fresh process takes over: libraries that were loaded stay in memory."""


Judge = Callable[[int, Path, Path, float], Verdict]


def judge_all(
    seeds: Iterable[int],
    bases: Path,
    processes: int,
    patience: float = PATIENCE,
    judge: Judge = judge,
) -> Iterator[tuple[int, Verdict]]:
    """(seed, verdict) of each seed, as they come; `judge` runs in the processes."""
    waiting = iter(seeds)
    workers = [_Worker(bases, patience, judge) for _ in range(processes)]
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
                    workers[position] = worker = _Worker(bases, patience, judge)
                worker.take(next(waiting, None))
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process, and the seed that it is at."""

    def __init__(self, bases: Path, patience: float, judge: Judge) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        # It is ours, so that it goes whatever becomes of the process.
        self._folder = tempfile.TemporaryDirectory(
            prefix="polyc-broken-", ignore_cleanup_errors=True
        )
        arguments = (theirs, Path(self._folder.name), bases, patience, judge)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self.seed: int | None = None
        self.is_spent = False
        self._patience, self._limit = patience, START
        self._served, self._since = 0, 0.0

    def take(self, seed: int | None) -> None:
        self.seed, self._since = seed, time.monotonic()
        if seed is not None:
            self.pipe.send(seed)

    def answer(self) -> Verdict | None:
        """The verdict on the seed, or that the process hangs or is dead; None if it is at work."""
        try:
            if self.pipe.poll():
                verdict = self.pipe.recv()
                if verdict is None:  # it has started
                    self._limit, self._since = 3 * self._patience, time.monotonic()
                    return None
                self._served += 1
                self.is_spent = self._served >= CASES_A_PROCESS
                return verdict
        except (EOFError, OSError):
            self._process.join(5)
            self.is_spent = True
            return Verdict("?", "died", f"exit code {self._process.exitcode}")
        if time.monotonic() - self._since > self._limit:
            self.is_spent = True
            return Verdict("?", "hang", f"no answer in {self._limit:.0f} s")
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
        self._folder.cleanup()


def _serve(pipe: Connection, folder: Path, bases: Path, patience: float, judge: Judge) -> None:
    """Judge the seeds that come; what is compiled goes into the folder."""
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["POLYC_CACHE_DIR"] = str(folder)
    os.chdir(folder)
    pipe.send(None)
    while True:
        pipe.send(judge(pipe.recv(), folder, bases, patience))
