"""Weights from GGUF files: what ggml's own package writes and restores, and damaged files."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from gguf import GGMLQuantizationType as Kind
from onnx import helper

import polyc
from polyc.compression.gguf.container import MOST_DIMENSIONS
from polyc.errors import InvalidModel, InvalidOption, ShapeError, UnsupportedOp
from tests.sampling import thorough

rng = np.random.default_rng(16)

BYTES = {Kind.Q4_K: (144, [(0, 1.0), (2, 1.0)]), Kind.Q6_K: (210, [(208, 1.0)])}
"""What the package cannot write: bytes of a block of 256, and where its float16 are."""


def blocks(kind: Kind, *shape: int) -> np.ndarray:
    """Bytes of a tensor of this type: of normal floats, or drawn at random."""
    if kind not in BYTES:
        return gguf.quants.quantize(rng.standard_normal(shape).astype(np.float32), kind)
    size, factors = BYTES[kind]
    data = rng.integers(0, 256, (*shape[:-1], shape[-1] // 256, size)).astype(np.uint8)
    for at, scale in factors:
        drawn = rng.normal(0, scale, data.shape[:-1]).astype("<f2")
        data[..., at : at + 2] = drawn[..., None].view(np.uint8)
    return data.reshape(*shape[:-1], -1)


def write(path: Path, **tensors: tuple[np.ndarray, Kind | None]) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_array("tokenizer.ggml.tokens", ["a", "bc", ""])
    writer.add_array("tokenizer.ggml.scores", [0.5, 1.5])
    writer.add_float32("llama.rope.freq_base", 1e4)
    for name, (data, kind) in tensors.items():
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def assert_near(got: np.ndarray, want: np.ndarray, error: float) -> None:
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= error * np.abs(want).max()


@pytest.mark.parametrize(
    ("kind", "n", "k", "rows"),
    [
        (Kind.Q4_0, 37, 96, 1),
        (Kind.Q4_0, 5, 32, 3),
        thorough(Kind.Q4_1, 33, 160, 3),
        (Kind.Q8_0, 19, 96, 1),
        (Kind.Q8_0, 1, 64, 3),
        (Kind.Q4_K, 35, 512, 1),
        (Kind.Q4_K, 16, 256, 3),
        (Kind.Q6_K, 35, 256, 3),
        (Kind.Q6_K, 2, 768, 1),
    ],
)
def test_numbers(kind, n, k, rows, tmp_path):
    """Restored within a float's rounding; in a graph and a model, within that of a sum."""
    data = blocks(kind, n, k)
    (w,) = polyc.gguf_weights(write(tmp_path / "m.gguf", w=(data, kind))).values()
    want = gguf.quants.dequantize(data, kind)
    assert isinstance(w, polyc.BlockWeights)
    assert w.shape == want.shape
    # What is subtracted in a block is at most 64 times as large as the largest scale of 15.
    assert_near(w.restored(), want, 3e-7)
    x, bias = (rng.standard_normal(s).astype(np.float32) for s in ((rows, k), (n,)))
    product = x.astype(np.float64) @ want.astype(np.float64).T
    graph = polyc.Graph.of(y=w.multiply(polyc.ops.input("x", (rows, k)), bias))
    model = polyc.compile(graph, threads=1)
    assert_near(model(x), product + bias, 3e-6)
    assert any("of_block in registers" in text for text in model.schedules.values())
    proto = as_model(w, rows)
    assert_near(polyc.compile(proto, threads=1)(x), product, 3e-6)


def as_model(w: polyc.BlockWeights, rows: int, **options: str) -> onnx.ModelProto:
    (n, k), (node, stored) = w.shape, w.nodes("up", "x", "y", **options)
    kind = onnx.TensorProto.FLOAT
    x, y = (
        helper.make_tensor_value_info(*v) for v in (("x", kind, [rows, k]), ("y", kind, [rows, n]))
    )
    graph = helper.make_graph([node], "g", [x], [y], stored)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.Q4_K, Kind.Q8_0])
