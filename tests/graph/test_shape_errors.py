"""What shape inference refuses, and that it names the node, the rule and the way out."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.errors import InvalidModel, NotFixed, PolycError, ShapeError, UnsupportedOp
from polyc.graph.ir import Node, Tensor
from polyc.graph.shapes import infer_node
from polyc.graph.shapes.rules import RULES
from polyc.graph.shapes.signature import find_signature
from polyc.types.sizes import Size, least

N = Size.of("N")

PROMISED = """
Conv ConvTranspose MatMul Gemm Einsum MaxPool AveragePool LpPool GlobalAveragePool GlobalMaxPool
GlobalLpPool BatchNormalization LRN LayerNormalization InstanceNormalization GroupNormalization
RMSNormalization MeanVarianceNormalization Softmax LogSoftmax Hardmax LpNormalization ReduceSum
ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp
ReduceSumSquare ArgMax ArgMin CumSum Add Sub Mul Div Mod Pow Max Min Sum Mean And Or Xor Not Equal
Less LessOrEqual Greater GreaterOrEqual BitShift BitwiseAnd BitwiseOr BitwiseXor BitwiseNot Abs Neg
Exp Log Sqrt Reciprocal Sign Floor Ceil Round Erf Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh
Acosh Atanh Sigmoid IsNaN IsInf Relu LeakyRelu PRelu Elu Selu Celu Gelu HardSigmoid HardSwish Mish
Softplus Softsign ThresholdedRelu Swish Shrink Where Clip Cast CastLike Reshape Transpose Squeeze
Unsqueeze Flatten Expand Slice Split Concat Pad Tile DepthToSpace SpaceToDepth Gather
GatherElements GatherND Constant ConstantOfShape Range Shape Size Identity Dropout EyeLike OneHot
Trilu
"""


def f32(name, *shape):
    return Tensor(name, np.dtype(np.float32), shape)


def constant(name, value, dtype=np.int64):
    value = np.asarray(value, dtype)
    return Tensor(name, value.dtype, value.shape, value)


def infer(op, *inputs, outputs=1, **attributes):
    names = tuple("" if t is None else t.name for t in inputs)
    node = Node("n1", op, names, tuple(f"y{i}" for i in range(outputs)), attributes)
    return infer_node(node, inputs)


def test_every_promised_operator_has_a_rule():
    assert set(PROMISED.split()) <= set(RULES)


def test_message_names_node_rule_types_and_way_out():
    with pytest.raises(ShapeError) as error:
        infer("Conv", f32("x", 1, 32, 8, 8), f32("w", 8, 64, 3, 3), group=1)
    assert str(error.value).startswith(
        "Conv 'n1': input channels must equal weight channels * group: expected 64, got 32 "
        "(X float32[1,32,8,8], W float32[8,64,3,3], group=1); check the weights"
    )


BROKEN = [
    ("Conv", [f32("x", 1, 4, 8)], {}, "number of inputs: expected 2 to 3, got 1"),
    ("Conv", [f32("x", 1, 4, 8), None], {}, "input W: expected a tensor, got none"),
    ("Conv", [f32("x", 1, 4), f32("w", 4, 4)], {}, "rank of X: expected at least 3, got 2"),
    ("Conv", [f32("x", 1, 4, 8), f32("w", 6, 2, 3)], {"group": 2, "strides": [1, 1]},
     "length of attribute strides: expected 1, got 2"),
    ("Conv", [f32("x", 1, 4, 8), f32("w", 5, 2, 3)], {"group": 2}, "a multiple of 2, got 5"),
    ("Conv", [f32("x", 1, 4, 8), f32("w", 6, 4, 3), f32("b", 5)], {}, "shape of B: expected (6)"),
    ("Conv", [f32("x", 1, 4, 2), f32("w", 6, 4, 3)], {}, "number of output positions"),
    ("Conv", [constant("x", [[[1]]]), constant("w", [[[1]]])], {}, "element type of X ('x')"),
    ("Add", [f32("a", 2), constant("b", [1.0], np.float64)], {}, "expected float32, got float64"),
    ("Add", [f32("a", 2, 3), f32("b", 2)], {}, "equal or 1: expected 3 or 1, got 2"),
    ("MatMul", [f32("a", 2, 3), f32("b", 4, 5)], {}, "next-to-last of B: expected 3, got 4"),
    ("Gemm", [f32("a", 2, 3), f32("b", 3, 4), f32("c", 3)], {}, "broadcasts to (2, 4), got (3)"),
    ("Reshape", [f32("x", 2, 3), constant("s", [4, -1])], {}, "a divisor of 6, got 4"),
    ("Reshape", [f32("x", 2, 3), constant("s", [-1, -1])], {}, "at most one -1, got (-1, -1)"),
    ("Transpose", [f32("x", 2, 3)], {"perm": [0, 0]}, "a permutation of 0 to 1, got (0, 0)"),
    ("Squeeze", [f32("x", 2, 3), constant("a", [0])], {}, "squeezed axis 0: expected 1, got 2"),
    ("Softmax", [f32("x", 2, 3)], {"axis": 2}, "axis: expected -2 to 1, got 2"),
    ("Gather", [f32("x", 3), constant("i", [0, 3])], {}, "expected -3 to 2, got 0 to 3"),
    ("Slice", [f32("x", 3), *(constant(n, [0]) for n in "abcd")], {}, "steps: expected no zero"),
    ("Concat", [f32("a", 2, 3), f32("b", 2, 4)], {"axis": 0}, "dimension 1 of 'b' must be that of"),
    ("Split", [f32("x", 5), constant("s", [5])], {"num_outputs": 1}, "num_outputs: expected one"),
    ("ReduceSum", [f32("x", 2), constant("a", [0, -1])], {}, "axes: expected each axis once"),
    ("Tile", [f32("x", 2), constant("r", [2**41])], {}, "expected at most 2**40"),
    ("Range", [*(constant(n, 0) for n in "abc")], {}, "delta: expected not 0"),
    ("Einsum", [f32("x", 2)], {"equation": "i->j"}, "labels of the result"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "attributes", "text"), BROKEN)
def test_broken_rule_is_reported(op, inputs, attributes, text):
    with pytest.raises(ShapeError) as error:
        infer(op, *inputs, **attributes)
    message = str(error.value)
    assert message.startswith(f"{op} 'n1': ")
    assert text in message
    assert "; " in message


def test_malformed_attributes_are_reported():
    with pytest.raises(InvalidModel, match=r"Concat 'n1': attribute axis is required"):
        infer("Concat", f32("x", 2))
    with pytest.raises(InvalidModel, match=r"Relu 'n1': no attribute alpha; .* are: none"):
        infer("Relu", f32("x", 2), alpha=1.0)
    with pytest.raises(InvalidModel, match=r"attribute axis must be of kind INT, got str"):
        infer("Softmax", f32("x", 2), axis="last")


def test_unsupported_operators_are_named():
    with pytest.raises(UnsupportedOp, match=r"Blur 'n1': operator Blur is not supported"):
        infer("Blur", f32("x", 2))
    with pytest.raises(UnsupportedOp, match=r"operator Relu of domain 'mine'"):
        infer_node(Node("n1", "Relu", ("x",), ("y",), {}, "mine"), [f32("x", 2)])


def test_shape_computed_at_run_time_is_refused():
    shape = Tensor("s", np.dtype(np.int64), (2,))
    with pytest.raises(
        UnsupportedOp, match=r"Reshape 'n1': .* value of shape, and 's' is computed"
    ):
        infer("Reshape", f32("x", 2, 3), shape)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "shape"),
    [
        ("Add", [f32("a", "N", 3), f32("b", "N", 1)], {}, ("N", 3)),
        ("Add", [f32("a", "N", 3), f32("b", 1, 3)], {}, ("N", 3)),
        ("Conv", [f32("x", "N", 4, 8), f32("w", 6, 4, 3)], {}, ("N", 6, 6)),
        ("Gemm", [f32("a", "N", 3), f32("b", 3, 4), f32("c", 4)], {}, ("N", 4)),
        ("Reshape", [f32("x", "N", 3, 4), constant("s", [0, -1])], {}, ("N", 12)),
        ("Reshape", [f32("x", "N", 3, 4), constant("s", [-1, 12])], {}, ("N", 12)),
        ("Flatten", [f32("x", "N", 3, 4)], {}, ("N", 12)),
        ("Flatten", [f32("x", "N", "M", 2)], {"axis": 2}, (N * Size.of("M"), 2)),
        ("Reshape", [f32("x", "N", 4), constant("s", [-1, 2])], {}, (N * 2, 2)),
        ("Concat", [f32("a", "N"), f32("b", "N")], {"axis": 0}, (N * 2,)),
        ("Slice", [f32("x", "N", 4), constant("s", [1]), constant("e", [3]), constant("a", [1])],
         {}, ("N", 2)),
        ("Slice", [f32("x", "N"), constant("s", [0]), constant("e", [3])], {}, (least(N, 3),)),
        ("Concat", [f32("a", "N", 2), f32("b", "N", 3)], {"axis": 1}, ("N", 5)),
        ("ReduceMean", [f32("x", "N", 2), constant("a", [1])], {"keepdims": 0}, ("N",)),
    ],
)  # fmt: skip
def test_symbol_passes_through(op, inputs, attributes, shape):
    assert infer(op, *inputs, **attributes)[0].shape == shape


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Add", [f32("a", "N"), f32("b", 3)], {}),
        ("Add", [f32("a", "N"), f32("b", "M")], {}),
        ("MatMul", [f32("a", 2, "K"), f32("b", 3, 4)], {}),
        ("MaxPool", [f32("x", 1, 2, "H")], {"kernel_shape": [2]}),
        ("Reshape", [f32("x", "N", 4), constant("s", [3, -1])], {}),
    ],
)
def test_arithmetic_on_a_symbol_is_refused(op, inputs, attributes):
    with pytest.raises(UnsupportedOp, match=r"'n1': .*; give the model's inputs fixed sizes"):
        infer(op, *inputs, **attributes)


def test_absent_outputs_keep_their_place():
    node = Node("n1", "LayerNormalization", ("x", "s"), ("y", "", "d"))
    y, absent, deviation = infer_node(node, [f32("x", 2, 3), f32("s", 3)])
    assert (y.shape, absent.name, deviation.name) == ((2, 3), "", "d")
    assert deviation.shape == (2, 1)


INTEGERS = st.integers(-4, 6)
VALUES = {
    "INT": INTEGERS,
    "FLOAT": st.floats(),
    "STRING": st.sampled_from(["", "VALID", "constant", "ij->j", "...i,i"]),
    "INTS": st.lists(INTEGERS, max_size=4),
    "FLOATS": st.lists(st.floats(), max_size=3),
    "STRINGS": st.lists(st.text(max_size=2), max_size=3),
    "TENSOR": st.sampled_from([np.zeros(1, np.float32), np.zeros((2, 0)), np.zeros((), bool)]),
}


@st.composite
def operands(draw, name):
    kind = draw(st.sampled_from(["absent", "float32", "int64", "bool", "constant", "symbol"]))
    if kind == "absent":
        return None
    if kind == "constant":
        return constant(name, draw(st.lists(INTEGERS, max_size=4) | INTEGERS))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=5)))
    if kind == "symbol":
        return f32(name, "N", *shape)
    return Tensor(name, np.dtype(kind), shape)


@pytest.mark.thorough
@settings(max_examples=400)
@given(st.data(), st.sampled_from(sorted(RULES)))
def test_nonsense_raises_only_our_errors(data, op):
    check_nonsense(data, op)


@pytest.mark.thorough
@settings(max_examples=5000)
@given(st.data(), st.sampled_from(sorted(RULES)))
def test_much_nonsense_raises_only_our_errors(data, op):
    check_nonsense(data, op)


def check_nonsense(data, op):
    signature = find_signature(op)
    most = min(signature.input_count[1], 5)
    count = data.draw(st.integers(min(signature.input_count[0], most), most))
    inputs = [data.draw(operands(f"x{i}")) for i in range(count)]
    wanted = data.draw(st.sets(st.sampled_from(sorted(signature.attributes) or [""]), max_size=4))
    names = sorted((wanted | signature.required) - {"", "sparse_value"})
    attributes = {n: data.draw(VALUES[signature.attributes[n]]) for n in names}
    outputs = data.draw(st.integers(1, 3))
    # Anything but a PolycError would escape here and fail the test.
    with contextlib.suppress(PolycError):
        results = infer(op, *inputs, outputs=outputs, **attributes)
        assert len(results) == outputs
        assert all(isinstance(d, str) or d >= 0 for t in results for d in t.shape)


UNDECIDED = [
    ("GatherElements", [f32("x", N, 4), Tensor("i", np.dtype(np.int64), (2, 3))], {"axis": 1},
     "whether 2 is at most N"),
    ("GridSample", [f32("x", 1, 1, 5, 5), f32("grid", 1, 3, 3, N)], {}, "whether N is 2"),
    ("Conv", [f32("x", 1, 4, 8), f32("w", 6, 4, 3), f32("b", N)], {}, "whether (N) is (6)"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "attributes", "text"), UNDECIDED)
def test_what_holds_for_some_sizes_is_left_to_the_call(op, inputs, attributes, text):
    with pytest.raises(NotFixed) as error:
        infer(op, *inputs, **attributes)
    assert text in str(error.value)


def test_what_holds_for_no_size_is_reported():
    with pytest.raises(ShapeError, match="last dimension of grid: expected 2, got N \\+ 2"):
        infer("GridSample", f32("x", 1, 1, 5, 5), f32("grid", 1, 3, 3, N + 2))
