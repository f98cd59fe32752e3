"""Algebra: each rule keeps every IEEE value; what would not is left alone."""

import numpy as np
import pytest

from polyc.graph.ir import Node
from polyc.graph.simplify.algebra import simplify_algebra

SPECIAL = np.array(
    [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        3.4e38,
        -3.4e38,
        1e19,
        1.5,
        -2.75,
        1,
        -1,
        0.1,
        7e-20,
        1.1754944e-38,
        3e-39,
        1e-45,
        -1e-45,
    ],
    np.float32,
)


def scalar(value, dtype=np.float32):
    return np.asarray(value, dtype)


def chain(*ops):
    """Nodes n0, n1, ... from (op, inputs); "" stands for the result before, the last is y."""
    nodes = []
    for k, (op, inputs) in enumerate(ops):
        result = "y" if k == len(ops) - 1 else f"t{k}"
        names = tuple(i or f"t{k - 1}" for i in inputs)
        nodes.append(Node(f"n{k}", op, names, (result,)))
    return nodes


RULES = {
    "x + -0.0": ([("Add", ("x", "c")), ("Neg", ("",))], {"c": -0.0}, ["Neg"]),
    "-0.0 + x": ([("Add", ("c", "x")), ("Neg", ("",))], {"c": -0.0}, ["Neg"]),
    "x + 0.0": ([("Add", ("x", "c"))], {"c": 0.0}, ["Add"]),
    "x - 0.0": ([("Sub", ("x", "c")), ("Neg", ("",))], {"c": 0.0}, ["Neg"]),
    "x - -0.0": ([("Sub", ("x", "c"))], {"c": -0.0}, ["Sub"]),
    "0.0 - x": ([("Sub", ("c", "x"))], {"c": 0.0}, ["Sub"]),
    "x * 1": ([("Mul", ("x", "c")), ("Neg", ("",))], {"c": 1}, ["Neg"]),
    "x * 0": ([("Mul", ("x", "c"))], {"c": 0}, ["Mul"]),
    "x / 1": ([("Div", ("x", "c")), ("Neg", ("",))], {"c": 1}, ["Neg"]),
    "x ** 1": ([("Pow", ("x", "c")), ("Neg", ("",))], {"c": 1}, ["Neg"]),
    "x * -1": ([("Mul", ("x", "c"))], {"c": -1}, ["Neg"]),
    "-(-x)": ([("Neg", ("x",)), ("Neg", ("",)), ("Abs", ("",))], {}, ["Abs"]),
    "x + -z": ([("Neg", ("z",)), ("Add", ("x", ""))], {}, ["Sub"]),
    "-z + x": ([("Neg", ("z",)), ("Add", ("", "x"))], {}, ["Sub"]),
    "x - -z": ([("Neg", ("z",)), ("Sub", ("x", ""))], {}, ["Add"]),
    "-x * -z": ([("Neg", ("x",)), ("Neg", ("z",)), ("Mul", ("t0", "t1"))], {}, ["Mul"]),
    "floor(ceil(x))": ([("Ceil", ("x",)), ("Floor", ("",)), ("Neg", ("",))], {}, ["Ceil", "Neg"]),
    "relu(relu(x))": ([("Relu", ("x",)), ("Relu", ("",)), ("Neg", ("",))], {}, ["Relu", "Neg"]),
    "|-x|": ([("Neg", ("x",)), ("Abs", ("",))], {}, ["Abs"]),
    "max(x, x)": ([("Max", ("x", "x")), ("Neg", ("",))], {}, ["Neg"]),
    "x ** 2": ([("Pow", ("x", "c"))], {"c": 2}, ["Mul"]),
    "x ** -1": ([("Pow", ("x", "c"))], {"c": -1}, ["Reciprocal"]),
    "1 / x": ([("Div", ("c", "x"))], {"c": 1}, ["Reciprocal"]),
    "x ** 0.5": ([("Pow", ("x", "c"))], {"c": 0.5}, ["Pow"]),
    "|x| ** 0.5": ([("Abs", ("x",)), ("Pow", ("", "c"))], {"c": 0.5}, ["Abs", "Sqrt"]),
    "relu(x) ** 0.5": ([("Relu", ("x",)), ("Pow", ("", "c"))], {"c": 0.5}, ["Relu", "Pow"]),
    "x / 8": ([("Div", ("x", "c"))], {"c": 8}, ["Mul"]),
    "x / -2^127": ([("Div", ("x", "c"))], {"c": -(2.0**127)}, ["Div"]),
    "x / 2^-126": ([("Div", ("x", "c"))], {"c": 2.0**-126}, ["Mul"]),
    "x / 2^-127": ([("Div", ("x", "c"))], {"c": 2.0**-127}, ["Div"]),
    "x / 3": ([("Div", ("x", "c"))], {"c": 3}, ["Div"]),
    "x / 0": ([("Div", ("x", "c"))], {"c": 0}, ["Div"]),
    "x * 4 * -8": ([("Mul", ("x", "c")), ("Mul", ("", "d"))], {"c": 4, "d": -8}, ["Mul"]),
    "x / 2 / 2": ([("Mul", ("x", "c")), ("Mul", ("", "c"))], {"c": 0.5}, ["Mul", "Mul"]),
    "x * 3 * 5": ([("Mul", ("x", "c")), ("Mul", ("", "d"))], {"c": 3, "d": 5}, ["Mul", "Mul"]),
    "x + 1 + 2": ([("Add", ("x", "c")), ("Add", ("", "d"))], {"c": 1, "d": 2}, ["Add", "Add"]),
    "x - x": ([("Sub", ("x", "x"))], {}, ["Sub"]),
    "x / x": ([("Div", ("x", "x"))], {}, ["Div"]),
    "sqrt(x * x)": ([("Mul", ("x", "x")), ("Sqrt", ("",))], {}, ["Mul", "Sqrt"]),
}


