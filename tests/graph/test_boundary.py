"""What a model from outside may ask for: attributes in their ranges, ranks, sizes, known domains.

Each case here once ended in an exception of another kind, a hang, or all memory.
"""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper

import polyc
from polyc.budget import Budget
from polyc.errors import (
    InternalError,
    InvalidModel,
    PolycError,
    ShapeError,
    TooLarge,
    UnsupportedOp,
)
from polyc.graph.ir import MAX_RANK
from polyc.graph.onnx_import import import_onnx

HUGE = 2**63 - 1
DOMAINS = {"": 22, "com.microsoft": 1, "ai.onnx.ml": 5, "polyc": 1, "some.where": 1}
IMAGE = {"x": (1, 3, 8, 8)}
TABLE = {"x": (4, 6)}
KERNEL = np.zeros((3, 3, 2, 2), np.float32)


def node(op, inputs="x", outputs="add", domain="", **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), "exp", domain=domain, **attributes)


def model(nodes, inputs, output="add", **constants):
    """A model of these nodes; inputs of float32, by shape."""
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    values = [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()]
    nodes = nodes if isinstance(nodes, list) else [nodes]
    graph = helper.make_graph(nodes, "mul", infos, [ValueInfoProto(name=output)], values)
    imports = [helper.make_opsetid(d, v) for d, v in DOMAINS.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def refuse(source, *kinds, budget=None):
    """Importing raises one of these kinds of error; the last resort is none of them."""
    with pytest.raises(PolycError) as caught:
        import_onnx(source, budget=budget)
    assert isinstance(caught.value, kinds), caught.value
    assert not isinstance(caught.value, InternalError)
    return str(caught.value)


# --- attributes -----------------------------------------------------------------------------------

QUANTISED = {"K": 32, "N": 4, "block_size": 32, "bits": 4}
PACKED = {"w": np.zeros((4, 1, 16), np.uint8), "s": np.ones(4, np.float32)}
WORDS = {"x": (1, 4, 8)}


@pytest.mark.parametrize("value", [0, -1, HUGE])
def test_sizes_in_attributes_are_in_their_ranges(value):
    cases = [
        (node("LpNormalization", p=value), TABLE, {}),
        (node("GlobalLpPool", p=value), IMAGE, {}),
        (node("LpPool", p=value, kernel_shape=[2, 2]), IMAGE, {}),
        (node("LRN", size=value), IMAGE, {}),
        (node("GroupNormalization", "x s s", num_groups=value), IMAGE, {"s": np.float32([1] * 3)}),
        (node("DepthToSpace", blocksize=value), IMAGE, {}),
        (node("Multinomial", sample_size=value, seed=1.0), TABLE, {}),
        (node("MaxRoiPool", "x r", pooled_shape=[value] * 2), {**IMAGE, "r": (2, 5)}, {}),
        (node("RoiAlign", "x r i", output_width=value), {**IMAGE, "r": (2, 4)}, {"i": [0, 0]}),
        (node("MultiHeadAttention", "x x x", domain="com.microsoft", num_heads=value), WORDS, {}),
        (node("Attention", "x w", domain="com.microsoft", num_heads=value),
         {**WORDS, "w": (8, 24)}, {}),
        (node("LSTM", "x w r", hidden_size=value), {"x": (5, 2, 3)},
         {"w": np.zeros((1, 16, 3), np.float32), "r": np.zeros((1, 16, 4), np.float32)}),
    ]  # fmt: skip
    cases += [
        (node("MatMulNBits", "x w s", domain="com.microsoft", **{**QUANTISED, k: value}),
         {"x": (2, 32)}, PACKED)
        for k in QUANTISED
    ]  # fmt: skip
    for one, inputs, constants in cases:
        given = {a.name: helper.get_attribute_value(a) for a in one.attribute}
        name = next(k for k, v in given.items() if value == v or v == [value] * 2)
        text = refuse(model(one, inputs, **constants), InvalidModel)
        assert f"attribute {name}" in text
        assert "'exp'" in text


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("attribute", ["kernel_shape", "strides", "dilations", "pads"])
@pytest.mark.parametrize("value", [0, -1, 2**31 - 1, HUGE])
def test_windows_are_in_their_ranges(op, attribute, value):
    if (attribute, value) == ("pads", 0):
        return
    lists = {"kernel_shape": [2, 2], attribute: [value] * (4 if attribute == "pads" else 2)}
    operands = "x w" if op.startswith("Conv") else "x"
    built = model(node(op, operands, **lists), IMAGE, w=KERNEL)
    if (attribute, value) == ("strides", 2**31 - 1) and op != "ConvTranspose":
        assert import_onnx(built).tensor("add").shape == (1, 3, 1, 1)
    else:
        refuse(built, InvalidModel, ShapeError, TooLarge)


@pytest.mark.parametrize("scale", [np.inf, -np.inf, np.nan, 0, -1, 1e30])
def test_scales_are_finite_and_positive(scale):
    resize = node("Resize", "x  ", domain="")
    resize.input[:] = ["x", "", "s"]
    assert "Resize" in refuse(model(resize, IMAGE, s=np.float32([1, 1, scale, 1])), ShapeError)


@pytest.mark.parametrize(
    ("one", "inputs", "constants"),
    [
        (node("MatMulNBits", "x w s", domain="com.microsoft", N=4, block_size=32), {"x": (2, 32)},
         PACKED),
        (node("MatMulNBits", "x", domain="com.microsoft", **QUANTISED), {"x": (2, 32)}, {}),
        (node("Gelu", "", domain="com.microsoft"), TABLE, {}),
        (node("Gelu", "x", domain="com.microsoft", approximate="tanh"), TABLE, {}),
        (node("Attention", "x", domain="com.microsoft", num_heads=2), WORDS, {}),
        (node("Attention", "x x", domain="com.microsoft", num_heads="2"), WORDS, {}),
        (node("STFT", "x s n"), {"x": (1, 64, 1)}, {"s": 8, "n": 8}),
    ],
)  # fmt: skip
def test_operands_and_attributes_that_are_missing_are_told(one, inputs, constants):
    assert one.op_type in refuse(model(one, inputs, **constants), InvalidModel, ShapeError)


def test_an_enumeration_is_one_of_its_values():
    text = refuse(model(node("DepthToSpace", blocksize=1, mode="XYZ"), IMAGE), InvalidModel)
    assert "mode must be one of DCR, CRD, got XYZ" in text


def tree(**changed):
    """One split, two leaves; some tables changed."""
    tables = {
        "tree_roots": [0], "nodes_featureids": [0], "n_targets": 1, "leaf_targetids": [0, 0],
        "nodes_truenodeids": [0], "nodes_falsenodeids": [1],
        "nodes_trueleafs": [1], "nodes_falseleafs": [1],
        "nodes_modes": numpy_helper.from_array(np.uint8([0])),
        "nodes_splits": numpy_helper.from_array(np.float32([1])),
        "leaf_weights": numpy_helper.from_array(np.float32([1, 2])),
    } | changed  # fmt: skip
    return model(node("TreeEnsemble", domain="ai.onnx.ml", **tables), TABLE)


@pytest.mark.parametrize("table", ["nodes_truenodeids", "nodes_falsenodeids", "tree_roots"])
@pytest.mark.parametrize("value", [[-1], [2], [2**31 - 1], [HUGE], [0, 0, 0]])
def test_trees_name_nodes_and_leaves_that_there_are(table, value):
    assert import_onnx(tree()).tensor("add").shape == (4, 1)
    if (table, len(value)) == ("tree_roots", 3):
        return  # a tree may count three times
    refuse(tree(**{table: value}), InvalidModel)


# --- domains --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one",
    [
        node("RandomBits", domain="polyc", shape=[3], stream=1),
        node("Places", domain="polyc"),
        node("Repeat", domain="polyc"),
        node("Trim", domain="polyc"),
        node("Relu", domain="polyc"),
        node("Relu", domain="some.where"),
    ],
)
def test_what_is_of_no_known_domain_is_refused(one):
    text = refuse(model(one, TABLE), UnsupportedOp)
    assert one.domain in text
    assert "'exp'" in text


