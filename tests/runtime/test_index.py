"""pc_index: ONNX's meaning of an index, and a flag instead of an access out of range."""

import ctypes

import pytest

from tests.runtime.native import RUNNABLE, compiled

SOURCE = """
#include "polyc.h"
i64 index_of(i64 i, i64 extent, int *status) { return pc_index(i, extent, status); }
"""


@pytest.fixture(scope="module")
def index_of(tmp_path_factory):
    function = compiled(SOURCE, RUNNABLE[0], tmp_path_factory.mktemp("index")).index_of
    function.restype = ctypes.c_int64

    def call(i, extent):
        status = ctypes.c_int(0)
        result = function(ctypes.c_int64(i), ctypes.c_int64(extent), ctypes.byref(status))
        return result, status.value

    return call


@pytest.mark.parametrize("extent", [1, 5])
def test_negative_indices_count_from_the_end(index_of, extent):
    for i in range(-extent, extent):
        assert index_of(i, extent) == (range(extent)[i], 0)


@pytest.mark.parametrize("extent", [1, 5])
def test_out_of_range_is_flagged_and_clamped(index_of, extent):
    for i in (extent, extent + 3, 2**63 - 1):
        assert index_of(i, extent) == (extent - 1, 1)
    for i in (-extent - 1, -(2**63)):
        assert index_of(i, extent) == (0, 1)


def test_nothing_lies_along_an_extent_of_0(index_of):
    for i in (-(2**63), -1, 0, 1, 2**63 - 1):
        assert index_of(i, 0) == (0, 1)
