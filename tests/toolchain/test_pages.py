"""Buffers in huge pages: zeroed, writable, aligned, and exactly as large as asked for."""

import pytest

from polyc.toolchain.pages import HUGE, allocate_pages, touch_pages


@pytest.mark.parametrize("allocate", [allocate_pages, touch_pages])
@pytest.mark.parametrize("size", [0, 1, 63, 4096, HUGE - 1, HUGE, HUGE + 1, 3 * HUGE + 5])
def test_a_buffer_is_zeroed_aligned_and_of_its_size(size, allocate):
    buffer = allocate(size)
    assert buffer.size == size
    assert buffer.ctypes.data % (HUGE if size >= HUGE else 64) == 0
    assert not buffer.any()
    buffer[:] = 7
    assert int(buffer.sum(dtype="int64")) == 7 * size
