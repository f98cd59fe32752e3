/* ==== k0_Conv_0_out ==== */
/*
 * Nodes: Conv_0, Add_2, Relu_3
 * batchnormalization_0_acc[n, o, y, x] = f(a constant)
 * batchnormalization_0_acc[n, o, y, x, c] add= f(x, batchnormalization_0_weights_1)
 * y[n, o, y, x] = f(batchnormalization_0_acc, batchnormalization_0_bias_1, r)
 * Schedule: order y x o | collapse y x | split y 14 | vector o | unroll y' | sink o y' | parallel y | keep batchnormalization_0_acc in registers at y
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#define PC_STRIDES
#include "polyc_vector.h"

void k0_Conv_0_out(const f32 *restrict x_, const f32 *restrict batchnormalization_0_weights_1_, f32 *restrict y_, const f32 *restrict batchnormalization_0_bias_1_, const f32 *restrict r_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(5) {
        const i64 c0 = pc_n;
        f32x16 batchnormalization_0_acc_local_0_0, batchnormalization_0_acc_local_0_16, batchnormalization_0_acc_local_1_0, batchnormalization_0_acc_local_1_16, batchnormalization_0_acc_local_2_0, batchnormalization_0_acc_local_2_16, batchnormalization_0_acc_local_3_0, batchnormalization_0_acc_local_3_16, batchnormalization_0_acc_local_4_0, batchnormalization_0_acc_local_4_16, batchnormalization_0_acc_local_5_0, batchnormalization_0_acc_local_5_16, batchnormalization_0_acc_local_6_0, batchnormalization_0_acc_local_6_16, batchnormalization_0_acc_local_7_0, batchnormalization_0_acc_local_7_16, batchnormalization_0_acc_local_8_0, batchnormalization_0_acc_local_8_16, batchnormalization_0_acc_local_9_0, batchnormalization_0_acc_local_9_16, batchnormalization_0_acc_local_10_0, batchnormalization_0_acc_local_10_16, batchnormalization_0_acc_local_11_0, batchnormalization_0_acc_local_11_16, batchnormalization_0_acc_local_12_0, batchnormalization_0_acc_local_12_16, batchnormalization_0_acc_local_13_0, batchnormalization_0_acc_local_13_16;
        batchnormalization_0_acc_local_0_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_0_16 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_1_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_1_16 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_2_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_2_16 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_3_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_3_16 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_4_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_4_16 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_5_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_5_16 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_6_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_6_16 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_7_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_7_16 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_8_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_8_16 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_9_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_9_16 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_10_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_10_16 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_11_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_11_16 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_12_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_12_16 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_13_0 = pc_splat_f32x16(0.0f);
        batchnormalization_0_acc_local_13_16 = pc_splat_f32x16(0.0f);
        for (i64 c1 = 0; c1 < 16; c1 += 1) {
            PC_FORGET;
            f32x16 loaded_0, loaded_16;
            loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&batchnormalization_0_weights_1_[32 * c1]));
            loaded_16 = pc_rounded_f32x16(pc_load_f32x16(&batchnormalization_0_weights_1_[32 * c1 + 16]));
            batchnormalization_0_acc_local_0_0 += pc_splat_f32x16(x_[14 * c0 + 81 * c1]) * loaded_0;
            batchnormalization_0_acc_local_0_16 += pc_splat_f32x16(x_[14 * c0 + 81 * c1]) * loaded_16;
            batchnormalization_0_acc_local_1_0 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 1]) * loaded_0;
            batchnormalization_0_acc_local_1_16 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 1]) * loaded_16;
            batchnormalization_0_acc_local_2_0 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 2]) * loaded_0;
            batchnormalization_0_acc_local_2_16 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 2]) * loaded_16;
            batchnormalization_0_acc_local_3_0 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 3]) * loaded_0;
            batchnormalization_0_acc_local_3_16 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 3]) * loaded_16;
            batchnormalization_0_acc_local_4_0 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 4]) * loaded_0;
            batchnormalization_0_acc_local_4_16 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 4]) * loaded_16;
            batchnormalization_0_acc_local_5_0 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 5]) * loaded_0;
            batchnormalization_0_acc_local_5_16 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 5]) * loaded_16;
            batchnormalization_0_acc_local_6_0 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 6]) * loaded_0;
            batchnormalization_0_acc_local_6_16 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 6]) * loaded_16;
            batchnormalization_0_acc_local_7_0 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 7]) * loaded_0;
            batchnormalization_0_acc_local_7_16 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 7]) * loaded_16;
            batchnormalization_0_acc_local_8_0 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 8]) * loaded_0;
            batchnormalization_0_acc_local_8_16 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 8]) * loaded_16;
            batchnormalization_0_acc_local_9_0 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 9]) * loaded_0;
            batchnormalization_0_acc_local_9_16 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 9]) * loaded_16;
            batchnormalization_0_acc_local_10_0 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 10]) * loaded_0;
            batchnormalization_0_acc_local_10_16 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 10]) * loaded_16;
            batchnormalization_0_acc_local_11_0 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 11]) * loaded_0;
            batchnormalization_0_acc_local_11_16 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 11]) * loaded_16;
            batchnormalization_0_acc_local_12_0 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 12]) * loaded_0;
            batchnormalization_0_acc_local_12_16 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 12]) * loaded_16;
            batchnormalization_0_acc_local_13_0 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 13]) * loaded_0;
            batchnormalization_0_acc_local_13_16 += pc_splat_f32x16(x_[14 * c0 + 81 * c1 + 13]) * loaded_16;
        }
        pc_stores_f32x16(&y_[14 * c0], pc_max_f32x16((batchnormalization_0_acc_local_0_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[14 * c0], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 1296], pc_max_f32x16((batchnormalization_0_acc_local_0_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[14 * c0 + 1296], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 1], pc_max_f32x16((batchnormalization_0_acc_local_1_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[14 * c0 + 1], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 1297], pc_max_f32x16((batchnormalization_0_acc_local_1_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[14 * c0 + 1297], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 2], pc_max_f32x16((batchnormalization_0_acc_local_2_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[14 * c0 + 2], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 1298], pc_max_f32x16((batchnormalization_0_acc_local_2_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[14 * c0 + 1298], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 3], pc_max_f32x16((batchnormalization_0_acc_local_3_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[14 * c0 + 3], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 1299], pc_max_f32x16((batchnormalization_0_acc_local_3_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[14 * c0 + 1299], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 4], pc_max_f32x16((batchnormalization_0_acc_local_4_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[14 * c0 + 4], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 1300], pc_max_f32x16((batchnormalization_0_acc_local_4_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[14 * c0 + 1300], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 5], pc_max_f32x16((batchnormalization_0_acc_local_5_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[14 * c0 + 5], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 1301], pc_max_f32x16((batchnormalization_0_acc_local_5_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[14 * c0 + 1301], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 6], pc_max_f32x16((batchnormalization_0_acc_local_6_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[14 * c0 + 6], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 1302], pc_max_f32x16((batchnormalization_0_acc_local_6_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[14 * c0 + 1302], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 7], pc_max_f32x16((batchnormalization_0_acc_local_7_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[14 * c0 + 7], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 1303], pc_max_f32x16((batchnormalization_0_acc_local_7_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[14 * c0 + 1303], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 8], pc_max_f32x16((batchnormalization_0_acc_local_8_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[14 * c0 + 8], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 1304], pc_max_f32x16((batchnormalization_0_acc_local_8_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[14 * c0 + 1304], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 9], pc_max_f32x16((batchnormalization_0_acc_local_9_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[14 * c0 + 9], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 1305], pc_max_f32x16((batchnormalization_0_acc_local_9_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[14 * c0 + 1305], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 10], pc_max_f32x16((batchnormalization_0_acc_local_10_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[14 * c0 + 10], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 1306], pc_max_f32x16((batchnormalization_0_acc_local_10_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[14 * c0 + 1306], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 11], pc_max_f32x16((batchnormalization_0_acc_local_11_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[14 * c0 + 11], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 1307], pc_max_f32x16((batchnormalization_0_acc_local_11_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[14 * c0 + 1307], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 12], pc_max_f32x16((batchnormalization_0_acc_local_12_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[14 * c0 + 12], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 1308], pc_max_f32x16((batchnormalization_0_acc_local_12_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[14 * c0 + 1308], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 13], pc_max_f32x16((batchnormalization_0_acc_local_13_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[14 * c0 + 13], 81), pc_splat_f32x16(0.0f)), 81);
        pc_stores_f32x16(&y_[14 * c0 + 1309], pc_max_f32x16((batchnormalization_0_acc_local_13_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[14 * c0 + 1309], 81), pc_splat_f32x16(0.0f)), 81);
    }
    PC_SHARE(1) {
        {
            f32x16 batchnormalization_0_acc_local_0_0, batchnormalization_0_acc_local_0_16, batchnormalization_0_acc_local_1_0, batchnormalization_0_acc_local_1_16, batchnormalization_0_acc_local_2_0, batchnormalization_0_acc_local_2_16, batchnormalization_0_acc_local_3_0, batchnormalization_0_acc_local_3_16, batchnormalization_0_acc_local_4_0, batchnormalization_0_acc_local_4_16, batchnormalization_0_acc_local_5_0, batchnormalization_0_acc_local_5_16, batchnormalization_0_acc_local_6_0, batchnormalization_0_acc_local_6_16, batchnormalization_0_acc_local_7_0, batchnormalization_0_acc_local_7_16, batchnormalization_0_acc_local_8_0, batchnormalization_0_acc_local_8_16, batchnormalization_0_acc_local_9_0, batchnormalization_0_acc_local_9_16, batchnormalization_0_acc_local_10_0, batchnormalization_0_acc_local_10_16;
            batchnormalization_0_acc_local_0_0 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_0_16 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_1_0 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_1_16 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_2_0 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_2_16 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_3_0 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_3_16 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_4_0 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_4_16 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_5_0 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_5_16 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_6_0 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_6_16 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_7_0 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_7_16 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_8_0 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_8_16 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_9_0 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_9_16 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_10_0 = pc_splat_f32x16(0.0f);
            batchnormalization_0_acc_local_10_16 = pc_splat_f32x16(0.0f);
            for (i64 c1 = 0; c1 < 16; c1 += 1) {
                PC_FORGET;
                f32x16 loaded_0, loaded_16;
                loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&batchnormalization_0_weights_1_[32 * c1]));
                loaded_16 = pc_rounded_f32x16(pc_load_f32x16(&batchnormalization_0_weights_1_[32 * c1 + 16]));
                batchnormalization_0_acc_local_0_0 += pc_splat_f32x16(x_[81 * c1 + 70]) * loaded_0;
                batchnormalization_0_acc_local_0_16 += pc_splat_f32x16(x_[81 * c1 + 70]) * loaded_16;
                batchnormalization_0_acc_local_1_0 += pc_splat_f32x16(x_[81 * c1 + 71]) * loaded_0;
                batchnormalization_0_acc_local_1_16 += pc_splat_f32x16(x_[81 * c1 + 71]) * loaded_16;
                batchnormalization_0_acc_local_2_0 += pc_splat_f32x16(x_[81 * c1 + 72]) * loaded_0;
                batchnormalization_0_acc_local_2_16 += pc_splat_f32x16(x_[81 * c1 + 72]) * loaded_16;
                batchnormalization_0_acc_local_3_0 += pc_splat_f32x16(x_[81 * c1 + 73]) * loaded_0;
                batchnormalization_0_acc_local_3_16 += pc_splat_f32x16(x_[81 * c1 + 73]) * loaded_16;
                batchnormalization_0_acc_local_4_0 += pc_splat_f32x16(x_[81 * c1 + 74]) * loaded_0;
                batchnormalization_0_acc_local_4_16 += pc_splat_f32x16(x_[81 * c1 + 74]) * loaded_16;
                batchnormalization_0_acc_local_5_0 += pc_splat_f32x16(x_[81 * c1 + 75]) * loaded_0;
                batchnormalization_0_acc_local_5_16 += pc_splat_f32x16(x_[81 * c1 + 75]) * loaded_16;
                batchnormalization_0_acc_local_6_0 += pc_splat_f32x16(x_[81 * c1 + 76]) * loaded_0;
                batchnormalization_0_acc_local_6_16 += pc_splat_f32x16(x_[81 * c1 + 76]) * loaded_16;
                batchnormalization_0_acc_local_7_0 += pc_splat_f32x16(x_[81 * c1 + 77]) * loaded_0;
                batchnormalization_0_acc_local_7_16 += pc_splat_f32x16(x_[81 * c1 + 77]) * loaded_16;
                batchnormalization_0_acc_local_8_0 += pc_splat_f32x16(x_[81 * c1 + 78]) * loaded_0;
                batchnormalization_0_acc_local_8_16 += pc_splat_f32x16(x_[81 * c1 + 78]) * loaded_16;
                batchnormalization_0_acc_local_9_0 += pc_splat_f32x16(x_[81 * c1 + 79]) * loaded_0;
                batchnormalization_0_acc_local_9_16 += pc_splat_f32x16(x_[81 * c1 + 79]) * loaded_16;
                batchnormalization_0_acc_local_10_0 += pc_splat_f32x16(x_[81 * c1 + 80]) * loaded_0;
                batchnormalization_0_acc_local_10_16 += pc_splat_f32x16(x_[81 * c1 + 80]) * loaded_16;
            }
            pc_stores_f32x16(&y_[70], pc_max_f32x16((batchnormalization_0_acc_local_0_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[70], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[1366], pc_max_f32x16((batchnormalization_0_acc_local_0_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[1366], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[71], pc_max_f32x16((batchnormalization_0_acc_local_1_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[71], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[1367], pc_max_f32x16((batchnormalization_0_acc_local_1_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[1367], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[72], pc_max_f32x16((batchnormalization_0_acc_local_2_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[72], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[1368], pc_max_f32x16((batchnormalization_0_acc_local_2_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[1368], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[73], pc_max_f32x16((batchnormalization_0_acc_local_3_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[73], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[1369], pc_max_f32x16((batchnormalization_0_acc_local_3_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[1369], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[74], pc_max_f32x16((batchnormalization_0_acc_local_4_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[74], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[1370], pc_max_f32x16((batchnormalization_0_acc_local_4_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[1370], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[75], pc_max_f32x16((batchnormalization_0_acc_local_5_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[75], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[1371], pc_max_f32x16((batchnormalization_0_acc_local_5_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[1371], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[76], pc_max_f32x16((batchnormalization_0_acc_local_6_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[76], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[1372], pc_max_f32x16((batchnormalization_0_acc_local_6_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[1372], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[77], pc_max_f32x16((batchnormalization_0_acc_local_7_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[77], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[1373], pc_max_f32x16((batchnormalization_0_acc_local_7_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[1373], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[78], pc_max_f32x16((batchnormalization_0_acc_local_8_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[78], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[1374], pc_max_f32x16((batchnormalization_0_acc_local_8_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[1374], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[79], pc_max_f32x16((batchnormalization_0_acc_local_9_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[79], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[1375], pc_max_f32x16((batchnormalization_0_acc_local_9_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[1375], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[80], pc_max_f32x16((batchnormalization_0_acc_local_10_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_loads_f32x16(&r_[80], 81), pc_splat_f32x16(0.0f)), 81);
            pc_stores_f32x16(&y_[1376], pc_max_f32x16((batchnormalization_0_acc_local_10_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_loads_f32x16(&r_[1376], 81), pc_splat_f32x16(0.0f)), 81);
        }
    }
}
