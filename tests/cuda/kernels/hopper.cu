// y = x @ w in bf16 with f32 totals, x: [200, 192], w: [192, 136] given transposed as [136, 192]:
// warpgroups' products of tiles that are copied by the tensor memory accelerator, three stages deep.
// Warps 0 to 3 multiply a tile of 64 x 64; one thread of warp 4 keeps the copies ahead of them.
#include "polyc_cuda.cuh"
#include "polyc_cuda_hopper.cuh"

enum { M = 200, N = 136, K = 192, STEPS = K / 64, STAGES = 2, TILE = 64 * 64, BYTES = 2 * 2 * TILE };
enum { X_AT = 0, W_AT = STAGES * 2 * TILE, BARRIERS_AT = 2 * W_AT, SHARED = BARRIERS_AT + 16 * STAGES };

PC_KERNEL(160, 1) void product(PC_TENSOR_MAP x, PC_TENSOR_MAP w, f32 *__restrict__ y)
{
    PC_SHARED_AT(bf16, x_stages, STAGES * TILE, X_AT);
    PC_SHARED_AT(bf16, w_stages, STAGES * TILE, W_AT);
    PC_SHARED_AT(pc_mbarrier, full, STAGES, BARRIERS_AT);
    PC_SHARED_AT(pc_mbarrier, empty, STAGES, BARRIERS_AT + 8 * STAGES);
    const int row = 64 * PC_BLOCK_Y, column = 64 * PC_BLOCK_X, t = PC_THREAD_X;
    if (t == 0) {
        for (int s = 0; s < STAGES; s++) {
            pc_mbarrier_init(&full[s], 1);
            pc_mbarrier_init(&empty[s], 128);
        }
        pc_mbarrier_init_fence();
    }
    PC_SYNC();
    if (t >= 128) {
        if (t == 128)
            for (int step = 0; step < STEPS; step++) {
                const int s = step % STAGES;
                pc_mbarrier_wait(&empty[s], (step / STAGES + 1) % 2); // the first time it is
                pc_mbarrier_expect(&full[s], BYTES);
                pc_tensor_load(&x_stages[TILE * s], &x, &full[s], 64 * step, row);
                pc_tensor_load(&w_stages[TILE * s], &w, &full[s], 64 * step, column);
            }
    } else {
        f32 d[32];
        PC_ROLLED
        for (int step = 0; step < STEPS; step++) {
            const int s = step % STAGES;
            pc_mbarrier_wait(&full[s], step / STAGES % 2); // copied
            const u64 a = pc_wgmma_operand(&x_stages[TILE * s], 16, 1024);
            const u64 b = pc_wgmma_operand(&w_stages[TILE * s], 16, 1024);
            pc_wgmma_fence();
            PC_UNROLL
            for (int k = 0; k < 4; k++)
                pc_wgmma_m64n64k16_bf16<0, 0>(d, a + 2 * k, b + 2 * k, step + k > 0);
            pc_wgmma_commit();
            pc_wgmma_wait(0); // multiplied
            pc_mbarrier_arrive(&empty[s]);
        }
        PC_UNROLL
        for (int j = 0; j < 8; j++)
            PC_UNROLL
            for (int r = 0; r < 4; r++) {
                const int i = row + 16 * PC_WARP + PC_LANE / 4 + 8 * (r >> 1);
                const int c = column + 8 * j + 2 * (PC_LANE % 4) + (r & 1);
                if (i < M && c < N)
                    y[N * i + c] = d[4 * j + r];
            }
    }
}

extern "C" int polyc_run(void **buffers, void *workspace, void *stream)
{
    (void)workspace;
    pc_tensor_map x, w;
    int error = pc_make_tensor_map(&x, 2, buffers[0], {2, {K, M}, {1, K}, {64, 64}}, 128);
    error = error ? error : pc_make_tensor_map(&w, 2, buffers[1], {2, {K, N}, {1, K}, {64, 64}}, 128);
    return error ? error : PC_LAUNCH(product, pc_dim3((N + 63) / 64, (M + 63) / 64, 1), pc_dim3(160, 1, 1),
                                     SHARED, stream, x, w, (f32 *)buffers[2]);
}
