"""How to compile: one frozen `Options`, and the only reader of environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import Any, get_type_hints

import platformdirs

from polyc.errors import BuildError, InvalidOption, refuse
from polyc.names import show
from polyc.types.ranges import SizeRange

STAGES = ("graph", "scop", "schedule", "loopnest", "c")

PRECISIONS = ("float32", "bf16")
"""What float32 may be multiplied as on a CPU."""

PATIENCE = 1800.0
"""Seconds to wait for a compiler, or for another process, before it counts as one that hangs."""

MAX_THREADS = 65535
"""More than any machine runs at a time."""


def default_cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """POLYC_CACHE_DIR, or the platform's cache folder; BuildError for a user who has no home."""
    given = environ.get("POLYC_CACHE_DIR")
    try:
        return Path(given or platformdirs.user_cache_dir("polyc"))
    except RuntimeError as error:
        raise BuildError(
            f"the cache has no place ({error}); set HOME, or set POLYC_CACHE_DIR to a folder"
        ) from error


@dataclass(frozen=True)
class Options:
    """Choices that steer a compilation; the defaults are what a user wants.

    verify: prove every kernel legal, in bounds and initialised before any code is run.
    cache: keep compiled models, kernels and objects on disk (`cache_dir`).
    cache_limit: bytes that are kept there before the least recently used go.
    max_operations: the budget of isl's scheduler for the loops of a `@polyc.kernel`, in operations
        of isl; where it is exceeded the loops stay in their original order.
    max_seconds: how long a compilation may take; it is an error if it takes longer.
    max_nodes: the most nodes of a graph, functions and control flow written out.
    dump: stages to print to `dump_dir` (or stderr): graph, scop, schedule, loopnest, c.
    progress: show a progress bar on long compiles; None: when stderr is a terminal.
    tune: seconds to search for better parameters of the kernels, by measuring, before the model is
        compiled (`polyc/tuning/`). What is found is kept in `cache_dir`, by kernel and machine.
    use_tuned: use what was found earlier; False compiles as if nothing had ever been tuned.
    minimal_filtering: let convolutions use Winograd's algorithm where it pays. It multiplies less
        and rounds differently: on random float32 data the error is up to 1e-5 of the largest
        output where that of the direct sum is 2e-6. A NaN or an infinity in the input still reaches
        every output that depends on it, but an infinity may arrive as a NaN, and outputs up to 4
        positions further may become NaN as well. False keeps the direct sum, without all this.
    sparse: leave out channels that weights of zero make needless, and multiply by what is not zero
        alone, where a constant is mostly zero and that is faster on this CPU. An infinity or a NaN
        is then not carried on through a weight of zero. On a CPU constants that are only factors of
        sums of products count as zeros where they are subnormal, below 2^-126 in float32, and
        padding that taps far apart read for the most part is not multiplied.
    precision: "bf16" lets a CPU multiply bfloat16 where the model has float32, and that is faster:
        factors of matrix products and convolutions are rounded to 8 bits of mantissa, with the
        range of float32, and products are summed in float32. On random data the error of networks
        was 2e-4 to 8e-3 of the largest output. Numbers below 2^-126 count as zeros there.
    tf32: on a GPU, let tensor cores multiply float32: factors are rounded to tf32, which has the
        range of float32 and 10 bits of mantissa, and products are summed in float32. On random data
        the error is about 3e-4 of the largest output.
    sizes: what sizes that are known only at run time may be (`polyc.compile(dims=, hint=)`).
    values: inputs, lists of integers, whose values are sizes known only at run time.
    states: inputs and outputs that are kept from call to call (`polyc.compile(state=)`).
    schedules: of kernels, by name, in place of those that strategies write
        (`polyc.compile(schedule=)`).
    pinned: keep each thread of a call, but for the caller's own, on one core; otherwise the system
        moves them about the cores that the caller does not run on.
    memory_limit: bytes that a model may take: one tensor, all weights, or what a call works in; 0
        is the memory that this process may have.
    cc: the C compiler. nvcc: the CUDA compiler.
    patience: seconds to wait for a compiler, or for another process that compiles the same or saves
        to the same place. What is waited for is told on stderr; then it is a BuildError.
    processes: how many share the kernels of a model for a CPU while it is compiled, on Linux: they
        are forked, and end with the compilation; 0 is as many as there are cores, up to 8.
    glance: look once on each machine how fast its third-level cache is; without it, or without
        `cache`, that counts as an ordinary server's.
    emulated: run what is compiled for a GPU on the emulator in place of one; slow, and for tests.
    """

    opt_level: int = 3
    threads: int = 0
    verify: bool = True
    tune: float = 0.0
    use_tuned: bool = True
    minimal_filtering: bool = True
    sparse: bool = True
    precision: str = "float32"
    tf32: bool = False
    cache: bool = True
    max_operations: int = 1_000_000
    max_seconds: float = 3600.0
    max_nodes: int = 50_000
    dump: tuple[str, ...] = ()
    dump_dir: Path | None = None
    progress: bool | None = None
    sizes: tuple[SizeRange, ...] = ()
    values: tuple[str, ...] = ()
    states: tuple[tuple[str, str], ...] = ()
    schedules: tuple[tuple[str, str], ...] = ()
    pinned: bool = False
    memory_limit: int = 0
    cc: str = "gcc"
    nvcc: str = "nvcc"
    processes: int = 0
    glance: bool = True
    emulated: bool = False
    cache_dir: Path = field(default_factory=default_cache_dir)
    cache_limit: int = 8 << 30
    patience: float = PATIENCE

    def __post_init__(self) -> None:
        """Plain numbers in place of NumPy's; TypeError or InvalidOption for what is no choice."""
        for name, kind in _kinds().items():
            object.__setattr__(self, name, _check(name, kind, getattr(self, name)))


