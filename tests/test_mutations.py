"""Damage to kernels that polyc really generates: every kind of it is refused, with a witness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.analysis.conflicts import compute_conflicts
from polyc.analysis.dependences import maps
from polyc.analysis.launches.access import verify_program
from polyc.analysis.launches.arena import verify_arena
from polyc.analysis.launches.barriers import verify_barriers
from polyc.errors import IllegalSchedule
from polyc.loopnest.nodes import Assign, Barrier, Block, For, Node, Read, walk_expr, walk_nodes
from polyc.memory.storage import permuted
from polyc.options import Options
from polyc.program import plan as planning
from polyc.program.plan import plan_memory
from polyc.scop.scop import ORDERLESS
from polyc.threads import barriers
from polyc.threads.barriers import place_barriers
from tests.damage import carried, check_refused, everywhere, places, prove, reverse, shifted, swap
from tests.sampling import sampled, thorough


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def conv() -> Graph:
    x = ops.input("x", (1, 5, 7, 21))
    return Graph.of(y=ops.relu(ops.conv(x, weights(20, 5, 3, 3), weights(20))))


def softmax() -> Graph:
    return Graph.of(y=ops.softmax(ops.input("x", (40, 299)), axis=-1))


def concat() -> Graph:
    x = ops.input("x", (1, 4, 5, 6))
    parts = [ops.relu(ops.conv(x, weights(n, 4, 1, 1))) for n in (16, 3)]
    return Graph.of(y=ops.sigmoid(ops.conv(ops.concat(parts, axis=1), weights(8, 19, 1, 1))))


def fire() -> Graph:
    """Two convolutions side by side that fill one array, and one that reads it, twice."""
    h = ops.input("x", (1, 8, 6, 6))
    for _ in range(2):
        s = ops.relu(ops.conv(h, weights(4, 8, 1, 1)))
        e = [ops.conv(s, weights(4, 4, n, n), pads=(n // 2,) * 4) for n in (1, 3)]
        h = ops.relu(ops.concat(e, axis=1))
    return Graph.of(y=h)


def winograd() -> Graph:
    """A convolution large enough for transforms to pay."""
    x = ops.input("x", (1, 32, 14, 14))
    return Graph.of(y=ops.relu(ops.conv(x, weights(32, 32, 3, 3), pads=(1, 1, 1, 1))))


def cumulative() -> Graph:
    return Graph.of(y=ops.cum_sum(ops.input("x", (3, 9)), axis=1))


MODELS = [conv, softmax, concat, thorough(winograd)]
each_model = pytest.mark.parametrize("build", MODELS, ids=lambda m: m.__name__)
one_model = pytest.mark.parametrize(
    "build", sampled([conv, softmax, concat, winograd], often=[concat]), ids=lambda m: m.__name__
)
"""For what is damaged at many places."""


@each_model
def test_what_is_generated_is_proven(build):
    proven = prove(build)
    assert proven.cases
    for case in proven.cases:
        assert case.verify().statements == len(case.scop.statements)
    assert verify_program(proven.launches, proven.existing) >= 1
    plan = plan_memory(proven.compiled.program)
    assert verify_arena(plan.slots, plan.arena_bytes) == len(plan.slots)


@one_model
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
        check_refused(case)


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
        check_refused(case, "executed")


@one_model
def test_shifted_accesses(build):
    """Each index of each access, moved by one; of a long list an even sample."""

    def damage(node: Node) -> Iterator[Sequence[Node]]:
        if isinstance(node, Assign):
            yield from ([new] for new in shifted(node))

    wrong = [w for case in prove(build).cases for w in everywhere(case, damage)]
    assert len(wrong) > 10
    for case in wrong[:: 1 + len(wrong) // 100]:
        check_refused(case)


@each_model
def test_reductions_run_backwards_or_at_once(build):
    loops = [(case, path, loop) for case in prove(build).cases for path, loop in carried(case)]
    assert loops
    for case, path, loop in loops:
        body = case.kernel.body
        parallel = replace(loop, kind="parallel")
        check_refused(case.with_body(swap(body, path, [parallel])), "parallel loop", "carries")
        if loop.step == 1:
            backwards = case.with_body(swap(body, path, [reverse(loop)]))
            updates = [n for n in walk_nodes(loop) if isinstance(n, Assign) and n.reduction]
            if all(update.reduction in ORDERLESS for update in updates):
                assert backwards.verify()  # the largest is the same in any order
            else:
                check_refused(backwards, "backwards")


@each_model
def test_loops_that_carry_nothing_may_run_in_any_order(build):
    """The proof is not merely strict: what is legal is accepted."""
    for case in prove(build).cases:
        for path, node in places(case.kernel.body):
            if isinstance(node, For) and node.kind == "parallel" and node.step == 1:
                assert case.with_body(swap(case.kernel.body, path, [reverse(node)])).verify()
                alone = Block((replace(node, kind="sequential"),))
                assert case.with_body(swap(case.kernel.body, path, [alone])).verify()


def test_a_recurrence_may_be_neither_parallel_nor_vector_nor_reversed():
    (case,) = [
        c for c in prove(cumulative).cases if not any(s.reduction for s in c.scop.statements)
    ]
    body = case.kernel.body
    (path, along) = next(
        (path, node)
        for path, node in places(body)
        if isinstance(node, For) and isinstance(node.body.body[0], Assign) and _reads_itself(node)
    )
    parallel, vector = (replace(along, kind=kind) for kind in ("parallel", "vector"))
    check_refused(case.with_body(swap(body, path, [parallel])), "parallel loop", "carries")
    check_refused(case.with_body(swap(body, path, [vector])), "vector loop", "carries")
    check_refused(case.with_body(swap(body, path, [reverse(along)])), "backwards")


def _reads_itself(loop: For) -> bool:
    assign = loop.body.body[0]
    assert isinstance(assign, Assign)
    return any(
        isinstance(e, Read) and e.element.array == assign.target.array
        for e in walk_expr(assign.value)
    )


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
            check_refused(case.with_body(swap(case.kernel.body, path, [new])), "order of the text")
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
            wrong = replace(case.with_body(body), scop=scop)
            check_refused(wrong, "before it is written")
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
            check_refused(wrong, f"parameter {name} has shape", witness=False)
            fitted = replace(wrong, kernel=replace(case.kernel, params=params))
            same_rank = len(turned.shape) == len(storage.shape)
            check_refused(
                fitted, f"where {name} is stored" if same_rank else "indices", witness=same_rank
            )
            count += 1
    assert count


def test_a_local_that_outlives_an_iteration():
    """A row kept from one iteration of the outer loop to the next is shared by its threads."""
    (case,) = prove(softmax).cases
    (outer,) = case.kernel.body.body
    assert isinstance(outer, For)
    inside = replace(outer, body=replace(outer.body, locals=()))
    lifted = replace(case.kernel.body, body=(inside,), locals=outer.body.locals)
    check_refused(case.with_body(lifted), "all threads of a team share", witness=False)
    alone = replace(case.with_body(replace(lifted, team=False)), team=False)
    check_refused(alone, "one place for different elements")


@each_model
def test_steps_that_depend_on_one_another_at_the_same_time(build):
    """What initialises, updates and uses a sum, in any order."""
    count = 0
    for case in prove(build).cases:
        depend = {(s, t) for s, t, _ in maps(compute_conflicts(case.scop).validity) if s != t}
        for path, node in places(case.kernel.body):
            block = node.body if isinstance(node, For) else node
            if isinstance(block, Block) and depend.intersection(
                permutations(_statements(block), 2)
            ):
                pieces = tuple(n for n in block.body if n != Barrier())
                joined: Node = replace(block, body=pieces, concurrent=True)
                joined = replace(node, body=joined) if isinstance(node, For) else joined
                wrong = case.with_body(swap(case.kernel.body, path, (joined,)))
                check_refused(wrong, "joins what runs at the same time")
                count += 1
    assert count


def _statements(block: Block) -> set[str]:
    """The first statement that is executed below each node of a block."""
    below = ([n for n in walk_nodes(node) if isinstance(n, Assign)] for node in block.body)
    return {assigns[0].statement for assigns in below if assigns}


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


@pytest.mark.parametrize(
    "build", [concat, thorough(winograd), deep, fire], ids=lambda m: m.__name__
)
def test_a_missing_barrier(build):
    """Every barrier that is placed is needed, and the proof misses each of them."""
    compiled = prove(build).compiled
    launches, slots = compiled.touched, plan_memory(compiled.program).slots
    placed = place_barriers(launches, slots)
    assert placed
    verify_barriers(launches, slots, placed)
    verify_barriers(launches, slots, range(len(launches)))
    for barrier in placed:
        with pytest.raises(IllegalSchedule, match="no barrier stands between them"):
            verify_barriers(launches, slots, placed - {barrier})


def test_branches_run_side_by_side():
    compiled = prove(fire).compiled
    launches, slots = compiled.touched, plan_memory(compiled.program).slots
    assert len(place_barriers(launches, slots)) < len(launches) - 1


def test_compiling_proves_the_barriers(monkeypatch, tmp_path):
    monkeypatch.setattr(barriers, "place_barriers", lambda launches, slots: frozenset())
    options = Options(cache_dir=tmp_path, progress=False)
    with pytest.raises(IllegalSchedule, match="no barrier stands between them"):
        polyc.compile(deep(), target="avx512", options=options)


def test_compiling_proves_the_arena(monkeypatch, tmp_path):
    def overlapping(program, placed):
        plan = plan_memory(program, placed=placed)
        return replace(plan, slots=tuple(replace(s, offset=0) for s in plan.slots))

    monkeypatch.setattr(planning, "plan_memory", overlapping)
    options = Options(cache_dir=tmp_path, progress=False)
    with pytest.raises(IllegalSchedule, match="overlap"):
        polyc.compile(deep(), target="avx512", options=options)
