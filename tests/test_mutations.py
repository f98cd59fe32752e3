"""Damage to kernels that polyc really generates: every kind of it is refused, with a witness."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from polyc import Graph, kernels, ops, pipeline
from polyc.analysis.dependences import Dependences, compute_dependences
from polyc.analysis.proof import Proof
from polyc.analysis.verify import LaunchAccess, verify_arena, verify_kernel, verify_program
from polyc.codegen.index import const, var
from polyc.codegen.loopnest import (
    Assign,
    Block,
    For,
    If,
    Kernel,
    LoopExpr,
    Node,
    Read,
    substitute_block,
    walk_nodes,
)
from polyc.errors import IllegalSchedule
from polyc.memory.plan import plan_memory
from polyc.memory.storage import Storage, permuted
from polyc.options import Options
from polyc.pipeline import Compiled, run_pipeline
from polyc.scop.expr import Call, Cast
from polyc.scop.scop import Scop
from polyc.target.machine import Target
from polyc.trace import Trace

WITNESS = re.compile(r"e\.g\. \w+\[")


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def conv() -> Graph:
    x = ops.input("x", (1, 5, 7, 21))
    return Graph.of(y=ops.relu(ops.conv(x, weights(20, 5, 3, 3), weights(20))))


def softmax() -> Graph:
    return Graph.of(y=ops.softmax(ops.input("x", (40, 37)), axis=-1))


def concat() -> Graph:
    x = ops.input("x", (1, 4, 5, 6))
    parts = [ops.relu(ops.conv(x, weights(n, 4, 1, 1))) for n in (16, 3)]
    return Graph.of(y=ops.sigmoid(ops.conv(ops.concat(parts, axis=1), weights(8, 19, 1, 1))))


def cumulative() -> Graph:
    return Graph.of(y=ops.cum_sum(ops.input("x", (3, 9)), axis=1))


# -- what was proven, ready to be proven again ----------------------------------------------------


@dataclass(frozen=True)
class Case:
    """The arguments of a kernel's proof."""

    kernel: Kernel
    scop: Scop
    storages: dict[str, Storage]
    dependences: Dependences
    parameters: dict[str, str]

    def verify(self) -> Proof:
        return verify_kernel(
            self.kernel, self.scop, self.storages, self.dependences, self.parameters
        )

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

    def note_kernel(kernel, scop, storages, dependences, parameters):
        cases.append(Case(kernel, scop, dict(storages), dependences, dict(parameters)))
        return verify_kernel(kernel, scop, storages, dependences, parameters)

    def note_program(launches, initialised):
        programs.append((tuple(launches), frozenset(initialised)))
        return verify_program(launches, initialised)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "verify_kernel", note_kernel)
        patch.setattr(pipeline, "verify_program", note_program)
        compiled = run_pipeline(build(), Target.named("avx512"), Options(), Trace())
    ((launches, existing),) = programs
    return Proven(compiled, tuple(cases), launches, existing)


def refused(case: Case, *parts: str, witness: bool = True) -> None:
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
    """The loops that go over a reduction: what is updated inside does not move with them."""
    for path, node in places(case.kernel.body):
        updates = [n for n in walk_nodes(node) if isinstance(n, Assign) and n.reduction]
        if isinstance(node, For) and node.kind == "sequential" and updates:
            instance = {s.name: s for s in case.scop.statements}[updates[0].statement]
            moving = [
                k for k, i in enumerate(updates[0].instance) if node.var in {v for v in _names(i)}
            ]
            reduces = [k for k in moving if not _writes_along(instance, k)]
            if moving and reduces == moving:
                yield path, node


def _names(index) -> set[str]:
    from polyc.codegen.index import variables

    return set(variables(index))


def _writes_along(statement, position: int) -> bool:
    import islpy as isl

    function = statement.write
    return any(
        function.get_pw_aff(k).involves_dims(isl.dim_type.in_, position, 1)
        for k in range(function.dim(isl.dim_type.out))
    )


MODELS = [conv, softmax, concat]
each_model = pytest.mark.parametrize("build", MODELS, ids=lambda m: m.__name__)


