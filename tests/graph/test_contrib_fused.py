"""What ONNX Runtime's optimiser writes in models that it saves."""

import numpy as np
import pytest

from polyc.errors import ShapeError, UnsupportedOp
from tests.graph.contrib import by_standard, model_of
from tests.sampling import thorough
from tests.staged import assert_same, compile_in, run_ort

RNG = np.random.default_rng(37)
SAME = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


def draw(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def check(compiled, op, inputs, text="", **attributes):
    """As ONNX Runtime, or as the standard's operators in a text where it has no kernel of it."""
    source = model_of(op, inputs, ["y"], **attributes)
    feeds = {f"x{k}": x for k, x in enumerate(inputs) if x is not None}
    want = by_standard(text, feeds) if text else run_ort(source, feeds)[0]
    assert_same(compiled(source).run(feeds)["y"], want, 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [("Relu", []), thorough("Tanh", []), thorough("Sigmoid", []), ("LeakyRelu", [0.2]),
     ("Clip", [0.0, 6.0]), thorough("HardSigmoid", [0.2, 0.5])],
)  # fmt: skip
def test_convolutions(compiled, kind, parameters):
    inputs = [draw(2, 6, 9, 9), draw(8, 6, 3, 3), draw(8), draw(2, 8, 9, 9)]
    more = {"activation_params": parameters} if parameters else {}
    check(compiled, "FusedConv", inputs, activation=kind, **SAME, **more)


def test_a_convolution_without_an_activation_or_a_bias(compiled):
    x, w = draw(2, 6, 9, 9), draw(8, 6, 3, 3)
    check(compiled, "FusedConv", [x, w, draw(8)], **SAME)
    check(compiled, "FusedConv", [x, w, None, draw(2, 8, 9, 9)], activation="Relu", **SAME)


@pytest.mark.parametrize(
    ("kind", "named"),
    [thorough("Relu", {}), ("Elu", {"alpha": 0.7}), thorough("Softplus", {}),
     ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}), thorough("Tanh", {}),
     thorough("Softsign", {}), thorough("ThresholdedRelu", {"alpha": 0.5})],
)  # fmt: skip
def test_products(compiled, kind, named):
    more = {f"activation_{name}": value for name, value in named.items()}
    inputs = [draw(5, 7), draw(9, 7), draw(9)]
    check(compiled, "FusedGemm", inputs, activation=kind, transB=1, alpha=0.5, beta=2.0, **more)


def test_a_parameter_is_that_of_its_name(compiled):
    """Where only the second one is given, the first is the standard's."""
    text = "p = MatMul(x0, x1) y = HardSigmoid <beta = 0.4>(p)"
    more = {"activation": "HardSigmoid", "activation_beta": 0.4}
    check(compiled, "FusedGemm", [draw(5, 7), draw(7, 9)], text, **more)


def test_a_product_of_what_is_transposed(compiled):
    check(compiled, "TransposeMatMul", [draw(2, 5, 7), draw(2, 5, 4)], transA=1, alpha=0.5)


@pytest.mark.parametrize("metric", ["euclidean", thorough("sqeuclidean")])
def test_distances(compiled, metric):
    check(compiled, "CDist", [draw(5, 7), draw(9, 7)], metric=metric)


@pytest.mark.parametrize("last", [1, thorough(0)])
def test_group_norms(compiled, last):
    shape, axes = ((2, 3, 5, 8), "3, 1, 2") if last else ((2, 8, 3, 5), "1, 2, 3")
    x, gamma, beta = draw(*shape), draw(8), draw(8)
    back = "2, 3, 1" if last else "1, 2, 3"
    norm = (
        f"f = Transpose <perm = [0, {axes}]>({{}}) "
        "n = GroupNormalization <num_groups = 4, epsilon = 0.001>(f, x1, x2) "
        f"b = Transpose <perm = [0, {back}]>(n) "
    )
    options = {"groups": 4, "epsilon": 0.001, "channels_last": last}
    text = norm.format("x0") + "s = Sigmoid(b) y = Mul(b, s)"
    check(compiled, "GroupNorm", [x, gamma, beta], text, activation=1, **options)
    where = "1, 2" if last else "2, 3"
    text = (
        f"k = Constant <value_ints = [{where}]>() e = Unsqueeze(x3, k) t = Add(x0, e) "
        + norm.format("t")
        + "y = Identity(b)"
    )
    check(compiled, "SkipGroupNorm", [x, gamma, beta, draw(2, 8)], text, activation=0, **options)


