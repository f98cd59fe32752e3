"""Storage maps: where elements go, and constants arranged to match."""

from itertools import permutations

import islpy as isl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyc.memory.storage import Storage, arrange, permuted, row_major
from polyc.scop.scop import Array
from tests.scop.interpreter import evaluate_piecewise

F32 = np.dtype(np.float32)


def array(*shape: int) -> Array:
    return Array("A", F32, shape, "constant")


def is_map(storage: Storage, text: str) -> bool:
    return isl.PwMultiAff.from_multi_aff(storage.map).is_equal(isl.PwMultiAff(text))


def test_row_major_is_the_identity():
    storage = row_major(array(2, 3))
    assert is_map(storage, "{ A[i, j] -> A_M[i, j] }")
    assert storage.shape == (2, 3)
    assert storage.is_row_major
    assert storage.size == 6


def test_a_permutation_stores_the_first_named_dimension_outermost():
    storage = permuted(array(2, 3, 5), [2, 0, 1])
    assert is_map(storage, "{ A[i, j, k] -> A_M[k, i, j] }")
    assert storage.shape == (5, 2, 3)
    assert not storage.is_row_major


def test_a_block_is_stored_innermost_and_padded():
    storage = permuted(array(2, 37), [0, 1], [(1, 16)])
    assert is_map(storage, "{ A[i, j] -> A_M[i, floor(j/16), j mod 16] }")
    assert storage.shape == (2, 3, 16)
    assert storage.size == 96


def test_a_block_of_one_element_is_no_division():
    storage = permuted(array(4, 5), [1, 0], [(0, 1)])
    assert is_map(storage, "{ A[i, j] -> A_M[j, i, 0] }")
    assert storage.shape == (5, 4, 1)


def test_a_scalar_has_a_place():
    storage = row_major(array())
    assert storage.shape == ()
    assert arrange(np.array(3, np.float32), storage).shape == ()


@st.composite
def storages(draw):
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    order = draw(st.sampled_from(list(permutations(range(len(shape))))))
    cut = draw(st.lists(st.sampled_from(range(len(shape))), unique=True, max_size=2))
    return shape, permuted(array(*shape), order, [(d, draw(st.integers(1, 4))) for d in cut])


@given(storages())
@settings(max_examples=60, deadline=None)
def test_a_constant_is_arranged_as_the_map_says(drawn):
    shape, storage = drawn
    value = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    stored = arrange(value, storage)
    assert stored.shape == storage.shape
    points = np.argwhere(np.ones(shape, bool))
    pma = isl.PwMultiAff.from_multi_aff(storage.map)
    place = [evaluate_piecewise(pma.get_pw_aff(k), points)[0] for k in range(len(stored.shape))]
    np.testing.assert_array_equal(stored[tuple(place)], value[tuple(points.T)])


@pytest.mark.parametrize("size", [1, 15, 16, 17, 33])
def test_padding_is_zero(size):
    value = np.ones((size, 3), np.float32)
    storage = permuted(array(size, 3), [0, 1], [(0, 16)])
    stored = arrange(value, storage)
    assert stored.shape == (-(-size // 16), 3, 16)
    assert stored.sum() == value.sum()
    assert set(np.unique(stored)) <= {0.0, 1.0}