def test_a_function_of_the_model_may_be_of_any_domain():
    imports = [helper.make_opsetid("", 22)]
    body = [helper.make_node("Relu", ["a"], ["b"])]
    call = model(node("Mine", domain="polyc"), TABLE)
    call.functions.append(helper.make_function("polyc", "Mine", ["a"], ["b"], body, imports))
    assert [n.op for n in import_onnx(call).nodes] == ["Relu"]
    body[0].domain = "polyc"
    imports.append(helper.make_opsetid("polyc", 1))
    call.functions[0].CopyFrom(helper.make_function("polyc", "Mine", ["a"], ["b"], body, imports))
    refuse(call, UnsupportedOp)


# --- ranks and sizes ------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [17, 20, 40])
def test_ranks_have_a_limit(rank):
    reshape = model(node("Reshape", "x s"), TABLE, s=[1] * (rank - 2) + [4, 6])
    assert "rank" in refuse(reshape, ShapeError)
    refuse(model(node("Relu"), {"x": (1,) * rank}), UnsupportedOp)
    x = polyc.ops.input("x", (1,) * rank)
    with pytest.raises(ShapeError, match=f"expected 0 to {MAX_RANK}, got {rank}"):
        polyc.Graph.of(y=polyc.ops.reduce_sum(x, range(rank), keepdims=False))


