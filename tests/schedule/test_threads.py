"""The directives of GPUs: the tree after each, and nests that no block can run."""

from __future__ import annotations

import islpy as isl
import pytest

from polyc.analysis.dependences import compute_dependences
from polyc.codegen.generate import generate_nest
from polyc.errors import IllegalSchedule
from polyc.loopnest.index import const, decide
from polyc.loopnest.nodes import For, If, extent_of, walk_nodes
from polyc.loopnest.substitute import substitute_condition
from polyc.memory.storage import row_major
from polyc.poly.show import show_tree
from polyc.schedule.initial import initial_tree
from polyc.schedule.legal_threads import check_threads
from polyc.schedule.legality import check_given
from polyc.schedule.loops import Instances, Kept, Loop, LoopTree, Sequence, lower_tree, mark_names
from polyc.schedule.schedule import Schedule
from tests.analysis.nests import matmul_scop
from tests.mapping.stages import open_cluster

SCOP = matmul_scop(70, 50, 30)
MATMUL = [open_cluster(SCOP).cluster]
DOMAINS = {s.name: s.domain for s in SCOP.statements}


def show(tree: LoopTree) -> str:
    """i(j(S)); behind a colon what a loop is, and how many threads it has how far apart."""
    match tree:
        case Instances(statement):
            return statement
        case Sequence(parts):
            return f"[{' '.join(map(show, parts))}]"
        case Kept(arrays):
            return f"keep {'all' if arrays is None else ' '.join(arrays)}({show(tree.body)})"
        case Loop():
            kind = "" if tree.kind == "sequential" else f":{tree.kind}"
            kind += f"{tree.width}/{tree.apart}" if tree.width else ""
            return f"{tree.name}{kind}({show(tree.body)})"


def after(text: str) -> LoopTree:
    return Schedule.parse(text).apply(initial_tree(MATMUL))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("block i j", "i:block(j:block([Z k(S) T]))"),
        ("split j 32 | thread j'", "i(j(j':thread32/1([Z k(S) T])))"),
        ("split j 32 | split j' 4 | thread j'", "i(j(j':thread8/1(j''([Z k(S) T]))))"),
        ("split i 4 | warp i'", "i(i':thread4/32(j([Z k(S) T])))"),
        (
            "split i 4 | split j 8 | order i j i' j' | thread i' j'",
            "i(j(i':thread4/8(j':thread8/1([Z k(S) T]))))",
        ),
        (
            "split i 4 | split j 8 | order i j i' j' | warp i' | thread j'",
            "i(j(i':thread4/32(j':thread8/1([Z k(S) T]))))",
        ),
        ("use mma.m16n8k16.f16 k", "i(j([Z k:mma(S) T]))"),
        ("use wgmma.m64k16.bf16 k", "i(j([Z k:wgmma(S) T]))"),
        ("copy k", "i(j([Z k:copy(S) T]))"),
        ("box k", "i(j([Z k:box(S) T]))"),
        ("combine k", "i(j([Z k:combine(S) T]))"),
        ("collapse i j", "i([Z k(S) T])"),
        ("split i 4 | count i", "i(i'(j([Z k(S) T])))"),
        ("keep acc in shared at i", "i(keep acc(j([Z k(S) T])))"),
        ("keep all in registers at i", "i(keep all(j([Z k(S) T])))"),
        ("lay acc 1 0 | swizzle acc 2 3 5 | partial S.k", "i(j([Z k(S) T]))"),
    ],
)
def test_what_a_directive_makes_of_a_product(text, tree):
    assert show(after(text)) == tree


def values(text: str, name: str) -> list[int]:
    """What a loop walks where i = 9 and j = 21, as functions of all statements."""
    (loop,) = (n for n in loops(after(text)) if n.name == name)
    found = set()
    parts = loop.function.get_pw_aff_list()
    for k in range(parts.n_pw_aff()):
        domain = DOMAINS[parts.get_at(k).get_domain_space().get_tuple_name(3)]
        point = domain.fix_val(3, 0, 9).fix_val(3, 1, 21).sample_point()
        found.add(parts.get_at(k).eval(point).to_python())
    return sorted(found)


def loops(tree: LoopTree) -> list[Loop]:
    match tree:
        case Loop():
            return [tree, *loops(tree.body)]
        case Sequence(parts):
            return [n for part in parts for n in loops(part)]
        case Kept():
            return loops(tree.body)
    return []


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("split i 4 | count i", "i", 2),
        ("split i 4", "i", 8),
        ("split i 4 | split i' 2", "i'", 0),
        ("collapse i j", "i", 9 * 50 + 21),
        ("split i 4 | order i' j i | collapse i' j i", "i'", (1 * 50 + 21) * 72 + 8),
        ("pipeline Z.i 4", "i", None),
        ("pipeline Z.i 5 2", "i", None),
    ],
)
def test_what_a_loop_walks(text, name, value):
    if value is None:  # Z runs three iterations earlier than the others
        assert values(text, name) == [6, 9]
    else:
        assert values(text, name) == [value]


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("keep all at i", {"i": "spread i"}),
        ("keep all in shared at i", {"i": "shared i"}),
        ("keep acc in shared at i", {"i": "spread i"}),
        ("split j 32 | thread j' | keep all at j'", {"j'": "stack j'"}),
        ("keep all at i | keep acc in registers at j", {"i": "tile i", "j": "spread j"}),
    ],
)
def test_where_arrays_are_kept(text, marks):
    assert mark_names(after(text), counted=True) == marks


