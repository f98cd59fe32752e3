"""Distributing a reader over the writers of its input: what moves, what does not, and values."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

import polyc
from polyc import ops
from polyc.scop.distribute import distribute
from polyc.scop.expr import Call, Const, Expr, Load, Within, walk
from polyc.scop.inline import LARGEST_EXPRESSION, inline_pointwise
from polyc.scop.lower import lower_graph
from polyc.scop.lower.windows import window
from polyc.scop.lower.windows.minimal_filter import minimal_filter
from polyc.scop.scop import Group, Kind, Scop, Statement
from tests.analysis.nests import F32, ZERO, array, load, scop, statement
from tests.scop.rewrites import check, get, names


def call(function: str, *arguments: Expr) -> Call:
    return Call(function, arguments, F32)


EVEN = statement(
    "{ W0[i] : 0 <= i < 5 }", "{ W0[i] -> X[2i] }", call("neg", load("{ W0[i] -> A[i] }"))
)
ODD = statement(
    "{ W1[i] : 0 <= i < 4 }", "{ W1[i] -> X[2i + 1] }", call("abs", load("{ W1[i] -> B[i] }"))
)


def reader(value: Expr, domain: str = "0 <= j < 9", write: str = "Y[j]") -> Statement:
    return statement(f"{{ R[j] : {domain} }}", f"{{ R[j] -> {write} }}", value)


RELU = reader(call("max", load("{ R[j] -> X[j] }"), ZERO))
SUM = reader(call("add", load("{ R[j] -> X[j] }"), load("{ R[j] -> Z[j] }")))


def program(*statements: Statement, outputs: tuple[str, ...] = ("Y",)) -> Scop:
    """Arrays A, B and C are inputs of 9 elements; the others are temporaries or outputs."""
    used = [a for s in statements for a in (s.array, *(ld.array for ld in s.loads))]

    def kind(name: str) -> Kind:
        return "input" if name in "ABC" else "output" if name in outputs else "temporary"

    return scop([array(n, [9], kind(n)) for n in dict.fromkeys(used)], *statements)


def check_kept(before: Scop) -> None:
    """Assert that nothing is distributed."""
    after = distribute(before)
    assert list(map(str, after.statements)) == list(map(str, before.statements))


def test_two_interleaved_writers_and_one_reader() -> None:
    after = check(distribute, program(EVEN, ODD, RELU))
    assert names(after) == ["W0", "W1"]
    assert "X" not in after.arrays
    for name, wanted in (("W0", "j mod 2 = 0"), ("W1", "j mod 2 = 1")):
        piece = get(after, name)
        assert piece.array == "Y"
        assert piece.iterators == ("i",)
        written = piece.write.as_map().intersect_domain(piece.domain).range()
        assert written.is_equal(isl.Set(f"{{ Y[j] : 0 <= j < 9 and {wanted} }}"))
    functions = [e.function for e in walk(get(after, "W0").value) if isinstance(e, Call)]
    assert functions == ["max", "neg"]


def test_what_else_the_reader_reads_moves_along() -> None:
    other = load("{ R[j] -> C[8 - j] }")
    value = call("sub", load("{ R[j] -> X[j] }"), other)
    after = check(distribute, program(EVEN, ODD, reader(value)))
    (index,) = [ld.index for ld in get(after, "W1").loads if ld.array == "C"]
    assert index.is_equal(isl.PwMultiAff("{ W1[i] -> C[7 - 2i] }").intersect_domain(index.domain()))


FILL = statement("{ F[j] : 3 <= j < 9 }", "{ F[j] -> Y[j] }", ZERO)


def test_a_reader_of_a_part_leaves_the_rest_out() -> None:
    after = check(
        distribute,
        program(EVEN, ODD, reader(load("{ R[j] -> X[8 - 2j] }"), "0 <= j < 3", "Y[j]"), FILL),
    )
    assert names(after) == ["W0", "F"]
    assert get(after, "W0").domain.is_equal(isl.Set("{ W0[i] : 2 <= i < 5 }"))


def test_indices_in_the_value_follow() -> None:
    low = Within(isl.Set("{ R[j] : j < 4 }"))
    value = call("select", low, load("{ R[j] -> X[j] }"), Const(1.0, F32))
    after = check(distribute, program(EVEN, ODD, reader(value)))
    for name, wanted in (("W0", "2i < 4"), ("W1", "2i + 1 < 4")):
        piece = get(after, name)
        (within,) = [e for e in walk(piece.value) if isinstance(e, Within)]
        here = within.domain.intersect(piece.domain)
        assert here.is_equal(piece.domain.intersect(isl.Set(f"{{ {name}[i] : {wanted} }}")))


def test_two_loads_of_one_element_are_one_read() -> None:
    value = call("mul", load("{ R[j] -> X[j] }"), load("{ R[j] -> X[j] }"))
    assert names(check(distribute, program(EVEN, ODD, reader(value)))) == ["W0", "W1"]


def test_a_chain_of_readers_is_distributed_in_turn() -> None:
    middle = statement("{ M[j] : 0 <= j < 9 }", "{ M[j] -> V[8 - j] }", load("{ M[j] -> X[j] }"))
    last = reader(call("neg", load("{ R[j] -> V[j] }")))
    after = check(distribute, program(EVEN, ODD, middle, last))
    assert names(after) == ["W0", "W1"]
    assert set(after.arrays) == {"A", "B", "Y"}


def test_an_origin_names_both() -> None:
    writers = [replace(s, origin=("concat",)) for s in (EVEN, ODD)]
    after = distribute(program(*writers, replace(RELU, origin=("relu",))))
    assert {s.origin for s in after.statements} == {("concat", "relu")}


REDUCTION = [
    statement("{ R0[] }", "{ R0[] -> Y[0] }", ZERO),
    statement("{ R[j] : 0 <= j < 9 }", "{ R[j] -> Y[0] }", load("{ R[j] -> X[j] }"), "add"),
]
TWICE = call("add", load("{ R[j] -> X[j] }"), load("{ R[j] -> X[8 - j] }"))
REPEATED = reader(load("{ R[j] -> X[floor(j/2)] }"))
RECURRENCE = [
    reader(load("{ R[j] -> A[j] }"), "j = 0"),
    statement(
        "{ Q[j] : 0 < j < 9 }",
        "{ Q[j] -> Y[j] }",
        call("add", load("{ Q[j] -> X[j] }"), load("{ Q[j] -> Y[j - 1] }")),
    ),
]
GUARDED = reader(
    call(
        "select",
        Within(isl.Set("{ R[j] : j < 4 }")),
        Load("X", isl.PwMultiAff("{ R[j] -> X[j] : j < 4 }"), F32),
        Const(7.0, F32),
    )
)
LATE = statement("{ L[j] : 0 <= j < 9 }", "{ L[j] -> Z[j] }", call("neg", load("{ L[j] -> C[j] }")))


@pytest.mark.parametrize(
    "readers",
    [
        pytest.param([reader(TWICE)], id="reads two elements"),
        pytest.param([REPEATED], id="reads an element twice"),
        pytest.param(REDUCTION, id="a reduction"),
        pytest.param([RELU, replace(SUM, array="V")], id="two readers"),
        pytest.param([LATE, SUM], id="another input is written later"),
        pytest.param(RECURRENCE, id="a recurrence"),
        pytest.param([GUARDED], id="computes elements that it does not read"),
    ],
)
def test_refused(readers: list[Statement]) -> None:
    readers = [
        replace(s, name="R_2", write=isl.PwMultiAff("{ R[j] -> V[j] }")) if s.array == "V" else s
        for s in readers
    ]
    check_kept(program(EVEN, ODD, *readers, outputs=("Y", "V")))


def test_a_reduction_is_no_piece() -> None:
    start = statement("{ W1[i] : 0 <= i < 4 }", "{ W1[i] -> X[2i + 1] }", ZERO)
    total = statement(
        "{ W2[i, k] : 0 <= i < 4 and 0 <= k < 3 }",
        "{ W2[i, k] -> X[2i + 1] }",
        load("{ W2[i, k] -> A[i + k] }"),
        "add",
    )
    check_kept(program(EVEN, start, total, RELU))


def test_an_output_stays() -> None:
    check_kept(program(EVEN, ODD, RELU, outputs=("X", "Y")))


def test_a_large_expression_is_stored() -> None:
    value: Expr = load("{ R[j] -> X[j] }")
    for _ in range(LARGEST_EXPRESSION):
        value = call("neg", value)
    check_kept(program(EVEN, ODD, reader(value)))


def test_every_copy_of_the_piece_counts() -> None:
    deep: Expr = load("{ W0[i] -> A[i] }")
    for _ in range(LARGEST_EXPRESSION // 2):
        deep = call("neg", deep)
    once, twice = load("{ R[j] -> X[j] }"), call("mul", *[load("{ R[j] -> X[j] }")] * 2)
    assert names(check(distribute, program(replace(EVEN, value=deep), ODD, reader(once)))) == [
        "W0",
        "W1",
    ]
    check_kept(program(replace(EVEN, value=deep), ODD, reader(twice)))


def test_a_group_moves_behind_what_is_written_later() -> None:
    group = Group("tiles", ("i",))
    grouped = [replace(s, group=group) for s in (EVEN, ODD)]
    after = check(distribute, program(*grouped, LATE, SUM))
    assert names(after) == ["L", "W0", "W1"]
    assert {s.group for s in after.statements} == {None, group}


# -- graphs ---------------------------------------------------------------------------------------


RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("f4")


def lowered(y: ops.Value) -> Scop:
    return inline_pointwise(lower_graph(polyc.Graph.of(y=y)))


def force_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 3x3 convolutions use F(2, 3) even on few channels."""
    small = (minimal_filter(2, 3),) * 2
    monkeypatch.setattr(window, "choose_filters", lambda *a, **_: small if a[4] == (3, 3) else None)


