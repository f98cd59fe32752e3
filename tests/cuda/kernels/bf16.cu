// y = x @ w in bf16 with f32 totals, x: [96, 128], w: [128, 64]: mma.sync, ldmatrix, and a pipeline
// of cp.async over k in steps of 32. 4 warps make a tile of 32 x 64, each 16 x 32 of it.
#include "polyc_cuda.cuh"

enum { M = 96, K = 128, N = 64, STEPS = K / 32, STAGES = 3 };
enum { X_ROW = 32 + 8, W_ROW = 64 + 8 }; // 16 bytes of padding: no bank conflicts in ldmatrix

PC_DEVICE void load(bf16 *x_stage, bf16 *w_stage, const bf16 *x, const bf16 *w, int row, int k)
{
    const int t = PC_THREAD_X;
    pc_copy_async_16(&x_stage[X_ROW * (t / 4) + 8 * (t % 4)], &x[K * (row + t / 4) + k + 8 * (t % 4)]);
    for (int h = 0; h < 2; h++) {
        const int r = 16 * h + t / 8, c = 8 * (t % 8);
        pc_copy_async_16(&w_stage[W_ROW * r + c], &w[N * (k + r) + c]);
    }
}

PC_KERNEL(128, 2) void product(const bf16 *__restrict__ x, const bf16 *__restrict__ w, f32 *__restrict__ y)
{
    PC_SHARED(bf16, x_stages, STAGES * 32 * X_ROW);
    PC_SHARED(bf16, w_stages, STAGES * 32 * W_ROW);
    const int lane = PC_LANE, row = 32 * PC_BLOCK_X, m = 16 * (PC_WARP & 1), n = 32 * (PC_WARP >> 1);
    f32 d[4][4] = {};
    for (int s = 0; s < STAGES - 1; s++) {
        load(x_stages + 32 * X_ROW * s, w_stages + 32 * W_ROW * s, x, w, row, 32 * s);
        pc_copy_async_commit();
    }
    PC_ROLLED
    for (int step = 0; step < STEPS; step++) {
        pc_copy_async_wait(STAGES - 2); // this step's copies of this thread
        PC_SYNC(); // everybody's; and the stage before has been read by all
        const int ahead = step + STAGES - 1, s = ahead % STAGES;
        if (ahead < STEPS)
            load(x_stages + 32 * X_ROW * s, w_stages + 32 * W_ROW * s, x, w, row, 32 * ahead);
        pc_copy_async_commit();
        const bf16 *x_stage = x_stages + 32 * X_ROW * (step % STAGES);
        const bf16 *w_stage = w_stages + 32 * W_ROW * (step % STAGES);
        PC_UNROLL
        for (int k = 0; k < 32; k += 16) {
            u32 a[4], b[4];
            pc_ldmatrix_x4(a, &x_stage[X_ROW * (m + lane % 16) + k + 8 * (lane / 16)]);
            PC_UNROLL
            for (int h = 0; h < 2; h++) {
                pc_ldmatrix_x4_transposed(b, &w_stage[W_ROW * (k + lane % 16) + n + 16 * h + 8 * (lane / 16)]);
                pc_mma_m16n8k16_bf16(d[2 * h], a, b);
                pc_mma_m16n8k16_bf16(d[2 * h + 1], a, b + 2);
            }
        }
    }
    PC_UNROLL
    for (int c = 0; c < 4; c++)
        PC_UNROLL
        for (int r = 0; r < 2; r++) {
            f32x2 pair = {d[c][2 * r], d[c][2 * r + 1]};
            pc_store_f32x2(&y[N * (row + m + lane / 4 + 8 * r) + n + 8 * c + 2 * (lane % 4)], pair);
        }
}

extern "C" int polyc_run(void **buffers, void *workspace, void *stream)
{
    (void)workspace;
    return PC_LAUNCH(product, pc_dim3(M / 32, 1, 1), pc_dim3(128, 1, 1), 0, stream, (const bf16 *)buffers[0],
                     (const bf16 *)buffers[1], (f32 *)buffers[2]);
}
