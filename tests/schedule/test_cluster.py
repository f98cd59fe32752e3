"""Which statements become one kernel, on scops from literals."""

from dataclasses import replace

import pytest

from polyc.schedule.cluster import Cluster, find_clusters
from polyc.scop.expr import Call, Const, call
from polyc.scop.scop import Group, Scop, Statement
from polyc.target.machine import Target
from tests.analysis.nests import (
    F32,
    ZERO,
    array,
    conv_scop,
    load,
    matmul_scop,
    recurrence,
    scop,
    softmax_scop,
    statement,
)

TARGET = Target.named("avx512")


def clusters_of(of: Scop) -> list[list[str]]:
    return [[s.name for s in c.statements] for c in find_clusters(of, TARGET)[0]]


def shared_iterators(cluster: Cluster) -> dict[str, list[str]]:
    """Statement -> its iterators for the shared loops, outermost first."""
    return {
        s.name: [s.iterators[loop[s.name]] for loop in cluster.shared] for s in cluster.statements
    }


def extended(
    of: Scop, *tail: Statement, output: str = "V", shape: tuple[int, ...] = (4, 32)
) -> Scop:
    """The scop with its output made a temporary, and statements after it."""
    arrays = {
        n: replace(a, kind="temporary") if n in of.outputs else a for n, a in of.arrays.items()
    }
    arrays[output] = array(output, shape, "output")
    return Scop(of.name, (*of.statements, *tail), arrays, of.inputs, (output,))


def after_matmul(access: str, name: str = "U", iterators: str = "i, j") -> Statement:
    return statement(
        f"{{ {name}[{iterators}] : 0 <= i < 4 and 0 <= j < 32 }}",
        f"{{ {name}[{iterators}] -> V[{iterators}] }}",
        call("neg", load(f"{{ {name}[{iterators}] -> {access} }}")),
    )


def test_a_contraction_takes_its_initialisation_and_its_epilogue():
    (cluster,), refusals = find_clusters(matmul_scop(), TARGET)
    assert shared_iterators(cluster) == {"Z": ["i", "j"], "S": ["i", "j"], "T": ["i", "j"]}
    assert cluster.has_reuse
    assert cluster.extents == (4, 32)
    assert refusals == ()


def test_a_convolution_shares_its_parallel_loops():
    (cluster,), _ = find_clusters(conv_scop(16, 8, 8, 4, 3), TARGET)
    assert shared_iterators(cluster)["S"] == ["n", "o", "y", "x"]
    assert cluster.has_reuse


def test_softmax_is_one_kernel_over_its_rows():
    (cluster,), _ = find_clusters(softmax_scop(64, 128), TARGET)
    assert set(shared_iterators(cluster)["E"]) == {"i"}
    assert not cluster.has_reuse


def test_a_reader_that_runs_along_joins_and_a_transposed_one_follows_its_loops():
    assert clusters_of(extended(matmul_scop(), after_matmul("Y[i, j]"))) == [["Z", "S", "T", "U"]]
    turned = extended(matmul_scop(), after_matmul("Y[i, j]", iterators="j, i"), shape=(32, 4))
    (cluster,), _ = find_clusters(turned, TARGET)
    assert shared_iterators(cluster)["U"] == ["i", "j"]


def test_a_reader_of_neighbours_is_refused_with_a_reason():
    shifted = after_matmul("Y[i, 31 - j]")
    clusters, refusals = find_clusters(extended(matmul_scop(), shifted), TARGET)
    assert [[s.name for s in c.statements] for c in clusters] == [["Z", "S", "T"], ["U"]]
    (refusal,) = refusals
    assert (refusal.producer, refusal.consumer) == ("T", "U")
    assert refusal.reason == "not every loop of the contraction is shared"


