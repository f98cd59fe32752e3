"""What code is generated for: vector width, registers, caches, cores, and the compiler's flags.

Sizes are bytes. The tile model (`schedule/`, `mapping/`) reads only these numbers, so printing code
for a machine other than this one takes nothing but another `Target`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from polyc.errors import BuildError, UnsupportedOp
from polyc.options import PATIENCE, default_cache_dir
from polyc.target.instructions.lanes import BF16, FMA
from polyc.target.rates import Rates, estimate_rates, read_rates
from polyc.target.vectors import Vectors
from polyc.toolchain.c_compiler import Compiler, find_compiler

AMX = ("amx_tile", "amx_int8", "amx_bf16")

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class Target:
    """A CPU, as the passes see it.

    isa: "avx512", "avx2" or "baseline"; vectors: what its vector unit can do; cores: those that
    this process may use; l1d, l2: caches of one core, l3: shared, in bytes; l1d_ways, l2_ways:
    lines that one set of the cache holds; rates: how fast it computes and moves data; flags: given
    to the C compiler; features: what the CPU must have to run the result, as Linux names them in
    /proc/cpuinfo.
    """

    name: str
    isa: str
    vectors: Vectors
    cores: int
    l1d: int
    l2: int
    l3: int
    l1d_ways: int
    l2_ways: int
    rates: Rates
    flags: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    def lanes(self, dtype: np.dtype) -> int:
        """Elements of a vector register, at least 1."""
        return self.vectors.lanes(np.dtype(dtype).itemsize)

    @staticmethod
    def named(isa: str) -> Target:
        """A typical machine of an instruction set, the same wherever it is asked for."""
        if isa not in NAMED:
            raise UnsupportedOp(
                f"target {isa!r} is not known; choose 'auto', 'cpu' or one of {', '.join(NAMED)}"
            )
        return NAMED[isa]

    def __str__(self) -> str:
        return f"{self.name} {self.isa}, {self.cores} core{'s' if self.cores > 1 else ''}"


_AVX2_FEATURES = ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe")
_AVX512_FEATURES = ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
# gcc's generic tuning keeps loops that it vectorises itself at 256 bits; ours are 512 already.
_WIDE = "-mprefer-vector-width=512"

_BASELINE = Target(
    "cpu",
    "baseline",
    vectors=Vectors.of(16, 16, {"sse2"}),
    cores=8,
    l1d=32 * KIB,
    l2=512 * KIB,
    l3=16 * MIB,
    l1d_ways=8,
    l2_ways=8,
    rates=estimate_rates(16, fused=False, cores=8),
    flags=("-march=x86-64",),
)
_AVX2 = replace(
    _BASELINE,
    isa="avx2",
    vectors=Vectors.of(32, 16, frozenset(_AVX2_FEATURES)),
    rates=estimate_rates(32, fused=True, cores=8),
    flags=("-march=x86-64-v3",),
    features=_AVX2_FEATURES,
)
_AVX512 = replace(
    _AVX2,
    isa="avx512",
    vectors=Vectors.of(64, 32, frozenset({*_AVX2_FEATURES, *_AVX512_FEATURES})),
    l1d=48 * KIB,
    l2=2 * MIB,
    l3=32 * MIB,
    l1d_ways=12,
    l2_ways=16,
    rates=estimate_rates(64, fused=True, cores=8),
    flags=("-march=x86-64-v4", _WIDE),
    features=(*_AVX2_FEATURES, *_AVX512_FEATURES),
)
NAMED = {"avx512": _AVX512, "avx2": _AVX2, "baseline": _BASELINE}


def detect_target(cc: str = "gcc", patience: float = PATIENCE) -> Target:
    """This machine, with flags that the compiler `cc` knows.

    patience: seconds to wait for the compiler's answer. Without archspec's knowledge of the CPU, or
    without a compiler, the best named target that the CPU can run stands in. Rates are those that
    `polyc doctor --measure` left in the cache folder, or else estimates.
    """
    nearest = _nearest(host_features())
    known = _archspec_flags(cc, patience)
    flags, features = known or (nearest.flags, nearest.features)
    if nearest.isa == "avx512" and known:
        flags = (*flags, _WIDE)
    cores = available_cores()
    unit = nearest.vectors
    vectors = Vectors.of(unit.bytes, unit.registers, {*features, *unit.features})
    machine = replace(
        nearest,
        vectors=vectors,
        cores=cores,
        rates=estimate_rates(vectors.bytes, vectors.has(FMA), cores),
        flags=flags,
        features=features,
        **_cache_fields(),
    )
    measured = read_rates(default_cache_dir(), machine)
    return machine if measured is None else replace(machine, rates=measured)


def available_cores() -> int:
    """Cores that this process may run on (not those of the machine)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def host_features() -> frozenset[str] | None:
    """The CPU's instruction set extensions that a process may use, or None where /proc/cpuinfo does
    not say."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                if key.strip() in ("flags", "Features"):
                    return _that_linux_lets(frozenset(value.split()))
    except OSError:
        pass
    return None


def _that_linux_lets(features: frozenset[str]) -> frozenset[str]:
    """Without registers for matrices where a process is not let use them."""
    if AMX[0] in features and not _may_use_tiles():
        return features - {*AMX}
    return features


@functools.cache
def _may_use_tiles() -> bool:
    """Whether Linux gives this process room for them; asking for it is harmless, and lasts.

    arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA), from Linux 5.16 on.
    """
    import ctypes

    try:
        return ctypes.CDLL(None).syscall(158, 0x1023, 18) == 0
    except (OSError, AttributeError):
        return False


def missing_features(features: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `features` that this CPU lacks; empty where it cannot be told."""
    present = host_features()
    return () if present is None else tuple(f for f in features if f not in present)


