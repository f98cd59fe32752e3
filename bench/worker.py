"""An engine in a process of its own.

So its environment can be set before its libraries are loaded, two engines that bring the same
library do not share its threads, and one that crashes is a missing figure, not the end of the run.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from bench.engines import Engine, Row, Session, Task
from polyc.commands.bench import settle, take_turn

_PATIENCE = 5.0
"""Seconds that a process has to end by itself."""


class EngineFailed(Exception):
    """An engine that cannot run a problem, and why, in one line."""


class Worker:
    """The parent's side: starts the process, and asks it for one thing at a time.

    Methods raise EngineFailed if the engine does, or if its process dies.
    """

    def __init__(self, engine: Engine, threads: int) -> None:
        self.engine = engine
        # A new interpreter: a fork would inherit libraries, and an environment that they have read.
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, engine, threads), daemon=True)
        with environment(engine.variables(threads)):
            self._process.start()
        other.close()

    def open(self, task: Task) -> float:
        """Load a task in place of the last; the seconds until its first call was done."""
        return float(self._ask("open", task))

    def result(self) -> np.ndarray:
        """The task's first output."""
        return np.asarray(self._ask("result"))

    def take_turn(self) -> list[float]:
        return list(self._ask("turn"))

    def kernels(self) -> Sequence[Row]:
        return list(self._ask("kernels"))

    def release(self) -> None:
        """Let go of the task."""
        self._ask("release")

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError, ValueError):
            self._connection.send(None)
        self._process.join(_PATIENCE)
        if self._process.is_alive():
            self._process.kill()
        self._connection.close()

    def _ask(self, *message: object) -> Any:
        try:
            self._connection.send(message)
            answer = self._connection.recv()
        except (EOFError, OSError) as error:
            self._process.join(_PATIENCE)
            raise EngineFailed(f"its process ended, status {self._process.exitcode}") from error
        if isinstance(answer, EngineFailed):
            raise answer
        return answer


def _serve(connection: Connection, engine: Engine, threads: int) -> None:
    """The child's side: answers until it is sent None."""
    session: Session | None = None
    while (message := connection.recv()) is not None:
        question, *arguments = message
        try:
            answer: object = None
            if question == "release":
                session = None
            elif question == "open":
                start = time.perf_counter()
                session = engine.open(arguments[0], threads)
                session.run()
                answer = time.perf_counter() - start
                settle()
            else:
                assert session is not None
                answer = _answer(question, session)
        except Exception as error:  # engines raise what they like
            text = " ".join(str(error).split()) or "no message"
            answer = EngineFailed(f"{type(error).__name__}: {text[:300]}")
        connection.send(answer)


def _answer(question: str, session: Session) -> object:
    match question:
        case "result":
            return session.result()
        case "turn":
            return [seconds / session.calls for seconds in take_turn(session.run)]
        case "kernels":
            rows = session.kernels()
            settle()
            return rows
    raise AssertionError(question)


@contextlib.contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """For processes that are started within."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
