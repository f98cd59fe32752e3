"""Products of bytes by dot4: the numbers of NumPy, and the instruction is really there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import polyc
from polyc.errors import IllegalSchedule
from polyc.options import Options
from polyc.target.instructions.lanes import DOT4_U8S8, ROWS
from polyc.target.instructions.rows import LANES, Apply, Nest, Operand, Spelling, VectorInstruction
from polyc.target.machine import NAMED, Target
from polyc.types.element_types import INT8, INT32, UINT8
from tests.machines import BYTES, find_bytes, need
from tests.sampling import thorough

Arrays = dict[str, np.ndarray]
TARGETS = [*NAMED.values(), find_bytes()]
KINDS = {"u8s8": (np.uint8, np.int8), "s8s8": (np.int8, np.int8)}
TILE = "order j i | split i 3 | split j 32 | vector j' | unroll i'"
DOT = f"{TILE} | split k 4 | sink j' i' k' | use dot4.u8s8 k' | parallel j i | keep all at i"


def row_of(target: Target, kind: str = "u8s8") -> str:
    """The row for products of these bytes; without VNNI they are widened, and taken in pairs."""
    return f"dot4.{kind}" if target.vectors.has(DOT4_U8S8) else "dot2.s16s16"


def function_of(target: Target, kind: str = "u8s8") -> str:
    name, types = row_of(target, kind).split(".")
    return f"pc_{name}_{types.replace('s', 'i')}_i32x"


def whole(rng: np.random.Generator, dtype: type, *shape: int) -> np.ndarray:
    """Any values, and the extreme ones more often."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    any_value = rng.integers(least, most, shape, endpoint=True)
    return np.where(rng.random(shape) < 0.3, rng.choice([least, most], shape), any_value).astype(
        dtype
    )


