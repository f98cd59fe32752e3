"""Kernels for GPUs written by hand, for the programs of `tests.programs`."""

from __future__ import annotations

from polyc.codegen.cuda.grid import DeviceText, Grid
from polyc.printing.scope import Uses

SCALE = DeviceText(
    """
PC_KERNEL(4, 1) void scale(const f32 *__restrict__ x, const f32 *__restrict__ w,
                           f32 *__restrict__ y, int *status)
{
    const i64 i = 4 * PC_BLOCK_X + PC_THREAD_X;
    PC_SHARED(f32, tile, 4);
    if (i < 6)
        tile[PC_THREAD_X] = pc_max_f32(x[i], -1e30f);
    PC_SYNC();
    if (i < 6)
        y[i] = tile[PC_THREAD_X] * w[0];
}
""",
    Uses({("max", "f32", 1)}),
    (Grid("scale", (2, 1, 1), (4, 1, 1)),),
)
"""y = x w for 6 elements, in two blocks of four threads."""

GATHER = DeviceText(
    """
PC_KERNEL(1, 1) void gather(const f32 *__restrict__ x, const i64 *__restrict__ k,
                            f32 *__restrict__ y, int *status)
{
    y[0] = x[pc_index(k[0], 6, status)];
}
""",
    Uses(),
    (Grid("gather", (1, 1, 1), (1, 1, 1)),),
)
"""y = x[k] for x of six elements."""