MOST: Mapping[str, tuple[float, str]] = {
    "opt_level": (3, "a level from 0 on"),
    "threads": (MAX_THREADS, "0 for all that this process may use"),
    "processes": (MAX_THREADS, "0 for as many as there are cores"),
    "memory_limit": (1 << 62, "bytes, or 0 for what there is"),
    "cache_limit": (1 << 62, "a number of bytes"),
    "max_nodes": (1_000_000_000, "a number of nodes"),
    "max_operations": (1 << 62, "a number of isl's operations"),
    "tune": (1e9, "a number of seconds"),
    "patience": (1e9, "a number of seconds"),
    "max_seconds": (1e9, "a number of seconds"),
}
"""Numbers among the options: the largest that means something, and what it is."""

_KINDS: Mapping[Any, tuple[Any, str]] = {
    int: (Integral, "an integer"),
    float: (Real, "a number"),
    bool: (bool, "True or False"),
    bool | None: ((bool, NoneType), "True, False or None"),
    str: (str, "the name of a program"),
    Path: (os.PathLike, "a pathlib.Path"),
    Path | None: ((os.PathLike, NoneType), "a pathlib.Path or None"),
}
"""What a field is annotated as -> what its value may be, and how a message calls it."""


@cache
def _kinds() -> Mapping[str, Any]:
    """The annotation of each field."""
    return get_type_hints(Options)


def _check(name: str, kind: Any, value: Any) -> Any:
    """The value of an option, if it is what the field is annotated as."""
    types, told = _KINDS.get(kind, (tuple, "a tuple"))
    if name == "precision":
        told = " or ".join(map(repr, PRECISIONS))
    if not isinstance(value, types) or (name in MOST and isinstance(value, bool)):
        refuse(name, value, told)
    if name == "precision" and value not in PRECISIONS:
        raise InvalidOption(f"{name} is {value[:40]!r}; give {' or '.join(map(repr, PRECISIONS))}")
    if name == "dump":
        _check_stages(name, value)
    elif name == "sizes" and not all(isinstance(size, SizeRange) for size in value):
        refuse(name, value, "what `dims` and `hint` say")
    elif name in ("states", "schedules") and not all(map(_is_pair, value)):
        refuse(name, value, "pairs of text")
    elif name in MOST:
        most, what = MOST[name]
        if not 0 <= value <= most:
            raise InvalidOption(f"{name} is {value}; give {what}, up to {most:.0f}")
        return kind(value)
    return value


