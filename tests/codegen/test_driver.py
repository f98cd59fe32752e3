"""The driver's text: what it calls, with which addresses, and names that must not break out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from polyc.codegen.driver import clean, print_driver, scalar_type
from polyc.memory.plan import plan_memory
from tests.programs import gather_program, scale_program


def driver(program):
    return print_driver(program, plan_memory(program))


def test_each_launch_is_one_call_with_literal_addresses():
    text = driver(scale_program())
    assert (
        "void scale(const f32 *restrict, const f32 *restrict, f32 *restrict, pc_team *, int *);"
        in text
    )
    assert (
        "        /* mul_0 */\n"
        "        LAUNCH(0, scale((const f32 *)(io[0]), (const f32 *)(weights + 0), "
        "(f32 *)(arena + 0), &team, &failed[0]));" in text
    )
    assert "(const f32 *)(weights + 64), (f32 *)(io[1]), &team, &failed" in text
    assert "memcpy" not in text


def test_outputs_that_live_elsewhere_are_copied():
    text = driver(gather_program())
    assert "memcpy(io[3], io[0], 24);" in text
    assert "memcpy(io[4], weights + 0, 0);" in text
    assert "memcpy(io[5], weights + 0, 8);" in text
    assert "(const i64 *)(io[1])" in text


@pytest.mark.parametrize("name", ["*/ int x; /*", "a\nb", 'q"\\', "é/*\r"])
def test_hostile_names_stay_inside_their_comment(name):
    program = scale_program((1.0,), name=name)
    launches = (replace(program.launches[0], origin=(name,)),)
    text = driver(replace(program, launches=launches))
    plain = driver(scale_program((1.0,), name="m"))
    assert text.count("*/") == plain.count("*/") == 2
    assert len(text.splitlines()) == len(plain.splitlines())
    assert text.isascii()


def test_clean_and_scalar_types():
    assert clean("conv*/1\n") == "conv_/1_"
    types = ["float32", "float64", "int8", "uint16", "int64", "bool"]
    assert [scalar_type(np.dtype(t)) for t in types] == ["f32", "f64", "i8", "u16", "i64", "b8"]


def test_a_kernel_name_that_is_no_identifier_is_refused():
    program = scale_program((1.0,))
    kernels = (replace(program.kernels[0], name="a b"),)
    launches = (replace(program.launches[0], kernel="a b"),)
    with pytest.raises(ValueError, match="not a C identifier"):
        driver(replace(program, kernels=kernels, launches=launches))