def test_other_engines_read_the_same_node(kind, tmp_path):
    data, x = blocks(kind, 32, 256), rng.standard_normal((3, 256)).astype(np.float32)
    w = polyc.gguf_weights(write(tmp_path / "m.gguf", w=(data, kind)))["w"]
    session = onnxruntime.InferenceSession(as_model(w, 3).SerializeToString())
    (theirs,) = session.run(None, {"x": x})
    want = x.astype(np.float64) @ gguf.quants.dequantize(data, kind).astype(np.float64).T
    assert_near(theirs, want, 1e-5)


def test_activations_may_be_rounded(tmp_path):
    data, x = blocks(Kind.Q4_0, 33, 96), rng.standard_normal((3, 96)).astype(np.float32)
    w = polyc.gguf_weights(write(tmp_path / "m.gguf", w=(data, Kind.Q4_0)))["w"]
    product = x.astype(np.float64) @ gguf.quants.dequantize(data, Kind.Q4_0).T
    y = polyc.compile(as_model(w, 3, activations="int8"), threads=1)(x)
    assert_near(y, product, 1e-2)
    with pytest.raises(AssertionError):
        assert_near(y, product, 1e-5)
    with pytest.raises(InvalidOption, match="activations is 'int4'"):
        w.multiply(x, activations="int4")


def test_scales_of_zero_and_what_is_no_number(tmp_path):
    """Where a scale is nothing beside what is subtracted, all of a block is that; NaN stays."""
    data = blocks(Kind.Q4_K, 6, 256).reshape(6, 144)
    data[0, :2] = 0
    data[1, 4:16] &= 0xC0  # scales and offsets of zero, but for those of 6 bits
    data[2, :2] = np.frombuffer(struct.pack("<e", 6e-8), np.uint8)
    data[3, :2] = np.frombuffer(struct.pack("<e", np.inf), np.uint8)
    data[4, 2:4] = np.frombuffer(struct.pack("<e", -np.inf), np.uint8)
    data[5, :2] = np.frombuffer(struct.pack("<e", np.nan), np.uint8)
    w = polyc.gguf_weights(write(tmp_path / "m.gguf", w=(data, Kind.Q4_K)))["w"]
    with np.errstate(invalid="ignore"):
        want = gguf.quants.dequantize(data, Kind.Q4_K)
    np.testing.assert_allclose(w.restored(), want, rtol=1e-5, atol=1e-5)


