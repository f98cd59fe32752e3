"""Factors of integer products that stay bytes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyc.graph.onnx_import import import_onnx
from polyc.scop.expr import Cast, Load, walk
from polyc.scop.factors.narrow_factors import narrow_factors
from polyc.scop.lower import lower_graph
from polyc.scop.scop import Scop
from polyc.types.element_types import INT8, INT16, UINT8
from tests.scop.interpreter import interpret

PRODUCTS = {(UINT8, INT8), (INT8, UINT8), (INT8, INT8)}
PAIRS = {(INT16, INT16)}


def lowered(x: tuple[int, ...], w: np.ndarray, op: str = "MatMulInteger", **more) -> Scop:
    """A product of bytes with a constant; more: attributes, and `zero`, the zero point of x."""
    zero = more.pop("zero", None)
    stored = [numpy_helper.from_array(w, "w")]
    names = ["x", "w"]
    if zero is not None:
        stored.append(numpy_helper.from_array(np.asarray(zero, np.uint8), "zero"))
        names.append("zero")
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], name="product", **more)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, x)],
        [helper.make_tensor_value_info("y", TensorProto.INT32, None)],
        stored,
    )
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return lower_graph(import_onnx(model))


def factor_types(scop: Scop) -> set[str]:
    """The types in memory of what is multiplied."""
    (update,) = (s for s in scop.statements if s.reduction)
    casts = [e for e in walk(update.value) if isinstance(e, Cast)]
    loads = [e for e in walk(update.value) if isinstance(e, Load)]
    assert len(casts) in (0, len(loads))
    assert all(scop.arrays[load.array].dtype == load.dtype for load in loads)
    return {str(load.dtype) for load in loads}


def bytes_of(*shape: int, dtype: type = np.int8) -> np.ndarray:
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    return rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


def test_numbers_of_16_bits_hold_a_byte_less_a_zero_point():
    scop = lowered((40, 64), bytes_of(64, 48, dtype=np.uint8), zero=200)
    narrow = narrow_factors(scop, PAIRS)
    assert factor_types(narrow) == {"int16"}
    (centred,) = (s for s in narrow.statements if s.array == "x_centred")
    assert str(centred).endswith("x_centred[i0, i1] = int16(sub(int32(x[i0, i1]), int32(200)))")
    feeds = {"x": bytes_of(40, 64, dtype=np.uint8)}
    np.testing.assert_array_equal(interpret(narrow, feeds)["y"], interpret(scop, feeds)["y"])
    assert factor_types(narrow_factors(scop, PRODUCTS)) == {"int32"}


def test_bytes_are_taken_where_an_instruction_multiplies_these():
    scop = lowered((40, 64), bytes_of(64, 48))
    assert factor_types(narrow_factors(scop, PRODUCTS | PAIRS)) == {"uint8", "int8"}
    assert factor_types(narrow_factors(scop, PAIRS)) == {"int16"}


def test_factors_of_a_product_of_matrices():
    scop = lowered((40, 64), bytes_of(64, 48))
    assert factor_types(scop) == {"int32"}
    narrow = narrow_factors(scop, PRODUCTS)
    assert factor_types(narrow) == {"uint8", "int8"}
    assert narrow_factors(scop, ()) is scop


def test_a_frame_is_narrowed_with_its_image_and_channels_are_summed_last():
    scop = lowered((1, 16, 9, 9), bytes_of(64, 16, 3, 3), "ConvInteger", pads=[1] * 4)
    narrow = narrow_factors(scop, PRODUCTS)
    assert factor_types(narrow) == {"uint8", "int8"}
    (before,) = (s for s in scop.statements if s.reduction)
    (after,) = (s for s in narrow.statements if s.reduction)
    assert sorted(after.iterators) == sorted(before.iterators)
    assert after.iterators[-1] == "c"
    assert after.iterators != before.iterators
    assert after.domain.count_val().eq(before.domain.count_val())


def test_a_constant_is_as_narrow_as_its_values():
    unsigned = bytes_of(64, 48, dtype=np.uint8)
    assert factor_types(narrow_factors(lowered((40, 64), unsigned), PRODUCTS)) == {"int32"}
    small = unsigned // 2  # a signed byte holds them
    assert factor_types(narrow_factors(lowered((40, 64), small), PRODUCTS)) == {"uint8", "int8"}


@pytest.mark.parametrize(
    ("x", "w"),
    [((40, 64), (64, 1)), ((1, 64), (64, 3)), ((40, 3), (3, 48)), ((40, 5), (5, 48))],
    ids=["one column", "few products", "three terms", "five terms"],
)
def test_what_an_instruction_would_not_take_is_left_alone(x, w):
    scop = lowered(x, bytes_of(*w))
    assert narrow_factors(scop, PRODUCTS) is scop


def test_what_does_not_fit_a_byte_is_left_alone():
    scop = lowered((40, 64), bytes_of(64, 48), zero=3)  # from -3 to 252
    assert narrow_factors(scop, PRODUCTS) is scop


def test_an_image_under_a_window_of_its_own_for_each_channel_is_narrowed_alone():
    more = {"pads": [1] * 4, "group": 24}
    scop = lowered((1, 24, 9, 9), bytes_of(24, 1, 3, 3), "ConvInteger", **more)
    narrow = narrow_factors(scop, PRODUCTS)
    (update,) = (s for s in narrow.statements if s.reduction)
    assert sorted(str(load.dtype) for load in update.loads) == ["int32", "uint8"]
    few = lowered((1, 4, 9, 9), bytes_of(4, 1, 3, 3), "ConvInteger", pads=[1] * 4, group=4)
    assert narrow_factors(few, PRODUCTS) is few
