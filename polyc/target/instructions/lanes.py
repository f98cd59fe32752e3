"""The table of vector instructions of CPUs: a new one is a new row.

Loads and stores are spelled by functions of `runtime/polyc_vector.h`, which has intrinsics for them
where the C compiler does not find the instruction by itself.
"""

from __future__ import annotations

import numpy as np

from polyc.target.instructions.rows import (
    LANES,
    Apply,
    Nest,
    Number,
    Operand,
    Spelling,
    VectorInstruction,
)
from polyc.types.element_types import (
    BFLOAT16,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    UINT8,
    scalar_type,
)

COUNT, STRIDE = "count", "stride"

_MASKS = ("avx512bw", "avx512vl")


def _register(name: str, dtype: np.dtype | None = None) -> Operand:
    return Operand(name, dtype, (1,))


def _memory(step: Number = 1) -> Operand:
    return Operand("p", None, (step,), in_memory=True)


def _load(name: str, loop: Number, step: Number, *spellings: Spelling) -> VectorInstruction:
    return VectorInstruction(name, Nest((loop,), _register("v"), _memory(step)), spellings)


def _store(name: str, loop: Number, step: Number, *spellings: Spelling) -> VectorInstruction:
    return VectorInstruction(name, Nest((loop,), _memory(step), _register("v")), spellings)


def _by_need(text: str, function: str, *needs: str) -> tuple[Spelling, Spelling]:
    """The header's function, which is one instruction where the CPU has it, and else several."""
    return Spelling(text, function, needs=needs), Spelling(text, function, is_native=False)


FMA = VectorInstruction(
    "fma",
    Nest(
        (LANES,),
        _register("acc"),
        Apply("mul", (_register("a"), _register("b")), None),
        "add",
    ),
    (
        Spelling("{acc} += {a} * {b};", needs=("fma",)),
        Spelling("{acc} += {a} * {b};", is_native=False),
    ),
)

LOAD = _load("load", LANES, 1, Spelling("{f}({p})", "load"))
MASKED_LOAD = _load("load.masked", COUNT, 1, *_by_need("{f}({p}, {count})", "loadn", *_MASKS))
GATHER = _load("gather", LANES, STRIDE, *_by_need("{f}({p}, {stride})", "loads", "avx512f"))
STORE = _store("store", LANES, 1, Spelling("{f}({p}, {v});", "store"))
MASKED_STORE = _store(
    "store.masked", COUNT, 1, *_by_need("{f}({p}, {v}, {count});", "storen", *_MASKS)
)
SCATTER = _store(
    "scatter", LANES, STRIDE, Spelling("{f}({p}, {v}, {stride});", "stores", is_native=False)
)


VNNI = ("avx512_vnni", "avx_vnni")
"""Features with which one instruction multiplies four bytes, or two numbers of 16 bits, in each
lane, and adds them up."""

_VNNI_LANES = (((VNNI[0],), (4, 8, 16)), ((VNNI[1],), (4, 8)))

_PAIR_LANES = ((("avx512bw",), (4, 8, 16)), (("avx2",), (4, 8)), (("sse2",), (4,)))
"""What the header has vpdpbusd and vpdpwssd for, and where vpmaddwd multiplies pairs."""

_Lanes = tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]

_Known = tuple[tuple[str, ...], tuple[int, ...], bool, int, int]
"""Of a spelling: what it needs, for which lanes, whether it is native, its count and its adds."""


def _dot(name: str, terms: int, a: np.dtype, b: np.dtype, native: _Lanes) -> VectorInstruction:
    """acc[l] += a[terms * l + r] * b[terms * l + r]  for r in 0 .. terms, modulo 2^32"""
    others = tuple(known for known in (*_PAIR_LANES, ((), (2, 4, 8, 16))) if known not in native)
    spellings = tuple(
        (needs, lanes, (needs, lanes) in native, *_count(a, needs))
        for needs, lanes in (*native, *others)
    )
    return _summed(name, terms, (a, b), INT32, "polyc_dot.h", spellings)


def _summed(
    name: str,
    terms: int,
    factors: tuple[np.dtype, np.dtype],
    dtype: np.dtype,
    header: str,
    known: tuple[_Known, ...],
) -> VectorInstruction:
    """A row that adds so many products of factors to each lane of a type."""
    a, b = (Operand(n, factor, (terms, 1)) for n, factor in zip("ab", factors, strict=True))
    product = Apply("mul", (Apply("cast", (a,), dtype), Apply("cast", (b,), dtype)), dtype)
    nest = Nest((LANES, terms), Operand("acc", dtype, (1, 0)), product, "add")
    kinds = "".join(map(scalar_type, factors))
    function = f"pc_dot{terms}_{kinds}_{scalar_type(dtype)}x{{lanes}}"
    text = f"{{acc}} = {function}({{acc}}, {{a}}, {{b}});"
    spellings = (Spelling(text, "", header, *one) for one in known)
    return VectorInstruction(name, nest, tuple(spellings))


def _count(a: np.dtype, needs: tuple[str, ...]) -> tuple[int, int]:
    """Instructions, and how many of them add: some move signs; or bytes are widened, and pairs
    multiplied and added."""
    if needs and needs[0] in VNNI:
        return (2, 0) if a == INT8 else (1, 0)
    return (2, 1) if a == INT16 else (5, 2)


DOT4_U8S8 = _dot("dot4.u8s8", 4, UINT8, INT8, _VNNI_LANES)
DOT4_S8S8 = _dot("dot4.s8s8", 4, INT8, INT8, _VNNI_LANES)
DOT2_S16S16 = _dot("dot2.s16s16", 2, INT16, INT16, (*_VNNI_LANES, *_PAIR_LANES))

BF16 = "avx512_bf16"
"""The feature with which one instruction multiplies two pairs of bfloat16 in each lane."""

DOT2_BF16 = _summed(
    "dot2.bf16",
    2,
    (BFLOAT16, BFLOAT16),
    FLOAT32,
    "polyc_dot_bf16.h",
    (
        ((BF16,), (16,), True, 1, 0),
        ((BF16, "avx512vl"), (4, 8), True, 1, 0),
        ((), (2, 4, 8, 16), False, 4, 0),
    ),
)

ROWS = (
    *(FMA, LOAD, MASKED_LOAD, GATHER, STORE, MASKED_STORE, SCATTER),
    *(DOT4_U8S8, DOT4_S8S8, DOT2_S16S16, DOT2_BF16),
)
