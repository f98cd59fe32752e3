/* ==== k0_Conv_0_out ==== */
/*
 * Nodes: Conv_0, Add_2, Relu_3
 * batchnormalization_0_acc[n, o, y, x] = f(a constant)
 * batchnormalization_0_acc[n, o, y, x, c] add= f(x, batchnormalization_0_weights_1)
 * y[n, o, y, x] = f(batchnormalization_0_acc, batchnormalization_0_bias_1, r)
 * Schedule: contraction: n o/32 y x/9, unroll x, vector o, 4 parallel
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#include "polyc_vector.h"

void k0_Conv_0_out(const f32 *restrict x, const f32 *restrict batchnormalization_0_weights_1, f32 *restrict y, const f32 *restrict batchnormalization_0_bias_1, const f32 *restrict r, pc_team *team, int *status)
{
    (void)team, (void)status;
    #pragma omp for schedule(static) nowait
    for (i64 c2 = 0; c2 < 9; c2 += 1) {
        f32x16 batchnormalization_0_acc_local_0_0, batchnormalization_0_acc_local_16_0, batchnormalization_0_acc_local_0_1, batchnormalization_0_acc_local_16_1, batchnormalization_0_acc_local_0_2, batchnormalization_0_acc_local_16_2, batchnormalization_0_acc_local_0_3, batchnormalization_0_acc_local_16_3, batchnormalization_0_acc_local_0_4, batchnormalization_0_acc_local_16_4, batchnormalization_0_acc_local_0_5, batchnormalization_0_acc_local_16_5, batchnormalization_0_acc_local_0_6, batchnormalization_0_acc_local_16_6, batchnormalization_0_acc_local_0_7, batchnormalization_0_acc_local_16_7, batchnormalization_0_acc_local_0_8, batchnormalization_0_acc_local_16_8;
        batchnormalization_0_acc_local_0_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_16_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_0_1 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_16_1 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_0_2 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_16_2 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_0_3 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_16_3 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_0_4 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_16_4 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_0_5 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_16_5 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_0_6 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_16_6 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_0_7 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_16_7 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_0_8 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_16_8 = pc_splat_f32x16(0.0f);
        for (i64 c4 = 0; c4 < 16; c4 += 1) {
            batchnormalization_0_acc_local_0_0 += pc_splat_f32x16(x[9 * c2 + 81 * c4]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4]);
            batchnormalization_0_acc_local_16_0 += pc_splat_f32x16(x[9 * c2 + 81 * c4]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4 + 16]);
            batchnormalization_0_acc_local_0_1 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 1]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4]);
            batchnormalization_0_acc_local_16_1 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 1]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4 + 16]);
            batchnormalization_0_acc_local_0_2 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 2]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4]);
            batchnormalization_0_acc_local_16_2 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 2]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4 + 16]);
            batchnormalization_0_acc_local_0_3 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 3]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4]);
            batchnormalization_0_acc_local_16_3 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 3]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4 + 16]);
            batchnormalization_0_acc_local_0_4 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 4]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4]);
            batchnormalization_0_acc_local_16_4 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 4]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4 + 16]);
            batchnormalization_0_acc_local_0_5 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 5]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4]);
            batchnormalization_0_acc_local_16_5 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 5]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4 + 16]);
            batchnormalization_0_acc_local_0_6 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 6]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4]);
            batchnormalization_0_acc_local_16_6 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 6]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4 + 16]);
            batchnormalization_0_acc_local_0_7 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 7]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4]);
            batchnormalization_0_acc_local_16_7 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 7]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4 + 16]);
            batchnormalization_0_acc_local_0_8 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 8]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4]);
            batchnormalization_0_acc_local_16_8 += pc_splat_f32x16(x[9 * c2 + 81 * c4 + 8]) * pc_load_f32x16(&batchnormalization_0_weights_1[32 * c4 + 16]);
        }
        pc_stores_f32x16(&y[9 * c2], pc_max_f32x16((batchnormalization_0_acc_local_0_0 + pc_load_f32x16(&batchnormalization_0_bias_1[0])) + pc_loads_f32x16(&r[9 * c2], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 1296], pc_max_f32x16((batchnormalization_0_acc_local_16_0 + pc_load_f32x16(&batchnormalization_0_bias_1[16])) + pc_loads_f32x16(&r[9 * c2 + 1296], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 1], pc_max_f32x16((batchnormalization_0_acc_local_0_1 + pc_load_f32x16(&batchnormalization_0_bias_1[0])) + pc_loads_f32x16(&r[9 * c2 + 1], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 1297], pc_max_f32x16((batchnormalization_0_acc_local_16_1 + pc_load_f32x16(&batchnormalization_0_bias_1[16])) + pc_loads_f32x16(&r[9 * c2 + 1297], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 2], pc_max_f32x16((batchnormalization_0_acc_local_0_2 + pc_load_f32x16(&batchnormalization_0_bias_1[0])) + pc_loads_f32x16(&r[9 * c2 + 2], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 1298], pc_max_f32x16((batchnormalization_0_acc_local_16_2 + pc_load_f32x16(&batchnormalization_0_bias_1[16])) + pc_loads_f32x16(&r[9 * c2 + 1298], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 3], pc_max_f32x16((batchnormalization_0_acc_local_0_3 + pc_load_f32x16(&batchnormalization_0_bias_1[0])) + pc_loads_f32x16(&r[9 * c2 + 3], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 1299], pc_max_f32x16((batchnormalization_0_acc_local_16_3 + pc_load_f32x16(&batchnormalization_0_bias_1[16])) + pc_loads_f32x16(&r[9 * c2 + 1299], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 4], pc_max_f32x16((batchnormalization_0_acc_local_0_4 + pc_load_f32x16(&batchnormalization_0_bias_1[0])) + pc_loads_f32x16(&r[9 * c2 + 4], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 1300], pc_max_f32x16((batchnormalization_0_acc_local_16_4 + pc_load_f32x16(&batchnormalization_0_bias_1[16])) + pc_loads_f32x16(&r[9 * c2 + 1300], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 5], pc_max_f32x16((batchnormalization_0_acc_local_0_5 + pc_load_f32x16(&batchnormalization_0_bias_1[0])) + pc_loads_f32x16(&r[9 * c2 + 5], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 1301], pc_max_f32x16((batchnormalization_0_acc_local_16_5 + pc_load_f32x16(&batchnormalization_0_bias_1[16])) + pc_loads_f32x16(&r[9 * c2 + 1301], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 6], pc_max_f32x16((batchnormalization_0_acc_local_0_6 + pc_load_f32x16(&batchnormalization_0_bias_1[0])) + pc_loads_f32x16(&r[9 * c2 + 6], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 1302], pc_max_f32x16((batchnormalization_0_acc_local_16_6 + pc_load_f32x16(&batchnormalization_0_bias_1[16])) + pc_loads_f32x16(&r[9 * c2 + 1302], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 7], pc_max_f32x16((batchnormalization_0_acc_local_0_7 + pc_load_f32x16(&batchnormalization_0_bias_1[0])) + pc_loads_f32x16(&r[9 * c2 + 7], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 1303], pc_max_f32x16((batchnormalization_0_acc_local_16_7 + pc_load_f32x16(&batchnormalization_0_bias_1[16])) + pc_loads_f32x16(&r[9 * c2 + 1303], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 8], pc_max_f32x16((batchnormalization_0_acc_local_0_8 + pc_load_f32x16(&batchnormalization_0_bias_1[0])) + pc_loads_f32x16(&r[9 * c2 + 8], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y[9 * c2 + 1304], pc_max_f32x16((batchnormalization_0_acc_local_16_8 + pc_load_f32x16(&batchnormalization_0_bias_1[16])) + pc_loads_f32x16(&r[9 * c2 + 1304], 81), pc_splat_f32x16(0.0f)), 81);
    }
    pc_barrier(team);
}
