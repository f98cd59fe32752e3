"""Locks and compilers that keep others waiting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from polyc.errors import BuildError
from polyc.files import waiting
from polyc.files.waiting import locked
from polyc.toolchain.execute import execute
from tests.sampling import thorough

HOLD = (
    "import os, signal, sys, pathlib\n"
    "from polyc.files.waiting import locked\n"
    "with locked(pathlib.Path(sys.argv[1]), 5):\n"
    "    print('held', flush=True)\n"
    "    os.kill(os.getpid(), signal.SIGSTOP)\n"
)


def take(place: Path, patience: float) -> None:
    with locked(place, patience):
        pass


@pytest.mark.parametrize("kind", [thorough("file"), "folder"])
def test_a_stopped_process_that_holds_a_lock_is_named(tmp_path, monkeypatch, capsys, kind):
    place = tmp_path / "it.lock" if kind == "file" else tmp_path
    monkeypatch.setattr(waiting, "NOTICE", 0.2)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(place)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        start = time.monotonic()
        with pytest.raises(BuildError, match=f"process {holder.pid}, .*POLYC_PATIENCE"):
            take(place, 0.5)
        assert time.monotonic() - start < 30
        assert f"polyc: waiting for process {holder.pid}, which holds {place}" in (
            capsys.readouterr().err
        )
    finally:
        holder.send_signal(signal.SIGCONT)
        holder.wait()
    take(place, 5)


def test_a_lock_is_held_by_one_at_a_time(tmp_path):
    with locked(tmp_path, patience=1), pytest.raises(BuildError, match="waited 0 s for"):
        take(tmp_path, 0)


def test_a_command_that_hangs_is_ended_with_what_it_started(tmp_path):
    number = tmp_path / "number"
    script = f"sleep 1000 & echo $! > {number}; wait"
    with pytest.raises(BuildError, match=r"waited 0\.5 s for compiler sh -c .*, in vain"):
        execute(["sh", "-c", script], tmp_path, 0.5)
    child = int(number.read_text())
    for _ in range(100):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            break
        if "State:\tZ" in Path(f"/proc/{child}/status").read_text():
            break  # ended, but nobody has asked how
        time.sleep(0.05)
    else:
        raise AssertionError("it still runs")
