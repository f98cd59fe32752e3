"""Waiting for threads: results, errors, and signals that arrive meanwhile."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from polyc.toolchain.turns import result_of

ENDED = """
import signal, sys, threading, time
from concurrent.futures import Future
from polyc.toolchain.turns import result_of

signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))

def take():
    time.sleep(0.3)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    time.sleep(60)

threading.Thread(target=take, daemon=True).start()
result_of(Future())
"""


def test_a_signal_that_another_thread_takes_ends_the_wait():
    ended = subprocess.run([sys.executable, "-c", ENDED], timeout=30, check=False)
    assert ended.returncode == 143


def test_results_and_errors_are_those_of_the_thread():
    with ThreadPoolExecutor(1) as pool:
        assert result_of(pool.submit(pow, 2, 5)) == 32
        with pytest.raises(ZeroDivisionError):
            result_of(pool.submit(divmod, 1, 0))
    failed: Future[int] = Future()
    failed.set_exception(TimeoutError("its own"))
    with pytest.raises(TimeoutError, match="its own"):
        result_of(failed)
