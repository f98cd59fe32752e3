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
from polyc.types.element_types import INT8, INT32, UINT8

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
"""Features with which one instruction multiplies four bytes in each lane, and adds them up."""

_DOT4 = (
    ((VNNI[0],), (4, 8, 16)),
    ((VNNI[1],), (4, 8)),
    (("avx512bw",), (4, 8, 16)),
    (("avx2",), (4, 8)),
    (("sse2",), (4,)),
    ((), (2, 4, 8, 16)),
)
"""What the header has for so many lanes: vpdpbusd, then vpmaddwd, then a loop over the lanes."""


def _dot4(name: str, a: np.dtype, function: str) -> VectorInstruction:
    """acc[l] += a[4 l + r] * b[4 l + r]  for r in 0 .. 4, modulo 2^32"""
    factors = (Operand("a", a, (4, 1)), Operand("b", INT8, (4, 1)))
    product = Apply("mul", tuple(Apply("cast", (f,), INT32) for f in factors), INT32)
    nest = Nest((LANES, 4), Operand("acc", INT32, (1, 0)), product, "add")
    text = f"{{acc}} = pc_{function}_i32x{{lanes}}({{acc}}, {{a}}, {{b}});"
    spellings = (
        Spelling(text, "", "polyc_dot.h", needs, lanes, is_native=bool(needs))
        for needs, lanes in _DOT4
    )
    return VectorInstruction(name, nest, tuple(spellings))


DOT4_U8S8 = _dot4("dot4.u8s8", UINT8, "dot4_u8i8")
DOT4_S8S8 = _dot4("dot4.s8s8", INT8, "dot4_i8i8")

ROWS = (FMA, LOAD, MASKED_LOAD, GATHER, STORE, MASKED_STORE, SCATTER, DOT4_U8S8, DOT4_S8S8)