def test_a_reader_of_what_data_names_stays_out_of_a_register_tile():
    """Its loads would be written out for each lane of each vector of the tile."""
    place = Call("index", (load("{ U[i, j] -> Y[i, j] }"), Const(4, F32)), F32)
    looked_up = replace(load("{ U[i, j] -> W[0, j] }"), dynamic=((0, place),))
    reader = replace(after_matmul("Y[i, j]"), value=call("add", looked_up, place.arguments[0]))
    clusters, refusals = find_clusters(extended(matmul_scop(), reader), TARGET)
    assert [[s.name for s in c.statements] for c in clusters] == [["Z", "S", "T"], ["U"]]
    assert refusals[0].reason.startswith("loads from where data says")


def test_a_second_contraction_is_a_kernel_of_its_own():
    second = (
        statement("{ A[i, j] : 0 <= i < 4 and 0 <= j < 32 }", "{ A[i, j] -> V[i, j] }", ZERO),
        statement(
            "{ B[i, j, k] : 0 <= i < 4 and 0 <= j < 32 and 0 <= k < 32 }",
            "{ B[i, j, k] -> V[i, j] }",
            load("{ B[i, j, k] -> Y[i, k] }"),
            "add",
        ),
    )
    clusters, refusals = find_clusters(extended(matmul_scop(), *second), TARGET)
    assert [[s.name for s in c.statements] for c in clusters] == [["Z", "S", "T"], ["A", "B"]]
    assert "own" in refusals[0].reason or "register" in refusals[0].reason


def test_a_statement_joins_the_latest_of_its_producers():
    def point(name: str, target: str, *sources: str) -> Statement:
        value = load(f"{{ {name}[i] -> {sources[0]}[i] }}")
        for source in sources[1:]:
            value = Call("add", (value, load(f"{{ {name}[i] -> {source}[i] }}")), F32)
        return statement(f"{{ {name}[i] : 0 <= i < 99 }}", f"{{ {name}[i] -> {target}[i] }}", value)

    of = scop(
        [array("X", [99], "input"), array("Y", [99], "output"), array("Z", [99], "output")]
        + [array(n, [99], "temporary") for n in "AB"],
        point("P", "A", "X"),
        point("Q", "B", "X"),
        point("R", "Y", "A", "B"),
        point("S", "Z", "A"),
    )
    assert clusters_of(of) == [["P", "S"], ["Q", "R"]]


def first_row() -> Statement:
    return statement(
        "{ F[j] : 0 <= j < 32 }", "{ F[j] -> V[0, j] }", call("neg", load("{ F[j] -> W[0, j] }"))
    )


def other_rows(first: int) -> Statement:
    return statement(
        "{ U[i, j] : 0 <= i < 4 and 0 <= j < 32 }",
        f"{{ U[i, j] -> V[i + {first}, j] }}",
        call("neg", load("{ U[i, j] -> Y[i, j] }")),
    )


def test_an_epilogue_joins_though_others_have_written_elsewhere_in_its_array():
    """A class token stands before the patches of an image: their sums stay in registers."""
    together = extended(matmul_scop(), first_row(), other_rows(1), shape=(5, 32))
    assert clusters_of(together) == [["Z", "S", "T", "U"], ["F"]]


def test_an_epilogue_that_writes_the_same_elements_keeps_its_place():
    over = extended(matmul_scop(), first_row(), other_rows(0), shape=(5, 32))
    assert clusters_of(over) == [["Z", "S", "T"], ["F"], ["U"]]
    (refusal,) = find_clusters(over, TARGET)[1]
    assert refusal.reason == "kernels in between read or write what it writes"


def test_an_epilogue_does_not_overtake_a_reader_of_its_array():
    reader = statement(
        "{ G[j] : 0 <= j < 32 }",
        "{ G[j] -> Q[j] }",
        call("neg", load("{ G[j] -> V[0, j] }")),
    )
    between = extended(matmul_scop(), first_row(), reader, other_rows(1), shape=(5, 32))
    between = replace(between, arrays={**between.arrays, "Q": array("Q", (32,), "output")})
    assert clusters_of(between) == [["Z", "S", "T"], ["F", "G"], ["U"]]


