"""Dot products of bytes, and of 16 bits: the same integers on every machine, by its instruction."""

import ctypes
import subprocess

import numpy as np
import pytest

from polyc.target.machine import host_features
from polyc.types.element_types import scalar_type
from tests.runtime.native import FLAGS, RUNTIME, WARNINGS, Isa, Uses, compiled, preamble
from tests.sampling import thorough

ISAS = (
    (Isa("vnni", ("-march=x86-64-v4", "-mavx512vnni"), (), 16), "avx512_vnni", "vpdpbusd"),
    (Isa("avxvnni", ("-march=x86-64-v3", "-mavxvnni"), (), 8), "avx_vnni", "vpdpbusd"),
    (Isa("avx512", ("-march=x86-64-v4",), (), 16), "avx512bw", "vpmaddwd"),
    (Isa("avx2", ("-march=x86-64-v3",), (), 8), "avx2", "vpmaddwd"),
    (Isa("sse2", (), (), 4), "sse2", "pmaddwd"),
)
LANES = (2, 4, 8, 16)
KINDS = {
    "dot4_u8i8": (np.uint8, np.int8),
    "dot4_i8i8": (np.int8, np.int8),
    "dot2_i16i16": (np.int16, np.int16),
}


def source() -> str:
    """A unit with `dot_<kind>_<lanes>(acc, a, b)` for each kind and number of lanes."""
    uses, texts = Uses(), []
    for lanes in LANES:
        uses.instructions.add(("polyc_dot.h", lanes))
        uses.functions |= {("load", "i32", lanes), ("store", "i32", lanes)}
        for kind in KINDS:
            types, count = [scalar_type(np.dtype(t)) for t in KINDS[kind]], int(kind[3]) * lanes
            a, b = (f"{t}x{count}" for t in types)
            uses.functions |= {("load", t, count) for t in types}
            v = f"i32x{lanes}"
            texts.append(
                f"void dot_{kind}_{lanes}(i32 *acc, const {types[0]} *a, const {types[1]} *b)\n"
                f"{{ pc_store_{v}(acc, pc_{kind}_{v}(pc_load_{v}(acc), pc_load_{a}(a), "
                f"pc_load_{b}(b))); }}"
            )
    return preamble(uses) + "\n".join(texts)


def each_isa(seldom: str):
    """One of them is left to a thorough run."""
    cases = [thorough(*case) if case[0].name == seldom else case for case in ISAS]
    return pytest.mark.parametrize(
        ("isa", "feature", "name"), cases, ids=lambda x: getattr(x, "name", "")
    )


@each_isa(seldom="sse2")
def test_sums_are_exact(tmp_path, isa, feature, name):
    if feature not in (host_features() or ()):
        pytest.skip(f"this CPU has no {feature}")
    library = compiled(source(), isa, tmp_path)
    rng = np.random.default_rng(0)
    for kind, types in KINDS.items():
        for lanes in LANES:
            terms = int(kind[3])
            extremes = [[np.iinfo(t).min, np.iinfo(t).max] for t in types]
            for case in range(6):
                a, b = (
                    np.full(terms * lanes, extremes[k][case >> k & 1], types[k])
                    if case < 4
                    else rng.integers(*extremes[k], terms * lanes, types[k], endpoint=True)
                    for k in (0, 1)
                )
                acc = rng.choice([-(2**31), 2**31 - 1, 7], lanes).astype(np.int32)  # it wraps
                added = (a.astype(np.int64) * b).reshape(lanes, terms).sum(1)
                wanted = (acc + added).astype(np.int32)
                places = (ctypes.c_void_p(x.ctypes.data) for x in (acc, a, b))
                getattr(library, f"dot_{kind}_{lanes}")(*places)
                np.testing.assert_array_equal(acc, wanted)


@each_isa(seldom="avx2")
def test_they_are_the_instruction_of_the_machine(tmp_path, isa, feature, name):
    path = tmp_path / "dot.c"
    path.write_text(source())
    command = ["gcc", *FLAGS, *WARNINGS, *isa.flags, f"-I{RUNTIME}", "-S", "-o", "-", str(path)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert name in text
    assert "pmaddubsw" not in text  # it saturates
