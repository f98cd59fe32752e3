"""Sizes that are computed in floats: found by a call, within bounds, and to the last bit."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import polyc
from polyc.errors import NotFixed
from polyc.graph.inference.computed import Between, find_computed
from polyc.graph.ir import Node, Tensor
from polyc.graph.shapes.ratios import Ratio
from polyc.options import Options
from polyc.run.specialise import SpecialisingModel
from polyc.types.sizes import Size, greatest, least
from tests.staged import compile_in, model_of, run_ort

RNG = np.random.default_rng(3)

h, w = Size.of("h"), Size.of("w")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


FITTED = """(float[n, 2, h, w] x) => (float[n, c, a, b] y, int64[4] s) {
    z = Constant<value_ints = [0]>() two = Constant<value_ints = [2]>()
    four = Constant<value_ints = [4]>() last = Constant<value_ints = [1]>()
    shape = Shape(x) some = Slice(shape, z, two, z) hw = Slice(shape, two, four, z)
    sides = Cast<to = 1>(hw)
    short = ReduceMin<keepdims = 0>(sides) long = ReduceMax<keepdims = 0>(sides)
    few = Constant<value_float = 12.0>() many = Constant<value_float = 20.0>()
    inverse = Reciprocal(short) one = Mul(few, inverse) other = Div(many, long)
    scale = Min(one, other) scaled = Mul(sides, scale) whole = Floor(scaled)
    wanted = Cast<to = 7>(whole) s = Concat<axis = 0>(some, wanted)
    resized = Resize<mode = "linear">(x, , , s) y = Relu(resized) }"""
"""As detectors fit an image: its shorter side to 12, but the longer one to 20 at most."""


def test_an_image_is_fitted_by_one_compilation(compiled):
    source = model_of("g " + FITTED)
    model = compiled(source)
    assert [size.most for size in model.found] == [20, 20]
    for n, height, width in ((1, 12, 20), (2, 1, 1), (1, 77, 31), (1, 70, 200), (3, 13, 11)):
        x = RNG.standard_normal((n, 2, height, width)).astype(np.float32)
        got, want = model.run({"x": x}), run_ort(source, {"x": x})
        np.testing.assert_array_equal(got["s"], want[1])
        np.testing.assert_allclose(got["y"], want[0], 1e-5, 1e-5)


def test_what_follows_from_a_size_that_is_found_waits_for_it(compiled):
    """Boxes go back to the image by how much it was scaled, which is a number of its own."""
    ratio = """was = Cast<to = 1>(hw) now = Cast<to = 1>(wanted) ratio = Div(was, now)
        once = Sigmoid(ratio) column = Unsqueeze(once, last) pairs = Add(column, once)
        twice = Sigmoid(pairs) flat = Constant<value_ints = [-1, 1, 1]>()
        line = Reshape(small, flat) y = Mul(line, twice) }"""
    text = FITTED.replace("y = Relu(resized) }", "small = Relu(resized) " + ratio)
    source = model_of("g " + text.replace("float[n, c, a, b] y", "float[m, 2, 2] y"))
    model = compiled(source)
    assert len(model.found) == 2
    for height, width in ((12, 20), (5, 3), (77, 31)):
        x = RNG.standard_normal((1, 2, height, width)).astype(np.float32)
        want = run_ort(source, {"x": x})[0]
        np.testing.assert_allclose(model.run({"x": x})["y"], want, 1e-4, 1e-4)


PART = """(float[h, 3] x) => (float[m, 3] y) {{
    z = Constant<value_ints = [0]>() count = Shape<start = 0, end = 1>(x) f = Cast<to = 1>(count)
    share = Constant<value_floats = [{share}]>() part = Mul(f, share)
    up = {rounding}(part) end = Cast<to = {type}>(up) s = Cast<to = 7>(end)
    some = Slice(x, z, s, z) y = Relu(some) }}"""


@pytest.mark.parametrize("rounding", ["Floor", "Ceil", "Round"])
@pytest.mark.parametrize(("share", "type"), [(0.7236, 7), (0.0123, 6)])
def test_a_share_of_the_rows(compiled, share, type, rounding):
    """As floats have it: 0.7 times 10 is 7, though this float is less than 0.7."""
    source = model_of("g " + PART.format(share=share, rounding=rounding, type=type))
    model = compiled(source)
    assert len(model.found) == 1
    for rows in (1, 2, 10, 81, 1000):
        x = RNG.standard_normal((rows, 3)).astype(np.float32)
        np.testing.assert_array_equal(model(x), run_ort(source, {"x": x})[0])


def test_what_has_no_bound_is_left_to_the_call(compiled):
    """The sum of durations is the length of speech."""
    source = model_of("""g (float[n] d) => (int64[m] y) {
        total = ReduceSum<keepdims = 0>(d) end = Cast<to = 7>(total)
        zero = Constant<value_int = 0>() one = Constant<value_int = 1>()
        y = Range(zero, end, one) }""")
    model = compiled(source)
    assert isinstance(model, SpecialisingModel)
    d = np.array([1.5, 2.5], np.float32)
    np.testing.assert_array_equal(model(d), np.arange(4))


@pytest.mark.parametrize("most", ["1e30", "3e9"])
def test_a_bound_beyond_all_memory_is_none(compiled, most):
    source = model_of(f"""g (float[h, 3] x) => (float[m, 3] y) {{
        z = Constant<value_ints = [0]>() most = Constant<value_floats = [{most}]>()
        count = Shape<start = 0, end = 1>(x) f = Cast<to = 1>(count) twice = Add(f, f)
        few = Min(twice, most) end = Cast<to = 7>(few)
        some = Slice(x, z, end, z) y = Relu(some) }}""")
    model, x = compiled(source), RNG.standard_normal((5, 3)).astype(np.float32)
    np.testing.assert_array_equal(model(x), np.maximum(x, 0))


def test_a_number_without_inputs_has_no_bounds(compiled):
    """Of a random number of rows a call says how many there are."""
    source = model_of("""g (float[h, 3] x) => (float[m, 3] y) {
        z = Constant<value_ints = [0]>() r = RandomUniform<shape = [1], high = 3.0, low = 2.0>()
        end = Cast<to = 7>(r) some = Slice(x, z, end, z) y = Relu(some) }""")
    x = RNG.standard_normal((5, 3)).astype(np.float32)
    np.testing.assert_array_equal(compiled(source)(x), np.maximum(x[:2], 0))


def exactly(*sizes):
    return [Between.exactly(size) for size in sizes]


def test_bounds_of_a_fitted_side():
    sides = exactly(h, least(h, w), greatest(h, w))
    side, short, long = sides
    few, many = exactly(800.0, 1333.0)
    fitted = side * (few / short).least(many / long)
    assert fitted.floor().most() == 1333
    assert fitted.ceil().most() == 1334


def test_bounds_of_numbers_and_of_sizes():
    one, half, size = exactly(3, 0.5, h)
    assert (one * half).ceil().most() == 3
    assert (one + half).most() == 4
    assert (size * half).most() == h // 2 + 1
    assert (size * half).greatest(one).most() == (h + 6) // 2 + 1
    assert size.least(one).most() == 3


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), -h, Ratio(h - 2, 3)])
def test_what_may_be_negative_has_no_bounds(value):
    with pytest.raises(NotFixed):
        Between.exactly(value)


def test_nothing_is_divided_by_what_may_be_nothing():
    size, zero = exactly(h, h - 1)
    with pytest.raises(NotFixed):
        _ = size / zero
    with pytest.raises(NotFixed):
        (size / Between.exactly(w)).most()


def test_a_number_that_is_computed_otherwise_is_none_of_these():
    table = {
        "x": Tensor("x", np.dtype(np.float32), (1,)),
        "e": Tensor("e", np.dtype(np.float32), (1,)),
        "n": Tensor("n", np.dtype(np.int64), (1,)),
    }
    nodes = [Node("e", "Exp", ("x",), ("e",)), Node("n", "Cast", ("e",), ("n",), {"to": 7})]
    assert find_computed("n", nodes, table) == {}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_branch_beside_one_that_gives_nothing(compiled, is_first):
    """Exporters ask whether there is a box at all before they select some."""

    def body(name, nodes, output):
        value = helper.make_tensor_value_info(output, TensorProto.INT64, [f"{name}_n"])
        return helper.make_graph(nodes, name, [], [value])

    some = [
        helper.make_node("Greater", ["s", "half"], ["m"]),
        helper.make_node("NonZero", ["m"], ["at"]),
        helper.make_node("Squeeze", ["at", "z"], ["places_"]),
    ]
    none = helper.make_tensor("none", TensorProto.INT64, [0], [])
    filled = body("some", some, "places_")
    empty = body("none", [helper.make_node("Constant", [], ["none_"], value=none)], "none_")
    condition = ["empty"] if is_first else ["filled"]
    sides = (empty, filled) if is_first else (filled, empty)
    nodes = [
        helper.make_node("Size", ["x"], ["count"]),
        helper.make_node("Equal", ["count", "zero"], ["empty"]),
        helper.make_node("Not", ["empty"], ["filled"]),
        helper.make_node("If", condition, ["p"], then_branch=sides[0], else_branch=sides[1]),
        helper.make_node("Gather", ["x", "p"], ["y"]),
    ]
    given = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4]),
        helper.make_tensor_value_info("s", TensorProto.FLOAT, ["n"]),
    ]
    constants = [
        onnx.numpy_helper.from_array(np.float32(0.5), "half"),
        onnx.numpy_helper.from_array(np.int64(0), "zero"),
        onnx.numpy_helper.from_array(np.array([0]), "z"),
    ]
    result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", given, result, constants)
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    model = compiled(source)
    assert not isinstance(model, SpecialisingModel)
    for rows in (1, 5, 40):
        x, s = RNG.random((rows, 4)).astype(np.float32), RNG.random(rows).astype(np.float32)
        np.testing.assert_array_equal(model(x, s), x[s > 0.5])


def test_a_branch_that_gives_nothing_beside_one_that_gives_rows(compiled):
    """Of how many dimensions a result is says the branch that is taken."""
    source = model_of("g (float[n, 4] x, bool flag) => (float[k] y) { y = Neg(x) }")
    none = helper.make_tensor("none", TensorProto.FLOAT, [0], [])
    sides = []
    for name, node in (
        ("then", helper.make_node("Constant", [], ["nothing"], value=none)),
        ("else", helper.make_node("Compress", ["x", "rows"], ["some"], axis=0)),
    ):
        result = helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None)
        sides.append(helper.make_graph([node], name, [], [result]))
    nodes = [
        helper.make_node("ReduceMax", ["x", "last"], ["most"], keepdims=0),
        helper.make_node("Greater", ["most", "half"], ["rows"]),
        helper.make_node("If", ["flag"], ["y"], then_branch=sides[0], else_branch=sides[1]),
    ]
    constants = [
        onnx.numpy_helper.from_array(np.float32(0.5), "half"),
        onnx.numpy_helper.from_array(np.array([1]), "last"),
    ]
    graph = source.graph
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.extend(constants)
    graph.output[0].type.tensor_type.ClearField("shape")
    model = compiled(source)
    x = RNG.random((5, 4)).astype(np.float32)
    assert model(x, np.array(True)).shape == (0,)
    np.testing.assert_array_equal(model(x, np.array(False)), x[x.max(1) > 0.5])


@pytest.mark.parametrize(("op", "times"), [("Mul", 4), ("Mul", 40), ("Add", 70)])
def test_a_size_that_no_model_means_is_computed_like_any_number(compiled, op, times):
    """Squared again and again a size would be a formula of 2^40 factors."""
    nodes = " ".join(f"s{k + 1} = {op}(s{k}, s{k})" for k in range(times))
    source = model_of(f"""g (float[n, 3] x) => (int64[1] y) {{
        s0 = Shape<start = 0, end = 1>(x) {nodes} y = Identity(s{times}) }}""")
    model = compiled(source)
    for rows in (1, 3):
        x = np.zeros((rows, 3), np.float32)
        np.testing.assert_array_equal(model(x), run_ort(source, {"x": x})[0])


def test_bounds_of_a_number_that_doubles_again_and_again(compiled):
    """Each node is looked at once, however often it is read."""
    doubled = " ".join(f"f{k + 1} = Add(f{k}, f{k})" for k in range(30))
    source = model_of(f"""g (float[h, 3] x) => (float[m, 3] y) {{
        z = Constant<value_ints = [0]>() count = Shape<start = 0, end = 1>(x)
        f0 = Cast<to = 1>(count) {doubled} most = Constant<value_floats = [3.0]>()
        few = Min(f30, most) end = Cast<to = 7>(few)
        some = Slice(x, z, end, z) y = Relu(some) }}""")
    model = compiled(source)
    assert [size.most for size in model.found] == [3]
    x = RNG.standard_normal((5, 3)).astype(np.float32)
    np.testing.assert_array_equal(model(x), run_ort(source, {"x": x})[0])


GUARDED = {
    "an element of what may have none": "f = Gather(x, zero) m = Greater(x, f) at = NonZero(m)",
    "at places that are data": "f = Gather(x, i) m = Greater(x, f) at = NonZero(m)",
    "what is right for some sizes only": """two = Constant<value_ints = [2, -1]>()
        r = Reshape(x, two) f = ReduceMax<keepdims = 0>(r) m = Greater(x, f) at = NonZero(m)""",
}


@pytest.mark.parametrize("what", GUARDED)
def test_what_a_branch_guards_against_is_not_executed(tmp_path, what):
    """The branch that gives nothing is there because the other one would fail."""
    source = model_of("g (float[n] x, int64[1] i) => (int64[m] y) { y = Size(x) }")
    some = model_of(f"""g (float[n] x, int64[1] i, int64 zero) => (int64[m] y) {{
        {GUARDED[what]} z = Constant<value_ints = [0]>() y = Squeeze(at, z) }}""")
    none = helper.make_tensor("none", TensorProto.INT64, [0], [])
    result = [helper.make_tensor_value_info("none_", TensorProto.INT64, None)]
    empty = helper.make_node("Constant", [], ["none_"], value=none)
    nothing = helper.make_graph([empty], "none", [], result)
    other = [helper.make_tensor_value_info("y", TensorProto.INT64, None)]
    filled = helper.make_graph(some.graph.node, "some", [], other)
    nodes = [
        helper.make_node("Size", ["x"], ["count"]),
        helper.make_node("Equal", ["count", "zero"], ["is_empty"]),
        helper.make_node("If", ["is_empty"], ["p"], then_branch=nothing, else_branch=filled),
    ]
    del source.graph.node[:]
    source.graph.node.extend(nodes)
    source.graph.initializer.append(onnx.numpy_helper.from_array(np.int64(0), "zero"))
    source.graph.output[0].name = "p"
    options = Options(cache_dir=tmp_path, threads=1)
    model = polyc.compile(source, target="baseline", options=options, dims={"n": (0, 64)})
    assert model(np.zeros(0, np.float32), np.array([0])).shape == (0,)
    x = RNG.standard_normal(8).astype(np.float32)
    want = run_ort(source, {"x": x, "i": np.array([0])})[0]
    np.testing.assert_array_equal(model(x, np.array([0])), want)
