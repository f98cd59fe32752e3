"""Is everything there that polyc needs? What is missing comes with its remedy."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from polyc.errors import BuildError, PolycError
from polyc.options import Options
from polyc.target.cuda import PORTABLE, ask_driver
from polyc.target.machine import Target, detect_target
from polyc.toolchain.c_compiler import LibraryBuild, build_library, find_compiler
from polyc.toolchain.cache import Cache, open_cache
from polyc.toolchain.nvcc import cuda_recipe, find_nvcc

_PROBE = """#include "polyc.h"
#define PC_CALL int
#define PC_BODY probe_body
static void probe_body(pc_thread *pc_self, const int *call) { (void)pc_self, (void)call; }
#include "polyc_pool.h"
void probe(int threads) { pc_run(&threads, threads); }
"""

_CUDA_PROBE = """#include "polyc_cuda.cuh"
PC_KERNEL(1, 1) void probe(int *x) { x[0] = 1; }
extern "C" int launch(int *x)
{
    return PC_LAUNCH(probe, pc_dim3(1, 1, 1), pc_dim3(1, 1, 1), 0, 0, x);
}
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
    target = detect_target(options.cc, options.patience)
    return [
        _compiler(options),
        _build(target, options),
        _cpu(target),
        _rates(target),
        Check("threads", True, f"{options.threads or target.cores} of {target.cores} cores"),
        _cache(options),
        *_cuda(options),
    ]


def measure(options: Options) -> Path:
    """Measure this machine's rates and keep them in the cache folder; the file.

    Raises BuildError without a compiler, or if the folder cannot be written.
    """
    from polyc.target.measure import measure_rates
    from polyc.target.rates import write_rates

    target = detect_target(options.cc, options.patience)
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
        compiler = find_compiler(options.cc, options.patience)
    except PolycError as error:
        return Check("compiler", False, options.cc, str(error))
    return Check("compiler", True, f"{' '.join(compiler.command)}: {compiler.banner}")


def _build(target: Target, options: Options) -> Check:
    """Compile and link a file that uses the runtime and its threads."""
    try:
        with tempfile.TemporaryDirectory(prefix="polyc-") as folder:
            probe = replace(options, cache_dir=Path(folder), cache=True)
            build_library({"probe.c": _PROBE}, target.flags, probe)
    except PolycError as error:
        return Check("runtime", False, "a test program does not build", str(error))
    return Check("runtime", True, "a test program builds")


def _cpu(target: Target) -> Check:
    found = (
        f"{target}, {target.vectors.registers} vector registers of {target.vectors.bytes} bytes; "
    )
    found += f"caches {target.l1d >> 10} KiB in {target.l1d_ways} ways, "
    found += f"{target.l2 >> 10} KiB in {target.l2_ways}, {target.l3 >> 10} KiB; "
    found += " ".join(target.flags)
    slow = "code for 128-bit vectors runs, but slowly; use a CPU with AVX2 or AVX-512"
    return Check("CPU", target.isa != "baseline", found, slow, needed=False)


def _rates(target: Target) -> Check:
    """How fast the machine is; estimates do, so this is never amiss."""
    origin = (
        "measured"
        if target.rates.measured
        else "estimated, but for what compiling saw; --measure measures"
    )
    return Check("rates", True, f"{target.rates} ({origin})")


def _cache(options: Options) -> Check:
    if not options.cache:
        return Check("cache", True, "off")
    try:
        found = open_cache(options).folder
    except PolycError as error:
        return Check("cache", False, str(options.cache_dir), str(error))
    if found != options.cache_dir:
        return Check(
            "cache",
            False,
            f"{options.cache_dir} cannot be written",
            "models are compiled anew in each process; set POLYC_CACHE_DIR to a writable folder",
            needed=False,
        )
    return Check("cache", True, str(options.cache_dir))


def _cuda(options: Options) -> Iterator[Check]:
    """What code for GPUs takes to compile and to run; CPU code needs none of it."""
    yield _nvcc(options)
    driver = ask_driver()
    version = f"CUDA {driver.version // 1000}.{driver.version % 1000 // 10}"
    found = version if driver.version else "none"
    yield Check("CUDA driver", not driver.missing, found, driver.missing, needed=False)
    for number, gpu in enumerate(driver.devices):
        memory = f"{gpu.bandwidth / 1e9:,.0f} GB/s, L2 {gpu.l2 >> 20} MiB"
        shared = f"{gpu.shared_per_block >> 10} KiB of shared memory a block"
        speed = f"{gpu.flops / 1e12:.1f} Tflop/s, tensor cores {gpu.tensor_flops / 1e12:.0f}"
        told = f"{gpu}: {gpu.multiprocessors} multiprocessors, {shared}; {memory}; {speed}"
        yield Check(f"GPU {number}", True, told)
    if options.emulated:
        yield Check("CUDA emulator", True, "POLYC_CUDA=emulate: target 'cuda' runs on this CPU")


def _nvcc(options: Options) -> Check:
    """The compiler, and whether it and the host compiler behind it build the runtime."""
    try:
        nvcc = find_nvcc(options.nvcc, options.patience)
        with tempfile.TemporaryDirectory(prefix="polyc-") as folder:
            chosen = replace(options, emulated=False)
            recipe = cuda_recipe(PORTABLE.arch, chosen)
            with LibraryBuild(recipe, 1, Cache(Path(folder))) as build:
                build.add("probe.cu", _CUDA_PROBE)
                build.link()
    except PolycError as error:
        return Check("CUDA compiler", False, options.nvcc, str(error), needed=False)
    return Check("CUDA compiler", True, f"{nvcc.path}: {'.'.join(map(str, nvcc.version))}")
