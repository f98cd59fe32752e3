"""Directives on tiny kernels: what is legal computes what it should, and what is not is refused."""

from __future__ import annotations

import islpy as isl
import pytest

from polyc.analysis.dependences import compute_dependences, maps
from polyc.errors import IllegalSchedule
from polyc.loopnest.nodes import For, walk_nodes
from polyc.schedule.cluster import Cluster
from polyc.schedule.initial import initial_tree
from polyc.schedule.legality import check_cpu_kinds, check_given, check_held_loops, find_broken
from polyc.schedule.loops import lower_tree
from polyc.schedule.schedule import Schedule
from polyc.scop.expr import Call
from polyc.scop.scop import Scop
from tests.analysis.nests import (
    F32,
    ZERO,
    array,
    conv_scop,
    load,
    matmul_scop,
    scop,
    softmax_scop,
    statement,
)
from tests.mapping.stages import check, compile_stages, filled, open_cluster

MATMUL = matmul_scop(7, 5, 3)
CONV = conv_scop(5, 3, 4, 2, 3)
SOFTMAX = softmax_scop(6, 9)


def sweep(rows: int = 5, columns: int = 6) -> Scop:
    """Y[i, j] = Y[i - 1, j + 1] + X[i, j]: a loop that carries a dependence against another."""
    last = columns - 1
    inside = f"1 <= i < {rows} and 0 <= j < {last}"
    return scop(
        [array("X", [rows, columns], "input"), array("Y", [rows, columns], "output")],
        statement(
            f"{{ B[i, j] : 0 <= i < {rows} and 0 <= j < {columns} and (i = 0 or j = {last}) }}",
            "{ B[i, j] -> Y[i, j] }",
            ZERO,
        ),
        statement(
            f"{{ R[i, j] : {inside} }}",
            "{ R[i, j] -> Y[i, j] }",
            Call(
                "add",
                (load("{ R[i, j] -> Y[i - 1, j + 1] }"), load("{ R[i, j] -> X[i, j] }")),
                F32,
            ),
        ),
    )


def clusters(of: Scop) -> list[Cluster]:
    """One cluster a statement of `sweep`, nothing shared; that of the others as they are."""
    if of.statements[0].name == "B":
        return [Cluster((s,), (), has_reuse=False) for s in of.statements]
    return [open_cluster(of).cluster]


def refuse_illegal(of: Scop, text: str) -> None:
    """Raise if the schedule is not legal."""
    domains = {s.name: s.domain for s in of.statements}
    start = initial_tree(clusters(of))
    given = Schedule.parse(text)
    check_given(given, start, domains, compute_dependences(of), "k", check_cpu_kinds)
    check_held_loops(given.apply(start), of.statements, "k")


SWEEP = sweep()

LEGAL = [
    (MATMUL, ""),
    (MATMUL, "order j i"),
    (MATMUL, "split i 2"),
    (MATMUL, "split i 3 | split i' 2 | split j 4 | order j i i' i''"),
    (
        MATMUL,
        "order j i | split j 4 | split i 3 | vector j' | unroll i' | sink j' i' | parallel j i",
    ),
    (MATMUL, "split j 4 | vector j' | sink j' | keep acc in registers at j"),
    (MATMUL, "keep acc in stack at i"),
    (MATMUL, "keep acc in registers at j"),
    (MATMUL, "keep all at i"),
    (MATMUL, "order j i | distribute i"),
    (MATMUL, "distribute j"),
    (MATMUL, "order j i | distribute i | distribute j | fuse Z.i S.i T.i"),
    (MATMUL, "reverse i | reverse j"),
    (MATMUL, "shift S.i 0"),
    (MATMUL, "skew j i 2"),
    (MATMUL, "split k 2 | unroll k'"),
    (MATMUL, "sink i j | vector T.j"),
    (MATMUL, "split k 2 | sink j | order k j k'"),
    (MATMUL, "distribute j i | split k 2 | order k S.i S.j k' | hold k' | keep acc in stack"),
    (
        MATMUL,
        "distribute j i | split j 4 | vector j' | sink j' | split i 3 | unroll i' | sink i' "
        "| split k 2 | order k S.j S.i k' | hold k' | keep acc in stack",
    ),
    (CONV, "order o y x | split x 2 | unroll x' | sink x' o | keep acc in registers at x"),
    (CONV, "sink x | split q 2"),
    (SOFTMAX, "parallel i | keep all in place at i"),
    (SOFTMAX, "split i 4 | parallel i | keep all at i'"),
    (SOFTMAX, "keep D in place of Y at i | keep N M in registers at i"),
]


