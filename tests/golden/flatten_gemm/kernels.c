/* ==== k0_Conv_0_out ==== */
/*
 * Nodes: Conv_0, Relu_1
 * conv_0_acc[n, o, y, x] = f(a constant)
 * conv_0_acc[n, o, y, x, c] add= f(x, constant_0)
 * relu_0[n, o, y, x] = f(conv_0_acc)
 * Schedule: order n o y x | collapse y x | vector o | unroll y | sink o y | keep conv_0_acc in registers at n
 */
#include "polyc.h"
PC_VECTORS(8)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 8
#include "polyc_vector.h"

void k0_Conv_0_out(const f32 *restrict x_, const f32 *restrict constant_0_, f32 *restrict relu_0_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(1) {
        for (i64 c0 = 0; c0 < 3; c0 += 1) {
            f32x8 conv_0_acc_local_0_0, conv_0_acc_local_1_0, conv_0_acc_local_2_0, conv_0_acc_local_3_0, conv_0_acc_local_4_0, conv_0_acc_local_5_0, conv_0_acc_local_6_0, conv_0_acc_local_7_0, conv_0_acc_local_8_0, conv_0_acc_local_9_0, conv_0_acc_local_10_0, conv_0_acc_local_11_0, conv_0_acc_local_12_0, conv_0_acc_local_13_0, conv_0_acc_local_14_0, conv_0_acc_local_15_0, conv_0_acc_local_16_0, conv_0_acc_local_17_0, conv_0_acc_local_18_0, conv_0_acc_local_19_0;
            conv_0_acc_local_0_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_1_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_2_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_3_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_4_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_5_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_6_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_7_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_8_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_9_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_10_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_11_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_12_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_13_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_14_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_15_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_16_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_17_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_18_0 = pc_splat_f32x8(0.0f);
            conv_0_acc_local_19_0 = pc_splat_f32x8(0.0f);
            for (i64 c1 = 0; c1 < 8; c1 += 1) {
                conv_0_acc_local_0_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_1_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 1]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_2_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 2]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_3_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 3]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_4_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 4]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_5_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 5]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_6_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 6]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_7_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 7]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_8_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 8]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_9_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 9]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_10_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 10]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_11_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 11]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_12_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 12]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_13_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 13]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_14_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 14]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_15_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 15]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_16_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 16]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_17_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 17]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_18_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 18]) * pc_load_f32x8(&constant_0_[8 * c1]);
                conv_0_acc_local_19_0 += pc_splat_f32x8(x_[160 * c0 + 20 * c1 + 19]) * pc_load_f32x8(&constant_0_[8 * c1]);
            }
            pc_store_f32x8(&relu_0_[160 * c0], pc_max_f32x8(conv_0_acc_local_0_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 8], pc_max_f32x8(conv_0_acc_local_1_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 16], pc_max_f32x8(conv_0_acc_local_2_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 24], pc_max_f32x8(conv_0_acc_local_3_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 32], pc_max_f32x8(conv_0_acc_local_4_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 40], pc_max_f32x8(conv_0_acc_local_5_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 48], pc_max_f32x8(conv_0_acc_local_6_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 56], pc_max_f32x8(conv_0_acc_local_7_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 64], pc_max_f32x8(conv_0_acc_local_8_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 72], pc_max_f32x8(conv_0_acc_local_9_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 80], pc_max_f32x8(conv_0_acc_local_10_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 88], pc_max_f32x8(conv_0_acc_local_11_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 96], pc_max_f32x8(conv_0_acc_local_12_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 104], pc_max_f32x8(conv_0_acc_local_13_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 112], pc_max_f32x8(conv_0_acc_local_14_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 120], pc_max_f32x8(conv_0_acc_local_15_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 128], pc_max_f32x8(conv_0_acc_local_16_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 136], pc_max_f32x8(conv_0_acc_local_17_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 144], pc_max_f32x8(conv_0_acc_local_18_0, pc_splat_f32x8(0.0f)));
            pc_store_f32x8(&relu_0_[160 * c0 + 152], pc_max_f32x8(conv_0_acc_local_19_0, pc_splat_f32x8(0.0f)));
        }
    }
}