@each_model
def test_what_is_generated_is_proven(build):
    proven = prove(build)
    assert proven.cases
    for case in proven.cases:
        assert case.verify().statements == len(case.scop.statements)
    assert verify_program(proven.launches, proven.existing) >= len(proven.launches) - 1
    plan = plan_memory(proven.compiled.program)
    assert verify_arena(plan.slots, plan.arena_bytes) == len(plan.slots)


@each_model
def test_bounds(build):
    """Each loop, one iteration longer or shorter at either end."""

    def damage(node: Node) -> Iterator[Sequence[Node]]:
        if isinstance(node, For):
            yield [replace(node, upper=node.upper + node.step)]
            yield [replace(node, upper=node.upper - node.step)]
            yield [replace(node, lower=node.lower - node.step)]
            yield [replace(node, lower=node.lower + node.step)]

    wrong = [w for case in prove(build).cases for w in everywhere(case, damage)]
    assert len(wrong) > 10
    for case in wrong:
        refused(case)


@each_model
def test_dropped_and_repeated_instances(build):
    """Each assignment, gone or twice."""

    def damage(node: Node) -> Iterator[Sequence[Node]]:
        if isinstance(node, Assign):
            yield []
            yield [node, node]

    wrong = [w for case in prove(build).cases for w in everywhere(case, damage)]
    assert len(wrong) >= 6
    for case in wrong:
        refused(case, "executed")


@each_model
def test_shifted_accesses(build):
    """Each index of each access, moved by one."""

    def damage(node: Node) -> Iterator[Sequence[Node]]:
        if isinstance(node, Assign):
            yield from ([new] for new in shifted(node))

    wrong = [w for case in prove(build).cases for w in everywhere(case, damage)]
    assert len(wrong) > 10
    for case in wrong:
        refused(case)


@each_model
def test_reductions_run_backwards_or_at_once(build):
    loops = [(case, path, loop) for case in prove(build).cases for path, loop in carried(case)]
    assert loops
    for case, path, loop in loops:
        body = case.kernel.body
        parallel = replace(loop, kind="parallel")
        refused(case.with_body(swap(body, path, [parallel])), "parallel loop", "carries")
        if loop.step == 1:
            backwards = swap(body, path, [reverse(loop)])
            refused(case.with_body(backwards), "backwards")


@each_model
def test_loops_that_carry_nothing_may_run_in_any_order(build):
    """The proof is not merely strict: what is legal is accepted."""
    for case in prove(build).cases:
        for path, node in places(case.kernel.body):
            if isinstance(node, For) and node.kind == "parallel" and node.step == 1:
                assert case.with_body(swap(case.kernel.body, path, [reverse(node)])).verify()
                one = replace(node, kind="sequential")
                assert case.with_body(swap(case.kernel.body, path, [one])).verify()


def test_a_recurrence_may_be_neither_parallel_nor_vector_nor_reversed():
    (case,) = [
        c for c in prove(cumulative).cases if not any(s.reduction for s in c.scop.statements)
    ]
    wrong = []
    for path, node in places(case.kernel.body):
        if isinstance(node, For) and node.kind == "sequential":
            for new in (
                replace(node, kind="parallel"),
                replace(node, kind="vector"),
                reverse(node),
            ):
                damaged = case.with_body(swap(case.kernel.body, path, [new]))
                try:
                    damaged.verify()
                except IllegalSchedule as error:
                    assert WITNESS.search(str(error))
                    wrong.append(str(error))
    assert any("parallel loop" in w and "carries" in w for w in wrong)
    assert any("vector loop" in w and "carries" in w for w in wrong)
    assert any("backwards" in w for w in wrong)


@each_model
def test_statements_in_the_wrong_order(build):
    """Blocks of several nodes, the other way round."""
    count = 0
    for case in prove(build).cases:
        for path, node in places(case.kernel.body):
            body = node.body if isinstance(node, For) else node
            if not isinstance(body, Block) or len(body.body) < 2 or not body.locals:
                continue
            turned = replace(body, body=body.body[::-1])
            new = replace(node, body=turned) if isinstance(node, For) else turned
            refused(case.with_body(swap(case.kernel.body, path, [new])), "order of the text")
            count += 1
    assert count