def test_plain_arrays_experts_and_other_types(tmp_path):
    floats = rng.standard_normal((3, 8)).astype(np.float32)
    narrow = floats.astype(ml_dtypes.bfloat16)
    experts = blocks(Kind.Q8_0, 2, 5, 64)
    path = write(
        tmp_path / "m.gguf",
        floats=(floats, None),
        halves=(floats.astype(np.float16), None),
        narrow=(narrow.view(np.uint8), Kind.BF16),
        whole=(np.arange(5, dtype=np.int32), None),
        experts=(experts, Kind.Q8_0),
        other=(blocks(Kind.Q5_0, 2, 64), Kind.Q5_0),
    )
    weights = polyc.gguf_weights(path)
    assert list(weights) == ["floats", "halves", "narrow", "whole", "experts", "other"]
    assert np.array_equal(weights["floats"], floats)
    assert np.array_equal(weights["halves"], floats.astype(np.float16))
    assert weights["narrow"].dtype == ml_dtypes.bfloat16
    assert np.array_equal(weights["narrow"], narrow)
    assert np.array_equal(weights["whole"], np.arange(5))
    both = weights["experts"]
    assert both.shape == (2, 5, 64)
    want = gguf.quants.dequantize(experts, Kind.Q8_0)
    assert np.array_equal(both[1].restored(), want[1])
    with pytest.raises(ShapeError, match="not one matrix"):
        both.multiply(np.ones((1, 64), np.float32))
    with pytest.raises(ShapeError, match="are a matrix"):
        both[0][0]
    with pytest.raises(UnsupportedOp, match=r"'other'.*Q5_0"):
        weights["other"]
    with pytest.raises(KeyError):
        weights["nowhere"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("gguf") / "m.gguf"
    data = blocks(Kind.Q4_0, 3, 64), Kind.Q4_0
    return write(path, w=data, v=(np.ones(3, np.float32), None)).read_bytes()


def test_a_file_that_ends_too_early(whole, tmp_path):
    path = tmp_path / "short.gguf"
    last = 12  # bytes of the last tensor, which nothing needs to follow
    ends = len(whole.rstrip(b"\0"))
    for length in (*range(0, 300, 7), *range(300, ends, 31), ends - last):
        path.write_bytes(whole[:length])
        with pytest.raises(InvalidModel, match="GGUF"):
            polyc.gguf_weights(path)


def test_any_changed_byte_gives_weights_or_an_error(whole, tmp_path):
    """Numbers of 2^64, types that there are not, shapes that do not fit: refused, or as it says."""
    path = tmp_path / "broken.gguf"
    end = whole.index(b"general.architecture") + 360
    read, refused = 0, []
    for place in range(min(end, len(whole))):
        for value in (0x00, 0x7F, 0xFF):
            path.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            try:
                found = dict(polyc.gguf_weights(path))
            except (InvalidModel, UnsupportedOp) as error:
                refused.append(str(error))
                continue
            read += 1
            for one in found.values():
                content = one if isinstance(one, np.ndarray) else one.restored()
                assert content.shape == one.shape
                held = one.nbytes if isinstance(one, np.ndarray) else one.packed.nbytes
                assert held <= len(whole), "more than there is in the file"
    assert all(str(path) in said or "GGUF" in said for said in refused)
    assert min(read, len(refused)) > end // 4, "both are the rule: text may change, lengths may not"


def header(*infos: bytes, pairs: tuple[bytes, ...] = (), version: int = 3) -> bytes:
    counts = struct.pack("<IQQ", version, len(infos), len(pairs))
    return b"GGUF" + counts + b"".join((*pairs, *infos))


def info(name: bytes = b"w", dims: tuple[int, ...] = (32,), kind: int = 0, at: int = 0) -> bytes:
    numbers = struct.pack(f"<{len(dims)}QIQ", *dims, kind, at)
    return struct.pack("<Q", len(name)) + name + struct.pack("<I", len(dims)) + numbers


def pair(kind: int, value: bytes, key: bytes = b"k") -> bytes:
    return struct.pack("<Q", len(key)) + key + struct.pack("<I", kind) + value


ARRAY = struct.pack("<IQ", 9, 1)
MALFORMED = {
    "does not begin with": b"ONNX" + header()[4:] + bytes(64),
    "its version is 16777216": header(version=1 << 24),
    "its version is 1,": header(version=1),
    "two tensors": header(info(), info()),
    "no elements": header(info(dims=(1 << 62, 0))),
    "5 dimensions": header(info(dims=(1,) * (MOST_DIMENSIONS + 1))),
    "ends before the data": header(info(dims=(1 << 63, 1 << 63))),
    "data of 'w' is askew": header(info(at=4)),
    "no blocks of 32": header(info(dims=(48,), kind=2)),
    "no alignment": header(pairs=(pair(4, struct.pack("<I", 0), b"general.alignment"),)),
    "no value of type 77": header(pairs=(pair(77, b""),)),
    "nested too deeply": header(pairs=(pair(9, ARRAY * 2000),)),
    "within its header": header(pairs=(pair(9, struct.pack("<IQ", 8, 1 << 60)),)),
    "ends within": header(pairs=(pair(9, struct.pack("<IQ", 12, 1 << 61)),)),
}


@pytest.mark.parametrize("told", MALFORMED)
def test_malformed_files_say_what_is_wrong(told, tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(MALFORMED[told])
    with pytest.raises(InvalidModel, match=told):
        polyc.gguf_weights(path)


def test_a_file_that_changes_and_one_that_is_none(whole, tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(whole)
    weights = polyc.gguf_weights(path)
    path.write_bytes(whole[:-8])
    with pytest.raises(InvalidModel, match="has changed"):
        weights["w"]
    with pytest.raises(InvalidModel, match="a folder"):
        polyc.gguf_weights(tmp_path)
