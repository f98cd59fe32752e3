"""Schedule trees, written by hand, as loops: their shape, and what they compute."""

import islpy as isl
import numpy as np
import pytest

from polyc.codegen.generate import generate_nest
from polyc.loopnest.nodes import Block, For, Kernel, Local, walk_nodes
from polyc.memory.storage import Storage, arrange, permuted, row_major
from polyc.promote.local_arrays import LocalArray
from polyc.scop.expr import Call, Cast, Const, Index, Load, Within, call
from polyc.scop.scop import Scop
from tests.analysis.nests import F32, array, load, matmul_scop, scop, statement
from tests.loopnest.execute import execute
from tests.scop.interpreter import interpret

I64 = np.dtype(np.int64)


def generate(
    tree: str,
    of: Scop,
    storages: dict[str, Storage] | None = None,
    promoted: dict[str, LocalArray] | None = None,
) -> Block:
    stored = {a.name: row_major(a) for a in of.arrays.values()} | (storages or {})
    statements = {s.name: s for s in of.statements}
    return generate_nest(isl.Schedule(" ".join(tree.split())), statements, stored, promoted or {})


def lines(nest: Block) -> list[str]:
    """The text of the loops, without the line of the kernel."""
    return [line.strip() for line in str(Kernel("k", (), nest)).splitlines()[1:]]


def copy_scop(n: int = 10) -> Scop:
    return scop(
        [array("X", [n], "input"), array("Y", [n], "output")],
        statement(f"{{ P[i] : 0 <= i < {n} }}", "{ P[i] -> Y[i] }", load("{ P[i] -> X[i] }")),
    )


COPY_DOMAIN = 'domain: "{ P[i] : 0 <= i < 10 }"'


def test_a_band_is_a_loop():
    nest = generate(
        f'{{ {COPY_DOMAIN}, child: {{ schedule: "[{{ P[i] -> [(i)] }}]" }} }}', copy_scop()
    )
    assert lines(nest) == ["for c0 in 0 .. 10 step 1:", "Y[c0] = X[c0]    # P[c0]"]


def test_tiles_and_marks():
    tree = f"""{{ {COPY_DOMAIN}, child: {{ mark: "parallel", child: {{
        schedule: "[{{ P[i] -> [(4*floor(i/4))] }}]", child: {{ mark: "vector", child: {{
        schedule: "[{{ P[i] -> [(i mod 4)] }}]" }} }} }} }} }}"""
    assert lines(generate(tree, copy_scop())) == [
        "for c0 in 0 .. 10 step 4:  # parallel",
        "for c1 in 0 .. pc_min(3, -c0 + 9) + 1 step 1:  # vector",
        "Y[c0 + c1] = X[c0 + c1]    # P[c0 + c1]",
    ]


def test_an_access_goes_through_the_storage_map():
    of = scop(
        [array("X", [4, 6], "input"), array("Y", [4, 6], "output")],
        statement(
            "{ P[i, j] : 0 <= i < 4 and 0 <= j < 6 }",
            "{ P[i, j] -> Y[i, j] }",
            load("{ P[i, j] -> X[3 - i, j] }"),
        ),
    )
    tree = """{ domain: "{ P[i, j] : 0 <= i < 4 and 0 <= j < 6 }", child: {
        schedule: "[{ P[i, j] -> [(j)] }, { P[i, j] -> [(i)] }]" } }"""
    blocked = {"X": permuted(of.arrays["X"], [1, 0], [(1, 4)])}
    nest = generate(tree, of, blocked)
    assert (
        lines(nest)[-1]
        == "Y[c1][c0] = X[pc_floordiv(c0, 4)][-c1 + 3][pc_mod(c0, 4)]    # P[c1, c0]"
    )
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    arrays = {"X": arrange(x, blocked["X"]), "Y": np.zeros((4, 6), np.float32)}
    execute(nest, arrays)
    np.testing.assert_array_equal(arrays["Y"], x[::-1])


def test_expressions_become_functions_of_the_loops():
    inside = isl.Set("{ P[i] : 2 <= i < 8 }")
    guarded = Load("X", isl.PwMultiAff("{ P[i] -> X[i - 2] : 2 <= i < 8 }"), F32)
    position = Cast(Index(isl.PwAff("{ P[i] -> [2i + 1] }")), F32)
    value = call("select", Within(inside), guarded, position)
    of = scop(
        [array("X", [6], "input"), array("Y", [10], "output")],
        statement("{ P[i] : 0 <= i < 10 }", "{ P[i] -> Y[i] }", value),
    )
    tree = f'{{ {COPY_DOMAIN}, child: {{ schedule: "[{{ P[i] -> [(9 - i)] }}]" }} }}'
    nest = generate(tree, of)
    arrays = {"X": np.arange(6, dtype=np.float32) - 50, "Y": np.zeros(10, np.float32)}
    execute(nest, arrays)
    expected = interpret(of, {"X": arrays["X"]})["Y"]
    np.testing.assert_array_equal(arrays["Y"], expected)
    assert expected.tolist() == [1, 3, -50, -49, -48, -47, -46, -45, 17, 19]


