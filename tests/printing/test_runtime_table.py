"""The preamble names each header once, in order, and all that it declares compiles cleanly."""

import subprocess
from dataclasses import dataclass

import pytest

from polyc.printing.runtime_table import FUNCTIONS, TYPES, Cast, Use, cuda_preamble, preamble
from tests.runtime.native import FLAGS, ISAS, RUNTIME, WARNINGS
from tests.sampling import sampled


@dataclass(frozen=True)
class Uses:
    functions: frozenset[Use] = frozenset()
    casts: frozenset[Cast] = frozenset()
    headers: frozenset[str] = frozenset()
    instructions: frozenset[tuple[str, int]] = frozenset()


def test_vector_functions_come_after_the_scalar_ones_of_their_type():
    uses = Uses(frozenset({("max", "f32", 16), ("min", "f32", 1)}))
    assert preamble(uses).splitlines() == [
        '#include "polyc.h"',
        "PC_VECTORS(16)",
        "#define PC_TYPE f32",
        '#include "polyc_scalar.h"',
        "#define PC_TYPE f32",
        "#define PC_LANES 16",
        '#include "polyc_vector.h"',
    ]


def test_scalar_mathematics_brings_its_four_lanes():
    lines = preamble(Uses(frozenset({("exp", "f32", 1), ("sigmoid", "f32", 1)}))).splitlines()
    assert "PC_VECTORS(4)" in lines
    assert lines[-2:] == ["#define PC_LANES 4", '#include "polyc_f32_exp.h"']
    assert lines.count('#include "polyc_vector.h"') == 1


def test_casts_define_the_vector_types_that_they_name():
    lines = preamble(Uses(casts=frozenset({("f32", "i8", 8)}))).splitlines()
    assert lines[1] == "PC_VECTORS(8)"
    assert lines[-1] == '#include "polyc_cast.h"'


def test_integer_power_needs_no_mathematics():
    assert "math" not in preamble(Uses(frozenset({("pow", "i32", 4)})))


@pytest.mark.parametrize(
    ("uses", "message"),
    [
        (Uses(frozenset({("gelu", "f32", 1)})), "no function gelu of f32"),
        (Uses(frozenset({("exp", "i32", 1)})), "no function exp of i32"),
        (Uses(frozenset({("load", "f32", 1)})), "vectors only"),
        (Uses(frozenset({("add", "f32", 3)})), "3 lanes"),
        (Uses(casts=frozenset({("f32", "f32", 1)})), "no cast from f32 to f32"),
    ],
)
def test_what_the_runtime_lacks_is_refused_by_name(uses, message):
    with pytest.raises(ValueError, match=message):
        preamble(uses)


@pytest.mark.parametrize("isa", sampled(ISAS, often=ISAS[:1]), ids=lambda isa: isa.name)
def test_everything_there_is_compiles(isa, tmp_path):
    """Every function and cast of every type, in all numbers of lanes, in one unit."""
    lanes = (1, 2, 4, 8, 16, 32, 64)
    functions = {
        (name, element, n)
        for name, function in FUNCTIONS.items()
        for element in function.types
        for n in lanes
        if n > 1 or not function.vector_only
    }
    casts = {(a, b, n) for a in TYPES for b in TYPES if a != b for n in lanes}
    source = tmp_path / "all.c"
    source.write_text(preamble(Uses(frozenset(functions), frozenset(casts))))
    command = ["gcc", *FLAGS, *WARNINGS, *isa.flags, f"-I{RUNTIME}", "-c", str(source)]
    run = subprocess.run([*command, "-o", str(tmp_path / "all.o")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_every_function_of_the_table_is_declared(tmp_path):
    """Naming each one fails to compile where a header lacks it."""
    functions = {
        (name, element, n)
        for name, function in FUNCTIONS.items()
        for element in function.types
        for n in (1, 8)
        if (n > 1 or not function.vector_only) and not (function.infix and element[0] == "f")
    }
    suffix = {1: "", 8: "x8"}
    names = [f"pc_{name}_{element}{suffix[n]}" for name, element, n in sorted(functions)]
    source = tmp_path / "names.c"
    table = f"void *const table[] = {{{', '.join(names)}}};\n"
    source.write_text(preamble(Uses(frozenset(functions))) + table)
    command = ["gcc", "-std=gnu11", "-Wno-psabi", f"-I{RUNTIME}", "-fsyntax-only", str(source)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_cuda_takes_its_mathematics_from_the_library():
    uses = Uses(frozenset({("exp", "f32", 1)}), frozenset({("f32", "bf16", 1)}))
    assert cuda_preamble(uses).splitlines() == [
        '#include "polyc_cuda.cuh"',
        "#define PC_TYPE f32",
        '#include "polyc_scalar.h"',
        "#define PC_TYPE f32",
        '#include "polyc_libm.h"',
        "#define PC_FROM f32",
        "#define PC_TO bf16",
        "#define PC_LANES 1",
        '#include "polyc_cast.h"',
    ]


def test_cuda_has_no_vector_functions():
    with pytest.raises(ValueError, match="scalars"):
        cuda_preamble(Uses(frozenset({("exp", "f32", 4)})))
