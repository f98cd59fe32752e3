"""Constants that are put in place and written by threads, while kernels are compiled and proven."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from polyc.backends.bind import Constant, place_at_once
from polyc.build.bundle import WEIGHTS_FILE
from polyc.build.weights_beside import WeightsBeside
from polyc.memory.storage import permuted
from polyc.program.plan import ALIGNMENT
from polyc.scop.scop import Array


def constant(name: str, *shape: int, order=None, blocks=()) -> Constant:
    value = np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32)
    array = Array(name, value.dtype, shape, "constant", value)
    return Constant(name, value, permuted(array, order or range(len(shape)), blocks))


CONSTANTS = [
    constant("a"),
    constant("ab", 50, 7, order=(1, 0), blocks=[(0, 16)]),
    constant("abc", 3, 5, 33, blocks=[(2, 8), (0, 2)]),
    constant("abcd", 700, 4096),  # longer than what is written at a time
]


@pytest.mark.parametrize("alignment", [ALIGNMENT, 256])
def test_each_constant_lies_in_its_place_as_it_is_stored(tmp_path, alignment):
    with WeightsBeside(tmp_path, alignment) as writing:
        placed = writing.begin(CONSTANTS)
        placed.wait()
        weights = writing.finish()
    expected = place_at_once(CONSTANTS).values
    content = (tmp_path / WEIGHTS_FILE).read_bytes()
    for one in CONSTANTS:
        np.testing.assert_array_equal(placed.values[one.name], expected[one.name])
        first = writing.layout.offsets[one.name]
        assert not first % alignment
        stored = np.ascontiguousarray(expected[one.name]).tobytes()
        assert content[first : first + one.bytes] == stored
        with pytest.raises(ValueError, match="read-only"):
            placed.values[one.name][...] = 0
    assert content == weights.memory.tobytes()
    assert weights.entry.size == len(content) == writing.layout.bytes
    assert weights.entry.sha256 == hashlib.sha256(content).hexdigest()


def test_a_model_without_constants_has_no_file(tmp_path):
    with WeightsBeside(tmp_path) as writing:
        writing.begin([]).wait()
        assert writing.finish() is None
    assert not list(tmp_path.iterdir())


def test_what_goes_wrong_beside_is_raised_where_it_is_waited_for(tmp_path):
    with WeightsBeside(tmp_path / "missing") as writing:
        writing.begin(CONSTANTS).wait()
        with pytest.raises(FileNotFoundError):
            writing.finish()
    with WeightsBeside(tmp_path) as writing:
        wrong = Constant("abc", CONSTANTS[2].content[:, :4], CONSTANTS[2].storage)
        placed = writing.begin([CONSTANTS[0], wrong])
        with pytest.raises(ValueError, match=r"reshape|broadcast"):
            placed.wait()
        with pytest.raises(ValueError, match=r"reshape|broadcast"):
            writing.finish()


def test_nobody_is_left_behind_when_the_proof_fails(tmp_path):
    def prove_wrong() -> WeightsBeside:
        with WeightsBeside(tmp_path) as writing:
            begun.append(writing)
            writing.begin(CONSTANTS)
            raise ValueError("the proof")

    begun: list[WeightsBeside] = []
    with pytest.raises(ValueError, match="the proof"):
        prove_wrong()
    assert begun[0]._result.done()


def test_a_system_that_has_no_thread_to_give(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise RuntimeError("can't start new thread")

    with WeightsBeside(tmp_path) as writing:
        for name in ("_placing", "_writing"):
            monkeypatch.setattr(writing, name, ThreadPoolExecutor(1))
            monkeypatch.setattr(getattr(writing, name), "submit", refuse)
        writing.begin(CONSTANTS).wait()
        assert writing.finish().entry.size == writing.layout.bytes
