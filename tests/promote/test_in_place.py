"""Rows that are kept in the result that overwrites them, and rows that must not be."""

from pathlib import Path

import islpy as isl
import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.analysis.dependences import compute_dependences
from polyc.errors import IllegalSchedule
from polyc.loopnest.nodes import Assign, For, walk_nodes
from polyc.memory.storage import row_major
from polyc.promote.in_place import Moved, keep_in_place, move_named
from polyc.scop.expr import Call
from polyc.scop.scop import Scop
from tests.analysis.nests import F32, ZERO, array, load, scop, statement
from tests.mapping.stages import AVX512, TARGETS, check
from tests.programs import options
from tests.promote.test_local_arrays import tree
from tests.sampling import thorough

READ = "{ T[i, j] -> P[i, j] }"
WRITE = "{ E[i, j] -> Y[i, j] }"


def scaled_rows(rows: int, n: int, read: str = READ, write: str = WRITE, last: str = "P") -> Scop:
    """P[i, j] = 2 X[i, j];  s[i] = sum of P[i, j] over j;  Y[i, j] = P[i, j] * s[i]."""
    inside = f"0 <= i < {rows} and 0 <= j < {n}"
    doubled = load("{ W[i, j] -> X[i, j] }")
    return scop(
        [
            array("X", [rows, n], "input"),
            array("P", [rows, n], "temporary"),
            array("s", [rows], "temporary"),
            array("Y", (rows, n) if "Y[i, j]" in write else (n, rows), "output"),
        ],
        statement(
            f"{{ W[i, j] : {inside} }}",
            "{ W[i, j] -> P[i, j] }",
            Call("add", (doubled, doubled), F32),
        ),
        statement(f"{{ Z[i] : 0 <= i < {rows} }}", "{ Z[i] -> s[i] }", ZERO),
        statement(f"{{ T[i, j] : {inside} }}", "{ T[i, j] -> s[i] }", load(read), "add"),
        statement(
            f"{{ E[i, j] : {inside} }}",
            write,
            Call("mul", (load(f"{{ E[i, j] -> {last}[i, j] }}"), load("{ E[i, j] -> s[i] }")), F32),
        ),
    )


def is_in_place(of: Scop, target=AVX512) -> bool:
    stages = check(of, target)
    return "P" not in stages.of.arrays


@pytest.mark.parametrize(
    ("n", "target"),
    [
        *(thorough(1000, target) for target in TARGETS),
        *(thorough(1024, target) for target in TARGETS[:-1]),
        (1024, TARGETS[-1]),
        *((301, target) for target in TARGETS),
    ],
    ids=lambda v: getattr(v, "isa", v),
)
def test_a_long_row_lives_where_its_result_will_be(n, target):
    stages = check(scaled_rows(5, n), target)
    assert {p.name for p in stages.kernel.params} == {"X", "Y"}
    written = [a for a in walk_nodes(stages.nest) if isinstance(a, Assign)]
    assert {a.target.array for a in written if a.statement in ("W", "E")} == {"Y"}


def test_a_short_row_stays_in_registers():
    stages = check(scaled_rows(40, 200))
    (local,) = [
        lo for n in walk_nodes(stages.final) for lo in getattr(n, "locals", ()) if lo.source == "P"
    ]
    assert local.in_registers


@pytest.mark.thorough
def test_a_row_too_long_for_the_stack_needs_no_memory_of_its_own():
    assert is_in_place(scaled_rows(3, 9000))


def test_values_that_another_iteration_still_reads_are_not_overwritten():
    """T reads row 7 - i in iteration i, where E has overwritten it in another one."""
    of = scaled_rows(8, 600, read="{ T[i, j] -> P[7 - i, j] }")
    band = "[{ W[i, j] -> [(i)]; Z[i] -> [(i)]; T[i, j] -> [(i)]; E[i, j] -> [(i)] }]"
    storages = {n: row_major(a) for n, a in of.arrays.items()}
    start = Moved(of, compute_dependences(of))
    assert keep_in_place(start, tree(of.statements, band), {"E": (1, 32)}, storages) is start
    with pytest.raises(IllegalSchedule, match="P cannot be kept in place of Y"):
        move_named(start, tree(of.statements, band), "P", "Y")


def test_values_that_a_later_statement_reads_are_not_overwritten():
    of = scaled_rows(5, 600)
    late = statement("{ U[i] : 0 <= i < 5 }", "{ U[i] -> Q[i] }", load("{ U[i] -> P[i, 0] }"))
    arrays = [*of.arrays.values(), array("Q", [5], "output")]
    assert not is_in_place(scop(arrays, *of.statements, late))


def test_a_result_that_a_later_statement_reads_may_be_a_home():
    """As softmax within attention: the product behind it reads it in the same kernel."""
    of = scaled_rows(5, 600)
    inside = "0 <= i < 5 and 0 <= j < 600"
    zero = statement("{ A[i] : 0 <= i < 5 }", "{ A[i] -> Q[i] }", ZERO)
    value = load("{ U[i, j] -> Y[i, j] }")
    late = statement(f"{{ U[i, j] : {inside} }}", "{ U[i, j] -> Q[i] }", value, "add")
    arrays = [*of.arrays.values(), array("Q", [5], "output")]
    whole = scop(arrays, *of.statements, zero, late)
    rows = [*(f"{s}[i, j]" for s in "WTEU"), "Z[i]", "A[i]"]
    band = "[{ " + "; ".join(f"{row} -> [(i)]" for row in rows) + " }]"
    scope = tree(whole.statements, band).get_root().child(0).child(0).child(0)
    order = isl.UnionSetList.alloc(isl.DEFAULT_CONTEXT, 6)
    for s in whole.statements:
        order = order.add(isl.UnionSet.from_set(s.domain))
    schedule = scope.insert_sequence(order).get_schedule()
    moved = move_named(Moved(whole, compute_dependences(whole)), schedule, "P", "Y")
    assert moved.homes == (("P", "Y"),)


@pytest.mark.thorough
def test_a_result_across_memory_keeps_its_row():
    of = scaled_rows(40, 600, write="{ E[i, j] -> Y[j, i] }")
    assert not is_in_place(of)


def test_what_the_last_statement_does_not_read_stays():
    assert not is_in_place(scaled_rows(5, 600, last="X"))


@pytest.mark.thorough
def test_the_threads_share_the_rows():
    stages = check(scaled_rows(64, 1024))
    assert "P" not in stages.of.arrays
    assert [n for n in walk_nodes(stages.nest) if isinstance(n, For) and n.kind == "parallel"]


@pytest.mark.thorough
@pytest.mark.parametrize("target", ["auto", "avx2", "baseline"])
@pytest.mark.parametrize("shape", [(37, 1031), (3, 9001), (2, 5, 600), (65, 1024)])
def test_softmax_of_long_rows(shape, target, tmp_path: Path):
    """As a result of the model, and as a temporary in the arena that a product reads."""
    rng = np.random.default_rng(4)
    weights = rng.standard_normal((shape[-1], 7), dtype=np.float32)
    rows = ops.softmax(ops.input("x", shape), axis=-1)
    graphs = [Graph.of(y=rows), Graph.of(y=ops.matmul(rows, weights))]
    x = 5 * rng.standard_normal(shape, dtype=np.float32)
    powers = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    share = powers / powers.sum(-1, keepdims=True)
    for graph, expected in zip(graphs, (share, share @ weights), strict=True):
        model = polyc.compile(graph, options=options(tmp_path), target=target, threads=2)
        assert "y_exp_local" not in model.source
        np.testing.assert_allclose(model(x), expected, rtol=2e-5, atol=2e-6)