def test_sixteen_dimensions_are_compiled():
    built = polyc.compile(model(node("Softmax", axis=15), {"x": (1, 2) * 8}), threads=1)
    np.testing.assert_allclose(built(np.ones((1, 2) * 8, np.float32)), 0.5)


@pytest.mark.parametrize(
    ("one", "inputs", "constants"),
    [
        (node("ConstantOfShape", "s"), {}, {"s": [2**33]}),
        (node("Expand", "x s"), TABLE, {"s": [2**29, 4, 6]}),
        (node("Tile", "x s"), TABLE, {"s": [2**29, 1]}),
        (node("Range", "a b c"), {}, {"a": 0, "b": 2**33, "c": 1}),
        (node("HannWindow", "a"), {}, {"a": 2**33}),
        (node("Pad", "x p"), TABLE, {"p": [2**31, 0, 0, 0]}),
        (node("OneHot", "i d v"), {}, {"i": [1, 2, 3], "d": 2**33, "v": np.float32([0, 1])}),
        (node("MaxPool", kernel_shape=[1, 1], pads=[0, 0, 2**17, 2**17]), IMAGE, {}),
        (node("ConvTranspose", "x w", strides=[2**16, 2**16]), IMAGE, {"w": KERNEL}),
        (node("DFT", "x n"), {"x": (1, 8, 1)}, {"n": 2**33}),
        (node("AffineGrid", "x s"), {"x": (1, 2, 3)}, {"s": [1, 1, 2**19, 2**19]}),
        (node("MelWeightMatrix", "a a b c c"), {}, {"a": 2**20, "b": 8000, "c": np.float32(0)}),
        (node("MaxUnpool", "x i", kernel_shape=[2**20, 2**20]), {"x": (1, 1, 1, 1)},
         {"i": np.int64([[[[0]]]])}),
    ],
)  # fmt: skip
def test_sizes_are_products_that_are_checked_before_anything_is_built(one, inputs, constants):
    text = refuse(model(one, inputs, **constants), TooLarge, budget=Budget(2**32))
    assert "limit" in text
    assert "exp" in text


def test_a_limit_can_be_raised_and_lowered():
    built = model(node("Neg"), {"x": (2**16,)})
    with pytest.raises(TooLarge, match="Options\\(memory_limit"):
        polyc.compile(built, threads=1, options=polyc.Options(memory_limit=2**17))
    raised = polyc.Options(memory_limit=2**20)
    assert polyc.compile(built, threads=1, options=raised)(np.ones(2**16, np.float32))[7] == -1


