"""Work shared with forked processes, which have at hand all that their parent has read.

    tasks 0 1 2 3 4 …  →  a pipe  →  this process:    0   2   3     5
                                     a forked one:      1       4       →  a pipe, packed

Whoever is free takes the next task. What a forked process makes comes back packed; of one that
fails, dies or hangs the tasks are done again here, so that nothing is lost, and an error is raised
where its cause is at hand.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

TASK_BYTES = 4
"""What stands for a task in the pipe. Reads and writes of a few bytes are never torn apart."""

MAX_TASKS = 8192
"""That fit in a pipe at a time; the others are not shared."""

SILENCE = 60.0
"""Seconds without a result after which a process counts as one that hangs."""


def can_fork() -> bool:
    """Whether processes can be forked: elsewhere than on Linux that is missing, or not safe."""
    return sys.platform == "linux" and not multiprocessing.current_process().daemon


@contextlib.contextmanager
def share_work(
    tasks: Sequence[T],
    do: Callable[[T], R],
    pack: Callable[[R], bytes],
    unpack: Callable[[T, bytes], R],
    processes: int,
) -> Iterator[Iterator[tuple[T, R]]]:
    """Each task with its result, in the order in which they are done.

    processes: how many work at the tasks, this one among them. They are forked when the `with` is
    entered, so before threads are begun inside of it, and none is left when it ends. `do` must
    print nothing, and begin no thread.
    """
    shared = min(len(tasks), MAX_TASKS)
    reading, writing = os.pipe()
    helpers: list[_Helper] = []
    try:
        os.write(writing, b"".join(k.to_bytes(TASK_BYTES, "little") for k in range(shared)))
        os.close(writing)
        if can_fork():
            for _ in range(min(processes, shared) - 1):
                helpers.append(_Helper(lambda k: pack(do(tasks[k])), reading))
        yield _results(tasks, do, unpack, reading, helpers, shared)
    finally:
        os.close(reading)
        for helper in helpers:
            helper.end()


class _Helper:
    """A forked process that takes tasks from a pipe, and sends what they give."""

    def __init__(self, make: Callable[[int], bytes], tasks: int) -> None:
        context = multiprocessing.get_context("fork")
        self.results, sending = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(make, tasks, sending), daemon=True)
        with warnings.catch_warnings():
            # What the other threads hold is not touched: the child computes, and writes to a pipe.
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                self._process.start()
            except OSError:  # there is no memory, or no process, to give
                self.results.close()
        sending.close()

    def end(self) -> None:
        self.results.close()
        if self._process.pid is not None:
            self._process.kill()
            self._process.join()


def _work(make: Callable[[int], bytes], tasks: int, results: Connection) -> None:
    """What a forked process does. It says nothing about errors: its parent will meet them."""
    with contextlib.suppress(BaseException):
        while (task := _take(tasks)) is not None:
            results.send_bytes(task.to_bytes(TASK_BYTES, "little") + make(task))


def _take(tasks: int) -> int | None:
    """The next task, unless all are taken."""
    taken = os.read(tasks, TASK_BYTES)
    return int.from_bytes(taken, "little") if taken else None


def _results(
    tasks: Sequence[T],
    do: Callable[[T], R],
    unpack: Callable[[T, bytes], R],
    pipe: int,
    helpers: Sequence[_Helper],
    shared: int,
) -> Iterator[tuple[T, R]]:
    waiting = set(range(len(tasks)))
    open_ends = [helper.results for helper in helpers if not helper.results.closed]

    def receive(patience: float) -> Iterator[tuple[T, R]]:
        """What has come; ends that tell no more are closed."""
        for end in wait(open_ends, patience):
            assert isinstance(end, Connection)
            try:
                sent = end.recv_bytes()
            except (EOFError, OSError):
                open_ends.remove(end)
                continue
            task = int.from_bytes(sent[:TASK_BYTES], "little")
            waiting.discard(task)
            yield tasks[task], unpack(tasks[task], sent[TASK_BYTES:])

    while (task := _take(pipe)) is not None:
        waiting.discard(task)
        yield tasks[task], do(tasks[task])
        yield from receive(0)
    for task in range(shared, len(tasks)):
        waiting.discard(task)
        yield tasks[task], do(tasks[task])
    while open_ends and waiting:
        before = len(waiting), len(open_ends)
        yield from receive(SILENCE)
        if before == (len(waiting), len(open_ends)):
            break
    for task in sorted(waiting):
        yield tasks[task], do(tasks[task])