def test_a_gpu_counts_all_loops():
    """Those that run once as well: blocks and threads have numbers."""
    tree = after("split i 128 | split j 32 | block i j | thread j'")
    counted = show_tree(lower_tree(tree, DOMAINS, counted=True))
    assert [line.strip("└ ─│├") for line in counted.splitlines()[1:9]] == [
        "mark  block",
        "band  floor(i/128)  atomic",
        "mark  sequential",
        "band  (i mod 128)  atomic",
        "mark  block",
        "band  floor(j/32)  atomic",
        "mark  thread 32 1",
        "band  (j mod 32)  atomic",
    ]
    plain = show_tree(lower_tree(tree, DOMAINS))
    assert "band  floor(j/32)" in plain
    assert "floor(i/128)" not in plain


@pytest.mark.parametrize("kind", ["block", "thread"])
def test_a_loop_that_runs_once_leaves_the_one_inside_alone(kind):
    """isl leaves it out; its mark says nothing of the 70 iterations inside."""
    tree = after(f"split i 128 | {kind} i | use mma.m16n8k16.f16 k")
    lowered = lower_tree(tree, DOMAINS, counted=True)
    storages = {name: row_major(a) for name, a in SCOP.arrays.items()}
    nest = generate_nest(lowered, {s.name: s for s in SCOP.statements}, storages, {})
    found = [(n.kind, extent_of(n)) for n in walk_nodes(nest) if isinstance(n, For)]
    assert ("sequential", 70) in found
    assert (kind, 70) not in found
    assert ("mma", 30) in found


def test_a_thread_that_a_loop_has_room_for_is_said_where_isl_makes_none():
    """Else all threads of that digit would do what one of them is to do."""
    tree = after("split i 128 | split i' 32 | thread i' i''")
    low = {name: d.lower_bound_val(isl.dim_type.set, 0, isl.Val(64)) for name, d in DOMAINS.items()}
    lowered = lower_tree(tree, low, counted=True)
    storages = {name: row_major(a) for name, a in SCOP.arrays.items()}
    nest = generate_nest(lowered, {s.name: s for s in SCOP.statements}, storages, {})
    (loop,) = [n for n in walk_nodes(nest) if isinstance(n, For) and n.var == "only32"]
    assert (loop.kind, loop.apart, extent_of(loop)) == ("thread", 32, 4)
    (asked,) = (n for n in loop.body.body if isinstance(n, If))
    found = [
        k for k in range(4) if decide(substitute_condition(asked.condition, {loop.var: const(k)}))
    ]
    assert found == [2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("thread i j", "3500 threads|a block has at most 1024"),
        ("warp j", "a block has at most 1024; split it first"),
        ("shift S.j 2 | thread j", "an unknown number of iterations"),
        ("pipeline Z.i 0", "there are 1 to 8 stages"),
        ("pipeline Z.i 4 5", "1 to 4 of its places are in use at a time"),
        ("pipeline i 2", "say the loop of which statement"),
        ("collapse i k", "k is not directly inside of i everywhere"),
        ("shift S.j 1 | collapse i j", "nobody knows how many iterations j has"),
        ("warp q", "there is no loop q here"),
        ("keep all in shared at j | keep acc in registers at j", "nothing else may be said"),
    ],
)
def test_what_cannot_be_done_to_a_tree(text, said):
    with pytest.raises(IllegalSchedule, match=said):
        after(text)


def check(text: str) -> None:
    dependences = compute_dependences(SCOP)
    start = initial_tree(MATMUL)
    check_given(Schedule.parse(text), start, DOMAINS, dependences, "k", check_threads)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "block i j",
        "split j 32 | block i j | thread j' | keep all in stack at j'",
        "split i 8 | split j 16 | order i j i' j' | block i j | warp i' | thread j'",
        "split j 32 | distribute j' | block i j | thread j'",
        "split j 32 | split j' 4 | thread j' | sink j'' | vector Z.j'' T.j''",
    ],
)
def test_what_blocks_can_run(text):
    check(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("block k", r"block k breaks a dependence \(flow\): S\[0, 0, 1\] has to run after"),
        ("thread k", "runs them between threads"),
        ("parallel i", "parallel i: that is for CPUs"),
        ("block j", "block j: blocks are the outermost loops, and i around it is sequential"),
        ("split j 8 | thread j' | order i j' j | block j", "i around it is seq|j' around it is"),
        ("split i 4 | split j 8 | thread j' i'", "directly inside one another, and j is between"),
        (
            "split i 4 | split j 8 | order i j i' j' | thread i' | thread j'",
            "iterations 1 threads apart, and .* takes 8|say both in one thread",
        ),
        ("vector j", "vector j: it is around S, T, Z, and can be around one statement"),
        ("split j 8 | thread j' | unroll k | sink j' | vector k", "inside of it|all would do"),
        ("vector k", "there is no loop over threads around it"),
        ("combine k", "combine k: say thread or warp first"),
        ("distribute j i | block i", "block i: loops over blocks are one nest .* around Z; leave"),
        ("distribute j i | block S.i", "one nest around all statements, and this one is around S"),
        ("keep acc in shared at i | block i j", "what is kept at i would be shared by the blocks"),
    ],
)
def test_what_no_block_can_run(text, said):
    with pytest.raises(IllegalSchedule, match=said):
        check(text)