def test_convolutions_of_channels_that_are_last(compiled):
    text = (
        "a = Transpose <perm = [0, 3, 1, 2]>(x0) b = Transpose <perm = [0, 3, 1, 2]>(x1) "
        "c = Conv <pads = [1, 1, 1, 1]>(a, b, x2) y = Transpose <perm = [0, 2, 3, 1]>(c)"
    )
    inputs = [draw(2, 9, 9, 6), draw(8, 3, 3, 6), draw(8)]
    check(compiled, "NhwcConv", inputs, text, pads=[1, 1, 1, 1])
    text = "a = Add(x0, x1) y = Add(a, x2)"
    check(compiled, "BiasAdd", [draw(2, 5, 6), draw(6), draw(2, 5, 6)], text)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [("ExpandDims", [draw(5, 7), np.array(1, np.int32)], {}),
     ("GatherND", [draw(5, 7), np.array([[1, 2], [4, 0], [0, 6]])], {}),
     thorough("GridSample", [draw(1, 3, 5, 7), np.tanh(draw(1, 4, 4, 2))], {"mode": "bicubic"}),
     ("GridSample", [draw(1, 3, 5, 7), np.tanh(draw(1, 4, 4, 2))], {"mode": "bilinear"}),
     ("Pad", [draw(5, 7), np.array([1, 0, 2, 3]), np.array(2, np.float32)], {}),
     ("QuantizeLinear", [draw(5, 7), np.full(7, 0.02, np.float32), np.full(7, 7, np.int16)],
      {"axis": 1}),
     ("DequantizeLinear", [np.arange(35).reshape(5, 7).astype(np.uint16),
      np.full(5, 0.02, np.float32), np.full(5, 7, np.uint16)], {"axis": 0}),
     ("Range", [np.array(2, np.int32), np.array(9, np.int32)], {}),
     ("Trilu", [draw(5, 7), np.array(1)], {"upper": 0})],
)  # fmt: skip
def test_what_the_standard_has_taken_over(compiled, op, inputs, attributes):
    constants = {"ExpandDims": (1,), "Pad": (1,), "Range": (0, 1)}.get(op, ())
    source = model_of(op, inputs, ["y"], constants=constants, **attributes)
    feeds = {f"x{k}": x for k, x in enumerate(inputs) if k not in constants}
    (want,) = run_ort(source, feeds)
    assert_same(compiled(source).run(feeds)["y"], want)


def test_what_is_not_there_is_refused(compiled):
    inputs = [draw(1, 2, 3, 3), draw(4, 2, 3, 3)]
    with pytest.raises(UnsupportedOp, match="activation 'Nope'"):
        compiled(model_of("FusedConv", inputs, ["y"], activation="Nope"))
    numbers = [np.ones((5, 7), np.uint8)] * 2
    with pytest.raises(ShapeError, match=r"element type of A .* one of bfloat16, float16, float32"):
        compiled(model_of("FusedMatMul", numbers, ["y"]))
    with pytest.raises(ShapeError, match="number of parameters of Clip"):
        compiled(model_of("FusedConv", inputs, ["y"], activation="Clip"))
    with pytest.raises(ShapeError, match="metric"):
        compiled(model_of("CDist", [draw(5, 7), draw(9, 7)], ["y"], metric="cityblock"))