@pytest.mark.parametrize(("of", "text"), LEGAL, ids=lambda v: v if isinstance(v, str) else "")
def test_what_is_legal_is_proven_and_right(of, text):
    refuse_illegal(of, text)
    check(of, rtol=1e-5, schedule=Schedule.parse(text))


def test_the_loops_are_as_the_schedule_says():
    text = "order j i | split j 4 | split i 3 | vector j' | unroll i' | sink j' i' | parallel j i"
    nest = compile_stages(filled(MATMUL), schedule=Schedule.parse(text)).nest
    kinds = [n.kind for n in walk_nodes(nest) if isinstance(n, For)]
    assert {"parallel", "vector", "unroll"} <= set(kinds)
    assert kinds[0] == "parallel"


BROKEN = [
    (MATMUL, "reverse k", "reverse k breaks a dependence"),
    (MATMUL, "split k 2 | order k' k", "order k' k breaks"),
    (MATMUL, "parallel S.k", "parallel k breaks"),
    (MATMUL, "shift S.i 1", "shift S.i 1 breaks a dependence .flow.: T"),
    (MATMUL, "shift S.j -1", "has to run after Z"),
    (MATMUL, "order j i | reverse S.k | split j 4 | sink j' | vector j'", "reverse S.k breaks"),
    (MATMUL, "distribute j | distribute i | fuse Z.i S.i T.i | shift Z.i 7", "shift Z.i 7 breaks"),
    (CONV, "reverse c", "reverse c breaks"),
    (CONV, "order q c r", "order q c r breaks"),
    (SOFTMAX, "shift N0.i 1", "shift N0.i 1 breaks"),
    (SOFTMAX, "distribute i | fuse M0.i M1.i E.i N0.i N1.i V.i | shift E.i -1", "shift E.i -1"),
    (SOFTMAX, "parallel i | parallel N1.j", "parallel j breaks a dependence"),
    (SWEEP, "reverse R.i", "reverse R.i breaks"),
    (SWEEP, "order R.j R.i", "order R.j R.i breaks"),
    (SWEEP, "parallel R.i", r"R\[., .\] has to run after R\[., .\], .* between threads"),
    (SWEEP, "vector R.i | sink R.i", "breaks|inside"),
    (
        SWEEP,
        "split R.i 2 | split R.j 2 | order R.i R.j R.i' R.j'",
        "order R.i R.j R.i' R.j' breaks",
    ),
    (SWEEP, "fuse B.i R.i | reverse i", "reverse i breaks"),
    (SWEEP, "fuse B.j R.j 2", "fuse B.j R.j 2 breaks"),
    (SWEEP, "fuse B.i R.i | parallel i", "parallel i breaks"),
    (SWEEP, "skew R.j R.i -1 | order R.j R.i", "order R.j R.i breaks"),
    (SWEEP, "skew R.j R.i 2 | order R.j R.i | reverse R.j", "reverse R.j breaks"),
]


@pytest.mark.parametrize(
    ("of", "text", "said"), BROKEN, ids=lambda v: v if isinstance(v, str) else ""
)
def test_what_breaks_a_dependence_is_refused_with_two_instances(of, text, said):
    with pytest.raises(IllegalSchedule, match=said) as refused:
        refuse_illegal(of, text)
    assert "has to run after" in str(refused.value)


WAVEFRONTS = [
    "skew R.j R.i 1 | order R.j R.i | parallel R.j",
    "skew R.j R.i 2 | order R.j R.i | split R.j 3",
    "fuse B.i R.i | shift R.i -1",
    "reverse R.j | split R.j 2 | split R.i 2 | order R.i R.j R.i' R.j'",
]


