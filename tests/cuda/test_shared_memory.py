"""Shared memory beyond the 48 KiB that every block has is reserved by the launch."""

from __future__ import annotations

import numpy as np

from polyc.codegen.cuda.print_kernel import print_device
from polyc.codegen.cuda.shared_memory import STATIC_SHARED
from polyc.loopnest.index import const, var
from polyc.loopnest.nodes import Assign, Block, Element, For, Kernel, Local
from polyc.scop.expr import Const

F32 = np.dtype(np.float32)


def kernel_with(*sizes: int) -> Kernel:
    """Blocks with shared arrays of so many floats, of which the first elements are set."""
    locals_ = tuple(Local(f"s{k}", F32, (n,), "", space="shared") for k, n in enumerate(sizes))
    sets = tuple(
        Assign("S", (), Element(x.name, (var("t"),)), Const(0.0, F32), F32) for x in locals_
    )
    threads = For("t", const(0), const(32), 1, Block(sets), "thread")
    blocks = For("b", const(0), const(4), 1, Block((threads,), locals_), "block")
    return Kernel("k", (), Block((blocks,)))


def test_little_is_there_without_asking():
    device = print_device(kernel_with(100, 200), 32)
    assert "PC_SHARED(f32, s0, 100);" in device.text
    assert device.grids[0].shared_bytes == 0


def test_more_is_reserved_at_offsets_of_whole_rows_of_banks():
    device = print_device(kernel_with(1001, STATIC_SHARED // 4), 32)
    assert "PC_SHARED_AT(f32, s0, 1001, 0);" in device.text
    assert f"PC_SHARED_AT(f32, s1, {STATIC_SHARED // 4}, 4096);" in device.text
    assert device.grids[0].shared_bytes == 4096 + STATIC_SHARED
