"""Constants that are written by a thread of their own, while the model is proven."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from polyc.build.bundle import WEIGHTS_FILE, write_weights
from polyc.build.weights_beside import WeightsBeside
from polyc.program.plan import plan_memory
from tests.programs import scale_program

PROGRAM = scale_program((2.0, 3.0))
PLAN = plan_memory(PROGRAM)


def test_what_is_written_beside_is_what_is_written_at_once(tmp_path):
    beside, once = tmp_path / "beside", tmp_path / "once"
    beside.mkdir()
    once.mkdir()
    with WeightsBeside(beside) as writing:
        writing.begin(PROGRAM, PLAN)
        weights = writing.finish()
    expected = write_weights(once, PROGRAM, PLAN)
    assert expected is not None
    assert weights is not None
    np.testing.assert_array_equal(weights.memory, expected.memory)
    assert weights.entry == expected.entry
    assert (beside / WEIGHTS_FILE).read_bytes() == (once / WEIGHTS_FILE).read_bytes() != b""


def test_what_goes_wrong_beside_is_raised_where_it_is_waited_for(tmp_path):
    with WeightsBeside(tmp_path / "missing") as writing:
        writing.begin(PROGRAM, PLAN)
        with pytest.raises(FileNotFoundError):
            writing.finish()


def test_nothing_is_written_any_more_when_the_proof_fails(tmp_path):
    def prove_wrong() -> None:
        with WeightsBeside(tmp_path) as writing:
            writing.begin(PROGRAM, PLAN)
            raise ValueError("the proof")

    with pytest.raises(ValueError, match="the proof"):
        prove_wrong()
    size = (tmp_path / WEIGHTS_FILE).stat().st_size
    assert size == PLAN.weights_bytes, "the thread was left behind"


def test_a_system_that_has_no_thread_to_give(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise RuntimeError("can't start new thread")

    with WeightsBeside(tmp_path) as writing:
        monkeypatch.setattr(writing, "_thread", ThreadPoolExecutor(1))
        monkeypatch.setattr(writing._thread, "submit", refuse)
        writing.begin(PROGRAM, PLAN)
        assert writing.finish().entry.size == PLAN.weights_bytes
