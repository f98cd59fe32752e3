"""Is everything there that polyc needs? What is missing comes with its remedy."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from polyc.build.cache import open_cache
from polyc.build.toolchain import build_library, find_compiler
from polyc.errors import BuildError, PolycError
from polyc.options import Options
from polyc.target.machine import Target, detect_target

_PROBE = """#define _GNU_SOURCE
#include "polyc.h"
#define PC_CALL int
#define PC_BODY probe_body
static void probe_body(pc_thread *pc_self, const int *call) { (void)pc_self, (void)call; }
#include "polyc_pool.h"
void probe(int threads) { pc_run(&threads, threads); }
"""


@dataclass(frozen=True)
class Check:
    """One line: what was looked at, whether it is well, what was found, and what to do if not."""

    what: str
    well: bool
    found: str
    remedy: str = ""
    needed: bool = True


def examine(options: Options) -> list[Check]:
    """All checks, in order."""
    target = detect_target(options.cc)
    return [
        _compiler(options),
        _build(target, options),
        _cpu(target),
        _rates(target),
        Check("threads", True, f"{options.threads or target.cores} of {target.cores} cores"),
        _cache(options),
        *_cuda(),
    ]


def measure(options: Options) -> Path:
    """Measure this machine's rates and keep them in the cache folder; the file.

    Raises BuildError without a compiler, or if the folder cannot be written.
    """
    from polyc.target.measure import measure_rates
    from polyc.target.rates import write_rates

    target = detect_target(options.cc)
    rates = measure_rates(target, options)
    try:
        return write_rates(options.cache_dir, target, rates)
    except OSError as error:
        raise BuildError(
            f"the rates cannot be kept in {options.cache_dir}: {error}; set POLYC_CACHE_DIR to a "
            "writable folder"
        ) from error


def _compiler(options: Options) -> Check:
    try:
        compiler = find_compiler(options.cc)
    except PolycError as error:
        return Check("compiler", False, options.cc, str(error))
    return Check("compiler", True, f"{' '.join(compiler.command)}: {compiler.banner}")


def _build(target: Target, options: Options) -> Check:
    """Compile and link a file that uses the runtime and its threads."""
    try:
        with tempfile.TemporaryDirectory(prefix="polyc-") as folder:
            probe = replace(options, cache_dir=Path(folder), cache=True)
            build_library({"probe.c": _PROBE}, target, probe)
    except PolycError as error:
        return Check("runtime", False, "a test program does not build", str(error))
    return Check("runtime", True, "a test program builds")


def _cpu(target: Target) -> Check:
    found = f"{target}, {target.registers} vector registers of {target.simd_bytes} bytes; "
    found += f"caches {target.l1d >> 10} KiB in {target.l1d_ways} ways, "
    found += f"{target.l2 >> 10} KiB in {target.l2_ways}, {target.l3 >> 10} KiB; "
    found += " ".join(target.flags)
    slow = "code for 128-bit vectors runs, but slowly; use a CPU with AVX2 or AVX-512"
    return Check("CPU", target.isa != "baseline", found, slow, needed=False)


def _rates(target: Target) -> Check:
    """How fast the machine is; estimates do, so this is never amiss."""
    origin = "measured" if target.rates.measured else "estimated; measure them with --measure"
    return Check("rates", True, f"{target.rates} ({origin})")


def _cache(options: Options) -> Check:
    if not options.cache:
        return Check("cache", True, "off")
    if open_cache(options).folder != options.cache_dir:
        return Check(
            "cache",
            False,
            f"{options.cache_dir} cannot be written",
            "models are compiled anew in each process; set POLYC_CACHE_DIR to a writable folder",
            needed=False,
        )
    return Check("cache", True, str(options.cache_dir))


def _cuda(which: Callable[[str], str | None] = shutil.which) -> Iterator[Check]:
    compiler, driver = which("nvcc"), which("nvidia-smi")
    toolkit = "not needed for CPU code; for CUDA install NVIDIA's toolkit and put nvcc on PATH"
    yield Check("CUDA compiler", bool(compiler), compiler or "no nvcc", toolkit, needed=False)
    gpu = "not needed for CPU code; for CUDA install NVIDIA's driver"
    yield Check("CUDA driver", bool(driver), driver or "no nvidia-smi", gpu, needed=False)
