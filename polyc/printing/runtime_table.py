"""What the C runtime headers offer, and the lines that make a translation unit use them.

    pc_<function>_<type>        type: f32, or f32x16 for 16 lanes
    pc_cast_<from>_<to>[x16]    a conversion between two element types

The headers are parametrised by macros and included once for each combination that a kernel uses,
so that a kernel parses in milliseconds. `runtime/polyc.h` describes them from the side of C.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Protocol

from polyc.types.element_types import NARROW

FLOATS = ("f32", "f64")
SIGNED = ("i8", "i16", "i32", "i64")
INTEGERS = (*SIGNED, "u8", "u16", "u32", "u64")
NUMBERS = (*FLOATS, *INTEGERS)
TYPES = (*NUMBERS, "b8")

STORABLE = (*TYPES, *NARROW)
"""With those that are loaded, stored, chosen and converted from and to their wide type only."""

LANES = (2, 4, 8, 16, 32, 64)

Use = tuple[str, str, int]
"""A function, an element type, and the number of lanes (1: scalar)."""

Cast = tuple[str, str, int]
"""The element type converted from, the one converted to, and the number of lanes (1: scalar)."""


class Uses(Protocol):
    """What a translation unit takes from the runtime."""

    @property
    def functions(self) -> Set[Use]: ...

    @property
    def casts(self) -> Set[Cast]: ...

    @property
    def headers(self) -> Set[str]: ...

    @property
    def instructions(self) -> Set[tuple[str, int]]: ...


@dataclass(frozen=True)
class Function:
    """One runtime function: the kinds of its operands and result, and the types it exists for.

    operands: in C order; "T" a value of the type, "b8" a condition (of as many lanes), "bits" an
        unsigned integer of its width, "mask" a signed one, -1 or 0, "lanes" numbers of lanes as
        integers of that width, "scalar" one element, "pointer" to elements, "i64" a count or a
        stride, "floats" as many of f32, "float" one of them.
    returns: "same" (a value of the type), "bool" (b8, as many lanes), "bits", "mask", "scalar",
        "floats" or "none".
    infix: the C operator that floats use in its place, or "".
    family: the header that defines it, `core` being polyc_scalar.h and polyc_vector.h.
    vector_only: there is no scalar function of this name.
    part: the macro that has polyc_vector.h define it: what few kernels use takes long to read.
    """

    operands: tuple[str, ...]
    types: tuple[str, ...]
    returns: str = "same"
    infix: str = ""
    family: str = "core"
    vector_only: bool = False
    part: str = ""

    @property
    def arity(self) -> int:
        return len(self.operands)


def _value(arity: int, types: tuple[str, ...], returns: str = "same", infix: str = "") -> Function:
    return Function(("T",) * arity, types, returns, infix)


def _vector(
    operands: str, types: tuple[str, ...] = STORABLE, returns: str = "same", part: str = ""
) -> Function:
    return Function(tuple(operands.split()), types, returns, vector_only=True, part=part)


_REDUCTIONS, _STRIDES, _TRANSPOSITIONS = "PC_REDUCTIONS", "PC_STRIDES", "PC_TRANSPOSITIONS"
_QUANTISED = "PC_QUANTISED"


_FAMILIES = {
    "exp": "exp exp_normal exp2 expm1 sigmoid sinh cosh",
    "piecewise": "erf tanh",
    "log": "log log2 log1p",
    "arc": "asin acos atan",
    "trig": "sin cos tan",
    "pow": "asinh acosh atanh",
}

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")

_REDUCED = ((NUMBERS, "add mul min max"), (FLOATS, "larger smaller"), (("b8",), "and or"))

FUNCTIONS: Mapping[str, Function] = {
    "add": _value(2, NUMBERS, infix="+"),
    "sub": _value(2, NUMBERS, infix="-"),
    "mul": _value(2, NUMBERS, infix="*"),
    "div": _value(2, NUMBERS, infix="/"),
    **{name: _value(1, NUMBERS) for name in ("neg", "abs", "sign")},
    **{name: _value(2, NUMBERS) for name in ("mod", "fmod", "min", "max")},
    "fma": _value(3, NUMBERS),
    **{
        name: _value(1, FLOATS)
        for name in ("floor", "ceil", "round", "trunc", "sqrt", "reciprocal", "rounded")
    },
    **{name: _value(2, FLOATS) for name in ("copysign", "larger", "smaller")},
    "round_odd": _value(1, ("f64",)),
    **{name: _value(1, ("f32",)) for name in ("power_above", "power_nearest")},
    **{name: _value(1, FLOATS, "bool") for name in ("isnan", "isinf")},
    **{name: _value(2, INTEGERS) for name in ("bitand", "bitor", "bitxor", "shl", "shr")},
    "bitnot": _value(1, INTEGERS),
    "philox": _value(4, ("u32",)),
    **{name: _value(2, ("b8",)) for name in ("and", "or", "xor")},
    "not": _value(1, ("b8",)),
    **{
        name: _value(2, TYPES if name in ("eq", "ne") else NUMBERS, "bool") for name in _COMPARISONS
    },
    "as_bits": Function(("T",), STORABLE, "bits"),
    "from_bits": Function(("bits",), STORABLE),
    "select": Function(("b8", "T", "T"), STORABLE),
    # select_lt(a, b, x, y) = select(lt(a, b), x, y), without the way through b8.
    **{f"select_{name}": _value(4, NUMBERS) for name in _COMPARISONS},
    **{f"mask_{name}": _vector("T T", NUMBERS, "mask") for name in _COMPARISONS},
    "choose": _vector("mask T T", NUMBERS),
    **{
        name: Function(("T",), FLOATS, family=family)
        for family, names in _FAMILIES.items()
        for name in names.split()
    },
    "pow": Function(("T", "T"), NUMBERS, family="pow"),
    "load": _vector("pointer"),
    "loads": _vector("pointer i64", part=_STRIDES),
    "loadn": _vector("pointer i64"),
    "repeat": _vector("pointer i64", part=_STRIDES),
    "pick": _vector("T lanes", part=_STRIDES),
    "store": _vector("pointer T", returns="none"),
    "stores": _vector("pointer T i64", returns="none", part=_STRIDES),
    "storen": _vector("pointer T i64", returns="none"),
    "transpose": _vector("pointer", returns="none", part=_TRANSPOSITIONS),
    "interleave": _vector("pointer i64", returns="none", part=_TRANSPOSITIONS),
    "splat": _vector("scalar"),
    "fill": _vector("T i64 scalar", TYPES),
    "iota": _vector("scalar", NUMBERS),
    "quantised": _vector("floats float scalar", ("i8", "u8"), part=_QUANTISED),
    "levels": _vector("floats float scalar", ("i8", "u8"), "floats", _QUANTISED),
    **{
        f"reduce_{name}": _vector("T", types, "scalar", _REDUCTIONS)
        for types, names in _REDUCED
        for name in names.split()
    },
}
"""Function name -> its operands and result; comments on their values stand in the C headers."""


def is_cast(source: str, target: str) -> bool:
    """Whether the runtime converts from one type to another; a narrow type meets its wide one."""
    if source in NARROW or target in NARROW:
        return NARROW.get(source) == target or NARROW.get(target) == source
    return source != target and {source, target} <= {*TYPES}


def preamble(uses: Uses) -> str:
    """The C lines that define what a kernel uses, in the order that the headers need.

        {("max", "f32", 16)}  ->  #include "polyc.h"
                                  PC_VECTORS(16)
                                  #define PC_TYPE f32
                                  #include "polyc_scalar.h"
                                  #define PC_TYPE f32
                                  #define PC_LANES 16
                                  #include "polyc_vector.h"

    All vector types of each number of lanes that occurs are defined.
    Raises ValueError for a function, type or number of lanes that the runtime does not have.
    """
    _check(uses)
    core, mathematics = _instances(uses.functions)
    widths = {n for _, n in core | mathematics} | {n for _, _, n in uses.casts}
    lines = ['#include "polyc.h"', *(f"PC_VECTORS({n})" for n in sorted(widths - {1}))]
    for element in sorted({t for t, _ in core}, key=STORABLE.index):
        lines += _include("polyc_scalar.h", PC_TYPE=element)
    for element, lanes in sorted(core, key=lambda c: (STORABLE.index(c[0]), c[1])):
        if lanes > 1:
            used = (FUNCTIONS[f].part for f, t, n in uses.functions if (t, n) == (element, lanes))
            parts = dict.fromkeys(sorted({*used} - {""}), "")
            lines += _include("polyc_vector.h", PC_TYPE=element, PC_LANES=lanes, **parts)
    for header, lanes in (*sorted(mathematics), *sorted(uses.instructions)):
        lines += _include(header, PC_LANES=lanes)
    for header in sorted(uses.headers):
        lines += _include(header)
    return "\n".join(lines + _casts(uses)) + "\n"


def cuda_preamble(uses: Uses) -> str:
    """The same for CUDA, where a thread computes scalars, and mathematics is that of its library.

        {("max", "f32", 1)}  ->  #include "polyc_cuda.cuh"
                                 #define PC_TYPE f32
                                 #include "polyc_scalar.h"

    Raises ValueError as `preamble` does, and for vectors.
    """
    _check(uses)
    if any(use[2] > 1 for use in uses.functions | uses.casts):
        raise ValueError("a CUDA thread computes scalars; every number of lanes has to be 1")
    core = {element for _, element, _ in uses.functions}
    library = {e for f, e, _ in uses.functions if e in FLOATS and FUNCTIONS[f].family != "core"}
    lines = [f'#include "{name}"' for name in ("polyc_cuda.cuh", *sorted(uses.headers))]
    for element in sorted(core, key=STORABLE.index):
        lines += _include("polyc_scalar.h", PC_TYPE=element)
    for element in sorted(library):
        lines += _include(_LIBRARY_HEADER, PC_TYPE=element)
    return "\n".join(lines + _casts(uses)) + "\n"


_LIBRARY_HEADER = "polyc_libm.h"
_NARROWEST = {"f32": 4, "f64": 2}


def _casts(uses: Uses) -> list[str]:
    lines = []
    for source, target, lanes in sorted(uses.casts):
        lines += _include("polyc_cast.h", PC_FROM=source, PC_TO=target, PC_LANES=lanes)
    return lines


def _instances(functions: Set[Use]) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    """Arithmetic as (type, lanes), and mathematics as (header, lanes); lanes 1 is scalar."""
    core: set[tuple[str, int]] = set()
    mathematics: set[tuple[str, int]] = set()
    for name, element, lanes in functions:
        family = FUNCTIONS[name].family
        if family == "core" or element in INTEGERS:
            core.add((element, lanes))
            if FUNCTIONS[name].part == _QUANTISED:  # of floats
                core.add(("f32", lanes))
        else:
            # A scalar is lane 0 of the fewest; the vector functions build on those of the core.
            width = _NARROWEST[element] if lanes == 1 else lanes
            mathematics |= {(header, width) for header in _headers(element, family)}
            core.add((element, width))
    return core, mathematics


def _headers(element: str, family: str) -> list[str]:
    """Where a family is defined, and what it is made of, in alphabetical order.

    Of doubles, tanh and erf are made of exponentials, and powers of these and logarithms.
    """
    made_of = {"piecewise": ("exp",), "pow": ("exp", "log", "pow")} if element == "f64" else {}
    return [f"polyc_{element}_{part}.h" for part in made_of.get(family, (family,))]


def _check(uses: Uses) -> None:
    for name, element, lanes in uses.functions:
        function = FUNCTIONS.get(name)
        if function is None or element not in function.types:
            raise ValueError(f"the runtime has no function {name} of {element}; see FUNCTIONS")
        if lanes == 1 and function.vector_only:
            raise ValueError(f"{name} of {element} exists for vectors only, not for lanes = 1")
    for source, target, _ in uses.casts:
        if not is_cast(source, target):
            raise ValueError(f"no cast from {source} to {target}")
    for lanes in {u[2] for u in uses.functions | uses.casts} - {1, *LANES}:
        raise ValueError(f"no vectors of {lanes} lanes; the runtime has 1 and {LANES}")


def _include(header: str, **parameters: str | int) -> list[str]:
    defined = [f"#define {k} {v}".rstrip() for k, v in parameters.items()]
    return [*defined, f'#include "{header}"']
