"""Decoders as ONNX Runtime's builder of generative models writes them, against ONNX Runtime."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyc.errors import InvalidModel, ShapeError, UnsupportedOp
from polyc.run.cpu_model import CpuModel
from tests import staged
from tests.graph.contrib import model_of
from tests.sampling import thorough
from tests.staged import assert_same, compile_in, run_ort

RNG = np.random.default_rng(41)
HEADS, KEYS, WIDTH = 4, 2, 16


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


def draw(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def check_attention(compiled, lengths, n, room, rotary=False, packed=False, more=None, **options):
    """Rows of a batch have `lengths` keys, n of which are new, and past keys have `room`."""
    lengths, batch, more = np.array(lengths, np.int32), len(lengths), more or {}
    inputs = [draw(batch, n, (HEADS + 2 * KEYS) * WIDTH), None, None]
    if not packed:
        inputs = [draw(batch, n, k * WIDTH) for k in (HEADS, KEYS, KEYS)]
    inputs += [draw(batch, KEYS, room, WIDTH), draw(batch, KEYS, room, WIDTH)]
    inputs += [lengths - 1, np.array(lengths.max(), np.int32)]
    inputs += [draw(64, WIDTH // 2), draw(64, WIDTH // 2)] if rotary else [None, None]
    inputs += [more.get(name) for name in ("positions", "bias", "sink")]
    if rotary:
        options["do_rotary"] = 1
    source = model_of(
        "GroupQueryAttention", inputs, ["y", "k", "v"], constants=(6,),
        num_heads=HEADS, kv_num_heads=KEYS, **options,
    )  # fmt: skip
    feeds = {f"x{k}": x for k, x in enumerate(inputs) if x is not None and k != 6}
    got = compiled(source).run(feeds)
    for name, want in zip(("y", "k", "v"), run_ort(source, feeds), strict=True):
        assert got[name].shape == want.shape
        for row, length in enumerate(lengths):  # what is behind the end of a row is anything
            mine, theirs = got[name][row], want[row]
            kept = np.s_[: min(n, length)] if name == "y" else np.s_[:, :length]
            assert_same(mine[kept], theirs[kept], 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("lengths", "n", "room"),
    [([5], 5, 0), ([5, 3], 5, 0), thorough([7], 1, 6), ([7, 5], 1, 6), ([7, 3], 1, 16),
     thorough([5], 5, 16), ([9], 3, 16), thorough([9], 3, 6)],
)  # fmt: skip
@pytest.mark.parametrize("rotary", [True, thorough(False)])
def test_attention_of_groups(compiled, lengths, n, room, rotary):
    """Prompts, padded ones, tokens, and both in buffers with room for more."""
    check_attention(compiled, lengths, n, room, rotary, packed=rotary)


@pytest.mark.parametrize(
    "options",
    [{"local_window_size": 3}, thorough({"local_window_size": 1}), {"softcap": 2.0},
     {"scale": 0.3, "smooth_softmax": 1}, thorough({"causal": 0})],
)  # fmt: skip
def test_attention_with_options(compiled, options):
    check_attention(compiled, [6], 6, 0, **options)
    check_attention(compiled, [9], 2, 7, **options)


def test_attention_with_a_bias_sinks_and_positions(compiled):
    check_attention(compiled, [8], 2, 6, more={"bias": draw(1, HEADS, 2, 8)}, softcap=2.0)
    check_attention(compiled, [8], 2, 16, more={"bias": draw(1, 1, 2, 8)})
    check_attention(compiled, [5], 5, 0, more={"sink": draw(HEADS)})
    positions = np.arange(6, 8)[None]
    check_attention(compiled, [8], 2, 6, rotary=True, more={"positions": positions})
    check_attention(compiled, [5], 5, 0, rotary=True, rotary_interleaved=1)


def test_attention_that_is_not_there_is_refused(compiled):
    with pytest.raises(UnsupportedOp, match="sliding_window_cache is not supported"):
        check_attention(compiled, [5], 5, 0, sliding_window_cache=1)
    inputs = [
        draw(1, 5, 3 * WIDTH),
        *[draw(1, 5, KEYS * WIDTH)] * 2,
        *[draw(1, KEYS, 0, WIDTH)] * 2,
    ]
    inputs += [np.array([4], np.int32), np.array(5, np.int32)]
    with pytest.raises(ShapeError, match="num_heads"):
        compiled(model_of("GroupQueryAttention", inputs, ["y"], num_heads=3, kv_num_heads=2))
    with pytest.raises(InvalidModel, match="kv_num_heads"):
        compiled(model_of("GroupQueryAttention", inputs, ["y"], num_heads=3, kv_num_heads=0))


@pytest.mark.parametrize("kind", [1, thorough(0)])
@pytest.mark.parametrize("n", [8, thorough(7)])
def test_products_with_weights_of_bitsandbytes(compiled, kind, n):
    """Of seven columns of 24, the last block is not full."""
    k, block = 24, 16
    packed = RNG.integers(0, 256, n * k // 2).astype(np.uint8)
    inputs = [draw(2, 3, k), packed, np.abs(draw(-(-n * k // block)))]
    options = {"K": k, "N": n, "block_size": block, "quant_type": kind, "transB": 1}
    source = model_of("MatMulBnb4", inputs, ["y"], constants=(1, 2), **options)
    (want,) = run_ort(source, {"x0": inputs[0]})
    assert_same(compiled(source).run({"x0": inputs[0]})["y"], want, 1e-5, 1e-5)


@pytest.mark.parametrize("zeros", [True, thorough(False)])
@pytest.mark.parametrize("bits", [4, thorough(8)])
def test_rows_of_a_table_of_bytes(compiled, bits, zeros):
    """Three blocks in each row: of 4 bits, their zero points are in two bytes."""
    table = RNG.integers(0, 256, (20, 48 * bits // 8)).astype(np.uint8)
    inputs = [table, RNG.integers(0, 20, (2, 3)), draw(20, 3)]
    inputs += [RNG.integers(0, 256, (20, 2 if bits == 4 else 3)).astype(np.uint8)] if zeros else []
    check_rows(compiled, inputs, bits=bits, block_size=16)


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, thorough(ml_dtypes.uint4)])
def test_rows_of_a_table_of_4_bits(compiled, dtype):
    table, zeros = (RNG.integers(0, 8, (20, n)).astype(dtype) for n in (48, 3))
    rows = RNG.integers(0, 20, (2, 3)).astype(np.int32)
    check_rows(compiled, [table, rows, draw(20, 3), zeros], block_size=16)
    with pytest.raises(UnsupportedOp, match="along axis 1"):
        check_rows(compiled, [table, rows, draw(20, 3)], block_size=16, gather_axis=1)


def check_rows(compiled, inputs, **options):
    constants = [k for k in range(len(inputs)) if k != 1]
    source = model_of("GatherBlockQuantized", inputs, ["y"], constants=constants, **options)
    (want,) = run_ort(source, {"x1": inputs[1]})
    assert_same(compiled(source).run({"x1": inputs[1]})["y"], want)


def decoder(vocabulary=60, width=64, inner=96, heads=4, keys=2):
    """One layer: attention of groups and a gated product, over tokens and a mask of all keys."""
    head, nodes, weights = width // heads, [], {}

    def node(op, inputs, output, domain="com.microsoft", **attributes):
        outputs = [output] if isinstance(output, str) else output
        nodes.append(helper.make_node(op, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def constant(name, value):
        weights[name] = np.asarray(value)
        return name

    def linear(x, k, n, name):
        return node("MatMulNBits", [x, constant(f"{name}.q", draw_bytes(n, k // 32, 16)),
                    constant(f"{name}.s", np.abs(draw(n * (k // 32))) / 40)], name,
                    K=k, N=n, bits=4, block_size=32)  # fmt: skip

    def draw_bytes(*shape):
        return RNG.integers(0, 256, shape).astype(np.uint8)

    one = constant("one", np.array([1]))
    node("ReduceSum", ["mask", one], "count", "", keepdims=0)
    node("Sub", ["count", constant("unit", np.array(1))], "last", "")
    node("Cast", ["last"], "lengths", "", to=TensorProto.INT32)
    node("Shape", ["mask"], "extents", "")
    node("Gather", ["extents", "unit"], "longest", "")
    node("Cast", ["longest"], "total", "", to=TensorProto.INT32)
    x = node("Gather", [constant("table", draw(vocabulary, width)), "tokens"], "x", "")
    gamma = constant("gamma", np.ones(width, np.float32))
    normal = node("SimplifiedLayerNormalization", [x, gamma], "normal", "", epsilon=1e-5)
    qkv = linear(normal, width, (heads + 2 * keys) * head, "qkv")
    turns = [constant(name, draw(64, head // 2)) for name in ("cos", "sin")]
    inputs = [qkv, "", "", "past_k", "past_v", "lengths", "total", *turns]
    y = node("GroupQueryAttention", inputs, ["attended", "present_k", "present_v"],
             num_heads=heads, kv_num_heads=keys, do_rotary=1)  # fmt: skip
    y = linear(y, heads * head, width, "out")
    outputs = ["second", "", "", "sum"]
    y = node("SkipSimplifiedLayerNormalization", [x, y, gamma], outputs, epsilon=1e-5)
    gate, up = linear(y, width, inner, "gate"), linear(y, width, inner, "up")
    y = node("Mul", [node("Mul", [gate, node("Sigmoid", [gate], "open", "")], "swish", ""), up],
             "inner", "")  # fmt: skip
    node("Add", ["sum", linear(y, inner, width, "down")], "hidden", "")
    linear("hidden", width, vocabulary, "logits")
    past = ["batch", keys, "past", head]
    infos = [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", "n"]),
             helper.make_tensor_value_info("mask", TensorProto.INT64, ["batch", "all"]),
             *(helper.make_tensor_value_info(f"past_{x}", TensorProto.FLOAT, past)
               for x in "kv")]  # fmt: skip
    results = [onnx.ValueInfoProto(name=x) for x in ("logits", "present_k", "present_v")]
    initial = [numpy_helper.from_array(v, k) for k, v in weights.items()]
    graph = helper.make_graph(nodes, "decoder", infos, results, initial)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@pytest.mark.parametrize("sizes", [{}, thorough({"all": "past + n"})])
def test_a_decoder_of_any_batch_and_length(compiled, sizes):
    """A prompt of two rows, the second one padded; then tokens, which continue each row."""
    source = decoder()
    model = compiled(source, dims={"past": (0, 63), **sizes})
    assert isinstance(model, CpuModel)
    past = {f"past_{x}": np.zeros((2, 2, 0, 16), np.float32) for x in "kv"}
    tokens, lengths = RNG.integers(0, 60, (2, 5)), np.array([5, 3])
    for _ in range(3):
        longest = past["past_k"].shape[2] + tokens.shape[1]
        mask = (np.arange(longest) < lengths[:, None]).astype(np.int64)
        feeds = {"tokens": tokens, "mask": mask, **past}
        got = model.run(feeds)
        for name, want in zip(("logits", "present_k", "present_v"), run_ort(source, feeds),
                              strict=True):  # fmt: skip
            for row, length in enumerate(lengths):
                kept = np.s_[: min(5, length)] if name == "logits" else np.s_[:, :length]
                assert_same(got[name][row][kept], want[row][kept], 1e-5, 1e-5)
        past = {f"past_{x}": got[f"present_{x}"] for x in "kv"}
        tokens, lengths = RNG.integers(0, 60, (2, 1)), lengths + 1


def test_a_decoder_keeps_its_cache_in_a_state(compiled):
    """In a buffer with room for all that may come, which is written where it lies."""
    source, room = decoder(), 24
    states = {f"past_{x}": f"present_{x}" for x in "kv"}
    sizes = {"past": room, "all": (1, room), "batch": 1}
    model = compiled(source, dims=sizes, state=states)
    assert all(state.in_place for state in model.states)
    session, length = model.start(), 0
    past = {name: np.zeros((1, 2, 0, 16), np.float32) for name in states}
    for n in (5, 1, 3, 1):
        length += n
        tokens = {"tokens": RNG.integers(0, 60, (1, n)), "mask": np.ones((1, length), np.int64)}
        want = run_ort(source, {**tokens, **past})
        past = dict(zip(states, want[1:], strict=True))
        assert_same(session.run(tokens)["logits"], want[0], 1e-5, 1e-5)
        for name, rows in past.items():
            assert_same(session.state[name][:, :, :length], rows, 1e-5, 1e-5)


def test_operators_that_only_onnx_runtime_has_in_the_standards_domain(compiled):
    """In a body, and beside a LayerNormalization of before the standard had one."""
    x, scale = draw(3, 8), draw(8)
    body = helper.make_graph(
        [helper.make_node("SimplifiedLayerNormalization", ["n", "scale"], ["b"], epsilon=1e-3)],
        "body", [], [helper.make_tensor_value_info("b", TensorProto.FLOAT, [3, 8])],
    )  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("Neg", ["n"], ["c"])], "other", [],
        [helper.make_tensor_value_info("c", TensorProto.FLOAT, [3, 8])],
    )  # fmt: skip
    nodes = [
        helper.make_node("LayerNormalization", ["x", "scale"], ["n"], axis=-1),
        helper.make_node("If", ["which"], ["y"], then_branch=body, else_branch=other),
    ]
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 8]),
             helper.make_tensor_value_info("which", TensorProto.BOOL, [])]  # fmt: skip
    graph = helper.make_graph(nodes, "g", infos, [onnx.ValueInfoProto(name="y")],
                              [numpy_helper.from_array(scale, "scale")])  # fmt: skip
    graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    imports = [helper.make_opsetid("", 13)]
    source = helper.make_model(graph, opset_imports=imports, ir_version=8)
    model = compiled(source)
    for which in (True, False):
        feeds = {"x": x, "which": np.array(which)}
        assert_same(model.run(feeds)["y"], run_ort(source, feeds)[0], 1e-5, 1e-5)


def test_the_larger_of_two_open_sizes(compiled):
    """A buffer that is padded to a length which may be shorter; neither has a bound."""
    source = staged.model_of(
        "g (float[p, 2] x, float[q] w) => (float[r, 2] y) { a = Shape <end = 1>(x) b = Shape(w) "
        "l = Max(a, b) d = Sub(l, a) z = Constant <value_ints = [0]>() "
        "o = Constant <value_ints = [0, 0]>() e = Concat <axis = 0>(o, d, z) y = Pad(x, e) }"
    )
    model = compiled(source)
    assert model.outputs[0].shape == ("max(p, q)", 2)
    for rows, length in ((3, 7), (7, 3), (5, 5), (1, 1)):
        x = draw(rows, 2)
        got = model.run({"x": x, "w": np.zeros(length, np.float32)})["y"]
        expected = np.zeros((max(rows, length), 2), np.float32)
        expected[:rows] = x
        np.testing.assert_array_equal(got, expected)
