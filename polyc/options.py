"""How to compile: one frozen `Options`, and the only reader of environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from polyc.sizes import SizeRange

STAGES = ("graph", "scop", "schedule", "loopnest", "c")


def default_cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """POLYC_CACHE_DIR, or the platform's cache folder."""
    return Path(environ.get("POLYC_CACHE_DIR") or platformdirs.user_cache_dir("polyc"))


@dataclass(frozen=True)
class Options:
    """Choices that steer a compilation; the defaults are what a user wants.

    verify: prove every kernel legal, in bounds and initialised before any code is run.
    cache: keep compiled models and objects on disk (`cache_dir`).
    max_operations: isl's budget for one cluster's scheduling problem, in isl operations; when it
        is exceeded, the textual order is used and recorded in `explain()`.
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
    tf32: on a GPU, let tensor cores multiply float32: factors are rounded to tf32, which has the
        range of float32 and 10 bits of mantissa, and products are summed in float32. On random data
        the error is about 3e-4 of the largest output.
    sizes: what sizes that are known only at run time may be (`polyc.compile(dims=, hint=)`).
    states: inputs and outputs that are kept from call to call (`polyc.compile(state=)`).
    pinned: keep each thread of a call, but for the caller's own, on one core; otherwise the system
        moves them about the cores that the caller does not run on.
    cc: the C compiler. nvcc: the CUDA compiler.
    emulated: run what is compiled for a GPU on the emulator in place of one; slow, and for tests.
    """

    opt_level: int = 3
    threads: int = 0
    verify: bool = True
    tune: float = 0.0
    use_tuned: bool = True
    minimal_filtering: bool = True
    tf32: bool = False
    cache: bool = True
    max_operations: int = 1_000_000
    dump: tuple[str, ...] = ()
    dump_dir: Path | None = None
    progress: bool | None = None
    sizes: tuple[SizeRange, ...] = ()
    states: tuple[tuple[str, str], ...] = ()
    pinned: bool = False
    cc: str = "gcc"
    nvcc: str = "nvcc"
    emulated: bool = False
    cache_dir: Path = field(default_factory=default_cache_dir)


def options_from_environment(environ: Mapping[str, str] = os.environ) -> Options:
    """The default `Options`, with what `POLYC_*` and `OMP_NUM_THREADS` say.

    POLYC_CACHE_DIR (folder), POLYC_DUMP (stages, comma-separated), POLYC_DUMP_DIR (folder),
    POLYC_CC (compiler), POLYC_TUNE (seconds), POLYC_NVCC (CUDA compiler; by default that in
    CUDA_HOME, or on PATH), POLYC_CUDA ("emulate", or nothing for a GPU). `threads` is 0 for "all
    that this process may use".
    """
    dump = tuple(s for s in environ.get("POLYC_DUMP", "").split(",") if s)
    unknown = sorted(set(dump) - set(STAGES))
    if unknown:
        raise ValueError(f"POLYC_DUMP names {unknown}; the stages are {', '.join(STAGES)}")
    tune = environ.get("POLYC_TUNE") or "0"
    if not re.fullmatch(r"\d+(\.\d*)?", tune):
        raise ValueError(f"POLYC_TUNE is {tune!r}; give a number of seconds")
    cuda = environ.get("POLYC_CUDA", "")
    if cuda not in ("", "emulate"):
        raise ValueError(f"POLYC_CUDA is {cuda!r}; give 'emulate', or nothing")
    home = environ.get("CUDA_HOME")
    folder = environ.get("POLYC_DUMP_DIR")
    threads = environ.get("OMP_NUM_THREADS", "0").split(",")[0]
    return Options(
        threads=int(threads) if threads.isdigit() else 0,
        tune=float(tune),
        dump=dump,
        dump_dir=Path(folder) if folder else None,
        cc=environ.get("POLYC_CC") or environ.get("CC") or "gcc",
        nvcc=environ.get("POLYC_NVCC") or (f"{home}/bin/nvcc" if home else "nvcc"),
        emulated=cuda == "emulate",
        cache_dir=default_cache_dir(environ),
    )