def conv(x: ops.Value, filters: int, taps: int) -> ops.Value:
    w, pad = normal(filters, x.shape[1], taps, taps), taps // 2
    return ops.conv(x, w, normal(filters), pads=[pad] * 4)


def test_concatenation_and_relu() -> None:
    a, b = ops.input("a", (2, 3, 5)), ops.input("b", (2, 4, 5))
    joined = ops.concat([ops.neg(a), ops.exp(b)], 1)
    before = lowered(ops.relu(joined))
    assert len(before.statements) == 3
    after = check(distribute, before)
    assert [s.array for s in after.statements] == ["y", "y"]


@pytest.mark.parametrize("late", [False, True])
def test_the_end_of_a_residual_block(monkeypatch: pytest.MonkeyPatch, late: bool) -> None:
    """conv, bias, add, relu; the other operand is an input, or computed after the convolution."""
    force_tiles(monkeypatch)
    x, z = ops.input("x", (2, 2, 5, 6)), ops.input("z", (2, 3, 5, 6))
    main = conv(x, 3, 3)
    before = lowered(ops.relu(main + (conv(x, 3, 1) if late else z)))
    after = check(distribute, before)
    (*_, group) = dict.fromkeys(s.group for s in before.statements if s.group)
    pieces = [s for s in after.statements if s.array == "y"]
    assert len(pieces) == 2
    assert {s.group for s in pieces} == {group}
    assert after.statements[-2:] == tuple(pieces)
    for piece in pieces:
        functions = [e.function for e in walk(piece.value) if isinstance(e, Call)]
        assert functions[:2] == ["max", "add"]


def test_two_convolutions_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum goes into one of them; the other is stored."""
    force_tiles(monkeypatch)
    x = ops.input("x", (1, 2, 5, 4))
    after = check(distribute, lowered(conv(x, 3, 3) + conv(x, 3, 3)))
    pieces = [s for s in after.statements if s.array == "y"]
    assert len(pieces) == 2
    read = {load.array for s in pieces for load in s.loads}
    (stored,) = [a for a in read if after.arrays[a].shape == (1, 3, 5, 4)]
    assert [s.array for s in after.statements if s.group].count(stored) == 2


def test_a_smooth_activation_is_computed_in_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    force_tiles(monkeypatch)
    made = conv(ops.input("x", (1, 2, 4, 7)), 3, 3)
    after = check(distribute, lowered(made * ops.sigmoid(made)))
    assert [s.array for s in after.statements[-2:]] == ["y", "y"]
    assert all(s.group for s in after.statements[-2:])
