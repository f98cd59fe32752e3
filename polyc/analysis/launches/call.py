"""Proof of a call of a model: the memory that it works in, its driver, and its threads."""

from __future__ import annotations

from collections.abc import Sequence

from polyc.analysis.launches.access import LaunchAccess
from polyc.analysis.launches.arena import verify_memory
from polyc.analysis.launches.barriers import verify_barriers
from polyc.analysis.launches.driver import verify_driver
from polyc.analysis.proof import counted
from polyc.program.driver_nest import DriverNode
from polyc.program.plan import ALIGNMENT, Plan
from polyc.program.program import Program


def verify_call(
    program: Program,
    plan: Plan,
    nest: Sequence[DriverNode],
    touched: Sequence[LaunchAccess],
    *,
    alignment: int = ALIGNMENT,
    threads: bool = True,
) -> list[str]:
    """Prove a driver right, with the memory it is planned for; what was proven, line by line.

    `touched` is what each launch touches (`verify_launches`). The `threads` of a call go through
    all launches together and meet at barriers; without, each launch begins when the last has ended.
    """
    facts = [verify_memory(program, plan, touched, alignment)]
    barriers = verify_driver(nest, program, plan, threads=threads)
    launches = counted(len(program.launches), "launch", "launches")
    facts.append(f"driver: {launches} with the places of their arrays")
    if threads:
        apart = verify_barriers(touched, plan.slots, barriers)
        facts.append(
            f"barriers: {len(barriers)}, and {counted(apart, 'pair')} of launches with none "
            "between them independent"
        )
    return facts
