"""Running a compiler: its messages in English, with a limit of time, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from polyc.errors import BuildError
from polyc.files.waiting import wait_for

_ending = threading.Event()
"""This process is about to end: whatever its threads start now ends at once."""


def execute(
    arguments: Sequence[str], folder: Path | None, patience: float
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; BuildError if it cannot be run, or takes over `patience` s."""
    try:
        process = subprocess.Popen(
            arguments,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,  # which is ended as a whole
        )
    except (OSError, ValueError) as error:
        raise BuildError(
            f"compiler {arguments[0]} cannot be run: {error}; set POLYC_CC, or POLYC_NVCC for "
            "CUDA, to another one"
        ) from error
    told = "", ""

    def attempt(seconds: float) -> bool:
        nonlocal told
        try:
            told = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    with process:
        try:
            if _ending.is_set():  # asked of what runs: `end_all` has found it, or it is seen here
                raise BuildError(
                    f"compiler {arguments[0]} is not waited for: the process is ending"
                )
            wait_for(attempt, lambda: f"compiler {' '.join(arguments)[:200]}", patience)
        except BaseException:
            end_descendants(process.pid)
            _end(process.pid)
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, *told)


def end_all() -> None:
    """End what this process has started, and what its other threads start from now on."""
    _ending.set()
    end_descendants(os.getpid())


def end_descendants(process: int) -> None:
    """End what a process has started, and what that has: gcc is a driver of others."""
    for number in list(_list_descendants(process)):
        _end(number)


def _end(number: int) -> None:
    """End a process, and where it leads a group of processes, also what it forks meanwhile."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            kill(number, signal.SIGKILL)


def _list_descendants(process: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (task / "children").read_text(encoding="ascii").split()):
                yield from _list_descendants(child)
                yield child