def test_fills_of_a_halo_run_before_what_completes_the_array():
    of = scop(
        [array("X", [9], "input"), array("H", [11], "temporary"), array("Y", [9], "output")],
        statement("{ F[i] : i = 0 }", "{ F[i] -> H[0] }", ZERO),
        statement("{ G[i] : i = 0 }", "{ G[i] -> H[10] }", ZERO),
        statement("{ P[i] : 0 <= i < 9 }", "{ P[i] -> H[i + 1] }", load("{ P[i] -> X[i] }")),
        statement("{ R[i] : 0 <= i < 9 }", "{ R[i] -> Y[i] }", load("{ R[i] -> H[i + 2] }")),
    )
    clusters, _ = find_clusters(of, TARGET)
    assert [s.name for s in clusters[0].prelude] == ["F", "G"]
    assert [s.name for c in clusters for s in c.statements] == ["P", "R"]


def test_a_recurrence_shares_only_what_it_does_not_carry():
    clusters, _ = find_clusters(recurrence().scop, TARGET)
    (carried,) = [c for c in clusters if c.statements[-1].name == "R"]
    assert carried.shared == ()
    rows = statement(
        "{ R[i, j] : 0 <= i < 8 and 1 <= j < 6 }",
        "{ R[i, j] -> Y[i, j] }",
        load("{ R[i, j] -> Y[i, j-1] }"),
    )
    start = statement("{ B[i] : 0 <= i < 8 }", "{ B[i] -> Y[i, 0] }", Const(1.0, F32))
    of = scop([array("Y", [8, 6], "output")], start, rows)
    found = [c for c in find_clusters(of, TARGET)[0] if c.statements[-1].name == "R"]
    assert shared_iterators(found[0])["R"] == ["i"]


@pytest.mark.parametrize(
    ("rows", "columns", "reason"),
    [
        (64, 1000, ""),
        (2, 1 << 17, "only 2 parallel iterations would be left"),
        (64, 1 << 20, "4194304 bytes a row would not stay in cache"),
        (2, 1000, ""),  # little work: one thread does it anyway
    ],
)
def test_rows_are_fused_if_that_leaves_parallel_work_and_keeps_them_in_cache(rows, columns, reason):
    ij = f"0 <= i < {rows} and 0 <= j < {columns}"
    of = scop(
        [
            array("X", [rows, columns], "input"),
            array("A", [rows, columns], "temporary"),
            array("Y", [rows], "output"),
        ],
        statement(
            f"{{ P[i, j] : {ij} }}", "{ P[i, j] -> A[i, j] }", load("{ P[i, j] -> X[i, j] }")
        ),
        statement(f"{{ Z[i] : 0 <= i < {rows} }}", "{ Z[i] -> Y[i] }", ZERO),
        statement(
            f"{{ R[i, j] : {ij} }}", "{ R[i, j] -> Y[i] }", load("{ R[i, j] -> A[i, j] }"), "add"
        ),
    )
    clusters, refusals = find_clusters(of, TARGET)
    assert len(clusters) == (2 if reason else 1)
    assert [r.reason for r in refusals] == ([reason] if reason else [])


@pytest.mark.parametrize(("length", "count"), [(1 << 12, 1), (1 << 14, 2)])
def test_what_one_thread_sums_up_leaves_long_work_to_all(length, count):
    """As dynamic quantisation: the largest element of all, then all are divided by it."""
    j = f"0 <= j < {length}"
    of = scop(
        [
            array("X", [length], "input"),
            array("M", [1], "temporary"),
            array("Y", [length], "output"),
        ],
        statement("{ Z[] }", "{ Z[] -> M[0] }", Const(float("-inf"), F32)),
        statement(f"{{ R[j] : {j} }}", "{ R[j] -> M[0] }", load("{ R[j] -> X[j] }"), "max"),
        statement(
            f"{{ D[j] : {j} }}",
            "{ D[j] -> Y[j] }",
            call("div", load("{ D[j] -> X[j] }"), load("{ D[j] -> M[0] }")),
        ),
    )
    clusters, refusals = find_clusters(of, TARGET)
    assert len(clusters) == count
    assert [r.reason for r in refusals] == ["only 1 parallel iterations would be left"][: count - 1]


