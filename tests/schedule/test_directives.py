"""Each directive: the tree before and after, and what cannot be done to a tree."""

from __future__ import annotations

import islpy as isl
import pytest

from polyc.errors import IllegalSchedule
from polyc.schedule.cluster import Cluster
from polyc.schedule.initial import InitialLoops, initial_tree
from polyc.schedule.loops import Instances, Kept, Loop, LoopTree, Sequence
from polyc.schedule.names import select
from polyc.schedule.schedule import Schedule
from tests.analysis.nests import ZERO, array, load, matmul_scop, scop, statement
from tests.mapping.stages import open_cluster

MATMUL = [open_cluster(matmul_scop(7, 5, 3)).cluster]


def separate() -> list[Cluster]:
    """A[i, j] and B[m, j], one after the other, each a cluster."""
    of = scop(
        [array("A", [8, 4], "temporary"), array("B", [8, 4], "output")],
        statement("{ S[i, j] : 0 <= i < 8 and 0 <= j < 4 }", "{ S[i, j] -> A[i, j] }", ZERO),
        statement(
            "{ T[m, j] : 0 <= m < 8 and 0 <= j < 4 }",
            "{ T[m, j] -> B[m, j] }",
            load("{ T[m, j] -> A[m, j] }"),
        ),
    )
    return [Cluster((s,), ({s.name: 0}, {s.name: 1}), has_reuse=False) for s in of.statements]


def show(tree: LoopTree) -> str:
    """i(j(S)); a sequence in brackets, another kind of loop after a colon."""
    match tree:
        case Instances(statement):
            return statement
        case Sequence(parts):
            return f"[{' '.join(map(show, parts))}]"
        case Kept(arrays):
            return f"keep {'all' if arrays is None else ' '.join(arrays)}({show(tree.body)})"
        case Loop():
            kind = "" if tree.kind == "sequential" else f":{tree.kind}"
            return f"{tree.name}{kind}({show(tree.body)})"


def after(text: str, clusters: list[Cluster] = MATMUL) -> str:
    return show(Schedule.parse(text).apply(initial_tree(clusters)))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", "i(j([Z k(S) T]))"),
        ("order j i", "j(i([Z k(S) T]))"),
        ("split i 3", "i(i'(j([Z k(S) T])))"),
        ("split i 4 | split i' 2", "i(i'(i''(j([Z k(S) T]))))"),
        ("split i 3 | order i j i'", "i(j(i'([Z k(S) T])))"),
        ("sink j", "i([j(Z) k(j(S)) j(T)])"),
        ("sink i j", "[i(j(Z)) k(i(j(S))) i(j(T))]"),
        ("sink j | order j k", "i([j(Z) j(k(S)) j(T)])"),
        ("distribute j", "i([j(Z) j(k(S)) j(T)])"),
        ("distribute j i", "[i(j(Z)) i(j(k(S))) i(j(T))]"),
        ("distribute j | fuse Z.j S.j", "i([j([Z k(S)]) j(T)])"),
        ("distribute j | fuse j", "i(j([Z k(S) T]))"),
        ("distribute j | fuse S.j T.j 2", "i([j(Z) j([j'(k(S)) j'(T)])])"),
        ("distribute j | first T.j", "i([j(T) j(Z) j(k(S))])"),
        ("distribute j | first S.j T.j", "i([j(k(S)) j(T) j(Z)])"),
        ("hold k", "i(j([Z k:hold(S) T]))"),
        ("parallel i | unroll k", "i:parallel(j([Z k:unroll(S) T]))"),
        ("sink j | vector S.j", "i([j(Z) k(j:vector(S)) j(T)])"),
        ("keep acc in registers at j", "i(j(keep acc([Z k(S) T])))"),
        ("keep acc in stack", "keep acc(i(j([Z k(S) T])))"),
        ("keep all at i", "i(keep all(j([Z k(S) T])))"),
        ("keep a in stack at i | keep b in registers at i", "i(keep a b(j([Z k(S) T])))"),
        ("pack X", "i(j([Z k(S) T]))"),
    ],
)
def test_what_a_directive_makes_of_a_product(text, tree):
    assert after(text) == tree


@pytest.mark.parametrize(
    ("text", "loop", "values"),
    [
        ("", "j", {"Z": "j", "S": "j", "T": "j"}),
        ("reverse i", "i", {"Z": "-i", "S": "-i", "T": "-i"}),
        ("shift S.j 2", "j", {"Z": "j", "S": "j + 2", "T": "j"}),
        ("skew j i -3", "j", dict.fromkeys("ZST", "j - 3*i")),
        ("split i 3", "i", dict.fromkeys("ZST", "3*floor(i/3)")),
        ("split i 3", "i'", dict.fromkeys("ZST", "i mod 3")),
    ],
)
def test_the_values_that_a_loop_walks(text, loop, values):
    tree = Schedule.parse(text).apply(initial_tree(MATMUL))
    (found,) = select(tree, loop)
    spaces = {"Z": "Z[i, j]", "S": "S[i, j, k]", "T": "T[i, j]"}
    maps = "; ".join(f"{spaces[name]} -> [{value}]" for name, value in values.items())
    walked = isl.UnionMap.from_union_pw_aff(found.function)
    assert walked.is_equal(isl.UnionMap(f"{{ {maps} }}"))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", "[i(j(S)) m(j(T))]"),
        ("fuse i m", "i([j(S) j(T)])"),
        ("fuse m i", "m([j(S) j(T)])"),
        ("fuse i m 3", "i([i'(j(S)) m'(j(T))])"),
        ("fuse i m 3 | fuse S.j T.j 2", "i(j([i'(j'(S)) m'(j'(T))]))"),
        ("split S.j 2 | split T.j 4", "[i(j(j'(S))) m(j(j'(T)))]"),
        ("split j 2 | fuse i m", "i([j(j'(S)) j(j'(T))])"),
        ("fuse i m | distribute i", "[i(j(S)) i(j(T))]"),
        ("first m", "[m(j(T)) i(j(S))]"),
    ],
)
def test_what_a_directive_makes_of_two_nests(text, tree):
    assert after(text, separate()) == tree


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("order i l", "order i l: there is no loop l here; there are i, j, k"),
        ("order i i", "a loop is named twice"),
        ("split i 0", "at least 1 iteration"),
        ("split i -4", "at least 1 iteration"),
        ("split Q.i 4", "there is no statement Q here; there are S, T, Z"),
        ("split i 4 | split i 2", "cut from the outside in"),
        ("distribute i", "no sequence directly inside of i"),
        ("fuse i", "do not stand in parts of one sequence"),
        ("distribute j | fuse Z.j T.j", "stand next to each other"),
        ("distribute j | split S.j 2 | fuse S.j T.j 2", "fuse before that"),
        ("distribute j | fuse j 0", "at least 1 iteration"),
        ("first l", "no loop l here"),
        ("shift i 1", "say the loop of which statement"),
        ("skew i j 1", "the loop j is not around every i"),
        ("keep all at i | keep acc in stack at i", "nothing else may be said"),
    ],
)
def test_what_cannot_be_done_is_told(text, said):
    with pytest.raises(IllegalSchedule, match=said):
        after(text)


def test_a_loop_of_one_iteration_is_none():
    cluster = open_cluster(matmul_scop(1, 5, 3)).cluster
    assert show(initial_tree([cluster])) == "j([Z k(S) T])"
    named = InitialLoops((cluster,))
    assert [loop.name for loop in named.loops] == ["j", "k"]
    assert named.shared(cluster, 0) is None
