"""Compiles loops over the runtime's functions for each instruction set and calls them on arrays."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import archspec.cpu
import numpy as np

from polyc.printing.runtime_table import FUNCTIONS, preamble
from polyc.types.element_types import COMPILED, is_narrow, scalar_type

RUNTIME = Path(__file__).parents[2] / "runtime"
FLAGS = [
    "-std=gnu11",
    "-O3",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-Wno-psabi",
]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]

DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "b8": np.bool_,
    **{f"i{n}": np.dtype(f"int{n}") for n in (8, 16, 32, 64)},
    **{f"u{n}": np.dtype(f"uint{n}") for n in (8, 16, 32, 64)},
    **{scalar_type(dtype): dtype for dtype in COMPILED if is_narrow(dtype)},
}


@dataclass(frozen=True)
class Isa:
    """An instruction set: its flags, what the processor must have, its number of f32 lanes."""

    name: str
    flags: tuple[str, ...]
    features: tuple[str, ...]
    lanes: int

    @property
    def runs_here(self) -> bool:
        return all(f in archspec.cpu.host() for f in self.features)


ISAS = (
    Isa("avx512", ("-mavx512f", "-mfma", "-mf16c"), ("avx512f", "fma", "f16c"), 16),
    Isa("avx2", ("-mavx2", "-mfma", "-mf16c"), ("avx2", "fma", "f16c"), 8),
    Isa("baseline", (), (), 4),
)
RUNNABLE = tuple(isa for isa in ISAS if isa.runs_here)


@dataclass
class Uses:
    """What a source calls, gathered while it is written."""

    functions: set[tuple[str, str, int]] = field(default_factory=set)
    casts: set[tuple[str, str, int]] = field(default_factory=set)
    headers: set[str] = field(default_factory=set)
    instructions: set[tuple[str, int]] = field(default_factory=set)


def compiled(source: str, isa: Isa, folder: Path) -> ctypes.CDLL:
    """The shared library of a C source, with every warning an error."""
    path = folder / f"{isa.name}.c"
    path.write_text(source)
    library = path.with_suffix(".so")
    command = ["gcc", *FLAGS, *WARNINGS, *isa.flags, f"-I{RUNTIME}", "-shared", "-fPIC"]
    subprocess.run([*command, str(path), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def kind(element: str, lanes: int) -> str:
    """f32 or f32x16."""
    return element if lanes == 1 else f"{element}x{lanes}"


def function_loops(functions: Iterable[tuple[str, str, int]]) -> str:
    """A unit with, for each value function, `apply_<function>_<type>(operands…, out, n)`."""
    uses = Uses()
    loops = [_function_loop(*f, uses) for f in functions]
    return preamble(uses) + "\n".join(loops)


def cast_loops(casts: Iterable[tuple[str, str, int]]) -> str:
    """A unit with, for each conversion, `apply_cast_<from>_<to>(operand, out, n)`."""
    uses = Uses()
    loops = []
    for source, target, lanes in casts:
        uses.casts.add((source, target, lanes))
        name = f"cast_{source}_{kind(target, lanes)}"
        loops.append(_loop(name, f"pc_{name}", [source], target, lanes, uses))
    return preamble(uses) + "\n".join(loops)


def apply(library: ctypes.CDLL, name: str, result: str, *operands: np.ndarray) -> np.ndarray:
    """out = name(*operands), element by element; sizes must be multiples of 64, the most lanes."""
    assert operands[0].size % 64 == 0
    operands = tuple(np.ascontiguousarray(o) for o in operands)
    out = np.zeros(operands[0].size, DTYPES[result])
    addresses = [ctypes.c_void_p(a.ctypes.data) for a in (*operands, out)]
    getattr(library, f"apply_{name}")(*addresses, ctypes.c_int64(out.size))
    return out


def value_functions(element: str) -> Iterator[str]:
    """The functions of a type that map values to values: not memory, not reductions."""
    for name, function in FUNCTIONS.items():
        if element in function.types and not function.vector_only:
            yield name


def _function_loop(name: str, element: str, lanes: int, uses: Uses) -> str:
    function = FUNCTIONS[name]
    bits = f"u{8 * np.dtype(DTYPES[element]).itemsize}"
    operands = [{"b8": "b8", "bits": bits}.get(o, element) for o in function.operands]
    result = {"bool": "b8", "bits": bits}.get(function.returns, element)
    callee = f"pc_{name}_{kind(element, lanes)}"
    if function.infix and element in ("f32", "f64"):
        callee = function.infix
    else:
        uses.functions.add((name, element, lanes))
    return _loop(f"{name}_{kind(element, lanes)}", callee, operands, result, lanes, uses)


def _loop(name: str, callee: str, operands: list[str], result: str, lanes: int, uses: Uses) -> str:
    values = [f"a{i}[i]" for i in range(len(operands))]
    store = "out[i] = {};"
    if lanes > 1:
        uses.functions |= {("load", o, lanes) for o in operands} | {("store", result, lanes)}
        values = [f"pc_load_{o}x{lanes}(a{i} + i)" for i, o in enumerate(operands)]
        store = f"pc_store_{result}x{lanes}(out + i, {{}});"
    called = f" {callee} ".join(values) if len(callee) == 1 else f"{callee}({', '.join(values)})"
    parameters = [f"const {o} *restrict a{i}" for i, o in enumerate(operands)]
    return (
        f"void apply_{name}({', '.join(parameters)}, {result} *restrict out, i64 n)\n"
        f"{{ for (i64 i = 0; i < n; i += {lanes}) {store.format(called)} }}"
    )
