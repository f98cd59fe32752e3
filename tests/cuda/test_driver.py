"""The driver's text: what it launches, with which addresses, and names that must not break out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from polyc.codegen.cuda.driver import (
    DEVICE_ALIGNMENT,
    KERNELS_A_UNIT,
    UnitWriter,
    print_driver,
    print_unit,
    workspace_bytes,
)
from polyc.program.driver_nest import make_driver
from polyc.program.plan import plan_memory
from tests.cuda.programs import SCALE
from tests.programs import HOSTILE, assert_inside_comments, gather_program, scale_program

pytestmark = pytest.mark.cuda


def plan(program):
    return plan_memory(program, DEVICE_ALIGNMENT)


def driver(program):
    planned = plan(program)
    return print_driver(program, planned, make_driver(program, planned, ()))


def test_each_launch_is_one_call_with_literal_addresses():
    text = driver(scale_program())
    head = "int launch_scale(const f32 *x_, const f32 *w_, f32 *y_, int *status, void *stream);"
    assert f'extern "C" {head}' in text
    assert (
        "    /* mul_0 */\n"
        "    PC_STEP(0, launch_scale((const f32 *)(io[0]), (const f32 *)(weights + 0), "
        "(f32 *)(arena + 0), failed + 0, call->stream));" in text
    )
    assert "(const f32 *)(weights + 256), (f32 *)(io[1]), failed + 1, call->stream" in text
    assert "polyc_copy(" not in text
    assert "return 2 + 1;" in text[text.index("polyc_buffer_count") :]


def test_the_workspace_is_the_arena_and_an_int_a_launch():
    program = scale_program()
    assert plan(program).arena_bytes == 256
    assert workspace_bytes(program, plan(program)) == 256 + 2 * 4
    assert "(char *)workspace + 256" in driver(program)


def test_outputs_that_live_elsewhere_are_copied():
    text = driver(gather_program())
    assert "polyc_copy(io[3], io[0], 24, call->stream)" in text
    assert "polyc_copy(io[5], weights + 0, 8, call->stream)" in text


def test_a_unit_holds_several_kernels_and_what_they_use_once():
    program = scale_program()
    names = ["scale", *(f"k{n}" for n in range(KERNELS_A_UNIT))]
    kernels = tuple(replace(program.kernels[0], name=n) for n in names)
    units: dict[str, str] = {}
    writer = UnitWriter(units.__setitem__)
    for kernel in kernels:
        writer.take(kernel, SCALE)
    assert list(units) == ["kernels_0.cu"]
    writer.finish()
    assert list(units) == ["kernels_0.cu", "kernels_1.cu"]
    first = units["kernels_0.cu"]
    assert first.count("#include") == 2
    assert first.count("PC_TYPE f32") == 1
    assert (
        "PC_LAUNCH(scale, pc_dim3(2, 1, 1), pc_dim3(4, 1, 1), 0, stream, x_, w_, y_, status)"
        in (first)
    )
    assert "int launch_k7(" in units["kernels_1.cu"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_inside_their_comment(name):
    assert_inside_comments(driver, name)


def test_a_function_name_that_is_no_identifier_is_refused():
    program = scale_program((1.0,))
    grid = replace(SCALE.grids[0], function="a b")
    with pytest.raises(ValueError, match="not a C identifier"):
        print_unit(program.kernels, {"scale": replace(SCALE, grids=(grid,))})
