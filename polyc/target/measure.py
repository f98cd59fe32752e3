"""Measuring `Rates`: a C program, built like any model's, in about five seconds."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import cffi
import numpy as np

from polyc.errors import RuntimeFailure
from polyc.options import Options
from polyc.target.machine import Target
from polyc.target.rates import Rates
from polyc.toolchain.c_compiler import build_library
from polyc.toolchain.pages import allocate_pages

SOURCE = Path(__file__).with_name("measure.c")

DECLARATIONS = """
double fma_rate(long rounds, int repeats);
double pair_rate(long rounds, int repeats);
double chain_rate(long rounds, int repeats);
double cache_rate(const float *x, int64_t n, int64_t passes, int repeats);
double read_rate(const float *x, int64_t n, int64_t slices, int threads, int repeats);
double copy_rate(const float *x, float *y, int64_t n, int64_t slices, int threads, int repeats);
double barrier_rate(int64_t rounds, int threads, int repeats);
"""

TRIES = 100
"""Of what takes a millisecond or less each."""

FEW = 24
"""Of what decides only between twice as fast and as fast."""

FMA_ROUNDS = 50_000
CACHE_TRAFFIC = 16 << 20
"""Bytes read from a cache in one try."""

SLICE = 8 << 20
"""Bytes of memory that one thread reads, or reads and writes, in one try."""

LEAST_MEMORY = 256 << 20
"""Bytes that stand for memory, or four times the last cache if that is more."""

ROUNDS = 6
"""How often all of that memory is walked."""

BARRIERS = 1_000


def measure_rates(target: Target, options: Options) -> Rates:
    """The rates of this machine, with all cores of `target`.

    Raises BuildError without a compiler, RuntimeFailure where threads cannot be started.
    """
    library = load_probes(target, options)
    memory = allocate_pages(max(LEAST_MEMORY, 4 * target.l3)).view(np.float32)
    memory.fill(1.0)
    x = cffi.FFI().from_buffer("float[]", memory)
    whole = 8 * (target.vectors.bytes // 4)  # elements: sums take eight vectors at a time

    def cached(capacity: int) -> float:
        n = max(1, capacity // 2 // 4 // whole) * whole
        passes = max(1, CACHE_TRAFFIC // (4 * n))
        return float(library.cache_rate(x, n, passes, TRIES))

    def read(threads: int) -> float:
        n = SLICE // 4
        slices = max(1, memory.size // (n * threads))
        return float(library.read_rate(x, n, slices, threads, ROUNDS))

    def copied(threads: int) -> float:
        n, half = SLICE // 2 // 4, memory.size // 2
        slices = max(1, half // (n * threads))
        return float(library.copy_rate(x, x + half, n, slices, threads, ROUNDS))

    cores = target.cores
    meetings = float(library.barrier_rate(BARRIERS, cores, TRIES))
    if meetings == 0:
        raise RuntimeFailure(
            f"{cores} threads cannot be started; measure with fewer cores (taskset) or allow more"
        )
    flops = float(library.fma_rate(FMA_ROUNDS, TRIES))
    return Rates(
        flops=flops,
        l1=cached(target.l1d),
        l2=cached(target.l2),
        l3=cached(target.l3),
        read=read(1),
        read_all=read(cores),
        copy=copied(1),
        copy_all=copied(cores),
        barrier=1 / meetings if cores > 1 else 0.0,
        latency=1 / float(library.chain_rate(FMA_ROUNDS, TRIES)),
        measured=True,
        pairs=_compare_pairs(library, flops, TRIES),
    )


def look_at_pairs(target: Target, options: Options) -> float:
    """`Rates.pairs` of this machine, in some 0.3 s; BuildError without a compiler."""
    library = load_probes(target, replace(options, cache=False))  # it is asked once
    return _compare_pairs(library, float(library.fma_rate(FMA_ROUNDS, FEW)), FEW)


def _compare_pairs(library: Any, flops: float, tries: int) -> float:
    """How many times as fast sums of bfloat16 are, to a step; the estimate without them."""
    pairs = float(library.pair_rate(FMA_ROUNDS, tries))
    return 2 ** (round(2 * math.log2(pairs / flops)) / 2) if pairs else Rates.pairs


def load_probes(target: Target, options: Options) -> Any:
    """The C program's functions, which release the GIL."""
    vectors = target.vectors
    sizes = f"#define SIMD_BYTES {vectors.bytes}\n#define REGISTERS {vectors.registers}\n"
    text = sizes + SOURCE.read_text(encoding="utf-8")
    ffi = cffi.FFI()
    ffi.cdef(DECLARATIONS)
    return ffi.dlopen(str(build_library({"measure.c": text}, target.flags, options)))
