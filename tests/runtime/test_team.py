"""The threads of a model: they share loops fairly, wait when they must, and for nobody else."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from polyc.toolchain.runtime_files import TEAM_FILE, find_runtime

SOURCE = Path(__file__).with_name("team.c")
STRICT = ["-std=gnu11", "-O2", "-pthread", "-Wall", "-Wextra", "-Werror"]
WIDTH = 24


def build(folder: Path, *flags: str) -> Path:
    command = ["gcc", *STRICT, *flags, "-I", str(find_runtime()), str(SOURCE)]
    command.append(str(find_runtime() / TEAM_FILE))
    subprocess.run([*command, "-o", str(folder / "team")], check=True)
    return folder / "team"


LOOPS = 200


class Team:
    """The library: rows that each loop makes of the one before."""

    def __init__(self, file: Path) -> None:
        self.library = ctypes.CDLL(str(file))
        self._run = self.library.run

    def __call__(
        self, threads: int, loops: int = LOOPS, late: int = 0, slow: int = 0, start: int = 0
    ) -> np.ndarray:
        rows = np.zeros((loops + 1, WIDTH), np.uint64)
        rows[0] = np.arange(start, start + WIDTH)
        self._run(ctypes.c_void_p(rows.ctypes.data), loops, WIDTH, late, slow, threads)
        return rows


def expected(loops: int = LOOPS, start: int = 0) -> np.ndarray:
    rows = np.zeros((loops + 1, WIDTH), np.uint64)
    rows[0] = np.arange(start, start + WIDTH)
    powers = np.array([pow(31, WIDTH - 1 - j, 1 << 64) for j in range(WIDTH)], np.uint64)
    for k in range(loops):
        count = k * 7919 % 101 % (WIDTH + 1)
        rows[k + 1, :count] = (rows[k] * powers).sum() + np.arange(count, dtype=np.uint64)
    return rows


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    return Team(build(tmp_path_factory.mktemp("team"), "-shared", "-fPIC"))


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 1000])
def test_every_iteration_runs_once_and_after_those_before_the_barrier(team, threads):
    for start in range(20):
        np.testing.assert_array_equal(team(threads, start=start), expected(start=start))


def test_iterations_of_any_length(team):
    for start in range(3):
        result = team(4, loops=30, slow=200, start=start)
        np.testing.assert_array_equal(result, expected(30, start))


def test_nobody_waits_for_a_thread_that_comes_late(team):
    """Nor does it do harm when it comes: memory of its call may have other uses by then."""
    began = time.perf_counter()
    rows = team(3, late=1_000_000)
    assert time.perf_counter() - began < 0.5
    want = expected()
    np.testing.assert_array_equal(rows, want)
    for start in range(5):
        np.testing.assert_array_equal(team(3, start=start), expected(start=start))
    rows[...] = 7
    time.sleep(1.2)
    assert (rows == 7).all()


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_a_call_that_is_ended_early_leaves_nothing_behind(team, threads):
    """No thread writes when it is over, though workers may be ahead: here nobody ever waits."""
    for start in range(20):
        rows = np.zeros((LOOPS + 1, WIDTH), np.uint64)
        address = ctypes.c_void_p(rows.ctypes.data)
        ended = team.library.run_until(address, LOOPS, WIDTH, 20, start % 7, threads)
        assert ended == 1
        rows[...] = 7
        np.testing.assert_array_equal(team(threads, start=start), expected(start=start))
        assert (rows == 7).all()


def test_calls_at_the_same_time(team):
    wrong = []

    def work(seed: int) -> None:
        for start in range(seed, seed + 20):
            if not np.array_equal(team(3, start=start), expected(start=start)):
                wrong.append(start)

    threads = [threading.Thread(target=work, args=(100 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_idle_team_uses_no_processor(team):
    for _ in range(20):
        team(4)
    time.sleep(0.02)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.01


def in_a_process_of_its_own(file: Path, body: str) -> str:
    """What a program prints that has the library as `run`, and `call(threads)`."""
    head = (
        "import ctypes, os, time\n"
        f"library = ctypes.CDLL({str(file)!r})\n"
        "def call(threads):\n"
        "    rows = (ctypes.c_uint64 * 128)()\n"
        "    library.run(rows, 7, 16, 0, 0, threads)\n"
        "    return hash(bytes(rows))\n"
        "def threads():\n"
        "    return len(os.listdir('/proc/self/task'))\n"
        "def cores():\n"
        "    mine = os.sched_getaffinity(0)\n"
        "    tasks = [int(t) for t in os.listdir('/proc/self/task') if int(t) != os.getpid()]\n"
        "    return mine, [os.sched_getaffinity(t) for t in tasks]\n"
    )
    command = [sys.executable, "-c", head + body]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def test_threads_are_made_when_needed_and_end_with_the_library(tmp_path):
    body = (
        "call(1)\n"
        "print(threads(), end=' ')\n"
        "call(3)\n"
        "call(2)\n"
        "print(threads(), end=' ')\n"
        "import _ctypes\n"
        "_ctypes.dlclose(library._handle)\n"
        "print(threads(), end=' ')\n"
    )
    assert in_a_process_of_its_own(build(tmp_path, "-shared", "-fPIC"), body) == "1 3 1 "


def test_the_child_of_a_fork_makes_its_own(tmp_path):
    body = (
        "want = call(3)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    right = [call(3) == want for _ in range(5)]\n"
        "    os._exit(0 if all(right) and threads() == 3 else 1)\n"
        "print(os.waitpid(child, 0)[1], call(3) == want)\n"
    )
    assert in_a_process_of_its_own(build(tmp_path, "-shared", "-fPIC"), body) == "0 True\n"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
@pytest.mark.parametrize("pinned", [0, 1])
def test_workers_keep_off_the_callers_core(pinned, tmp_path):
    file = build(tmp_path, "-shared", "-fPIC", f"-DPC_PINNED={pinned}")
    body = (
        "call(3)\n"
        "mine, theirs = cores()\n"
        f"size = 1 if {pinned} else len(mine) - 1\n"
        "print(all(len(t) == size and t < mine for t in theirs))\n"
    )
    assert in_a_process_of_its_own(file, body) == "True\n"


def test_thread_sanitizer_sees_that_barriers_suffice_and_are_needed(tmp_path):
    try:
        file = build(tmp_path, "-DALONE", "-fsanitize=thread", "-Wno-tsan")
    except subprocess.CalledProcessError:
        pytest.skip("gcc has no ThreadSanitizer here")
    # gcc 12's does not find its way about addresses as random as those of newer kernels.
    command = [*(["setarch", "-R"] if shutil.which("setarch") else []), str(file)]

    def watched(barriers: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, barriers], capture_output=True, text=True, check=False)

    done = watched("1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "data race" in watched("0").stderr
