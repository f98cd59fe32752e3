"""Measuring one problem: engines open it, their results are compared, and they take turns."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from bench.engines import Engine, Task
from bench.problems import Problem
from bench.results import OURS, Row, summarise
from bench.roofline import Work, count_work
from bench.worker import EngineFailed, Worker
from bench.zoo.network import Example
from polyc.run.reference import relative_error

LEAST_ROUNDS = 3


class Team:
    """The engines' processes for one number of threads; one that died is started again."""

    def __init__(self, engines: Sequence[Engine], threads: int) -> None:
        self.threads = threads
        self._engines = engines
        self._workers: dict[str, Worker] = {}

    def open(self, task: Task) -> tuple[dict[str, Worker], dict[str, float], dict[str, str]]:
        """(engines that have the task open, seconds that this took, reasons of the others)"""
        ready, seconds, failed = {}, {}, {}
        for engine in self._engines:
            worker = self._workers.get(engine.name)
            if worker is None or not worker.alive:
                worker = self._workers[engine.name] = Worker(engine, self.threads)
            try:
                seconds[engine.name] = worker.open(task)
                ready[engine.name] = worker
            except EngineFailed as failure:
                failed[engine.name] = str(failure)
        return ready, seconds, failed

    def release(self) -> None:
        """Let the engines give the task's memory back."""
        for worker in self._workers.values():
            with contextlib.suppress(EngineFailed):
                worker.release()

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers.values():
            worker.close()


def measure_problem(
    problem: Problem,
    teams: Sequence[Team],
    seconds: float,
    floor_seconds: Callable[[Work, int], float],
) -> Iterator[Row]:
    """A row for each team; `seconds` are those of each engine's turns.

    floor_seconds: the least time for this much work, on a number of threads.
    """
    example = problem.make()
    work = count_work(example.model)
    with tempfile.TemporaryDirectory(prefix="polyc-bench-") as folder:
        task = _write_task(problem, example, Path(folder))
        del example  # weights, of which every engine has its own copy
        for team in teams:
            floor = floor_seconds(work, team.threads)
            yield _measure_row(problem, task, work, floor, team, seconds)


def _write_task(problem: Problem, example: Example, folder: Path) -> Task:
    results = []
    for info in example.model.graph.output:
        kind = info.type.tensor_type
        shape = tuple(d.dim_value for d in kind.shape.dim)
        results.append((shape, onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)))
    task = Task(
        problem.name,
        folder / "model.onnx",
        folder / "x.npz",
        tuple(results),
        problem.numpy,
        problem.precision,
    )
    onnx.save(example.model, task.model)
    feeds: dict[str, Any] = {**example.feeds}
    np.savez(task.feeds, **feeds)
    return task


def _measure_row(
    problem: Problem, task: Task, work: Work, floor: float, team: Team, seconds: float
) -> Row:
    ready, opened, failed = team.open(task)
    errors = _compare(ready)
    times: dict[str, list[float]] = {name: [] for name in ready}
    for name, samples in _rounds(ready, seconds * len(ready), failed):
        times[name] += samples
    kernels: Sequence[Mapping[str, Any]] = ()
    if OURS in ready and OURS not in failed:
        kernels = ready[OURS].kernels()
    team.release()
    return Row(
        problem.name,
        problem.group,
        team.threads,
        work.flops,
        work.reads,
        work.writes,
        floor,
        **summarise({name: samples for name, samples in times.items() if samples}),
        error=errors,
        opened=opened,
        failed=failed,
        kernels=kernels,
    )


def _rounds(
    ready: Mapping[str, Worker], seconds: float, failed: dict[str, str]
) -> Iterator[tuple[str, list[float]]]:
    """(engine, samples) of turns until `seconds` have passed; engines that fail go to `failed`.

    Every engine has one turn a round, and each round another one begins, so that no engine always
    comes behind the same other.
    """
    names = list(ready)
    end = time.perf_counter() + seconds
    rounds = 0
    while names and (rounds < LEAST_ROUNDS or time.perf_counter() < end):
        first = rounds % len(names)
        for name in names[first:] + names[:first]:
            try:
                yield name, ready[name].take_turn()
            except EngineFailed as failure:
                failed[name] = str(failure)
                names.remove(name)
        rounds += 1


def _compare(ready: Mapping[str, Worker]) -> dict[str, float]:
    """How far polyc's result is from each peer's."""
    if OURS not in ready:
        return {}
    results = {}
    for name, worker in ready.items():
        with contextlib.suppress(EngineFailed):  # its next turn fails as well, and says so
            results[name] = worker.result()
    ours = results.pop(OURS, None)
    return {} if ours is None else {n: relative_error(ours, value) for n, value in results.items()}