def wrapped(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product modulo 2^32."""
    return (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)


def model_of(op: str, x: np.ndarray, w: np.ndarray, known: bool, **attributes) -> onnx.ModelProto:
    types = {n: helper.np_dtype_to_tensor_dtype(v.dtype) for n, v in (("x", x), ("w", w))}
    given = [("x", x)] if known else [("x", x), ("w", w)]
    inputs = [helper.make_tensor_value_info(n, types[n], v.shape) for n, v in given]
    node = helper.make_node(op, ["x", "w"], ["y"], name="product", **attributes)
    result = [helper.make_tensor_value_info("y", TensorProto.INT32, None)]
    stored = [numpy_helper.from_array(w, "w")] if known else []
    graph = helper.make_graph([node], "g", inputs, result, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def convolution(
    channels: int, filters: int, size: int, kernel: int, pad: int, stride: int
) -> tuple[onnx.ModelProto, np.ndarray, np.ndarray]:
    """(a convolution of two images of bytes, they, what comes out)"""
    rng = np.random.default_rng(filters)
    x = whole(rng, np.uint8, 2, channels, size, size)
    w = whole(rng, np.int8, filters, channels, kernel, kernel)
    frame = np.pad(x.astype(np.int64), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    windows = np.lib.stride_tricks.sliding_window_view(frame, (kernel, kernel), (2, 3))
    wanted = np.einsum("ncyxrq,ocrq->noyx", windows[:, :, ::stride, ::stride], w.astype(np.int64))
    graph = model_of("ConvInteger", x, w, True, pads=[pad] * 4, strides=[stride] * 2)
    return graph, x, wanted.astype(np.int32)


def run(target: Target, x: np.ndarray, w: np.ndarray, known: bool, schedule=None, **how):
    """(the compiled product of matrices, its result)"""
    need(target)
    schedules = {"product": schedule} if isinstance(schedule, str) else schedule
    model = polyc.compile(
        model_of("MatMulInteger", x, w, known), target=target, schedule=schedules, **how
    )
    return model, model(x) if known else model(x, w)


@pytest.mark.parametrize("known", [True, False], ids=["constant", "packed"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize(
    "shape",
    [
        (33, 64, 48),
        (41, 67, 33),
        *(thorough(shape) for shape in ((64, 8, 9), (35, 18, 16))),
    ],
    ids=str,
)
def test_products_of_matrices(target, shape, kind, known):
    m, depth, n = shape
    rng = np.random.default_rng(m)
    x, w = whole(rng, KINDS[kind][0], m, depth), whole(rng, KINDS[kind][1], depth, n)
    model, y = run(target, x, w, known)
    np.testing.assert_array_equal(y, wrapped(x, w))
    assert any(f"use {row_of(target, kind)} k" in text for text in model.schedules.values())
    assert function_of(target, kind) in model.source


@pytest.mark.parametrize(("m", "depth", "n"), [(1, 5, 7), (20, 4, 1), (3, 3, 20), (2, 1, 2)])
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_small_products_are_right_without_it(target, m, depth, n):
    rng = np.random.default_rng(n)
    x, w = whole(rng, np.uint8, m, depth), whole(rng, np.int8, depth, n)
    for known in (True, False):
        _, y = run(target, x, w, known)
        np.testing.assert_array_equal(y, wrapped(x, w))


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_sum_that_leaves_32_bits_wraps_as_the_loop_does(target):
    depth = 65_799  # 255 * 128 * 65,794 is more than 2^31
    x, w = np.full((9, depth), 255, np.uint8), np.full((depth, 8), -128, np.int8)
    model, y = run(target, x, w, known=True)
    assert function_of(target) in model.source
    np.testing.assert_array_equal(y, wrapped(x, w))
    assert y[0, 0] > 0


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_on_several_threads(threads):
    rng = np.random.default_rng(threads)
    x, w = whole(rng, np.uint8, 130, 70), whole(rng, np.int8, 70, 50)
    target = find_bytes()
    model, y = run(target, x, w, known=True, threads=threads)
    np.testing.assert_array_equal(y, wrapped(x, w))
    assert function_of(target) in model.source


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize(
    ("channels", "filters", "size", "kernel", "pad", "stride"),
    [(16, 40, 9, 3, 1, 1), (12, 33, 8, 1, 0, 1), (8, 64, 11, 3, 0, 2), (11, 64, 7, 2, 1, 1)],
)
def test_convolutions(target, channels, filters, size, kernel, pad, stride):
    need(target)
    graph, x, wanted = convolution(channels, filters, size, kernel, pad, stride)
    model = polyc.compile(graph, target=target)
    np.testing.assert_array_equal(model(x), wanted)
    assert function_of(target) in model.source


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("depth", [34, thorough(33), 36])
def test_groups_of_channels_that_blocks_do_not_divide(target, depth):
    """Of four groups of 34, the second begins within a block of four: no instruction takes it."""
    need(target)
    rng = np.random.default_rng(depth)
    x, w = whole(rng, np.uint8, 1, 4 * depth, 12, 12), whole(rng, np.int8, 160, depth, 1, 1)
    model = polyc.compile(model_of("ConvInteger", x, w, True, group=4), target=target)
    parts = x.astype(np.int64).reshape(4, depth, 144), w.astype(np.int64).reshape(4, 40, depth)
    wanted = np.einsum("gcp,goc->gop", *parts).reshape(1, 160, 12, 12)
    np.testing.assert_array_equal(model(x), wanted.astype(np.int32))


@pytest.mark.parametrize("pad", [0, 3])
def test_three_channels_of_images_of_any_size(pad, tmp_path):
    """A row of 7 taps becomes one of 8 here as well, though the image is as wide as it is."""
    target = find_bytes()
    graph, x, wanted = convolution(3, 40, 31, 7, pad, 2)
    for dim, name in zip(graph.graph.input[0].type.tensor_type.shape.dim, "nchw", strict=True):
        if name != "c":
            dim.dim_param = name
    graph.graph.output[0].type.tensor_type.ClearField("shape")
    options = Options(cache_dir=tmp_path)
    hint = {"n": 2, "h": 31, "w": 31}
    model = polyc.compile(graph, options=options, target=target, hint=hint)
    assert function_of(target) in model.source
    np.testing.assert_array_equal(model(x), wanted)
    low, wide = x[:1, :, :9], x[:, :, :14, :23]
    for image in (low, wide):
        fixed = onnx.ModelProto()
        fixed.CopyFrom(graph)
        for dim, n in zip(
            fixed.graph.input[0].type.tensor_type.shape.dim, image.shape, strict=True
        ):
            dim.dim_value = n
        again = polyc.compile(fixed, options=options, target=target)
        np.testing.assert_array_equal(model(image), again(image))


@pytest.mark.parametrize("target", [*TARGETS[:-1], thorough(TARGETS[-1])], ids=str)
def test_a_schedule_asks_for_it(target):
    rng = np.random.default_rng(0)
    x, w = whole(rng, np.uint8, 13, 43), whole(rng, np.int8, 43, 37)
    name = row_of(target)
    asked = DOT.replace("dot4.u8s8", name).replace("split k 4", f"split k {name[3]}")
    plain, _ = run(target, x, w, known=True)
    (product,) = (key for key, text in plain.schedules.items() if "use " in text)
    model, y = run(target, x, w, known=True, schedule={product: asked})
    np.testing.assert_array_equal(y, wrapped(x, w))
    kept = model.schedules[product]
    assert f"use {name} k'" in kept
    assert function_of(target) in model.source
    again, same = run(target, x, w, known=True, schedule=model.schedules)
    np.testing.assert_array_equal(same, y)
    assert again.source == model.source


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        (DOT.replace("u8s8", "s8s8"), "of i8, i8 is another expression"),
        (DOT.replace("split k 4", "split k 8"), r"it has 4 iterations, and these are \[8\]"),
        (DOT.replace("sink j' i' k'", "sink j' i'"), "put k' inside by sink"),
        (DOT.replace("vector j' | ", ""), "no loop around it is in lanes"),
        (
            DOT.replace("use dot4.u8s8 k'", "use dot4.u8s8 k"),
            "put k inside by sink",
        ),
        (DOT.replace("dot4.u8s8", "load"), "load is no instruction that runs loops of a CPU"),
        (DOT.replace("dot4.u8s8", "mma.m16n8k8.tf32"), "there are dot4.u8s8, dot4.s8s8, dot2"),
    ],
)
def test_what_it_is_not_is_refused(schedule, said):
    x, w = np.zeros((12, 64), np.uint8), np.ones((64, 64), np.int8)
    with pytest.raises(IllegalSchedule, match=said):
        run(BYTES, x, w, known=True, schedule=schedule)


def test_neighbours_have_to_lie_together():
    x, w = np.zeros((64, 64), np.uint8), np.ones((64, 64), np.int8)
    with pytest.raises(IllegalSchedule, match="its operand b lies 4 and 1 apart"):
        run(BYTES, x, w, known=False, schedule=DOT)
    _, y = run(BYTES, x, w, known=False, schedule=f"pack w | {DOT}")
    assert not y.any()


def test_it_is_no_instruction_of_a_gpu():
    graph = model_of("MatMulInteger", np.zeros((8, 8), "u1"), np.zeros((8, 8), "i1"), True)
    with pytest.raises(IllegalSchedule, match=r"dot4\.u8s8"):
        polyc.compile(graph, target="cuda:sm_80", schedule={"product": "use dot4.u8s8 k"})


def quantised(
    op: str,
    feeds: dict[str, np.ndarray],
    known: dict[str, np.ndarray],
    names: str,
    dtype: type,
    **more,
) -> onnx.ModelProto:
    """A quantised operator of inputs in the order of `names`."""
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for n, v in feeds.items()
    ]
    stored = [numpy_helper.from_array(v, n) for n, v in known.items()]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [helper.make_node(op, names.split(), ["y"], name="product", **more)],
        "g",
        inputs,
        [helper.make_tensor_value_info("y", kind, None)],
        stored,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("told", [True, False], ids=["known", "told by a call"])
@pytest.mark.parametrize("kind", ["u8s8", thorough("s8s8")])
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_zero_points_are_taken_out_of_sums(target, kind, told):
    need(target)
    rng = np.random.default_rng(told)
    x, w = whole(rng, KINDS[kind][0], 35, 66), whole(rng, KINDS[kind][1], 66, 40)
    for zero in (np.iinfo(x.dtype).max, np.iinfo(x.dtype).min, 3):
        z = np.asarray(zero, x.dtype)
        feeds, known = {"x": x}, {"w": w}
        (known if told else feeds)["z"] = z
        model = polyc.compile(
            quantised("MatMulInteger", feeds, known, "x w z", np.int32), target=target
        )
        wanted = (x.astype(np.int64) - zero) @ w.astype(np.int64)
        np.testing.assert_array_equal(model.run(feeds)["y"], wanted.astype(np.int32))
        assert function_of(target, kind) in model.source


@pytest.mark.parametrize("told", [True, False], ids=["known", "told by a call"])
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_around_an_image_there_is_its_zero_point(target, told):
    need(target)
    rng = np.random.default_rng(told)
    x, w = whole(rng, np.uint8, 1, 12, 7, 7), whole(rng, np.int8, 40, 12, 3, 3)
    feeds, known = {"x": x}, {"w": w}
    (known if told else feeds)["z"] = np.asarray(131, np.uint8)
    graph = quantised("ConvInteger", feeds, known, "x w z", np.int32, pads=[1] * 4)
    model = polyc.compile(graph, target=target)
    frame = np.pad(x.astype(np.int64) - 131, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(frame, (3, 3), (2, 3))
    wanted = np.einsum("ncyxrq,ocrq->noyx", windows, w.astype(np.int64))
    np.testing.assert_array_equal(model.run(feeds)["y"], wanted.astype(np.int32))
    assert function_of(target) in model.source


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_requantised_product(target):
    need(target)
    rng = np.random.default_rng(1)
    x, w = whole(rng, np.uint8, 34, 70), whole(rng, np.int8, 70, 48)
    scales = {n: np.asarray(v, np.float32) for n, v in (("xs", 0.5), ("ws", 0.25), ("ys", 16))}
    known = {**scales, "w": w, "xz": np.uint8(130), "wz": np.int8(0), "yz": np.uint8(101)}
    known = {n: np.asarray(v) for n, v in known.items()}
    graph = quantised("QLinearMatMul", {"x": x}, known, "x xs xz w ws wz ys yz", np.uint8)
    model = polyc.compile(graph, target=target)
    total = (x.astype(np.int64) - 130) @ w.astype(np.int64)
    wanted = np.clip(np.round(total * (0.125 / 16)) + 101, 0, 255)
    np.testing.assert_array_equal(model(x), wanted.astype(np.uint8))
    assert function_of(target) in model.source


def _dot2() -> VectorInstruction:
    """A row of its own: the products of two bytes, in C that every compiler has."""
    factors = (Operand("p", UINT8, (2, 1)), Operand("q", INT8, (2, 1)))
    value = Apply("mul", tuple(Apply("cast", (f,), INT32) for f in factors), INT32)
    wide = "__builtin_convertvector({}, i32x{{lanes}})"
    low = [wide.format("((u16x{lanes})({p}) & 255)"), wide.format("((u16x{lanes})({p}) >> 8)")]
    high = [
        wide.format("((i16x{lanes})((u16x{lanes})({q}) << 8) >> 8)"),
        wide.format("((i16x{lanes})({q}) >> 8)"),
    ]
    text = f"{{sum}} = {{sum}} + {low[0]} * {high[0]} + {low[1]} * {high[1]};"
    nest = Nest((LANES, 2), Operand("sum", INT32, (1, 0)), value, "add")
    spelling = Spelling(text.replace("{{", "{").replace("}}", "}"), lanes=(4, 8, 16))
    return VectorInstruction("dot2", nest, (spelling,))


def test_a_new_row_is_matched_and_run():
    """Nothing but the table knows of it."""
    dot2, machine = _dot2(), BYTES
    rng = np.random.default_rng(2)
    x, w = whole(rng, np.uint8, 37, 45), whole(rng, np.int8, 45, 41)
    asked = DOT.replace("split k 4", "split k 2").replace("dot4.u8s8", "dot2")
    longer = replace(machine, vectors=replace(machine.vectors, instructions=(*ROWS, dot2)))
    model, y = run(longer, x, w, known=True, schedule=asked)
    np.testing.assert_array_equal(y, wrapped(x, w))
    assert "__builtin_convertvector" in model.source
    with pytest.raises(IllegalSchedule, match="dot2 is no instruction"):
        run(machine, x, w, known=True, schedule=asked)

    others = tuple(row for row in ROWS if row != DOT4_U8S8)
    only = replace(machine, vectors=replace(machine.vectors, instructions=(*others, dot2)))
    model, y = run(only, x, w, known=True)
    np.testing.assert_array_equal(y, wrapped(x, w))
    assert any("use dot2 k'" in text for text in model.schedules.values())
