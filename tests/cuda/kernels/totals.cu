// Of each row of x: [37, 500], its sum, its largest element, and how many are positive; and, by
// atomics, the sum and the largest of all. Warps by shuffles, then the first warp by shared memory.
#include "polyc_cuda.cuh"
#define PC_TYPE f32
#include "polyc_scalar.h"

PC_KERNEL(128, 4) void totals(const f32 *__restrict__ x, f32 *__restrict__ sums, f32 *__restrict__ maxima,
                              i32 *__restrict__ positive, f64 *__restrict__ all, f32 *__restrict__ largest)
{
    PC_SHARED(f32, warp_sums, 4);
    PC_SHARED(f32, warp_maxima, 4);
    PC_SHARED(i32, counts, 4);
    const int t = PC_THREAD_X, row = PC_BLOCK_X;
    f32 sum = 0, most = -__builtin_inff();
    i32 count = 0;
    for (int k = 0; k < 500; k += 128) {
        const f32 v = k + t < 500 ? x[500 * row + k + t] : 0.0f;
        sum += v;
        most = k + t < 500 ? pc_max_f32(most, v) : most;
        const u32 ballot = pc_ballot(v > 0);
        if (PC_LANE == 0)
            count += pc_count_bits(ballot);
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        sum += pc_shuffle_xor(sum, lanes);
        most = pc_max_f32(most, pc_shuffle_down(most, lanes));
    }
    if (PC_LANE == 0) {
        warp_sums[PC_WARP] = sum;
        warp_maxima[PC_WARP] = most;
        counts[PC_WARP] = count;
    }
    PC_SYNC();
    if (PC_WARP == 0) {
        sum = PC_LANE < 4 ? warp_sums[PC_LANE] : 0.0f;
        most = warp_maxima[PC_LANE % 4];
        count = counts[PC_LANE % 4];
        for (int lanes = 2; lanes > 0; lanes /= 2) {
            sum += pc_shuffle_xor(sum, lanes);
            most = pc_max_f32(most, pc_shuffle_xor(most, lanes));
            count += pc_shuffle_xor(count, lanes);
        }
        if (PC_LANE == 0) {
            sums[row] = sum;
            maxima[row] = most;
            positive[row] = count;
            pc_atomic_add(all, (f64)sum);
            pc_atomic_max(largest, most);
        }
    }
}

extern "C" int polyc_run(void **buffers, void *workspace, void *stream)
{
    (void)workspace;
    return PC_LAUNCH(totals, pc_dim3(37, 1, 1), pc_dim3(128, 1, 1), 0, stream, (const f32 *)buffers[0],
                     (f32 *)buffers[1], (f32 *)buffers[2], (i32 *)buffers[3], (f64 *)buffers[4],
                     (f32 *)buffers[5]);
}
