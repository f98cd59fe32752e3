"""The GPU that code is generated for: described, or detected through the driver.

Sizes are bytes, rates are a second. The mapping reads only these numbers, so code for a GPU that is
not here takes nothing but another `CudaTarget`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from polyc.errors import UnsupportedOp

BUSY = 256
"""Threads that keep a multiprocessor busy, given some work of their own: two warps a scheduler."""

LAUNCH = 4e-6
"""Seconds that a kernel takes besides its work: to begin, and to wait for the last block. On an
H200 those of next to no work take 3.5 to 4.5 us."""

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class CudaTarget:
    """A GPU, as the passes see it.

    arch: "sm_80", or "sm_90a" with what only that architecture has (wgmma); multiprocessors: how
    many; shared_per_block: the most a block may ask for; registers_per_multiprocessor: of 32 bits;
    l2: cache; bandwidth: bytes read and written; flops: operations on float32 where a fused
    multiply-add is two; tensor_flops: the same of tensor cores on 16-bit floats (tf32 does half).
    """

    name: str
    arch: str
    multiprocessors: int
    shared_per_block: int
    shared_per_multiprocessor: int
    threads_per_multiprocessor: int
    blocks_per_multiprocessor: int
    l2: int
    bandwidth: float
    flops: float
    tensor_flops: float
    registers_per_multiprocessor: int = 65536
    threads_per_block: int = 1024
    warp: int = 32

    @property
    def capability(self) -> int:
        """The compute capability as a number: sm_90a -> 90."""
        return int(self.arch.removeprefix("sm_").rstrip("af"))

    def floor(self, flops: int, moved: int, by_tensor_cores: bool = False) -> float:
        """Seconds that so many operations and bytes of arrays take at least: the roofline."""
        rate = self.tensor_flops if by_tensor_cores else self.flops
        return max(flops / rate, moved / self.bandwidth)

    @property
    def has_wgmma(self) -> bool:
        """Whether warpgroups multiply matrices out of shared memory."""
        return self.arch == "sm_90a"

    def lanes(self, dtype: np.dtype) -> int:
        """Elements of the widest load of a thread, which is 128 bits; at least 1."""
        return max(1, 16 // np.dtype(dtype).itemsize)

    @staticmethod
    def named(arch: str) -> CudaTarget:
        """A typical GPU of an architecture, the same wherever it is asked for."""
        if arch not in NAMED_GPUS:
            raise UnsupportedOp(
                f"CUDA architecture {arch!r} is not known; choose one of "
                + ", ".join(f"'cuda:{name}'" for name in NAMED_GPUS)
            )
        return NAMED_GPUS[arch]

    def __str__(self) -> str:
        return f"cuda {self.arch}, {self.name}"


# NVIDIA A100 and H100 whitepapers, tables "Comparison of NVIDIA data center GPUs" (SXM, dense).
_A100 = CudaTarget(
    "A100",
    "sm_80",
    multiprocessors=108,
    shared_per_block=163 * KIB,
    shared_per_multiprocessor=164 * KIB,
    threads_per_multiprocessor=2048,
    blocks_per_multiprocessor=32,
    l2=40 * MIB,
    bandwidth=2.0e12,
    flops=19.5e12,
    tensor_flops=312e12,
)
_H100 = replace(
    _A100,
    name="H100",
    arch="sm_90",
    multiprocessors=132,
    shared_per_block=227 * KIB,
    shared_per_multiprocessor=228 * KIB,
    l2=50 * MIB,
    bandwidth=3.35e12,
    flops=66.9e12,
    tensor_flops=989e12,
)
NAMED_GPUS = {"sm_80": _A100, "sm_90": _H100, "sm_90a": replace(_H100, arch="sm_90a")}

PORTABLE = _A100
"""Stands in where no GPU is: what is compiled for it runs on every newer one."""


@dataclass(frozen=True)
class _Unit:
    """Operations of one multiprocessor in a cycle: on float32, and of its tensor cores."""

    flops: int
    tensor_flops: int


_UNITS = {
    80: _Unit(128, 2048),
    86: _Unit(256, 512),
    87: _Unit(256, 1024),
    89: _Unit(256, 512),
    90: _Unit(256, 4096),
    100: _Unit(256, 8192),
    103: _Unit(256, 8192),
    120: _Unit(256, 1024),
}
"""By capability; for another one, those of the nearest below."""

DRIVER = "libcuda.so.1"
_ATTRIBUTES = {
    "threads_per_block": 1,
    "warp": 10,
    "clock_khz": 13,
    "multiprocessors": 16,
    "memory_clock_khz": 36,
    "memory_bus_bits": 37,
    "l2": 38,
    "threads_per_multiprocessor": 39,
    "major": 75,
    "minor": 76,
    "shared_per_multiprocessor": 81,
    "registers_per_multiprocessor": 82,
    "shared_per_block": 97,
    "blocks_per_multiprocessor": 106,
}
"""CUdevice_attribute of the driver API (cuda.h)."""


@dataclass(frozen=True)
class Driver:
    """What the driver says: its CUDA version (13000 is 13.0), and the GPUs in its order.

    missing: why there is no GPU to use, and the remedy; empty where there is one.
    """

    version: int = 0
    devices: tuple[CudaTarget, ...] = ()
    missing: str = ""


def ask_driver(library: str = DRIVER) -> Driver:
    """The GPUs of this machine, by the driver's library; never fails."""
    try:
        cuda = ctypes.CDLL(library)
    except OSError:
        return Driver(
            missing=f"the CUDA driver ({library}) is not found; install NVIDIA's driver, or in a "
            "container let the GPU in (docker run --gpus all)"
        )
    version, count = ctypes.c_int(), ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    error = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    if error or not count.value:
        return Driver(
            version.value,
            missing=f"the CUDA driver finds no GPU (error {error}); see what nvidia-smi says, and "
            "whether CUDA_VISIBLE_DEVICES hides them",
        )
    devices = tuple(_ask_device(cuda, ordinal) for ordinal in range(count.value))
    return Driver(version.value, devices)