def test_a_group_is_one_kernel_over_the_iterators_that_it_names():
    group = Group("transform", ("b",))
    parts = [
        replace(
            statement(
                "{ A[b, i] : 0 <= b < 8 and 0 <= i < 4 }",
                "{ A[b, i] -> T[b, i] }",
                load("{ A[b, i] -> X[b, i] }"),
            ),
            group=group,
        ),
        replace(
            statement(
                "{ B[j, b] : 0 <= b < 8 and 0 <= j < 4 }",
                "{ B[j, b] -> Y[b, j] }",
                load("{ B[j, b] -> T[b, 3 - j] }"),
            ),
            group=group,
        ),
    ]
    arrays = [
        array("X", [8, 4], "input"),
        array("T", [8, 4], "temporary"),
        array("Y", [8, 4], "output"),
    ]
    (cluster,), _ = find_clusters(scop(arrays, *parts), TARGET)
    assert cluster.is_group
    assert shared_iterators(cluster) == {"A": ["b"], "B": ["b"]}


def blocks_scop(x: str = "i, g, k", w: str = "j, g, k", s: str = "j, g") -> Scop:
    """U[i, j] += part[i, j, g] * s[j, g], where part is a contraction of x and w over k."""
    sizes = "0 <= i < 4 and 0 <= j < 32"
    each = f"{sizes} and 0 <= g < 6"
    product = call(
        "mul",
        load(f"{{ S[i,j,g,k] -> X[{x}] }}"),
        load(f"{{ S[i,j,g,k] -> W[{w}] }}"),
    )
    scaled = call("mul", load("{ U[i,j,g] -> part[i,j,g] }"), load(f"{{ U[i,j,g] -> s[{s}] }}"))
    return scop(
        [
            array("X", [4, 6, 5], "input"),
            array("W", [32, 6, 5], "constant"),
            array("s", [32, 6], "constant"),
            array("part", [4, 32, 6], "temporary"),
            array("acc", [4, 32], "temporary"),
            array("Y", [4, 32], "output"),
        ],
        statement(f"{{ Z[i,j,g] : {each} }}", "{ Z[i,j,g] -> part[i,j,g] }", ZERO),
        statement(
            f"{{ S[i,j,g,k] : {each} and 0 <= k < 5 }}",
            "{ S[i,j,g,k] -> part[i,j,g] }",
            product,
            "add",
        ),
        statement(f"{{ V[i,j] : {sizes} }}", "{ V[i,j] -> acc[i,j] }", ZERO),
        statement(f"{{ U[i,j,g] : {each} }}", "{ U[i,j,g] -> acc[i,j] }", scaled, "add"),
        statement(
            f"{{ T[i,j] : {sizes} }}", "{ T[i,j] -> Y[i,j] }", load("{ T[i,j] -> acc[i,j] }")
        ),
    )


def test_a_sum_of_parts_takes_the_contraction_that_computes_them():
    """Along g nothing is used again, so that a part may be added as soon as it is there."""
    (cluster,), _ = find_clusters(blocks_scop(), TARGET)
    assert [s.name for s in cluster.statements] == ["V", "Z", "S", "U", "T"]
    assert shared_iterators(cluster) == {name: ["i", "j"] for name in "VZSUT"}
    assert [*cluster.summed] == [{"Z": 2, "S": 2, "U": 2}]
    assert cluster.summed_positions(cluster.statement("S")) == {2}
    assert not cluster.summed_positions(cluster.statement("T"))


def test_parts_of_a_contraction_that_use_something_again_are_stored():
    """x[i, k] is multiplied with the weights of each g: tiles along g use it from registers."""
    (first, *_), refusals = find_clusters(blocks_scop(x="i, 0, k"), TARGET)
    assert [s.name for s in first.statements] == ["Z", "S"]
    assert not first.summed
    assert any("split the register tile" in r.reason or "shared" in r.reason for r in refusals)
