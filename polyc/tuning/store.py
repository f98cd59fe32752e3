"""Tuned schedules on disk: one file for a machine, a number of threads and a state of polyc.

    <cache folder>/tuned/<fingerprint>.json
        {"format": 2, "for": "cpu avx512, 2 cores; 2 threads",
         "clusters": {"<OpenCluster.key>": {"gain": 0.12, "finished": true,
                                            "schedule": "split L0 13 | …"}}}

A file is data, never code: what cannot be read is told and ignored, and a schedule that is not in
the space of its cluster is not used (`mapping.cpu.space.find_tuned`). Like everything that is
compiled, what is tuned is proven.
"""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyc.files.digest import digest
from polyc.files.regular import make_folders, read_json, write_json, writing
from polyc.files.waiting import locked
from polyc.mapping.tuned import Tuned
from polyc.options import Options, read_patience
from polyc.target.machine import Target
from polyc.target.rates import machine_fingerprint
from polyc.toolchain.c_compiler import COMPILE_FLAGS, GCC_FLAGS
from polyc.toolchain.runtime_files import read_runtime

FORMAT = 2

_PACKAGE = Path(__file__).resolve().parent.parent
_STRATEGIES = ("codegen", "mapping", "memory", "promote", "schedule")
"""The packages that turn a cluster into loops: a change there, and measurements are void."""


def tuned_file(target: Target, options: Options) -> Path:
    """Where the tuned schedules for a target and a number of threads are kept."""
    threads = options.threads or target.cores
    parts = [machine_fingerprint(target), *target.flags, str(threads), _hash_strategies()]
    key = digest([*parts, *COMPILE_FLAGS, *GCC_FLAGS, options.cc])[:32]
    return options.cache_dir / "tuned" / f"{key}.json"


def read_tuned(file: Path) -> dict[str, Tuned]:
    """Tuned schedules by cluster; empty if there are none, or none that can be read."""
    try:
        clusters = read_json(file, FORMAT)["clusters"]
        return {str(key): _parse(entry) for key, entry in clusters.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        warnings.warn(
            f"{file} does not hold tuned schedules ({type(error).__name__}: {error}) and is "
            "ignored; tune again",
            RuntimeWarning,
            stacklevel=2,
        )
        return {}


def add_tuned(file: Path, found: Mapping[str, Tuned], title: str) -> None:
    """Add results to a file, at once and under a lock: those of others stay.

    Raises BuildError if it cannot be written.
    """
    with writing(file, "what tuning found"), contextlib.ExitStack() as stack:
        make_folders(file.parent, 0o700)
        stack.enter_context(locked(file.with_suffix(".lock"), read_patience()))
        with warnings.catch_warnings(action="ignore"):  # told when it was read
            kept = read_tuned(file)
        table = {key: _spell(one) for key, one in sorted({**kept, **found}.items())}
        write_json(file, FORMAT, {"for": title, "clusters": table})


def _parse(entry: Mapping[str, Any]) -> Tuned:
    gain = float(entry["gain"])
    if not (math.isfinite(gain) and 0 <= gain < 1):
        raise ValueError(f"a gain of {gain}")
    schedule = entry["schedule"]
    if not isinstance(schedule, str):
        raise TypeError(f"a schedule that is {type(schedule).__name__}")
    return Tuned(schedule, gain, entry["finished"] is True)


def _spell(one: Tuned) -> dict[str, Any]:
    return {"gain": round(one.gain, 3), "finished": one.finished, "schedule": one.schedule}


@functools.cache
def _hash_strategies() -> str:
    files = sorted(f for folder in _STRATEGIES for f in (_PACKAGE / folder).glob("*.py"))
    runtime = [x for item in read_runtime().items() for x in item]
    return digest([*(f.read_text("utf-8") for f in files), *runtime])