def _nearest(features: frozenset[str] | None) -> Target:
    for target in NAMED.values():
        if features is not None and set(target.features) <= features:
            return target
    return _BASELINE if os.uname().machine in ("x86_64", "AMD64") else _generic()


def _generic() -> Target:
    """A CPU that is not x86: 128-bit vectors and whatever the compiler finds."""
    vectors = Vectors.of(16, 32, host_features() or frozenset())
    return replace(_BASELINE, vectors=vectors, flags=("-mcpu=native",), features=())


_EXTENSIONS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "avx512_vnni": ("-mavx512vnni", {"gcc": 8, "clang": 6}),
    "avx_vnni": ("-mavxvnni", {"gcc": 11, "clang": 12}),
    BF16: ("-mavx512bf16", {"gcc": 10, "clang": 9}),
    "amx_tile": ("-mamx-tile", {"gcc": 11, "clang": 11}),
    "amx_int8": ("-mamx-int8", {"gcc": 11, "clang": 11}),
    "amx_bf16": ("-mamx-bf16", {"gcc": 11, "clang": 11}),
}
"""What a CPU may have besides its microarchitecture's instructions, as far as rows need it: the
compiler's flag for it, and the first versions of compilers that know that."""


def _extensions(
    compiler: Compiler, present: frozenset[str], named: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """(feature, flag) of what this CPU has and its microarchitecture is not known for."""
    for feature, (flag, versions) in _EXTENSIONS.items():
        oldest = versions.get(compiler.kind)
        version = int(compiler.version.partition(".")[0] or 0)
        if feature in present and feature not in named and oldest and version >= oldest:
            yield feature, flag


def _archspec_flags(cc: str, patience: float) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Compiler flags and required features for this CPU, or None if either side is unknown."""
    try:
        import archspec.cpu

        compiler: Compiler = find_compiler(cc, patience)
        host = archspec.cpu.host()
        flags = host.optimization_flags(compiler.kind, compiler.version).split()
    except (ImportError, BuildError):
        return None
    except archspec.cpu.UnsupportedMicroarchitecture:
        return None
    present = host_features() or frozenset()
    # What the microarchitecture's name stands for, and Linux refuses.
    refused = tuple(f"-mno-{f.replace('_', '-')}" for f in AMX if f in host.features - present)
    more = dict(_extensions(compiler, present, host.features))
    features = (host.features & present) | more.keys()
    return ((*flags, *more.values(), *refused), tuple(sorted(features))) if flags else None


def _cache_fields(folder: Path | None = None) -> dict[str, Any]:
    """Fields of `Target` for the caches that Linux describes, of the first core allowed.

    folder: one `index*` folder a cache, with files level, type, size ("32K") and
    ways_of_associativity; by default that of the core in /sys.
    """
    names = {"1 Data": "l1d", "2 Unified": "l2", "3 Unified": "l3"}
    fields: dict[str, int] = {}
    for cache in sorted((folder or _cache_folder()).glob("index*")):
        try:
            told = {
                file: (cache / file).read_text(encoding="utf-8").strip()
                for file in ("level", "type", "size", "ways_of_associativity")
            }
            name = names.get(f"{told['level']} {told['type']}")
            size, ways = _parse_size(told["size"]), int(told["ways_of_associativity"])
        except (OSError, ValueError):
            continue  # virtual machines leave some out
        if name and size > 0:
            fields[name] = size
        if name in ("l1d", "l2") and ways > 0:
            fields[f"{name}_ways"] = ways
    return fields


def _cache_folder() -> Path:
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}
    return Path(f"/sys/devices/system/cpu/cpu{min(allowed)}/cache")


def _parse_size(text: str) -> int:
    """ "32K" -> 32768; ValueError if it is no size."""
    units = {"K": KIB, "M": MIB}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text)