def _is_pair(value: Any) -> bool:
    """Whether it is a tuple of two texts."""
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(v, str) for v in value)


def _check_stages(name: str, dump: Iterable[str]) -> None:
    unknown = sorted(show(repr(stage)) for stage in set(dump) - set(STAGES))
    if unknown:
        raise InvalidOption(
            f"{name} names {', '.join(unknown)}; the stages are {', '.join(STAGES)}"
        )


def read_patience(environ: Mapping[str, str] = os.environ) -> float:
    """POLYC_PATIENCE, or PATIENCE; InvalidOption if it is no number of seconds."""
    return _read_number(environ, "POLYC_PATIENCE", PATIENCE)


def options_from_environment(environ: Mapping[str, str] = os.environ) -> Options:
    """The default `Options`, with what `POLYC_*` and `OMP_NUM_THREADS` say; else InvalidOption.

    POLYC_CACHE_DIR (folder), POLYC_DUMP (stages, comma-separated), POLYC_DUMP_DIR (folder),
    POLYC_CC (compiler), POLYC_TUNE (seconds), POLYC_NVCC (CUDA compiler; by default that in
    CUDA_HOME, or on PATH), POLYC_CUDA ("emulate", or nothing for a GPU), POLYC_PATIENCE (seconds),
    POLYC_MEMORY (bytes), POLYC_MAX_SECONDS (seconds), POLYC_MAX_NODES (a number of nodes),
    POLYC_PROCESSES (a number of them), POLYC_GLANCE (0: do not look), POLYC_PRECISION ("bf16").
    `threads` is 0 for "all that this process may use".
    """
    dump = tuple(s for s in environ.get("POLYC_DUMP", "").split(",") if s)
    _check_stages("POLYC_DUMP", dump)
    cuda = environ.get("POLYC_CUDA", "")
    if cuda not in ("", "emulate"):
        raise InvalidOption(f"POLYC_CUDA is {cuda!r}; give 'emulate', or nothing")
    home = environ.get("CUDA_HOME")
    folder = environ.get("POLYC_DUMP_DIR")
    return Options(
        threads=_read_threads(environ),
        tune=_read_number(environ, "POLYC_TUNE", 0.0),
        max_seconds=_read_number(environ, "POLYC_MAX_SECONDS", Options.max_seconds),
        max_nodes=int(_read_number(environ, "POLYC_MAX_NODES", Options.max_nodes, "nodes")),
        patience=read_patience(environ),
        dump=dump,
        dump_dir=Path(folder) if folder else None,
        cc=environ.get("POLYC_CC") or environ.get("CC") or "gcc",
        nvcc=environ.get("POLYC_NVCC") or (f"{home}/bin/nvcc" if home else "nvcc"),
        memory_limit=_read_bytes(environ, "POLYC_MEMORY", Options.memory_limit),
        processes=int(_read_number(environ, "POLYC_PROCESSES", 0, "processes")),
        glance=bool(_read_number(environ, "POLYC_GLANCE", 1, "looks")),
        precision=environ.get("POLYC_PRECISION") or Options.precision,
        emulated=cuda == "emulate",
        cache_dir=default_cache_dir(environ),
        cache_limit=_read_bytes(environ, "POLYC_CACHE_LIMIT", Options.cache_limit),
    )


def _read_number(
    environ: Mapping[str, str], name: str, default: float, what: str = "seconds"
) -> float:
    text = environ.get(name) or str(default)
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]*)?", text):
        raise InvalidOption(f"{name} is {text[:40]!r}; give a number of {what}")
    return float(text)


def _read_bytes(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name) or str(default)
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise InvalidOption(f"{name} is {text!r}; give a number of bytes")
    return int(text)


def _read_threads(environ: Mapping[str, str]) -> int:
    """OpenMP's variable is a list, a number for each level of nesting; the first counts here."""
    text = environ.get("OMP_NUM_THREADS", "").split(",")[0].strip() or "0"
    if not (re.fullmatch(r"[0-9]{1,9}", text) and int(text) <= MAX_THREADS):
        raise InvalidOption(
            f"OMP_NUM_THREADS is {text[:40]!r}; give a number of threads, up to {MAX_THREADS}"
        )
    return int(text)
