"""The machine that a target's name means."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from polyc.errors import BuildError, UnsupportedOp
from polyc.options import Options, default_cache_dir
from polyc.target.cuda import NAMED_GPUS, PORTABLE, CudaTarget, ask_driver
from polyc.target.instructions.lanes import DOT2_BF16
from polyc.target.machine import NAMED, Target, detect_target
from polyc.target.rates import known_rates, read_rates, write_rates
from polyc.toolchain.nvcc import find_nvcc

CUDA = "cuda"


def resolve_target(target: str | Target | CudaTarget, options: Options) -> Target | CudaTarget:
    """The target meant by a name, or itself.

    "cpu": this CPU; "avx512", "avx2", "baseline": a typical one; "cuda": the first GPU, or where
    there is none the oldest that is described; "cuda:sm_90": a typical one of that architecture;
    "auto": the first GPU if its driver and nvcc are here, or else this CPU.
    """
    if isinstance(target, Target | CudaTarget):
        return target
    if target == "auto":
        return _find_gpu(options) or _find_cpu(options)
    if target == "cpu":
        return _find_cpu(options)
    if target == CUDA:
        devices = () if options.emulated else ask_driver().devices
        return devices[0] if devices else PORTABLE
    if target.startswith(f"{CUDA}:"):
        return CudaTarget.named(target.removeprefix(f"{CUDA}:"))
    if target not in NAMED:
        names = ", ".join(["auto", "cpu", *NAMED, CUDA, *(f"{CUDA}:{arch}" for arch in NAMED_GPUS)])
        raise UnsupportedOp(f"target {target!r} is not known; choose one of {names}")
    return NAMED[target]


def _find_cpu(options: Options) -> Target:
    """This CPU, at which somebody has had a look, if the cache can tell of it.

    Its third-level cache is looked at once, sums of bfloat16 when these are first asked for.
    """
    machine = detect_target(options.cc, options.patience)
    if not (options.glance and options.cache):
        return machine
    known = known_rates(default_cache_dir(), machine)
    wanted = {"l3"}
    if options.precision == "bf16" and machine.vectors.has(DOT2_BF16):
        wanted.add("pairs")
    if known is None or wanted <= known:  # what cannot be read has been told of
        return machine
    from polyc.target.glance import glance
    from polyc.target.measure import look_at_pairs

    rates = machine.rates if "l3" in known else glance(machine)
    if "pairs" in wanted - known:
        with suppress(BuildError):
            rates = replace(rates, pairs=look_at_pairs(machine, options))
    seen = replace(machine, rates=rates)
    try:
        write_rates(default_cache_dir(), machine, seen.rates, known | wanted)
    except OSError:  # who cannot remember it would compile for another machine each time
        return machine
    return replace(seen, rates=read_rates(default_cache_dir(), machine) or seen.rates)


def _find_gpu(options: Options) -> CudaTarget | None:
    """The first GPU, if code can be compiled for it and run on it here."""
    if options.emulated:
        return None
    devices = ask_driver().devices
    if not devices:
        return None
    try:
        find_nvcc(options.nvcc, options.patience)
    except BuildError:
        return None
    return devices[0]