def _ask_device(cuda: ctypes.CDLL, ordinal: int) -> CudaTarget:
    device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    cuda.cuDeviceGet(ctypes.byref(device), ordinal)
    cuda.cuDeviceGetName(name, len(name), device)
    told = {}
    for attribute, number in _ATTRIBUTES.items():
        value = ctypes.c_int()
        cuda.cuDeviceGetAttribute(ctypes.byref(value), number, device)
        told[attribute] = value.value
    return describe(name.value.decode("utf-8", "replace"), told)


def describe(name: str, told: Mapping[str, int]) -> CudaTarget:
    """The target for a GPU with these attributes (the keys of `_ATTRIBUTES`)."""
    capability = 10 * told["major"] + told["minor"]
    nearest = max((c for c in _UNITS if c <= capability), default=min(_UNITS))
    cycles = told["clock_khz"] * 1e3 * told["multiprocessors"]
    return CudaTarget(
        name,
        "sm_90a" if capability == 90 else f"sm_{capability}",
        multiprocessors=told["multiprocessors"],
        shared_per_block=told["shared_per_block"],
        shared_per_multiprocessor=told["shared_per_multiprocessor"],
        threads_per_multiprocessor=told["threads_per_multiprocessor"],
        blocks_per_multiprocessor=told["blocks_per_multiprocessor"],
        l2=told["l2"],
        # Two transfers a cycle of the memory's clock.
        bandwidth=2e3 * told["memory_clock_khz"] * told["memory_bus_bits"] / 8,
        flops=cycles * _UNITS[nearest].flops,
        tensor_flops=cycles * _UNITS[nearest].tensor_flops,
        registers_per_multiprocessor=told["registers_per_multiprocessor"],
        threads_per_block=told["threads_per_block"],
        warp=told["warp"],
    )