def test_a_long_sequence_is_refused():
    nodes = [node("SplitToSequence", "x", "q"), node("SequenceLength", "q")]
    nodes[1].name = "count"
    assert "at most" in refuse(model(nodes, {"x": (2**31,)}), ShapeError)


def repeated(steps, size):
    """A Loop that keeps a state."""
    state = helper.make_tensor_value_info("s", TensorProto.FLOAT, (size,))
    going = helper.make_tensor_value_info("c", TensorProto.BOOL, ())
    step = helper.make_tensor_value_info("i", TensorProto.INT64, ())
    body = helper.make_graph(
        [helper.make_node("Sin", ["s"], ["s2"]), helper.make_node("Identity", ["c"], ["c2"])],
        "body", [step, going, state],
        [ValueInfoProto(name="c2"), ValueInfoProto(name="s2")],
    )  # fmt: skip
    return model(node("Loop", "n go x", body=body), {"x": (size,)}, n=steps, go=np.array(True))


def test_a_loop_that_keeps_more_than_there_is_is_refused():
    options = polyc.Options(memory_limit=2**32)
    with pytest.raises(TooLarge, match="array"):
        polyc.compile(repeated(100_000, 2**18), threads=1, options=options)


# --- work when compiling --------------------------------------------------------------------------


def test_folding_a_huge_sum_is_left_to_the_call():
    nodes = [node("ConstantOfShape", "s", "t"), node("ReduceSum", "t")]
    nodes[0].name = "fill"
    graph = import_onnx(model(nodes, {}, s=[2**31]), budget=Budget(2**40))
    assert not graph.tensor("add").is_constant


@pytest.mark.thorough
def test_folds_together_hold_a_bounded_number_of_bytes():
    count = 300  # of 8 MB each
    nodes = [node("Expand", "a s", "t0")]
    nodes += [node("Add", f"t{k} a", f"t{k + 1}") for k in range(count)]
    for k, one in enumerate(nodes):
        one.name = f"n{k}"
    built = model(nodes, {}, f"t{count}", a=np.float64([1]), s=[2**20])
    graph = import_onnx(built)
    assert 0 < len(graph.nodes) < count


@pytest.mark.thorough
def test_a_node_of_very_many_operands_is_compiled():
    built = polyc.compile(model(node("Sum", " ".join(["x"] * 500)), TABLE), threads=1)
    np.testing.assert_array_equal(built(np.ones((4, 6), np.float32)), 500)
    mean = polyc.compile(model(node("Mean", " ".join(["x"] * 200)), TABLE), threads=1)
    np.testing.assert_allclose(mean(np.full((4, 6), 3, np.float32)), 3)


def nested(depth):
    """An If in an If in an If, all true, around a Relu."""
    built = model(node("If", "go", "o0"), TABLE, "o0", go=np.array(True))
    graph = built.graph
    for k in range(depth):
        branches = [graph.node[0].attribute.add(name=f"{w}_branch") for w in ("then", "else")]
        for branch in branches:
            branch.type = onnx.AttributeProto.GRAPH
            branch.g.name = "b"
            branch.g.output.add(name=f"o{k + 1}")
        branches[1].g.node.append(node("Identity", "x", f"o{k + 1}"))
        graph = branches[0].g
        inner = "If" if k + 1 < depth else "Relu"
        graph.node.append(node(inner, "go" if inner == "If" else "x", f"o{k + 1}"))
    return built


def test_graphs_in_attributes_have_a_depth():
    assert [n.op for n in import_onnx(nested(12)).nodes] == ["Relu"]
    for depth in (40, 300, 3000):
        refuse(nested(depth), InvalidModel)
    tag, data = b"\x0a", b""
    for _ in range(3000):
        size, length = len(data), b""
        while size >= 128:
            length, size = length + bytes([size & 127 | 128]), size >> 7
        data = tag + length + bytes([size]) + data
        tag = {b"\x0a": b"\x32", b"\x32": b"\x2a", b"\x2a": b"\x0a"}[tag]
    refuse(b"\x08\x08" + data, InvalidModel)