@each_model
def test_without_its_initialisation(build):
    """The kernel and its scop both lack it, so that nothing is missing but a value."""
    count = 0
    for case in prove(build).cases:
        starts = [s for s in case.scop.statements if s.name.endswith("_init")]
        for start in starts:
            body = case.kernel.body
            for path, node in reversed(list(places(body))):
                if isinstance(node, Assign) and node.statement == start.name:
                    body = swap(body, path, [])
            left = tuple(s for s in case.scop.statements if s is not start)
            scop = replace(case.scop, statements=left)
            wrong = replace(case.with_body(body), scop=scop, dependences=compute_dependences(scop))
            refused(wrong, "before it is written")
            count += 1
    assert count


@each_model
def test_changed_storage(build):
    """An array stored in another order than the one printed."""
    count = 0
    for case in prove(build).cases:
        for name, storage in case.storages.items():
            rank = len(storage.permutation)
            if name not in case.parameters or sum(n > 1 for n in storage.shape) < 2:
                continue
            turned = permuted(case.scop.arrays[name], range(rank)[::-1])
            if storage.permutation == turned.permutation and not storage.blocks:
                continue
            params = tuple(
                replace(p, shape=turned.shape) if p.name == name else p for p in case.kernel.params
            )
            wrong = replace(case, storages={**case.storages, name: turned})
            refused(wrong, name, witness=False)
            fitted = replace(wrong, kernel=replace(case.kernel, params=params))
            refused(fitted, "stored" if len(turned.shape) == len(storage.shape) else "indices",
                    witness=len(turned.shape) == len(storage.shape))  # fmt: skip
            count += 1
    assert count


def test_a_local_that_outlives_an_iteration():
    """A row kept from one iteration of the outer loop to the next is shared by its threads."""
    (case,) = prove(softmax).cases
    (outer,) = case.kernel.body.body
    assert isinstance(outer, For)
    lifted = Block((replace(outer, body=replace(outer.body, locals=())),), outer.body.locals)
    refused(case.with_body(lifted), "one place for different elements")


# -- several launches -----------------------------------------------------------------------------


def test_reordered_and_missing_launches():
    proven = prove(concat)
    first, *rest = proven.launches
    with pytest.raises(IllegalSchedule, match=r"reads \w+ unwritten, e\.g\. \w+\["):
        verify_program([*rest, first], proven.existing)
    with pytest.raises(IllegalSchedule, match=r"reads \w+ unwritten, e\.g\. \w+\["):
        verify_program(rest, proven.existing)
    *others, caller = proven.launches
    with pytest.raises(IllegalSchedule, match=r"caller.*unwritten, e\.g\."):
        verify_program([*others[:-1], caller], proven.existing)


def deep() -> Graph:
    h = ops.input("x", (1, 8, 6, 6))
    for k in range(4):
        h = ops.relu(ops.conv(h, weights(8 + k, 8 + max(k - 1, 0), 1, 1)))
    return Graph.of(y=h)


def test_a_smaller_arena_and_overlapping_slots():
    plan = plan_memory(prove(deep).compiled.program)
    assert len(plan.slots) == 3
    with pytest.raises(IllegalSchedule, match="lies outside of its"):
        verify_arena(plan.slots, plan.arena_bytes - 1)
    first, second, _ = plan.slots
    onto = [replace(s, offset=first.offset) if s is second else s for s in plan.slots]
    with pytest.raises(IllegalSchedule, match=r"overlap in launch \d"):
        verify_arena(onto, plan.arena_bytes * 2)
    below = [replace(s, offset=-64) if s is second else s for s in plan.slots]
    with pytest.raises(IllegalSchedule, match="lies outside of its"):
        verify_arena(below, plan.arena_bytes)
    assert const(0).is_constant


def test_compiling_proves_the_arena(monkeypatch, tmp_path):
    import polyc
    from polyc.memory import plan as planning

    def overlapping(program):
        plan = plan_memory(program)
        return replace(plan, slots=tuple(replace(s, offset=0) for s in plan.slots))

    monkeypatch.setattr(planning, "plan_memory", overlapping)
    options = Options(cache_dir=tmp_path, progress=False)
    with pytest.raises(IllegalSchedule, match="overlap"):
        polyc.compile(deep(), target="avx512", options=options)
