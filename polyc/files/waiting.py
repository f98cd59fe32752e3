"""Waiting for other processes: with a line that says for what, and not without end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from polyc.errors import BuildError

NOTICE = 30.0
"""Seconds after which it is told what is waited for."""

_POLL = 0.05


def wait_for(attempt: Callable[[float], bool], what: Callable[[], str], patience: float) -> None:
    """Wait until `attempt(seconds)`, which itself waits that long, succeeds.

    what: what is waited for, asked when it has to be told. Raises BuildError after `patience`
    seconds.
    """
    first = min(NOTICE, patience)
    if attempt(first):
        return
    if first < patience:
        sys.stderr.write(
            f"polyc: waiting for {what()}, for {first:.0f} s so far and {patience:.0f} s at most "
            "(POLYC_PATIENCE)\n"
        )
        if attempt(patience - first):
            return
    raise BuildError(
        f"waited {patience:g} s for {what()}, in vain; end it if it hangs, or set POLYC_PATIENCE "
        "to more seconds"
    )


@contextlib.contextmanager
def locked(file: Path, patience: float) -> Iterator[None]:
    """Hold the lock that a file is, or a folder; BuildError if another has it for too long."""
    if os.path.isdir(file):
        with _locked_folder(file, patience):
            yield
        return
    from filelock import FileLock, Timeout

    lock = FileLock(file)

    def attempt(seconds: float) -> bool:
        try:
            lock.acquire(timeout=seconds, poll_interval=_POLL)
        except Timeout:
            return False
        except NotImplementedError as error:
            raise OSError(f"{error}: it has no locks") from error
        return True

    wait_for(attempt, lambda: _name_holder(file), patience)
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _locked_folder(folder: Path, patience: float) -> Iterator[None]:
    """Hold a folder's own lock, so that no file has to be left in it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def attempt(seconds: float) -> bool:
        end = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if time.monotonic() >= end:
                    return False
                time.sleep(_POLL)
            except OSError:
                return True  # a network's file system that locks files only: renaming is atomic

    try:
        wait_for(attempt, lambda: _name_holder(folder), patience)
        yield
    finally:
        os.close(descriptor)


def _name_holder(file: Path) -> str:
    """Who has a lock, as far as Linux tells."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        number = os.stat(file).st_ino
        for line in Path("/proc/locks").read_text(encoding="utf-8").splitlines():
            # 1: FLOCK  ADVISORY  WRITE 1234 08:01:131 0 EOF
            fields = line.split()
            if fields[1] == "FLOCK" and fields[5].endswith(f":{number}"):
                return f"process {fields[4]}, which holds {file}"
    return f"another process, which holds {file}"
