"""Drivers of programs written by hand: what is right is accepted, and each damage refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from polyc.analysis.launches.driver import verify_driver
from polyc.errors import IllegalSchedule
from polyc.program.driver_nest import Address, Call, CopyOut, DriverNode, Repeat, Wait, make_driver
from polyc.program.plan import plan_memory
from polyc.types.ranges import Step
from tests.programs import gather_program, scale_program

Nest = Sequence[DriverNode]


def test_barriers_are_those_of_the_nest() -> None:
    program = scale_program((2.0, 3.0, 4.0))
    plan = plan_memory(program)
    nest = make_driver(program, plan, {1})
    assert verify_driver(nest, program, plan) == {1}
    assert verify_driver((Wait(), *nest), program, plan) == {0, 1}
    assert verify_driver(nest, program, plan, threads=False) == frozenset()


def without(kind: type) -> Callable[[Nest], Nest]:
    return lambda nest: [node for node in nest if not isinstance(node, kind)]


def changed(kind: type, **fields: object) -> Callable[[Nest], Nest]:
    return lambda nest: [replace(n, **fields) if isinstance(n, kind) else n for n in nest]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (without(CopyOut), "output 3 is not copied from where x is"),
        (without(Wait), "output 3 is copied before it is there"),
        (without(Call), "output 3 is copied before it is there"),
        (lambda nest: nest[1:] + nest[:1], "output 3 is copied before it is there"),
        (changed(CopyOut, position=9), "output 9 is none of the caller's"),
        (changed(CopyOut, bytes=20), "not copied from x, or not all of it"),
        (changed(CopyOut, source=Address("io", 1)), "not copied from x, or not all of it"),
        (changed(Call, kernel="other"), r"launch 0 calls other with \[\]"),
        (changed(Call, arguments=(Address("io", 0),) * 3), "launch 0 is not given the place of k"),
        (changed(Call, sizes=("size_n",)), r"launch 0 calls gather with \['size_n'\]"),
        (lambda nest: [*nest[:1], *nest], "launch 0 is made where launch 1 is due"),
        (
            lambda nest: [Repeat(Step.of("step_s", 2), tuple(nest[:1])), *nest[1:]],
            "launch 0 is not in the loop over steps",
        ),
        (lambda nest: nest[:0], "launch 0 is not made"),
    ],
)
def test_what_a_damaged_driver_does_is_told(damage: Callable[[Nest], Nest], said: str) -> None:
    program = gather_program()
    plan = plan_memory(program)
    nest = make_driver(program, plan, ())
    assert sum(isinstance(node, CopyOut) for node in nest) == 3
    verify_driver(nest, program, plan)
    with pytest.raises(IllegalSchedule, match=said):
        verify_driver(damage(nest), program, plan)
