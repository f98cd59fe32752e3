"""Inlining: what is computed where it is read, what is not, and that results stay."""

import islpy as isl
import numpy as np

from polyc import Graph, ops
from polyc.scop.distribute import distribute
from polyc.scop.expr import Call, Const, Index, call, walk
from polyc.scop.inline import CHEAP, LARGEST_EXPRESSION, inline_pointwise
from polyc.scop.lower import lower_graph
from polyc.scop.scop import Array, Scop, Statement
from tests.analysis.nests import F32, array, load, matmul_scop, scop, statement
from tests.scop.rewrites import check, get, names

N = "0 <= i < 6 and 0 <= j < 4"


def pointwise(name: str, access: str, *functions: str, write: str = "[i, j]") -> Statement:
    """name: {name}_out[write] = f(… f(load))."""
    value = load(f"{{ {name}[i, j] -> {access} }}")
    for function in functions:
        value = Call(function, (value,), F32)
    return statement(f"{{ {name}[i, j] : {N} }}", f"{{ {name}[i, j] -> {name}o{write} }}", value)


def program(*statements: Statement, outputs: tuple[str, ...], shapes=None) -> Scop:
    shapes = {"X": (6, 4)} | (shapes or {})
    for s in statements:
        shapes.setdefault(s.array, (6, 4))
    kinds = {name: "output" if name in outputs else "temporary" for name in shapes} | {"X": "input"}
    return scop([array(n, shape, kinds[n]) for n, shape in shapes.items()], *statements)


def test_a_chain_is_one_statement():
    before = program(
        pointwise("A", "X[i, j]", "neg"),
        pointwise("B", "Ao[i, j]", "abs", "neg"),
        pointwise("C", "Bo[i, j]", "abs"),
        outputs=("Co",),
    )
    after = check(inline_pointwise, before)
    assert names(after) == ["C"]
    functions = [e.function for e in walk(get(after, "C").value) if isinstance(e, Call)]
    assert functions == ["abs", "neg", "abs", "neg"]
    assert set(after.arrays) == {"X", "Co"}


def test_a_view_is_read_through():
    before = program(
        pointwise("A", "X[i, j]", write="[3 - j, 5 - i]"),
        pointwise("B", "Ao[j, i]", "neg"),
        outputs=("Bo",),
        shapes={"Ao": (4, 6)},
    )
    after = check(inline_pointwise, before)
    assert names(after) == ["B"]
    (read,) = get(after, "B").loads
    assert read.array == "X"


def test_what_is_read_twice_is_stored_unless_it_is_cheap():
    def readers(*functions: str) -> Scop:
        return program(
            pointwise("A", "X[i, j]", *functions),
            pointwise("B", "Ao[i, j]", "abs"),
            pointwise("C", "Ao[5 - i, j]", "abs"),
            outputs=("Bo", "Co"),
        )

    assert names(check(inline_pointwise, readers(*["neg"] * CHEAP))) == ["B", "C"]
    assert names(check(inline_pointwise, readers(*["neg"] * (CHEAP + 1)))) == ["A", "B", "C"]


def test_an_element_read_by_many_instances_is_computed_once():
    rows = statement(
        "{ A[i] : 0 <= i < 6 }",
        "{ A[i] -> Ao[i] }",
        Call("exp", (load("{ A[i] -> X[i, 0] }"),), F32),
    )
    before = program(rows, pointwise("B", "Ao[i]", "neg"), outputs=("Bo",), shapes={"Ao": (6,)})
    assert names(check(inline_pointwise, before)) == ["A", "B"]


def test_a_copy_is_inlined_into_any_number_of_readers():
    before = program(
        pointwise("A", "X[5 - i, j]"),
        pointwise("B", "Ao[i, j]", "neg"),
        pointwise("C", "Ao[i, 0]", "abs"),
        outputs=("Bo", "Co"),
    )
    assert names(check(inline_pointwise, before)) == ["B", "C"]