/* ==== k1_Gemm_3_out ==== */
/*
 * Nodes: Gemm_3
 * y_acc[i, j] = f(a constant)
 * y_acc[i, j, k_2, k_1, k_0] add= f(relu_0, constant_1)
 * y[i, j] = f(y_acc, constant_2)
 * Schedule: order i j | vector j | unroll i | sink j i | keep y_acc in registers
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#include "polyc_vector.h"

void k1_Gemm_3_out(const f32 *restrict relu_0_, const f32 *restrict constant_1_, f32 *restrict y_, const f32 *restrict constant_2_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(1) {
        {
            f32x16 y_acc_local_0_0, y_acc_local_0_16, y_acc_local_1_0, y_acc_local_1_16, y_acc_local_2_0, y_acc_local_2_16;
            y_acc_local_0_0 = pc_splat_f32x16(0.0f);
            y_acc_local_0_16 = pc_splat_f32x16(0.0f);
            y_acc_local_1_0 = pc_splat_f32x16(0.0f);
            y_acc_local_1_16 = pc_splat_f32x16(0.0f);
            y_acc_local_2_0 = pc_splat_f32x16(0.0f);
            y_acc_local_2_16 = pc_splat_f32x16(0.0f);
            for (i64 c0 = 0; c0 < 8; c0 += 1) {
                for (i64 c1 = 0; c1 < 4; c1 += 1) {
                    for (i64 c2 = 0; c2 < 5; c2 += 1) {
                        PC_FORGET;
                        f32x16 loaded_0;
                        loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_1_[400 * c0 + 100 * c1 + 20 * c2]));
                        y_acc_local_0_0 += pc_splat_f32x16(relu_0_[c0 + 40 * c1 + 8 * c2]) * loaded_0;
                        y_acc_local_0_16 += pc_splat_f32x16(relu_0_[c0 + 40 * c1 + 8 * c2]) * pc_loadn_f32x16(&constant_1_[400 * c0 + 100 * c1 + 20 * c2 + 16], 4);
                        y_acc_local_1_0 += pc_splat_f32x16(relu_0_[c0 + 40 * c1 + 8 * c2 + 160]) * loaded_0;
                        y_acc_local_1_16 += pc_splat_f32x16(relu_0_[c0 + 40 * c1 + 8 * c2 + 160]) * pc_loadn_f32x16(&constant_1_[400 * c0 + 100 * c1 + 20 * c2 + 16], 4);
                        y_acc_local_2_0 += pc_splat_f32x16(relu_0_[c0 + 40 * c1 + 8 * c2 + 320]) * loaded_0;
                        y_acc_local_2_16 += pc_splat_f32x16(relu_0_[c0 + 40 * c1 + 8 * c2 + 320]) * pc_loadn_f32x16(&constant_1_[400 * c0 + 100 * c1 + 20 * c2 + 16], 4);
                    }
                }
            }
            pc_store_f32x16(&y_[0], (y_acc_local_0_0 + pc_load_f32x16(&constant_2_[0])));
            pc_storen_f32x16(&y_[16], (y_acc_local_0_16 + pc_loadn_f32x16(&constant_2_[16], 4)), 4);
            pc_store_f32x16(&y_[20], (y_acc_local_1_0 + pc_load_f32x16(&constant_2_[0])));
            pc_storen_f32x16(&y_[36], (y_acc_local_1_16 + pc_loadn_f32x16(&constant_2_[16], 4)), 4);
            pc_store_f32x16(&y_[40], (y_acc_local_2_0 + pc_load_f32x16(&constant_2_[0])));
            pc_storen_f32x16(&y_[56], (y_acc_local_2_16 + pc_loadn_f32x16(&constant_2_[16], 4)), 4);
        }
    }
}