@pytest.mark.parametrize("text", WAVEFRONTS)
def test_what_mends_a_dependence_is_legal(text):
    refuse_illegal(SWEEP, text)
    tree = Schedule.parse(text).apply(initial_tree(clusters(SWEEP)))
    lowered = lower_tree(tree, {s.name: s.domain for s in SWEEP.statements})
    assert find_broken(lowered, compute_dependences(SWEEP).validity) is None


@pytest.mark.parametrize(
    "text",
    [*WAVEFRONTS, *(text for of, text, _ in BROKEN if of is SWEEP and "parallel" not in text)],
)
def test_broken_means_some_pair_runs_in_the_wrong_order(text):
    """Pair by pair: the times of two instances, as numbers."""
    domains = {s.name: s.domain for s in SWEEP.statements}
    tree = Schedule.parse(text).apply(initial_tree(clusters(SWEEP)))
    lowered = lower_tree(tree, domains)
    validity = compute_dependences(SWEEP).validity
    time = lowered.get_map()
    wrong = 0
    for _, _, pairs in maps(validity):
        for first, second in instance_pairs(pairs):
            wrong += time_of(time, first) >= time_of(time, second)
    assert (wrong > 0) == (find_broken(lowered, validity) is not None)


def instance_pairs(pairs: isl.Map) -> list[tuple[isl.UnionSet, isl.UnionSet]]:
    found: list[tuple[isl.UnionSet, isl.UnionSet]] = []

    def take(point: isl.Point) -> None:
        pair = isl.Set.from_point(point).unwrap()
        found.append(tuple(map(isl.UnionSet.from_set, (pair.domain(), pair.range()))))

    pairs.wrap().foreach_point(take)
    return found


def time_of(time: isl.UnionMap, instance: isl.UnionSet) -> list[int]:
    moved = time.intersect_domain(instance).range().get_set_list().get_at(0).sample_point()
    count = moved.get_space().dim(isl.dim_type.set)
    kind = isl.dim_type.set
    return [int(moved.get_coordinate_val(kind, k).to_python()) for k in range(count)]


NESTED = [
    ("parallel j", "threads share out the outermost loops, and i around it is sequential"),
    ("vector i", "all loops are unrolled, and j is sequential"),
    ("split j 4 | vector j'", "all loops are unrolled, and k is sequential"),
    ("split j 4 | vector j' | unroll k", "a vector loop is around one statement"),
    ("hold j", "holds what one statement updates, and inside of it are S, T, Z; say distribute"),
    ("distribute j | hold S.j", "hold j: S updates another element in each iteration"),
    ("distribute j | hold T.j", "hold j: T updates another element in each iteration"),
    ("block i", "on a CPU loops are parallel, vector, unroll or hold"),
    ("parallel i j | keep acc in stack", "would be shared by the iterations of a parallel loop"),
]


@pytest.mark.parametrize(("text", "said"), NESTED)
def test_loops_that_no_kernel_can_run_are_refused(text, said):
    with pytest.raises(IllegalSchedule, match=said):
        refuse_illegal(MATMUL, text)


KEPT = [
    (MATMUL, "keep Y in stack at i", "Y is no array that this kernel has to itself"),
    (MATMUL, "keep nothing in stack at i", "nothing is no array"),
    (MATMUL, "distribute j | keep acc in registers at S.j", "all statements that touch it"),
    (matmul_scop(400, 64, 3), "keep acc in stack", "at most 32768 bytes"),
    (
        matmul_scop(4, 1024, 3),
        "keep acc in registers at i",
        "4096 bytes, and all registers have 2048",
    ),
    (SOFTMAX, "keep E in place of Y at i", "E is no array"),
    (SOFTMAX, "keep M in place of Y at i", "M cannot be kept in place of Y"),
]


@pytest.mark.parametrize(("of", "text", "said"), KEPT)
def test_arrays_that_cannot_live_there_are_refused(of, text, said):
    with pytest.raises(IllegalSchedule, match=said):
        compile_stages(filled(of), schedule=Schedule.parse(text))


def test_an_array_is_kept_in_the_loop_that_has_the_name_by_then():
    text = "keep acc in registers at i | order j i"
    check(matmul_scop(70, 64, 3), rtol=1e-5, schedule=Schedule.parse(text))