def test_what_finishes_a_reduction_stays_and_its_reader_comes_to_it():
    of = matmul_scop()
    tail = statement(
        "{ U[i, j] : 0 <= i < 4 and 0 <= j < 32 }",
        "{ U[i, j] -> V[i, j] }",
        call("add", load("{ U[i, j] -> Y[i, j] }"), Const(1.0, F32)),
    )
    arrays = {
        **of.arrays,
        "Y": array("Y", [4, 32], "temporary"),
        "V": array("V", [4, 32], "output"),
    }
    arrays["W"] = Array("W", F32, (5, 32), "constant", np.ones((5, 32), np.float32))
    before = Scop("mm", (*of.statements, tail), arrays, ("X",), ("V",))
    inlined = check(inline_pointwise, before)
    assert names(inlined) == ["Z", "S", "T", "U"]
    after = check(distribute, inlined)
    assert names(after) == ["Z", "S", "T"]
    assert {ld.array for ld in get(after, "T").loads} == {"acc"}
    assert get(after, "T").array == "V"


def test_a_transposed_reader_comes_to_the_finish_too():
    of = matmul_scop()
    tail = statement(
        "{ U[j, i] : 0 <= i < 4 and 0 <= j < 32 }",
        "{ U[j, i] -> V[j, i] }",
        call("neg", load("{ U[j, i] -> Y[i, j] }")),
    )
    arrays = {
        **of.arrays,
        "Y": array("Y", [4, 32], "temporary"),
        "V": array("V", [32, 4], "output"),
    }
    arrays["W"] = Array("W", F32, (5, 32), "constant", np.ones((5, 32), np.float32))
    after = check(distribute, Scop("mm", (*of.statements, tail), arrays, ("X",), ("V",)))
    assert names(after) == ["Z", "S", "T"]
    assert get(after, "T").array == "V"


def test_outputs_and_dynamic_reads_keep_their_producers():
    before = program(
        pointwise("A", "X[i, j]", "neg"),
        pointwise("B", "Ao[i, j]", "abs"),
        outputs=("Ao", "Bo"),
    )
    assert names(check(inline_pointwise, before)) == ["A", "B"]


def test_expressions_stay_below_their_limit():
    functions = ["neg"] * (LARGEST_EXPRESSION // 2 + 1)
    before = program(
        pointwise("A", "X[i, j]", *functions),
        pointwise("B", "Ao[i, j]", *functions),
        outputs=("Bo",),
    )
    assert names(check(inline_pointwise, before)) == ["A", "B"]


def test_values_of_the_iterators_move_with_the_statement():
    position = Index(isl.PwAff("{ A[i, j] -> [4i + j] }"))
    first = statement(f"{{ A[i, j] : {N} }}", "{ A[i, j] -> Ao[i, j] }", position)
    arrays = {
        "X": array("X", [6, 4], "input"),
        "Ao": Array("Ao", np.dtype("i8"), (6, 4), "temporary"),
        "Bo": Array("Bo", np.dtype("i8"), (6, 4), "output"),
    }
    copy = load("{ B[i, j] -> Ao[5 - i, j] }")
    second = statement(
        f"{{ B[i, j] : {N} }}",
        "{ B[i, j] -> Bo[i, j] }",
        type(copy)("Ao", copy.index, np.dtype("i8")),
    )
    after = check(inline_pointwise, Scop("p", (first, second), arrays, ("X",), ("Bo",)))
    assert names(after) == ["B"]


def test_an_earlier_sum_hands_over_bytes():
    """q(x @ a) + x @ b: whoever adds them reads the bytes that the first sum has become."""
    x = ops.input("x", (6, 8))
    a, b = (np.arange(8 * n, dtype="f").reshape(8, n) / 9 for n in (4, 4))
    scale, zero = np.float32(0.5), np.uint8(7)

    def restored(value):
        quantised = ops.quantize_linear(value, scale, zero)
        return ops.dequantize_linear(quantised, scale, zero)

    graph = Graph.of(y=ops.add(restored(ops.matmul(x, a)), restored(ops.matmul(x, b))))
    after = distribute(inline_pointwise(lower_graph(graph)))
    (last,) = (s for s in after.statements if s.array in after.outputs)
    handed = {e.array for e in last.loads if after.arrays[e.array].kind == "temporary"}
    assert sorted(str(after.arrays[name].dtype) for name in handed) == ["float32", "uint8"]
