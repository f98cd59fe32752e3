"""Storage maps are judged by what they do, constants by what is in them."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

from polyc.analysis.launches.storages import verify_storages
from polyc.errors import IllegalSchedule
from polyc.memory.storage import Storage, arrange, permuted, row_major
from polyc.program.program import Program, StoredArray
from polyc.scop.scop import Array, Kind, Scop
from polyc.types.ranges import SizeRange, assume
from polyc.types.sizes import Size
from polyc.types.spec import TensorSpec

F32 = np.dtype(np.float32)


def verify(
    array: Array, storage: Storage, value: np.ndarray | None = None, spec: TensorSpec | None = None
) -> int:
    stored = StoredArray("a", array.dtype, array.kind, storage, value)
    outputs = ((spec, "a"),) if spec else ()
    program = Program("p", (), (), {"a": stored}, (), outputs)
    scop = Scop("s", (), {"a": array}, (), ("a",) if spec else ())
    return verify_storages(program, scop, {"a": array})


def array(*shape: int, kind: Kind = "temporary", value: np.ndarray | None = None) -> Array:
    return Array("a", F32 if value is None else value.dtype, shape, kind, value)


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (7, 5, 3)])
def test_permutations_blocks_and_gaps_are_one_to_one(shape):
    one, rank = array(*shape), len(shape)
    assert verify(one, row_major(one))
    assert verify(one, permuted(one, range(rank)[::-1]))
    if shape:
        assert verify(one, permuted(one, range(rank), [(0, 4)], gap=3))


def test_sizes_known_at_run_time():
    one = array(Size.of("size_n"), 5)
    folded = isl.MultiAff("{ a[i, j] -> a_M[i, floor(j/2)] }")
    further = isl.MultiAff("{ a[i, j] -> a_M[i + 1, j] }")
    with assume([SizeRange("size_n", 0)]):
        assert verify(one, permuted(one, (1, 0), [(1, 2)]))
        with pytest.raises(IllegalSchedule, match=r"two elements .* one place.*a\[0, 0\]"):
            verify(one, replace(row_major(one), map=folded))
        with pytest.raises(IllegalSchedule, match="an element is stored outside of"):
            verify(one, replace(row_major(one), map=further))


def test_memory_under_another_shape():
    """[n, m] and [n*m] are one memory if both are without gaps, and have as many elements."""
    n, m, area = (Size.of(f"size_{name}") for name in ("n", "m", "area"))
    known = [SizeRange("size_n"), SizeRange("size_m"), SizeRange("size_area", same=n * m)]
    home = Array("a", F32, (n, m), "output")

    def check(shape, memory="a", storage=None, stated="a", dtype=F32):
        seen = Array("b", dtype, shape, "input", memory=memory)
        arrays = {"a": home, "b": seen}
        stored = {
            "a": StoredArray("a", F32, "output", storage or row_major(home)),
            "b": StoredArray("b", dtype, "input", row_major(seen), memory=stated),
        }
        return verify_storages(
            Program("p", (), (), stored, (), ()), Scop("s", (), arrays, (), ()), arrays
        )

    with assume(known):
        assert check((area,)) == 2
        for wrong in (
            {"shape": (area + 1,)}, {"shape": (n,)}, {"shape": (area,), "stated": ""},
            {"shape": (area,), "dtype": np.dtype(np.int32)},
            {"shape": (area,), "storage": permuted(home, (1, 0))},
            {"shape": (area,), "storage": permuted(home, (0, 1), gap=1)},
        ):  # fmt: skip
            with pytest.raises(IllegalSchedule, match="array b: it is the memory of"):
                check(**wrong)
    with assume(known[:2]), pytest.raises(IllegalSchedule, match="array b: it is the memory of"):
        check((area,))  # any size


VALUES = [
    np.random.default_rng(0).standard_normal((7, 5, 3)).astype(np.float32),
    np.array([[np.nan, -0.0], [0.0, np.inf]], np.float32),
    np.arange(300, dtype=np.int8).reshape(3, 100),
    np.array(5, np.int64),
    np.zeros((0, 4), np.float32),
    np.arange(600_000, dtype=np.float64).reshape(300, 2000),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: str(v.shape))
def test_constants_are_where_their_storage_says(value):
    one, rank = array(*value.shape, kind="constant", value=value), value.ndim
    storages = [row_major(one), permuted(one, range(rank)[::-1])]
    if rank:
        storages += [permuted(one, range(rank), [(0, size)]) for size in (2, 4)]
        storages.append(permuted(one, range(rank)[::-1], [(rank - 1, 1), (0, 3)]))
    for storage in storages:
        placed = arrange(value, storage)
        assert verify(one, storage, placed)
        if len(np.unique(value)) < 2:
            continue
        for wrong in (np.roll(placed, 1), placed[..., ::-1], -placed):
            for memory in (wrong.copy(), np.asfortranarray(wrong)):
                with pytest.raises(IllegalSchedule, match="not where they are stored"):
                    verify(one, storage, memory)
        with pytest.raises(IllegalSchedule, match="do not fill"):
            verify(one, storage, placed.reshape(-1)[1:])
        with pytest.raises(IllegalSchedule, match="do not fill"):
            verify(one, storage, placed.astype(np.complex64))


def test_the_caller_s_arrays_are_row_major():
    one = array(4, 6, kind="output")
    spec = TensorSpec("a", F32, (4, 6))
    assert verify(one, row_major(one), spec=spec)
    for wrong in (
        permuted(one, (1, 0)),
        permuted(one, (0, 1), [(1, 3)]),
        permuted(one, (0, 1), gap=2),
    ):
        with pytest.raises(IllegalSchedule, match="it is the caller's, but is stored by"):
            verify(one, wrong, spec=spec)
    for other in (TensorSpec("a", F32, (4, 5)), TensorSpec("a", np.dtype(np.int32), (4, 6))):
        with pytest.raises(IllegalSchedule, match="the caller takes it for"):
            verify(one, row_major(one), spec=other)
