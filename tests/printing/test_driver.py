"""The driver's text: what it calls, with which addresses, and names that must not break out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from polyc.names import comment
from polyc.printing.driver import SMALL_PROGRAM, is_worth_sharing, print_driver
from polyc.program.driver_nest import make_driver
from polyc.program.plan import plan_memory
from polyc.types.element_types import scalar_type
from tests.programs import HOSTILE, assert_inside_comments, gather_program, scale_program


def driver(program, **choices):
    plan = plan_memory(program)
    return print_driver(program, plan, make_driver(program, plan, {1}), **choices)


def test_each_launch_is_one_call_with_literal_addresses():
    text = driver(scale_program())
    assert (
        "void scale(const f32 *restrict, const f32 *restrict, f32 *restrict, pc_thread *, int *);"
        in text
    )
    assert (
        "    /* mul_0 */\n"
        "    LAUNCH(0, scale((const f32 *)(io[0]), (const f32 *)(weights + 0), "
        "(f32 *)(arena + 0), pc_self, &call->failed[0]));" in text
    )
    assert "(const f32 *)(weights + 64), (f32 *)(io[1]), pc_self, &call->failed" in text
    assert "memcpy" not in text


def test_barriers_stand_where_they_are_asked_for():
    text = driver(scale_program())
    body = text[text.index("void launches") : text.index("#define PC_CALL")]
    lines = [line.strip() for line in body.splitlines()]
    marks = [line.partition("(")[0] for line in lines if "(pc_self)" in line or "LAUNCH" in line]
    assert marks == ["LAUNCH", "pc_barrier", "LAUNCH"]


def test_times_of_a_call_do_not_add_to_those_of_the_last():
    text = driver(scale_program())
    assert "for (int k = 0; k < 2 && seconds; k++)\n        seconds[k] = 0;" in text


def test_choices_about_threads():
    program = scale_program()
    assert not is_worth_sharing(program)
    large = replace(program.launches[0], flops=SMALL_PROGRAM)
    assert is_worth_sharing(replace(program, launches=(large,)))
    assert "threads = 1;" in driver(program, shared=False)
    assert "threads = 1;" not in driver(program)
    assert "#define PC_PINNED 1" in driver(program, pinned=True)
    assert "PC_PINNED" not in driver(program)


def test_outputs_that_live_elsewhere_are_copied():
    text = driver(gather_program())
    assert "memcpy(io[3], io[0], 24);" in text
    assert "memcpy(io[4], weights + 0, 0);" in text
    assert "memcpy(io[5], weights + 0, 8);" in text
    assert "(const i64 *)(io[1])" in text


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_inside_their_comment(name):
    assert_inside_comments(driver, name)


def test_clean_and_scalar_types():
    assert comment("conv*/1\n") == "conv_/1_"
    types = ["float32", "float64", "int8", "uint16", "int64", "bool"]
    assert [scalar_type(np.dtype(t)) for t in types] == ["f32", "f64", "i8", "u16", "i64", "b8"]


def test_a_kernel_name_that_is_no_identifier_is_refused():
    program = scale_program((1.0,))
    kernels = (replace(program.kernels[0], name="a b"),)
    launches = (replace(program.launches[0], kernel="a b"),)
    with pytest.raises(ValueError, match="not a C identifier"):
        driver(replace(program, kernels=kernels, launches=launches))
