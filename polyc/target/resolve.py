"""The machine that a target's name means."""

from __future__ import annotations

from polyc.errors import BuildError, UnsupportedOp
from polyc.options import Options
from polyc.target.cuda import NAMED_GPUS, PORTABLE, CudaTarget, ask_driver
from polyc.target.machine import NAMED, Target, detect_target
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
        return _find_gpu(options) or detect_target(options.cc, options.patience)
    if target == "cpu":
        return detect_target(options.cc, options.patience)
    if target == CUDA:
        devices = () if options.emulated else ask_driver().devices
        return devices[0] if devices else PORTABLE
    if target.startswith(f"{CUDA}:"):
        return CudaTarget.named(target.removeprefix(f"{CUDA}:"))
    if target not in NAMED:
        names = ", ".join(["auto", "cpu", *NAMED, CUDA, *(f"{CUDA}:{arch}" for arch in NAMED_GPUS)])
        raise UnsupportedOp(f"target {target!r} is not known; choose one of {names}")
    return NAMED[target]


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
