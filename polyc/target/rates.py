"""How fast a machine computes and moves data: estimated from its description, or measured.

`polyc doctor --measure` measures once (`target/measure.py`) and keeps the result in the cache
folder under the machine's fingerprint; from then on `detect_target` finds it there. Before that the
estimates are those of an ordinary server core, but for the third-level cache, which differs most:
the first compilation looks how fast it is (`target/glance.py`), which takes milliseconds.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from polyc.files.regular import read_json, write_json

if TYPE_CHECKING:
    from polyc.target.machine import Target

FORMAT = 1
DIGITS = 3
"""Significant digits that are kept: a measurement repeats no better."""

_GHZ = 3e9
_GB = 1e9


@dataclass(frozen=True)
class Rates:
    """What a machine does in a second, with data of float32.

    flops: operations of one core, where a fused multiply-add is two; l1, l2, l3: bytes that one
    core reads from each cache; read, copy: bytes between one core and memory when it reads only,
    and when it writes as much as it reads (both counted); read_all, copy_all: the same for all
    cores together; barrier: seconds that all cores take to meet; latency: seconds from one
    multiply-add to another that needs its result; measured: all of them, or else
    estimated, `l3` and `pairs` perhaps excepted. pairs: products of bfloat16 that are summed up
    while one of float32 is, if an instruction takes two in each lane: 2 on a Zen 4, 1 where such an
    instruction has one unit, and a multiply-add two.
    """

    flops: float
    l1: float
    l2: float
    l3: float
    read: float
    read_all: float
    copy: float
    copy_all: float
    barrier: float
    latency: float
    measured: bool = False
    pairs: float = 2.0

    def __str__(self) -> str:
        caches = ", ".join(f"{rate / _GB:.0f}" for rate in (self.l1, self.l2, self.l3))
        return (
            f"{self.flops / 1e9:.0f} Gflop/s a core; GB/s: caches {caches} a core, memory read "
            f"{self.read / _GB:.0f} by one core and {self.read_all / _GB:.0f} by all, copied "
            f"{self.copy / _GB:.0f} and {self.copy_all / _GB:.0f}; barrier "
            f"{self.barrier * 1e6:.2f} us; a multiply-add {self.latency * 1e9:.2f} ns"
        )


_NAMES = tuple(f.name for f in dataclasses.fields(Rates) if f.name != "measured")


def estimate_rates(simd_bytes: int, fused: bool, cores: int) -> Rates:
    """An ordinary server core: 3 GHz, two vector units whose results take four cycles, a vector (or
    32 bytes) loaded a cycle, 16 bytes from the third-level cache.

    fused: whether a multiply-add is one instruction; without it a multiplication and an addition
    start each cycle.
    """
    lanes, load = simd_bytes // 4, max(simd_bytes, 32)
    one, most = 20 * _GB, 40 * _GB
    together = min(cores * one, max(most, cores * 4 * _GB))
    return Rates(
        flops=lanes * (4 if fused else 2) * _GHZ,
        l1=load * _GHZ,
        l2=load / 2 * _GHZ,
        l3=16 * _GHZ,
        read=one,
        read_all=together,
        copy=one,
        copy_all=together,
        barrier=1e-6 if cores > 1 else 0.0,
        latency=4 / _GHZ,
    )


def rates_file(folder: Path, target: Target) -> Path:
    """Where the rates of this machine are kept: <cache folder>/machine/<fingerprint>.json."""
    return folder / "machine" / f"{machine_fingerprint(target)}.json"


def read_rates(folder: Path, target: Target) -> Rates | None:
    """The target's rates with what was measured on this machine in place of estimates.

    None if nothing was; a file without sense is told and ignored.
    """
    file = rates_file(folder, target)
    try:
        return _parse(read_json(file, FORMAT), target.rates)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        warnings.warn(
            f"{file} does not hold a machine's rates ({type(error).__name__}: {error}) and is "
            "ignored; `polyc doctor --measure` writes it anew",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


def known_rates(folder: Path, target: Target) -> frozenset[str] | None:
    """Which rates of this machine are kept; None if something is that cannot be read."""
    try:
        return frozenset(read_json(rates_file(folder, target), FORMAT)) - {"format"}
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_rates(
    folder: Path, target: Target, rates: Rates, seen: Collection[str] = ("l3",)
) -> Path:
    """Keep the rates of this machine, rounded to DIGITS; the file.

    seen: of those that are not `measured`, what one has had a look at.
    """
    file = rates_file(folder, target)
    kept = [name for name in _NAMES if rates.measured or name in seen]
    write_json(file, FORMAT, {name: _rounded(getattr(rates, name)) for name in kept})
    return file


def machine_fingerprint(target: Target) -> str:
    """Of what decides the rates: the CPU's name, its vectors and caches, and the cores allowed."""
    sizes = (target.isa, target.vectors.bytes, target.cores, target.l1d, target.l2, target.l3)
    return hashlib.sha256(repr((_cpu_name(), *sizes)).encode()).hexdigest()[:16]


def _parse(data: dict[str, object], estimates: Rates) -> Rates:
    names = set(data) - {"format"}
    for name in {"l3"} - names or names - {*_NAMES}:
        raise KeyError(name)
    values = {name: float(data[name]) for name in names}  # type: ignore[arg-type]
    for name, value in values.items():
        # One core meets itself in no time; everything else takes some.
        if not (math.isfinite(value) and (value > 0 or (name == "barrier" and value == 0))):
            raise ValueError(f"{name} is {value}")
    return dataclasses.replace(estimates, **values, measured=names >= {*_NAMES} - {"pairs"})


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _cpu_name() -> str:
    """The CPU's family, model and name as Linux tells them; empty where it does not."""
    wanted = ("vendor_id", "cpu family", "model", "model name", "stepping")
    found: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                key, _, value = line.partition(":")
                if key.strip() in wanted:
                    found.setdefault(key.strip(), value.strip())
                elif not line.strip():
                    break  # the first core stands for all
    except OSError:
        pass
    return " ".join(found.values())