def test_a_computed_coordinate_stays_data():
    key = call("index", Load("K", isl.PwMultiAff("{ P[i] -> K[i] }"), I64), Const(4, I64))
    gathered = Load("X", isl.PwMultiAff("{ P[i] -> X[0, i] }"), F32, ((0, key),))
    arrays = [array("X", [4, 10], "input"), array("Y", [10], "output")]
    of = scop(arrays, statement("{ P[i] : 0 <= i < 10 }", "{ P[i] -> Y[i] }", gathered))
    table = {**of.arrays, "K": array("K", [10], "input")}
    of = Scop("gather", of.statements, table, ("X", "K"), ("Y",))
    nest = generate(f'{{ {COPY_DOMAIN}, child: {{ schedule: "[{{ P[i] -> [(i)] }}]" }} }}', of)
    assert lines(nest)[-1] == "Y[c0] = X[0][c0]{0: index(K[c0], 4)}    # P[c0]"


MATMUL = """{ domain: "{ Z[i, j] : 0 <= i < 4 and 0 <= j < 32; T[i, j] : 0 <= i < 4 and 0 <= j < 32;
        S[i, j, k] : 0 <= i < 4 and 0 <= j < 32 and 0 <= k < 5 }",
    child: { schedule: "[{ Z[i,j] -> [(i)]; S[i,j,k] -> [(i)]; T[i,j] -> [(i)] },
        { Z[i,j] -> [(16*floor(j/16))]; S[i,j,k] -> [(16*floor(j/16))];
          T[i,j] -> [(16*floor(j/16))] }]",
    child: { mark: "scope", child: { sequence: [
        { filter: "{ Z[i,j] }", child: { schedule: "[{ Z[i,j] -> [(j mod 16)] }]" } },
        { filter: "{ S[i,j,k] }", child: { schedule:
            "[{ S[i,j,k] -> [(k)] }, { S[i,j,k] -> [(j mod 16)] }]" } },
        { filter: "{ T[i,j] }", child: { schedule: "[{ T[i,j] -> [(j mod 16)] }]" } }
    ] } } } }"""


def accumulators() -> LocalArray:
    """acc[i, j] at r[0, j mod 16] of the tile (i, 16*floor(j/16))."""
    prefix = {
        name: isl.PwMultiAff(f"{{ {name}[{its}] -> [i, 16*floor(j/16)] }}")
        for name, its in (("Z", "i, j"), ("S", "i, j, k"), ("T", "i, j"))
    }
    corner = isl.PwMultiAff("{ [i, t] -> acc[i, t] }")
    return LocalArray("r", "scope", "acc", F32, (1, 16), (0, 1), corner, prefix)


@pytest.mark.parametrize("local", [False, True])
def test_a_matmul_computes_what_its_statements_say(local):
    of = matmul_scop()
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, s).astype(np.float32) for s in ((4, 5), (5, 32)))
    panels = permuted(of.arrays["W"], [0, 1], [(1, 16)])
    nest = generate(MATMUL, of, {"W": panels}, {"acc": accumulators()} if local else {})
    arrays = {"X": x, "W": arrange(w, panels), "Y": np.zeros((4, 32), np.float32)}
    if not local:
        arrays["acc"] = np.zeros((4, 32), np.float32)
    execute(nest, arrays)
    np.testing.assert_array_equal(arrays["Y"], np.maximum(x @ w, 0))
    (tile,) = [n.body for n in walk_nodes(nest) if isinstance(n, For) and n.step == 16]
    assert tile.locals == ((Local("r", F32, (1, 16), "acc"),) if local else ())


def test_guards_where_statements_have_different_domains():
    of = scop(
        [array("Y", [9], "output"), array("Z", [9], "output")],
        statement("{ A[i] : 0 <= i < 9 }", "{ A[i] -> Y[i] }", Const(1.0, F32)),
        statement("{ B[i] : 3 <= i < 5 }", "{ B[i] -> Z[i] }", Const(2.0, F32)),
    )
    tree = """{ domain: "{ A[i] : 0 <= i < 9; B[i] : 3 <= i < 5 }", child: {
        schedule: "[{ A[i] -> [(i)]; B[i] -> [(i)] }]", options: "{ atomic[0] }",
        child: { sequence: [ { filter: "{ A[i] }" }, { filter: "{ B[i] }" } ] } } }"""
    nest = generate(tree, of)
    arrays = {"Y": np.zeros(9, np.float32), "Z": np.zeros(9, np.float32)}
    execute(nest, arrays)
    assert arrays["Y"].tolist() == [1] * 9
    assert arrays["Z"].tolist() == [0, 0, 0, 2, 2, 0, 0, 0, 0]
    assert "if (c0 >= 3 && 4 >= c0):" in lines(nest)


def test_an_error_inside_of_isl_comes_out_as_it_was():
    tree = '{ domain: "{ Q[i] : 0 <= i < 4 }", child: { schedule: "[{ Q[i] -> [(i)] }]" } }'
    with pytest.raises(KeyError, match="Q"):
        generate(tree, copy_scop())
    again = f'{{ {COPY_DOMAIN}, child: {{ schedule: "[{{ P[i] -> [(i)] }}]" }} }}'
    assert generate(again, copy_scop()).body


def test_a_statement_without_iterators():
    of = scop(
        [array("Y", [], "output")],
        statement(
            "{ P[] }", "{ P[] -> Y[] }", Call("add", (Const(1.0, F32), Const(2.0, F32)), F32)
        ),
    )
    nest = generate('{ domain: "{ P[] }" }', of)
    assert lines(nest) == ["Y = add(1.0, 2.0)    # P[]"]
