"""An engine that does as the problem's name says."""

from __future__ import annotations

import os

import numpy as np

from bench.engines import Session, Task


def open(task: Task, threads: int) -> Session:
    if task.name == "refuse":
        raise ValueError("no such\noperator")
    x = task.inputs()["x"]

    def run() -> None:
        if task.name == "die":
            os._exit(3)

    told = {"threads": threads} | {name: os.environ[name] for name in ("ODD", "OMP_NUM_THREADS")}
    return Session(run, lambda: np.asarray(2 * x), lambda: [told])
