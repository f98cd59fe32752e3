"""CompiledModel on a GPU, or on the emulator: arrays of every kind, streams, graphs, errors."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import polyc
from polyc import ops
from polyc.errors import RuntimeFailure, ShapeError, UnsupportedOp
from polyc.graph.ir import Graph
from polyc.run.cuda.array import DeviceArray
from polyc.run.cuda.stream import from_protocol, stream_handle, to_dlpack
from tests.cuda.programs import GATHER, SCALE
from tests.programs import compiled, gather_program, install_pipeline, options, scale_program

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def graph(name: str = "g") -> Graph:
    return Graph(name, (), {}, (), ())


def make(monkeypatch, folder, emulated, program, text):
    install_pipeline(monkeypatch, compiled(program, text))
    choices = options(folder, emulated=emulated)
    return polyc.compile(graph(program.name), target="cuda", options=choices)


@pytest.fixture
def model(monkeypatch, tmp_path, emulated):
    return make(monkeypatch, tmp_path, emulated, scale_program(), SCALE)


@pytest.fixture
def gather(monkeypatch, tmp_path, emulated):
    return make(monkeypatch, tmp_path, emulated, gather_program(), GATHER)


def test_numpy_in_numpy_out(model):
    for y in (model(X), model(x=X), model.run({"x": X})["y"], model(X.tolist()), model(X[:, ::1])):
        assert isinstance(y, np.ndarray)
        np.testing.assert_array_equal(y, X * 6)
    np.testing.assert_array_equal(model(X[::-1, ::-1]), X[::-1, ::-1] * 6)
    out = np.empty((2, 3), np.float32)
    assert model(X, out=out) is out
    np.testing.assert_array_equal(out, X * 6)


def test_device_arrays_in_device_arrays_out(model):
    x = model.to_device(X)
    y = model(x)
    assert isinstance(y, DeviceArray)
    assert (y.shape, y.dtype, y.nbytes, y.ndim, y.size) == ((2, 3), np.float32, 24, 2, 6)
    assert y.address % 256 == 0
    np.testing.assert_array_equal(y.numpy(), X * 6)
    np.testing.assert_array_equal(np.asarray(model(y)), X * 36)
    np.testing.assert_array_equal(model.run({"x": x})["y"].numpy(), X * 6)
    out = model.to_device(np.zeros_like(X))
    assert model(x, out=out) is out
    np.testing.assert_array_equal(out.numpy(), X * 6)
    host = np.empty_like(X)
    assert model(x, out=[host]) is host
    np.testing.assert_array_equal(host, X * 6)
    assert "float32[2, 3]" in repr(y)
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(y, copy=False)


def test_arrays_that_speak_only_the_cuda_array_interface(model):
    class Foreign:
        def __init__(self, array, **changes):
            self.kept = array
            self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changes}

    x = model.to_device(X)
    np.testing.assert_array_equal(model(Foreign(x)).numpy(), X * 6)
    np.testing.assert_array_equal(model(Foreign(x, stream=None)).numpy(), X * 6)
    np.testing.assert_array_equal(model(Foreign(x, strides=(12, 4))).numpy(), X * 6)
    for changes, message in (
        ({"strides": (4, 8)}, "row-major without gaps"),
        ({"typestr": "<f8"}, "has type float64, expected float32"),
        ({"shape": (3, 2)}, r"has shape \(3, 2\), expected \(2, 3\)"),
        ({"mask": x}, "mask"),
        ({"stream": 0}, "ambiguous"),
    ):
        with pytest.raises(ShapeError, match=message):
            model(Foreign(x, **changes))
    with pytest.raises(ShapeError, match="writable and aligned"):
        model(x, out=Foreign(x, data=(x.address, True)))


def test_a_misaligned_array_is_copied_first(model):
    class Shifted:
        def __init__(self, array):
            self.kept = array
            told = array.__cuda_array_interface__
            self.__cuda_array_interface__ = {
                **told,
                "data": (told["data"][0] + 4, False),
                "shape": (2, 3),
            }

    x = model.to_device(np.concatenate([[np.float32(9)], X.ravel()]).astype(np.float32))
    np.testing.assert_array_equal(model(Shifted(x)).numpy(), X * 6)
    with pytest.raises(ShapeError, match="aligned to 16 bytes"):
        model(X, out=Shifted(x))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((), {}, "not given its inputs x: float32"),
        ((X, X), {}, "takes 1 inputs, 2 were given"),
        ((X.astype(np.float64),), {}, "'x' has type float64, expected float32"),
        ((X.T,), {}, r"'x' has shape \(3, 2\), expected \(2, 3\)"),
        ((X,), {"out": np.empty((3, 2), np.float32)}, "`out` for output 'y' has shape"),
        ((X,), {"out": (X.copy(), X.copy())}, "has 1 outputs, `out` holds 2"),
        ((X,), {"out": ["no"]}, "must be a NumPy array"),
        ((X,), {"stream": "no"}, "is no CUDA stream"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(model, arguments, named, message):
    with pytest.raises(ShapeError, match=message):
        model(*arguments, **named)


def test_an_output_may_not_lie_where_an_input_does(model):
    x = model.to_device(X)
    with pytest.raises(ShapeError, match="overlaps an input"):
        model(x, out=x)


def test_scalars_empty_arrays_and_outputs_that_are_inputs(gather):
    x = np.arange(6, dtype=np.float32) + 1
    y, same, empty, fixed = gather(x, 4)
    assert (y.shape, y) == ((), 5)
    np.testing.assert_array_equal(same, x)
    assert empty.shape == (2, 0)
    np.testing.assert_array_equal(fixed, [5, 7])


def test_an_index_out_of_range_is_told_once(gather):
    x = np.arange(6, dtype=np.float32)
    for _ in range(2):
        with pytest.raises(RuntimeFailure, match=r"'gather\*/model': an index .* in Gather_1"):
            gather(x, 6)
        assert gather(x, -1)[0] == 5
    gather(gather.to_device(x), gather.to_device(np.array(9)))  # does not wait, and so not know
    with pytest.raises(RuntimeFailure, match="an index is out of range in Gather_1"):
        gather.check()
    gather.check()


def test_a_graph_is_replayed_on_what_its_inputs_hold_by_then(model):
    x = model.to_device(X)
    captured = model.capture(x)
    (y,) = captured.outputs
    np.testing.assert_array_equal(y.numpy(), X * 6)
    np.testing.assert_array_equal(captured.replay()[0].numpy(), X * 6)
    model(model.to_device(X + 1), out=x)  # x = 6 (X + 1)
    assert captured.replay() == (y,)
    np.testing.assert_array_equal(y.numpy(), 36 * (X + 1))
    mine = model.to_device(np.zeros_like(X))
    assert model.capture(x, out=mine).outputs == (mine,)
    with pytest.raises(ShapeError, match="copy the others there"):
        model.capture(X)


def test_profile_and_explain(model, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    seconds = model.profile({"x": X}, repeats=2)
    assert len(seconds) == 2
    assert all(0 < s < 1 for s in seconds)
    text = str(model.explain({"x": X}))
    assert "2 blocks of 4" in text
    assert "cuda sm_" in text


def test_threads_call_at_the_same_time(model):
    failures = []

    def work(k):
        for _ in range(20):
            if not np.array_equal(model(X + k), (X + k) * 6):
                failures.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_a_saved_model_is_loaded(model, tmp_path):
    model.save(tmp_path / "saved")
    again = polyc.load(tmp_path / "saved")
    np.testing.assert_array_equal(again(X), X * 6)
    assert again.explain() == model.explain()
    assert "PC_KERNEL" in again.source


def test_arrays_outlive_their_model(monkeypatch, tmp_path, emulated):
    model = make(monkeypatch, tmp_path, emulated, scale_program(), SCALE)
    y = model(model.to_device(X))
    del model
    gc.collect()
    np.testing.assert_array_equal(y.numpy(), X * 6)


def test_a_model_without_constants(tmp_path, emulated):
    x = ops.input("x", (2, 3))
    chosen = options(tmp_path, emulated=emulated)
    model = polyc.compile(Graph.of(y=ops.relu(ops.neg(x))), target="cuda", options=chosen)
    np.testing.assert_array_equal(model(X), np.maximum(-X, 0))


@pytest.mark.cuda
def test_dlpack_both_ways_without_a_copy(monkeypatch, tmp_path):
    model = make(monkeypatch, tmp_path, True, scale_program(), SCALE)
    y = model(model.to_device(X))
    seen = np.from_dlpack(y)  # the emulator's device is the host
    assert seen.ctypes.data == y.address
    np.testing.assert_array_equal(seen, X * 6)
    del y
    gc.collect()
    np.testing.assert_array_equal(seen, X * 6)
    capsule = model(model.to_device(X)).__dlpack__()
    del capsule  # nobody took it
    gc.collect()

    class Foreign:
        """An array of another library."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **asked):
            return self.array.__dlpack__(**asked)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    np.testing.assert_array_equal(model(Foreign(X)).numpy(), X * 6)
    with pytest.raises(ShapeError, match="row-major"):
        model(Foreign(np.asfortranarray(X)))
    with pytest.raises(ShapeError, match="type float64"):
        model(Foreign(X.astype(np.float64)))

    class Refusing(Foreign):
        def __dlpack__(self, **asked):
            raise BufferError("use detach()")

    with pytest.raises(ShapeError, match=r"a Refusing cannot be read: use detach\(\)"):
        model(Refusing(X))


@pytest.mark.cuda
def test_streams_of_every_library():
    class Core:
        def __cuda_stream__(self):
            return (0, 7)

    class Torch:
        cuda_stream = 8

    class Cupy:
        ptr = 9

    given = (None, 5, Core(), Torch(), Cupy())
    assert [stream_handle(s) for s in given] == [0, 5, 7, 8, 9]
    assert [to_dlpack(s) for s in (0, 2, 5)] == [1, 2, 5]
    assert [from_protocol(s) for s in (None, -1, 1, 2, 5)] == [None, None, 0, 2, 5]
    for wrong in ("no", True):
        with pytest.raises(ShapeError, match="is no CUDA stream"):
            stream_handle(wrong)


@pytest.mark.cuda
def test_tuning_is_refused(tmp_path):
    with pytest.raises(UnsupportedOp, match="cannot be tuned"):
        polyc.compile(graph(), target="cuda", tune=1, options=options(tmp_path, emulated=True))
