// y = relu(x @ w) with x: [100, 70], w: [70, 90], by tiles of 16 x 16 in shared memory.
#include "polyc_cuda.cuh"
#define PC_TYPE f32
#include "polyc_scalar.h"

PC_KERNEL(256, 2) void tiles(const f32 *__restrict__ x, const f32 *__restrict__ w, f32 *__restrict__ y)
{
    PC_SHARED(f32, x_tile, 16 * 16);
    PC_SHARED(f32, w_tile, 16 * 16);
    const int i = PC_THREAD_Y, j = PC_THREAD_X;
    const int row = 16 * PC_BLOCK_Y + i, column = 16 * PC_BLOCK_X + j;
    f32 total = 0;
    for (int k = 0; k < 70; k += 16) {
        x_tile[16 * i + j] = row < 100 && k + j < 70 ? x[70 * row + k + j] : 0.0f;
        w_tile[16 * i + j] = k + i < 70 && column < 90 ? w[90 * (k + i) + column] : 0.0f;
        PC_SYNC(); // the tiles are there
        for (int l = 0; l < 16; l++)
            total += x_tile[16 * i + l] * w_tile[16 * l + j];
        PC_SYNC(); // the tiles are done with
    }
    if (row < 100 && column < 90)
        y[90 * row + column] = pc_max_f32(total, 0.0f);
}

extern "C" int polyc_run(void **buffers, void *workspace, void *stream)
{
    (void)workspace;
    return PC_LAUNCH(tiles, pc_dim3(6, 7, 1), pc_dim3(16, 16, 1), 0, stream, (const f32 *)buffers[0],
                     (const f32 *)buffers[1], (f32 *)buffers[2]);
}
