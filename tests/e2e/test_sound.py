"""Networks for sound of any length: frames as exporters write them, compiled once."""

import numpy as np
import onnx
import onnxruntime
import pytest

import polyc
from polyc.options import Options
from polyc.run.cpu_model import CpuModel
from tests.e2e.compare import find_difference
from tests.e2e.shipped import Writer

RNG = np.random.default_rng(5)


def reflected() -> onnx.ModelProto:
    """A spectrum as of librosa and Whisper: the signal goes on as in a mirror at both ends."""
    b = Writer()
    signal = b.op(
        "Pad", b.op("Unsqueeze", "x", b.ints(1)), b.ints(0, 0, 8, 0, 0, 8), mode="reflect"
    )
    waves = b.op("Conv", signal, b.weight(18, 1, 16), strides=[4])
    power = b.op("ReduceSum", b.op("Mul", waves, waves), b.ints(1), keepdims=0)
    return b.model(power, inputs=[("x", ("n", "t"))])


def framed_by_tensorflow() -> onnx.ModelProto:
    """tf.signal.frame(x, 8, 4): blocks of 4, gathered two by two; no frames of too short a signal.

    The number of frames is max(0, 1 + (t - 8)/4), where the division cuts off.
    """
    b = Writer()
    shape = b.op("Cast", b.op("Shape", "x"), to=onnx.TensorProto.INT32)
    batch, length, rest = b.ops("Split", 3, shape, b.ints(1, 1, 0))
    none, one, four, eight = (b.constant(np.int32(k)) for k in (0, 1, 4, 8))
    length = b.op("Reshape", length, b.constant(np.zeros(0, np.int64)))
    steps = b.op("Div", b.op("Sub", length, eight), four)
    frames = b.op("Max", none, b.op("Add", one, steps))
    blocks = b.op("Div", length, four)
    whole = b.op("Unsqueeze", b.op("Mul", blocks, four), b.ints(0))
    kept = b.op("Concat", batch, whole, rest, axis=0)
    zeros, ones = (b.constant(np.full(2, k, np.int32)) for k in (0, 1))
    axes = b.constant(np.arange(2, dtype=np.int32))
    cut = b.op("Slice", "x", zeros, kept, axes, ones)
    width = b.constant(np.array([4], np.int32))
    listed = b.op("Concat", batch, b.op("Unsqueeze", blocks, b.ints(0)), width, rest, axis=0)
    grid = b.op("Reshape", cut, b.op("Cast", listed, to=onnx.TensorProto.INT64))
    starts = b.op("Unsqueeze", b.op("Range", none, frames, one), b.ints(1))
    places = b.op("Add", starts, b.constant(np.arange(2, dtype=np.int32)[None]))
    count = b.op("Unsqueeze", frames, b.ints(0))
    size = b.op("Concat", batch, count, b.constant(np.array([8], np.int32)), rest, axis=0)
    found = b.op("Gather", grid, places, axis=1)
    y = b.op("Reshape", found, b.op("Cast", size, to=onnx.TensorProto.INT64))
    y = b.op("Mul", y, b.weight(8))
    return b.model(b.op("MatMul", y, b.weight(8, 12)), inputs=[("x", ("n", "t"))])


@pytest.mark.parametrize(
    ("make", "lengths"),
    [(reflected, (9, 16, 61)), (framed_by_tensorflow, (1, 4, 8, 11, 61))],
)
def test_one_model_for_signals_of_any_length(make, lengths, tmp_path):
    network = make()
    options = Options(cache_dir=tmp_path / "cache", threads=1)
    model = polyc.compile(network, target="baseline", options=options)
    assert type(model) is CpuModel
    session = onnxruntime.InferenceSession(
        network.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for batch, length in enumerate(lengths, 1):
        x = RNG.standard_normal((batch, length)).astype(np.float32)
        (wanted,) = session.run(None, {"x": x})
        assert find_difference(model(x), wanted, rtol=1e-4, atol=1e-5) is None
    model.export(tmp_path / "exported")


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """Compile for AVX2, and give the text of each kernel."""
    cache = tmp_path_factory.mktemp("cache")

    def of(network: onnx.ModelProto) -> list[str]:
        options = Options(cache_dir=cache, threads=1)
        model = polyc.compile(network, target="avx2", options=options)
        folder = cache / "exported"
        model.export(folder)
        return [path.read_text() for path in sorted((folder / "src").glob("k*.c"))]

    return of


def test_a_sum_reads_a_mirrored_signal_that_is_copied_once(kernels):
    """Where it turns is known to a call alone: the loop over a window would ask at each element."""
    lines = [line for text in kernels(reflected()) for line in text.splitlines()]
    sums = [line for line in lines if " += " in line and "for (" not in line]
    assert sums
    assert not any(asked in line for line in sums for asked in ("pc_min(", "pc_max(", " ? "))


def test_what_depends_on_a_choice_has_no_cases_of_its_own(kernels):
    """Loops over frames run up to their number, and not once for each way to come to it."""
    (product,) = (text for text in kernels(framed_by_tensorflow()) if "MatMul" in text)
    assert " == " not in product


def test_rows_that_data_picks_are_found_once(kernels):
    """Not again for each element, wherever the reader would have it in the row."""
    lines = [line for text in kernels(framed_by_tensorflow()) for line in text.splitlines()]
    picked = [line for line in lines if "pc_index(" in line]
    assert picked
    assert not any("pc_mod(" in line for line in picked)


@pytest.mark.parametrize("hint", [{"n": 1, "t": 16000, "f": 98}, {"n": 16, "t": 16000, "f": 98}])
def test_frames_of_one_signal_are_no_lanes_of_a_batch(hint, tmp_path):
    """x[n, k[f, r]]: lanes along a batch of one would be idle but for one, whatever else they are.

    Along a batch of 16 they are worth that the signals are laid side by side.
    """
    b = Writer()
    taken = b.op("Gather", b.op("Transpose", "x", perm=[1, 0]), "k", axis=0)
    frames = b.op("Mul", b.op("Transpose", taken, perm=[2, 0, 1]), b.weight(400))
    model = b.model(
        b.op("MatMul", frames, b.weight(400, 12)), inputs=[("x", ("n", "t")), ("k", ("f", 400))]
    )
    model.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    options = Options(cache_dir=tmp_path, threads=1)
    compiled = polyc.compile(model, options=options, hint=hint)
    along_frames = any("vector i2'" in text for text in compiled.schedules.values())
    assert along_frames == (hint["n"] == 1)
    runtime = onnxruntime.InferenceSession(model.SerializeToString())
    for n, t, f in ((1, 4000, 24), (3, 50, 2), (17, 300, 7)):
        x = RNG.standard_normal((n, t)).astype(np.float32)
        feeds = {"x": x, "k": RNG.integers(0, t, (f, 400))}
        (wanted,) = runtime.run(None, feeds)
        (got,) = compiled.run(feeds).values()
        assert find_difference(got, wanted, rtol=1e-4, atol=1e-5) is None
