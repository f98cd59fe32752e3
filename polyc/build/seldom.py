"""While a model is compiled, Python looks for cycles of garbage seldom.

A compilation makes millions of small values, and keeps many of them: the graph, its statements, the
loops of all kernels. Python's collector looks at all that are kept each time when a quarter as many
are new, which took 0.6 s of 7.7 for ResNet-50 (2 cores of a Zen 4), and finds next to nothing, as
values that never change hardly form cycles.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

NEW_VALUES = 200_000
"""After so many new values the young ones are looked at; Python's own number is 700."""

_lock = threading.Lock()
_compiling = 0
_before = gc.get_threshold()


@contextlib.contextmanager
def collecting_seldom() -> Iterator[None]:
    """Python's collector is busy rarely inside of the `with`, in whatever thread that runs.

    The last one to leave puts back what was there before the first.
    """
    global _compiling, _before
    with _lock:
        if not _compiling:
            _before = gc.get_threshold()
            if _before[0]:  # 0: nothing is collected at all, as the user wants it
                gc.set_threshold(max(NEW_VALUES, _before[0]), *_before[1:])
        _compiling += 1
    try:
        yield
    finally:
        with _lock:
            _compiling -= 1
            if not _compiling:
                gc.set_threshold(*_before)
