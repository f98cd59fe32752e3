"""The proof of a kernel: what is printed computes what the scop says, and touches nothing else.

One kernel's loops are judged, before they are unrolled and vectorised, by set algebra on relations
that are rebuilt from the loops alone; nothing is taken from the plan that made them. What launches
compute together, the memory that they share, and which of them may run at the same time is judged
in `launches/`.
"""

from __future__ import annotations

from collections.abc import Mapping

from polyc.analysis.accesses import Surroundings, compute_accesses
from polyc.analysis.background import check_copies
from polyc.analysis.block_barriers import check_block_barriers
from polyc.analysis.conflicts import compute_conflicts
from polyc.analysis.dependences import maps
from polyc.analysis.held import check_held
from polyc.analysis.legality import check_completeness, check_order
from polyc.analysis.locality import check_locals
from polyc.analysis.near import check_near
from polyc.analysis.products import check_products
from polyc.analysis.proof import Proof
from polyc.analysis.threads import Phases
from polyc.analysis.timemap import Execution, compute_executions
from polyc.analysis.witness import illegal, show_first_pair
from polyc.loopnest.nodes import For, Kernel, walk_nodes
from polyc.memory.storage import Storage
from polyc.scop.scop import ORDERLESS, Scop


def verify_kernel(
    kernel: Kernel,
    scop: Scop,
    storages: Mapping[str, Storage],
    parameters: Mapping[str, str],
    team: bool = False,
    any_order: bool = False,
) -> Proof:
    """Prove a kernel's loops right, or raise IllegalSchedule with a witness.

    A `team` goes through the loops of a kernel for CPUs, and so they say who of it does what. Where
    declared reductions may add up in `any_order`, one after another is all that is asked of them.

    `scop` is the cluster that the kernel executes; `parameters` maps its arrays to the kernel's
    parameters, whose shapes are those of their `storages`. An array that is not in it lives in
    locals. What has to stay in order is found here, and not asked of who made the schedule. Proven,
    in this order:

        completeness   every instance of every statement is executed exactly once
        order          no dependence runs backwards, or is carried by a loop that may not carry it
        accesses       every place is  storage . access . instance,  and in bounds
        initialised    every read of a private array comes after a write
        locals         private arrays keep their values
        near           so do those that may be near
        held           what a loop keeps in registers, nothing else in it touches
        copies         what is copied in the background has arrived where it is read
        barriers       threads of a block do not meet without one between, and all reach each
    """
    around = Surroundings(kernel, scop, storages, parameters)
    _check_parameters(around)
    if team and not kernel.body.team:
        raise around.illegal("it does not say who of a team of threads does what")
    executions: dict[str, list[Execution]] = {s.name: [] for s in scop.statements}
    for execution in compute_executions(kernel, scop):
        executions[execution.statement.name].append(execution)
    statements = check_completeness(kernel.name, scop, executions)
    dependences = compute_conflicts(scop)
    orderless = {s.name for s in scop.statements if s.reduction in ORDERLESS}
    ordered = check_order(kernel.name, executions, dependences, orderless, any_order)
    accesses = [
        access
        for runs in executions.values()
        for run in runs
        for access in compute_accesses(around, run)
    ]
    for source, array, reads in maps(dependences.uninitialised):
        param = around.param(array)
        if param is not None and not param.inside:
            continue  # it may come from an earlier launch: `verify_launches` looks
        rule = f"{source} reads {array} before it is written"
        raise illegal(f"kernel {kernel.name}", rule, show_first_pair(reads))
    check_copies(around, executions, dependences)
    check_products(around, executions)
    check_held(around, accesses)
    check_near(around, executions, accesses, dependences)
    barriers = 0
    if any(isinstance(n, For) and n.kind == "block" for n in walk_nodes(kernel.body)):
        barriers = check_block_barriers(kernel.body, Phases(around, accesses))
    kinds = [node.kind for node in walk_nodes(kernel.body) if isinstance(node, For)]
    return Proof(
        kernel=kernel.name,
        statements=statements,
        dependences=ordered,
        accesses=len(accesses),
        parallel_loops=sum(kind in ("parallel", "block", "thread") for kind in kinds),
        vector_loops=kinds.count("vector") + kinds.count("simd"),
        locals=check_locals(around, executions, accesses, dependences),
        barriers=barriers,
    )


def _check_parameters(around: Surroundings) -> None:
    """Parameters have the type and the shape of what is stored in them, and hold one array each."""
    for array in around.parameters:
        param = around.param(array)
        assert param is not None
        stored = around.storages[array].shape
        if param.shape != stored:
            shapes = f"{list(param.shape)}, but {array} is stored as {list(stored)}"
            raise around.illegal(f"parameter {param.name} has shape {shapes}")
        if param.dtype != around.scop.arrays[array].dtype:
            types = f"{param.dtype}, but {array} is of {around.scop.arrays[array].dtype}"
            raise around.illegal(f"parameter {param.name} has type {types}")
    if len(set(around.parameters.values())) < len(around.parameters):
        raise around.illegal("two arrays share a parameter")
