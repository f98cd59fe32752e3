// y = x @ w, x: [64, 64], w: [64, 128], bf16 and f32 totals, by one warpgroup that writes its operands
// to shared memory itself, swizzled, w contiguous along n; the result goes back by tiles of 64 x 32.
#include "polyc_cuda.cuh"
#include "polyc_cuda_hopper.cuh"

enum { X_AT = 0, W_AT = 64 * 128, Y_AT = W_AT + 2 * 64 * 128, SHARED = Y_AT + 4 * 64 * 128 };

// Where byte b of row r lies in rows of 128 bytes: 16-byte pieces are exchanged within a row.
PC_DEVICE int swizzled(int r, int b) { return 128 * r + (b ^ (r % 8) << 4); }

PC_KERNEL(128, 1) void written(const bf16 *__restrict__ x, const bf16 *__restrict__ w, PC_TENSOR_MAP y)
{
    PC_SHARED_AT(u8, x_tile, 64 * 128, X_AT);
    PC_SHARED_AT(u8, w_tile, 2 * 64 * 128, W_AT);
    PC_SHARED_AT(u8, y_tile, 4 * 64 * 128, Y_AT);
    const int t = PC_THREAD_X;
    for (int i = t; i < 64 * 8; i += 128) {
        const int r = i / 8, b = 16 * (i % 8);
        pc_store_bf16x8((bf16 *)&x_tile[swizzled(r, b)], pc_load_bf16x8(&x[64 * r + b / 2]));
        for (int h = 0; h < 2; h++) // columns 0..63 and 64..127
            pc_store_bf16x8((bf16 *)&w_tile[64 * 128 * h + swizzled(r, b)],
                            pc_load_bf16x8(&w[128 * r + 64 * h + b / 2]));
    }
    pc_fence_async(); // the operands
    PC_SYNC(); // the operands are there
    f32 d[64];
    pc_wgmma_fence();
    PC_UNROLL
    for (int k = 0; k < 4; k++)
        pc_wgmma_m64n128k16_bf16<0, 1>(d, pc_wgmma_operand(x_tile, 16, 1024) + 2 * k,
                                       pc_wgmma_operand(&w_tile[2048 * k], 64 * 128, 1024), k > 0);
    pc_wgmma_commit();
    pc_wgmma_wait(0); // multiplied
    PC_UNROLL
    for (int j = 0; j < 16; j++)
        PC_UNROLL
        for (int r = 0; r < 4; r++) {
            const int i = 16 * PC_WARP + PC_LANE / 4 + 8 * (r >> 1), c = 8 * j + 2 * (PC_LANE % 4) + (r & 1);
            *(f32 *)&y_tile[64 * 128 * (c / 32) + swizzled(i, 4 * (c % 32))] = d[4 * j + r];
        }
    pc_fence_async(); // the result
    PC_SYNC(); // the result is there
    if (t == 0) {
        for (int k = 0; k < 4; k++)
            pc_tensor_store(&y, 32 * k, 0, &y_tile[64 * 128 * k]);
        pc_tensor_store_commit();
        pc_tensor_store_wait(0); // stored
    }
}

extern "C" int polyc_run(void **buffers, void *workspace, void *stream)
{
    (void)workspace;
    pc_tensor_map y;
    const int error = pc_make_tensor_map(&y, 4, buffers[2], {2, {128, 64}, {1, 128}, {32, 64}}, 128);
    return error ? error : PC_LAUNCH(written, pc_dim3(1, 1, 1), pc_dim3(128, 1, 1), SHARED, stream,
                                     (const bf16 *)buffers[0], (const bf16 *)buffers[1], y);
}
