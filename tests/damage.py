"""Compiled models with what their proofs were given, and ways to damage their loops."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import pytest

from polyc import Graph
from polyc.analysis.launches import verify as proving
from polyc.analysis.launches.access import LaunchAccess, verify_program
from polyc.analysis.proof import Proof
from polyc.analysis.verify import verify_kernel
from polyc.backends import common
from polyc.errors import IllegalSchedule
from polyc.loopnest.index import var, variables
from polyc.loopnest.nodes import Assign, Block, For, If, Kernel, LoopExpr, Node, Read, walk_nodes
from polyc.loopnest.substitute import substitute_block
from polyc.memory.storage import Storage
from polyc.options import Options
from polyc.pipeline import Compiled, run_pipeline
from polyc.poly.affine import coefficients, outputs
from polyc.scop.expr import Call, Cast
from polyc.scop.scop import Scop
from polyc.target.machine import Target
from polyc.trace import Trace

WITNESS = re.compile(r"e\.g\. \w+\[")
"""An instance or element that shows what is wrong:  e.g. S[4, 4] -> S[5, 3]"""

# -- what was proven, ready to be proven again ----------------------------------------------------


@dataclass(frozen=True)
class Case:
    """The arguments of a kernel's proof."""

    kernel: Kernel
    scop: Scop
    storages: dict[str, Storage]
    parameters: dict[str, str]
    team: bool

    def verify(self) -> Proof:
        return verify_kernel(self.kernel, self.scop, self.storages, self.parameters, self.team)

    def with_body(self, body: Block) -> Case:
        return replace(self, kernel=replace(self.kernel, body=body))


@dataclass(frozen=True)
class Proven:
    """A compiled model with what its proofs were given."""

    compiled: Compiled
    cases: tuple[Case, ...]
    launches: tuple[LaunchAccess, ...]
    existing: frozenset[str]


@cache
def prove(build: Callable[[], Graph]) -> Proven:
    """Compile a model; note what is proven on the way."""
    cases: list[Case] = []
    programs: list[tuple[tuple[LaunchAccess, ...], frozenset[str]]] = []

    def note_kernel(kernel, scop, storages, parameters, team):
        cases.append(Case(kernel, scop, dict(storages), dict(parameters), team))
        return verify_kernel(kernel, scop, storages, parameters, team)

    def note_program(launches, initialised):
        programs.append((tuple(launches), frozenset(initialised)))
        return verify_program(launches, initialised)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common, "verify_kernel", note_kernel)
        patch.setattr(proving, "verify_program", note_program)
        compiled = run_pipeline(build(), Target.named("avx512"), Options(), Trace())
    ((launches, existing),) = programs
    return Proven(compiled, tuple(cases), launches, existing)


def check_refused(case: Case, *parts: str, witness: bool = True) -> None:
    """Assert that a proof fails, in a message that has a witness and these parts."""
    with pytest.raises(IllegalSchedule) as error:
        case.verify()
    message = str(error.value)
    assert not witness or WITNESS.search(message), message
    for part in (case.kernel.name, *parts):
        assert part in message, message


# -- damage ---------------------------------------------------------------------------------------


def swap(node: Node, path: Sequence[int], new: Sequence[Node]) -> Block:
    """The block with the node at a path of `positions` replaced by new ones."""
    assert isinstance(node, Block)
    head, *rest = path
    child = node.body[head]
    if rest:
        match child:
            case For(body=body):
                new = (replace(child, body=swap(body, rest, new)),)
            case If(then=then):
                new = (replace(child, then=swap(then, rest, new)),)
            case Block():
                new = (swap(child, rest, new),)
    return replace(node, body=(*node.body[:head], *new, *node.body[head + 1 :]))


def places(node: Node, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Node]]:
    """Every node below a block, with its path."""
    inner = node.then if isinstance(node, If) else getattr(node, "body", ())
    inside = inner.body if isinstance(inner, Block) else inner
    for k, child in enumerate(inside):
        yield (*path, k), child
        yield from places(child, (*path, k))


def reverse(loop: For) -> For:
    """for c in a .. b:  f(c)   ->   for c in a .. b:  f(a + b - 1 - c)"""
    assert loop.step == 1
    mirrored = loop.lower + loop.upper - 1 - var(loop.var)
    return replace(loop, body=substitute_block(loop.body, {loop.var: mirrored}))


def shifted_reads(expr: LoopExpr) -> Iterator[LoopExpr]:
    """The expression with one index of one read moved by one, for every such index."""
    match expr:
        case Read(element=element):
            for k, index in enumerate(element.index):
                moved = (*element.index[:k], index + 1, *element.index[k + 1 :])
                yield replace(expr, element=replace(element, index=moved))
        case Call(function, arguments, dtype):
            for k, argument in enumerate(arguments):
                for new in shifted_reads(argument):
                    yield Call(function, (*arguments[:k], new, *arguments[k + 1 :]), dtype)
        case Cast(argument, dtype):
            for new in shifted_reads(argument):
                yield Cast(new, dtype)


def shifted(assign: Assign) -> Iterator[Assign]:
    """The assignment with one of its places moved by one, for every coordinate of every place."""
    for k, index in enumerate(assign.target.index):
        moved = (*assign.target.index[:k], index + 1, *assign.target.index[k + 1 :])
        yield replace(assign, target=replace(assign.target, index=moved))
    for value in shifted_reads(assign.value):
        yield replace(assign, value=value)


def everywhere(case: Case, damage: Callable[[Node], Iterator[Sequence[Node]]]) -> Iterator[Case]:
    """The case with each damage to each of its nodes."""
    for path, node in places(case.kernel.body):
        for new in damage(node):
            yield case.with_body(swap(case.kernel.body, path, new))


def carried(case: Case) -> Iterator[tuple[tuple[int, ...], For]]:
    """The sequential loops over a reduction, with their paths: they revisit what they update."""
    statements = {s.name: s for s in case.scop.statements}
    for path, node in places(case.kernel.body):
        if not isinstance(node, For) or node.kind != "sequential":
            continue
        for update in walk_nodes(node):
            if isinstance(update, Assign) and update.reduction:
                write = statements[update.statement].write
                moving = [k for k, i in enumerate(update.instance) if node.var in variables(i)]
                still = [all(coefficients(pw)[k] == 0 for pw in outputs(write)) for k in moving]
                if moving and all(still):
                    yield path, node
                    break