# --- what a mutating search found -----------------------------------------------------------------


def sequence_model(nodes, output="add"):
    built = model(nodes, TABLE, output, i=np.int64(0), big=np.float32(np.inf))
    for k, one in enumerate(built.graph.node):
        one.name = f"n{k}"
    return built


@pytest.mark.parametrize(
    "nodes",
    [
        [node("SequenceConstruct", "x", "q"), node("SequenceInsert", "q", "r"),
         node("SequenceLength", "r")],
        [node("SequenceEmpty", "", "q"), node("SequenceErase", "q i", "r"),
         node("SequenceLength", "r")],
        [node("SequenceConstruct", "x", "q"), node("SequenceAt", "q big")],
        [node("OneHot", "i big x")],
        [node("TopK", "x big", "add idx")],
        [node("TfIdfVectorizer", "i", mode="TF", min_gram_length=1, max_gram_length=2,
              max_skip_count=0, ngram_counts=[0, 1], ngram_indexes=[0, 1], pool_int64s=[1, 2])],
        [node("MaxUnpool", "x i s", kernel_shape=[1])],
    ],
)  # fmt: skip
def test_nodes_that_make_no_sense_are_refused(nodes):
    text = refuse(sequence_model(nodes), InvalidModel, ShapeError)
    assert any(one.op_type in text for one in nodes), text


def test_elements_of_a_sequence_are_there():
    construct = node("SequenceConstruct", "x x", "q")
    construct.input[0] = ""
    built = sequence_model([construct, node("SequenceAt", "q i")])
    assert "Sequence" in refuse(built, InvalidModel, ShapeError)


def test_a_condition_is_one_value():
    branch = helper.make_graph([node("Relu", "x", "o")], "b", [], [ValueInfoProto(name="o")])
    choice = node("If", "go", then_branch=branch, else_branch=branch)
    assert "If" in refuse(model(choice, TABLE, go=np.array([True, False])), ShapeError)
    given = [ValueInfoProto(name=name) for name in ("k", "before", "x")]
    made = [ValueInfoProto(name=name) for name in ("after", "y")]
    copies = [node("Identity", "before", "after"), node("Relu", "x", "y")]
    loop = node("Loop", "often go x", body=helper.make_graph(copies, "b", given, made))
    repeated = model(loop, TABLE, often=np.int64(3), go=np.array([True, True]))
    assert "Loop" in refuse(repeated, InvalidModel, ShapeError)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_constant_is_of_the_type_that_its_attribute_says(value):
    constant = node("Constant", "", "c")
    constant.attribute.append(helper.make_attribute("value_ints", [1.5]))
    constant.attribute[0].floats[:] = [value]
    text = refuse(model([constant, node("Add", "x c", "add")], TABLE, "add"), InvalidModel)
    assert "constant" in text.lower()


@pytest.mark.parametrize("inputs", [0, 1, 3])
@pytest.mark.parametrize("outputs", [0, 1, 2])
def test_bodies_have_the_inputs_and_outputs_that_are_asked_for(inputs, outputs):
    infos = [helper.make_tensor_value_info(f"a{k}", TensorProto.FLOAT, (6,)) for k in range(inputs)]
    results = [ValueInfoProto(name=f"o{k}") for k in range(outputs)]
    nodes = [helper.make_node("Relu", ["x"], [f"o{k}"]) for k in range(outputs)]
    body = helper.make_graph(nodes, "b", infos, results)
    scan = node("Scan", body=body, num_scan_inputs=1)
    choice = node("If", "go", then_branch=body, else_branch=body)
    for one, fits in ((scan, inputs == 1), (choice, inputs == 0)):
        built = model(one, TABLE, go=np.array(True))
        if fits and outputs:
            assert import_onnx(built).tensor("add").rank in (2, 3)
        else:
            assert "should have" in refuse(built, InvalidModel)
