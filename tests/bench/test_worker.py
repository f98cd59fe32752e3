"""Engines in processes of their own, and what happens when one fails."""

from __future__ import annotations

import os

import numpy as np
import pytest

from bench.engines import Engine, Task
from bench.worker import EngineFailed, Worker

ODD = Engine("odd", "Odd", "numpy", "tests.bench.odd_engine", environment={"ODD": "7"})


@pytest.fixture
def worker():
    made = Worker(ODD, 3)
    yield made
    made.close()


@pytest.fixture
def task(tmp_path):
    feeds = tmp_path / "x.npz"
    np.savez(feeds, x=np.arange(3))
    return lambda name: Task(name, tmp_path / "none.onnx", feeds)


def test_a_worker_answers(worker, task):
    assert worker.open(task("run")) >= 0
    assert worker.result().tolist() == [0, 2, 4]
    assert all(0 < s < 1 for s in worker.take_turn())
    worker.release()
    with pytest.raises(EngineFailed, match="AssertionError"):
        worker.take_turn()


def test_its_environment_is_its_own(worker, task):
    worker.open(task("run"))
    assert worker.kernels() == [{"threads": 3, "ODD": "7", "OMP_NUM_THREADS": "3"}]
    assert "ODD" not in os.environ


def test_a_refusal_is_one_line_and_the_worker_goes_on(worker, task):
    with pytest.raises(EngineFailed, match=r"^ValueError: no such operator$"):
        worker.open(task("refuse"))
    assert worker.alive
    worker.open(task("run"))


def test_the_death_of_a_process_is_an_error(worker, task):
    with pytest.raises(EngineFailed, match="its process ended, status 3"):
        worker.open(task("die"))
    assert not worker.alive


def test_an_engine_says_what_is_missing():
    assert ODD.missing() == ""
    absent = Engine("none", "None", "no_such_package", "x")
    assert absent.missing() == "no_such_package is not installed"
    assert "lacks avx9" in Engine("new", "New", "numpy", "x", features=("avx9",)).missing()