@pytest.mark.parametrize("case", RULES)
def test_floats_to_the_bit(case, build, assert_same):
    ops, constants, expected = RULES[case]
    a, b = np.meshgrid(SPECIAL, SPECIAL)
    types = dict.fromkeys(("x", "z"), ("float32", a.shape))
    values = {k: scalar(v) for k, v in constants.items()}
    graph = build(types, chain(*ops), ["y"], **values)
    after = simplify_algebra(graph).graph
    assert [n.op for n in after.nodes] == expected
    assert_same(graph, after, {"x": a, "z": b})


def test_a_cube_keeps_special_values_and_rounds_twice(build, evaluate):
    graph = build({"x": ("float32", SPECIAL.shape)}, chain(("Pow", ("x", "c"))), ["y"], c=scalar(3))
    after = simplify_algebra(graph).graph
    assert [n.op for n in after.nodes] == ["Mul", "Mul"]
    with np.errstate(all="ignore"):
        exact = (SPECIAL.astype(np.float64) ** 3).astype(np.float32)
    (result,) = evaluate(after, {"x": SPECIAL})
    np.testing.assert_array_max_ulp(result, exact, 2)
    np.testing.assert_array_equal(np.signbit(result[:4]), np.signbit(exact[:4]))


def test_the_square_root_of_a_variance_plus_epsilon(build, assert_same):
    nodes = [
        Node("a", "Pow", ("x", "two"), ("p",)),
        Node("b", "ReduceMean", ("p", "axis"), ("m",)),
        Node("c", "Add", ("m", "eps"), ("v",)),
        Node("d", "Pow", ("v", "half"), ("y",)),
    ]
    graph = build(
        {"x": ("float32", (3, 4))},
        nodes,
        ["y"],
        two=scalar(2),
        half=scalar(0.5),
        eps=scalar(1e-5),
        axis=np.int64([1]),
    )
    after = simplify_algebra(graph).graph
    assert [n.op for n in after.nodes] == ["Mul", "ReduceMean", "Add", "Sqrt"]
    assert_same(graph, after, rtol=1e-6)


INTEGER_RULES = {
    "x + 0": ([("Add", ("x", "c")), ("Neg", ("",))], {"c": 0}, ["Neg"]),
    "x - 0": ([("Sub", ("x", "c")), ("Neg", ("",))], {"c": 0}, ["Neg"]),
    "x + 100 + 100": ([("Add", ("x", "c")), ("Add", ("", "c"))], {"c": 100}, ["Add"]),
    "100 * (x * 3)": ([("Mul", ("x", "c")), ("Mul", ("d", ""))], {"c": 3, "d": 100}, ["Mul"]),
    "x | 0": ([("BitwiseOr", ("x", "c")), ("Neg", ("",))], {"c": 0}, ["Neg"]),
    "x & x": ([("BitwiseAnd", ("x", "x")), ("Neg", ("",))], {}, ["Neg"]),
    "x / 4": ([("Div", ("x", "c"))], {"c": 4}, ["Div"]),
    "x ** 2": ([("Pow", ("x", "c"))], {"c": 2}, ["Mul"]),
}


@pytest.mark.parametrize("case", INTEGER_RULES)
def test_integers_wrap_alike(case, build, assert_same):
    ops, constants, expected = INTEGER_RULES[case]
    dtype = np.int32 if case == "x ** 2" else np.int8
    values = {k: scalar(v, dtype) for k, v in constants.items()}
    graph = build({"x": (np.dtype(dtype).name, (256,))}, chain(*ops), ["y"], **values)
    after = simplify_algebra(graph).graph
    assert [n.op for n in after.nodes] == expected
    assert_same(graph, after, {"x": np.arange(-128, 128).astype(dtype)})


def test_booleans(build, assert_same):
    nodes = chain(
        ("And", ("x", "t")), ("Or", ("f", "")), ("Not", ("",)), ("Not", ("",)), ("Xor", ("", "x"))
    )
    graph = build({"x": ("bool", (2,))}, nodes, ["y"], t=scalar(True, bool), f=scalar(False, bool))
    after = simplify_algebra(graph).graph
    assert [str(n) for n in after.nodes] == ["y = Xor(x, x)"]
    assert_same(graph, after, {"x": np.array([False, True])})


@pytest.mark.parametrize(("condition", "chosen"), [(True, "x"), (False, "z")])
def test_where_with_a_constant_condition(condition, chosen, build, assert_same):
    nodes = chain(("Where", ("c", "x", "z")), ("Neg", ("",)))
    types = {"x": ("float32", (2, 3)), "z": ("float32", (2, 3))}
    graph = build(types, nodes, ["y"], c=np.full((3,), condition))
    after = simplify_algebra(graph).graph
    assert [str(n) for n in after.nodes] == [f"y = Neg({chosen})"]
    assert_same(graph, after)


def test_broadcasting_is_not_lost(build):
    nodes = chain(("Mul", ("x", "c")), ("Neg", ("",)))
    graph = build({"x": ("float32", (3,))}, nodes, ["y"], c=np.ones((2, 1), np.float32))
    assert simplify_algebra(graph).graph is graph
