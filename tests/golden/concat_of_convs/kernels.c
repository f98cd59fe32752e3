/* ==== k0_Conv_0_out ==== */
/*
 * Nodes: Conv_0, Relu_1, Concat_4
 * conv_0_acc[n, o, y, x] = f(a constant)
 * conv_0_acc[n, o, y, x, c] add= f(x, constant_0)
 * concat_0[n, o, y, x] = f(conv_0_acc)
 * Schedule: order o y x | collapse y x | split y 25 | vector o | unroll y' | sink o y' | keep conv_0_acc in registers at y
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#include "polyc_vector.h"

void k0_Conv_0_out(const f32 *restrict x_, const f32 *restrict constant_0_, f32 *restrict concat_0_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(1) {
        {
            f32x16 conv_0_acc_local_0_0, conv_0_acc_local_1_0, conv_0_acc_local_2_0, conv_0_acc_local_3_0, conv_0_acc_local_4_0, conv_0_acc_local_5_0, conv_0_acc_local_6_0, conv_0_acc_local_7_0, conv_0_acc_local_8_0, conv_0_acc_local_9_0, conv_0_acc_local_10_0, conv_0_acc_local_11_0, conv_0_acc_local_12_0, conv_0_acc_local_13_0, conv_0_acc_local_14_0, conv_0_acc_local_15_0, conv_0_acc_local_16_0, conv_0_acc_local_17_0, conv_0_acc_local_18_0, conv_0_acc_local_19_0, conv_0_acc_local_20_0, conv_0_acc_local_21_0, conv_0_acc_local_22_0, conv_0_acc_local_23_0, conv_0_acc_local_24_0;
            conv_0_acc_local_0_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_1_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_2_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_3_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_4_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_5_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_6_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_7_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_8_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_9_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_10_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_11_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_12_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_13_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_14_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_15_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_16_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_17_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_18_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_19_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_20_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_21_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_22_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_23_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_24_0 = pc_splat_f32x16(0.0f);
            for (i64 c1 = 0; c1 < 16; c1 += 1) {
                PC_FORGET;
                f32x16 loaded_0;
                loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_0_[16 * c1]));
                conv_0_acc_local_0_0 += pc_splat_f32x16(x_[49 * c1]) * loaded_0;
                conv_0_acc_local_1_0 += pc_splat_f32x16(x_[49 * c1 + 1]) * loaded_0;
                conv_0_acc_local_2_0 += pc_splat_f32x16(x_[49 * c1 + 2]) * loaded_0;
                conv_0_acc_local_3_0 += pc_splat_f32x16(x_[49 * c1 + 3]) * loaded_0;
                conv_0_acc_local_4_0 += pc_splat_f32x16(x_[49 * c1 + 4]) * loaded_0;
                conv_0_acc_local_5_0 += pc_splat_f32x16(x_[49 * c1 + 5]) * loaded_0;
                conv_0_acc_local_6_0 += pc_splat_f32x16(x_[49 * c1 + 6]) * loaded_0;
                conv_0_acc_local_7_0 += pc_splat_f32x16(x_[49 * c1 + 7]) * loaded_0;
                conv_0_acc_local_8_0 += pc_splat_f32x16(x_[49 * c1 + 8]) * loaded_0;
                conv_0_acc_local_9_0 += pc_splat_f32x16(x_[49 * c1 + 9]) * loaded_0;
                conv_0_acc_local_10_0 += pc_splat_f32x16(x_[49 * c1 + 10]) * loaded_0;
                conv_0_acc_local_11_0 += pc_splat_f32x16(x_[49 * c1 + 11]) * loaded_0;
                conv_0_acc_local_12_0 += pc_splat_f32x16(x_[49 * c1 + 12]) * loaded_0;
                conv_0_acc_local_13_0 += pc_splat_f32x16(x_[49 * c1 + 13]) * loaded_0;
                conv_0_acc_local_14_0 += pc_splat_f32x16(x_[49 * c1 + 14]) * loaded_0;
                conv_0_acc_local_15_0 += pc_splat_f32x16(x_[49 * c1 + 15]) * loaded_0;
                conv_0_acc_local_16_0 += pc_splat_f32x16(x_[49 * c1 + 16]) * loaded_0;
                conv_0_acc_local_17_0 += pc_splat_f32x16(x_[49 * c1 + 17]) * loaded_0;
                conv_0_acc_local_18_0 += pc_splat_f32x16(x_[49 * c1 + 18]) * loaded_0;
                conv_0_acc_local_19_0 += pc_splat_f32x16(x_[49 * c1 + 19]) * loaded_0;
                conv_0_acc_local_20_0 += pc_splat_f32x16(x_[49 * c1 + 20]) * loaded_0;
                conv_0_acc_local_21_0 += pc_splat_f32x16(x_[49 * c1 + 21]) * loaded_0;
                conv_0_acc_local_22_0 += pc_splat_f32x16(x_[49 * c1 + 22]) * loaded_0;
                conv_0_acc_local_23_0 += pc_splat_f32x16(x_[49 * c1 + 23]) * loaded_0;
                conv_0_acc_local_24_0 += pc_splat_f32x16(x_[49 * c1 + 24]) * loaded_0;
            }
            pc_store_f32x16(&concat_0_[0], pc_max_f32x16(conv_0_acc_local_0_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[48], pc_max_f32x16(conv_0_acc_local_1_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[96], pc_max_f32x16(conv_0_acc_local_2_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[144], pc_max_f32x16(conv_0_acc_local_3_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[192], pc_max_f32x16(conv_0_acc_local_4_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[240], pc_max_f32x16(conv_0_acc_local_5_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[288], pc_max_f32x16(conv_0_acc_local_6_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336], pc_max_f32x16(conv_0_acc_local_7_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[384], pc_max_f32x16(conv_0_acc_local_8_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[432], pc_max_f32x16(conv_0_acc_local_9_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[480], pc_max_f32x16(conv_0_acc_local_10_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[528], pc_max_f32x16(conv_0_acc_local_11_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[576], pc_max_f32x16(conv_0_acc_local_12_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624], pc_max_f32x16(conv_0_acc_local_13_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[672], pc_max_f32x16(conv_0_acc_local_14_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[720], pc_max_f32x16(conv_0_acc_local_15_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[768], pc_max_f32x16(conv_0_acc_local_16_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[816], pc_max_f32x16(conv_0_acc_local_17_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[864], pc_max_f32x16(conv_0_acc_local_18_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[912], pc_max_f32x16(conv_0_acc_local_19_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[960], pc_max_f32x16(conv_0_acc_local_20_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1008], pc_max_f32x16(conv_0_acc_local_21_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1056], pc_max_f32x16(conv_0_acc_local_22_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1104], pc_max_f32x16(conv_0_acc_local_23_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1152], pc_max_f32x16(conv_0_acc_local_24_0, pc_splat_f32x16(0.0f)));
        }
        {
            f32x16 conv_0_acc_local_0_0, conv_0_acc_local_1_0, conv_0_acc_local_2_0, conv_0_acc_local_3_0, conv_0_acc_local_4_0, conv_0_acc_local_5_0, conv_0_acc_local_6_0, conv_0_acc_local_7_0, conv_0_acc_local_8_0, conv_0_acc_local_9_0, conv_0_acc_local_10_0, conv_0_acc_local_11_0, conv_0_acc_local_12_0, conv_0_acc_local_13_0, conv_0_acc_local_14_0, conv_0_acc_local_15_0, conv_0_acc_local_16_0, conv_0_acc_local_17_0, conv_0_acc_local_18_0, conv_0_acc_local_19_0, conv_0_acc_local_20_0, conv_0_acc_local_21_0, conv_0_acc_local_22_0, conv_0_acc_local_23_0;
            conv_0_acc_local_0_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_1_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_2_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_3_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_4_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_5_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_6_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_7_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_8_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_9_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_10_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_11_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_12_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_13_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_14_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_15_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_16_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_17_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_18_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_19_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_20_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_21_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_22_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_23_0 = pc_splat_f32x16(0.0f);
            for (i64 c1 = 0; c1 < 16; c1 += 1) {
                PC_FORGET;
                f32x16 loaded_0;
                loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_0_[16 * c1]));
                conv_0_acc_local_0_0 += pc_splat_f32x16(x_[49 * c1 + 25]) * loaded_0;
                conv_0_acc_local_1_0 += pc_splat_f32x16(x_[49 * c1 + 26]) * loaded_0;
                conv_0_acc_local_2_0 += pc_splat_f32x16(x_[49 * c1 + 27]) * loaded_0;
                conv_0_acc_local_3_0 += pc_splat_f32x16(x_[49 * c1 + 28]) * loaded_0;
                conv_0_acc_local_4_0 += pc_splat_f32x16(x_[49 * c1 + 29]) * loaded_0;
                conv_0_acc_local_5_0 += pc_splat_f32x16(x_[49 * c1 + 30]) * loaded_0;
                conv_0_acc_local_6_0 += pc_splat_f32x16(x_[49 * c1 + 31]) * loaded_0;
                conv_0_acc_local_7_0 += pc_splat_f32x16(x_[49 * c1 + 32]) * loaded_0;
                conv_0_acc_local_8_0 += pc_splat_f32x16(x_[49 * c1 + 33]) * loaded_0;
                conv_0_acc_local_9_0 += pc_splat_f32x16(x_[49 * c1 + 34]) * loaded_0;
                conv_0_acc_local_10_0 += pc_splat_f32x16(x_[49 * c1 + 35]) * loaded_0;
                conv_0_acc_local_11_0 += pc_splat_f32x16(x_[49 * c1 + 36]) * loaded_0;
                conv_0_acc_local_12_0 += pc_splat_f32x16(x_[49 * c1 + 37]) * loaded_0;
                conv_0_acc_local_13_0 += pc_splat_f32x16(x_[49 * c1 + 38]) * loaded_0;
                conv_0_acc_local_14_0 += pc_splat_f32x16(x_[49 * c1 + 39]) * loaded_0;
                conv_0_acc_local_15_0 += pc_splat_f32x16(x_[49 * c1 + 40]) * loaded_0;
                conv_0_acc_local_16_0 += pc_splat_f32x16(x_[49 * c1 + 41]) * loaded_0;
                conv_0_acc_local_17_0 += pc_splat_f32x16(x_[49 * c1 + 42]) * loaded_0;
                conv_0_acc_local_18_0 += pc_splat_f32x16(x_[49 * c1 + 43]) * loaded_0;
                conv_0_acc_local_19_0 += pc_splat_f32x16(x_[49 * c1 + 44]) * loaded_0;
                conv_0_acc_local_20_0 += pc_splat_f32x16(x_[49 * c1 + 45]) * loaded_0;
                conv_0_acc_local_21_0 += pc_splat_f32x16(x_[49 * c1 + 46]) * loaded_0;
                conv_0_acc_local_22_0 += pc_splat_f32x16(x_[49 * c1 + 47]) * loaded_0;
                conv_0_acc_local_23_0 += pc_splat_f32x16(x_[49 * c1 + 48]) * loaded_0;
            }
            pc_store_f32x16(&concat_0_[1200], pc_max_f32x16(conv_0_acc_local_0_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1248], pc_max_f32x16(conv_0_acc_local_1_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1296], pc_max_f32x16(conv_0_acc_local_2_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1344], pc_max_f32x16(conv_0_acc_local_3_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1392], pc_max_f32x16(conv_0_acc_local_4_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1440], pc_max_f32x16(conv_0_acc_local_5_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1488], pc_max_f32x16(conv_0_acc_local_6_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1536], pc_max_f32x16(conv_0_acc_local_7_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1584], pc_max_f32x16(conv_0_acc_local_8_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1632], pc_max_f32x16(conv_0_acc_local_9_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1680], pc_max_f32x16(conv_0_acc_local_10_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1728], pc_max_f32x16(conv_0_acc_local_11_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1776], pc_max_f32x16(conv_0_acc_local_12_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1824], pc_max_f32x16(conv_0_acc_local_13_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1872], pc_max_f32x16(conv_0_acc_local_14_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1920], pc_max_f32x16(conv_0_acc_local_15_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1968], pc_max_f32x16(conv_0_acc_local_16_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2016], pc_max_f32x16(conv_0_acc_local_17_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2064], pc_max_f32x16(conv_0_acc_local_18_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2112], pc_max_f32x16(conv_0_acc_local_19_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2160], pc_max_f32x16(conv_0_acc_local_20_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2208], pc_max_f32x16(conv_0_acc_local_21_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2256], pc_max_f32x16(conv_0_acc_local_22_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2304], pc_max_f32x16(conv_0_acc_local_23_0, pc_splat_f32x16(0.0f)));
        }
    }
}

/* ==== k1_Conv_2_out ==== */
/*
 * Nodes: Conv_2, Relu_3, Concat_4
 * conv_1_acc[n, o, y, x] = f(a constant)
 * conv_1_acc[n, o, y, x, c] add= f(x, constant_1)
 * concat_0[n, o, y, x] = f(conv_1_acc)
 * Schedule: order o y x | collapse y x | split y 13 | vector o | unroll y' | sink o y' | keep conv_1_acc in registers at y
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#include "polyc_vector.h"

void k1_Conv_2_out(const f32 *restrict x_, const f32 *restrict constant_1_, f32 *restrict concat_0_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(1) {
        for (i64 c0 = 0; c0 < 3; c0 += 1) {
            PC_FORGET;
            f32x16 conv_1_acc_local_0_0, conv_1_acc_local_0_16, conv_1_acc_local_1_0, conv_1_acc_local_1_16, conv_1_acc_local_2_0, conv_1_acc_local_2_16, conv_1_acc_local_3_0, conv_1_acc_local_3_16, conv_1_acc_local_4_0, conv_1_acc_local_4_16, conv_1_acc_local_5_0, conv_1_acc_local_5_16, conv_1_acc_local_6_0, conv_1_acc_local_6_16, conv_1_acc_local_7_0, conv_1_acc_local_7_16, conv_1_acc_local_8_0, conv_1_acc_local_8_16, conv_1_acc_local_9_0, conv_1_acc_local_9_16, conv_1_acc_local_10_0, conv_1_acc_local_10_16, conv_1_acc_local_11_0, conv_1_acc_local_11_16, conv_1_acc_local_12_0, conv_1_acc_local_12_16;
            conv_1_acc_local_0_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_0_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_1_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_1_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_2_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_2_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_3_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_3_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_4_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_4_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_5_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_5_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_6_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_6_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_7_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_7_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_8_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_8_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_9_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_9_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_10_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_10_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_11_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_11_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_12_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_12_16 = pc_splat_f32x16(0.0f);
            for (i64 c1 = 0; c1 < 16; c1 += 1) {
                PC_FORGET;
                f32x16 loaded_0, loaded_16;
                loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_1_[32 * c1]));
                loaded_16 = pc_rounded_f32x16(pc_load_f32x16(&constant_1_[32 * c1 + 16]));
                conv_1_acc_local_0_0 += pc_splat_f32x16(x_[13 * c0 + 49 * c1]) * loaded_0;
                conv_1_acc_local_0_16 += pc_splat_f32x16(x_[13 * c0 + 49 * c1]) * loaded_16;
                conv_1_acc_local_1_0 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 1]) * loaded_0;
                conv_1_acc_local_1_16 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 1]) * loaded_16;
                conv_1_acc_local_2_0 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 2]) * loaded_0;
                conv_1_acc_local_2_16 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 2]) * loaded_16;
                conv_1_acc_local_3_0 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 3]) * loaded_0;
                conv_1_acc_local_3_16 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 3]) * loaded_16;
                conv_1_acc_local_4_0 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 4]) * loaded_0;
                conv_1_acc_local_4_16 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 4]) * loaded_16;
                conv_1_acc_local_5_0 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 5]) * loaded_0;
                conv_1_acc_local_5_16 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 5]) * loaded_16;
                conv_1_acc_local_6_0 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 6]) * loaded_0;
                conv_1_acc_local_6_16 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 6]) * loaded_16;
                conv_1_acc_local_7_0 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 7]) * loaded_0;
                conv_1_acc_local_7_16 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 7]) * loaded_16;
                conv_1_acc_local_8_0 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 8]) * loaded_0;
                conv_1_acc_local_8_16 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 8]) * loaded_16;
                conv_1_acc_local_9_0 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 9]) * loaded_0;
                conv_1_acc_local_9_16 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 9]) * loaded_16;
                conv_1_acc_local_10_0 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 10]) * loaded_0;
                conv_1_acc_local_10_16 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 10]) * loaded_16;
                conv_1_acc_local_11_0 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 11]) * loaded_0;
                conv_1_acc_local_11_16 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 11]) * loaded_16;
                conv_1_acc_local_12_0 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 12]) * loaded_0;
                conv_1_acc_local_12_16 += pc_splat_f32x16(x_[13 * c0 + 49 * c1 + 12]) * loaded_16;
            }
            pc_store_f32x16(&concat_0_[624 * c0 + 16], pc_max_f32x16(conv_1_acc_local_0_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 32], pc_max_f32x16(conv_1_acc_local_0_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 64], pc_max_f32x16(conv_1_acc_local_1_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 80], pc_max_f32x16(conv_1_acc_local_1_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 112], pc_max_f32x16(conv_1_acc_local_2_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 128], pc_max_f32x16(conv_1_acc_local_2_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 160], pc_max_f32x16(conv_1_acc_local_3_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 176], pc_max_f32x16(conv_1_acc_local_3_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 208], pc_max_f32x16(conv_1_acc_local_4_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 224], pc_max_f32x16(conv_1_acc_local_4_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 256], pc_max_f32x16(conv_1_acc_local_5_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 272], pc_max_f32x16(conv_1_acc_local_5_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 304], pc_max_f32x16(conv_1_acc_local_6_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 320], pc_max_f32x16(conv_1_acc_local_6_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 352], pc_max_f32x16(conv_1_acc_local_7_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 368], pc_max_f32x16(conv_1_acc_local_7_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 400], pc_max_f32x16(conv_1_acc_local_8_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 416], pc_max_f32x16(conv_1_acc_local_8_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 448], pc_max_f32x16(conv_1_acc_local_9_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 464], pc_max_f32x16(conv_1_acc_local_9_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 496], pc_max_f32x16(conv_1_acc_local_10_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 512], pc_max_f32x16(conv_1_acc_local_10_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 544], pc_max_f32x16(conv_1_acc_local_11_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 560], pc_max_f32x16(conv_1_acc_local_11_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 592], pc_max_f32x16(conv_1_acc_local_12_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[624 * c0 + 608], pc_max_f32x16(conv_1_acc_local_12_16, pc_splat_f32x16(0.0f)));
        }
        {
            f32x16 conv_1_acc_local_0_0, conv_1_acc_local_0_16, conv_1_acc_local_1_0, conv_1_acc_local_1_16, conv_1_acc_local_2_0, conv_1_acc_local_2_16, conv_1_acc_local_3_0, conv_1_acc_local_3_16, conv_1_acc_local_4_0, conv_1_acc_local_4_16, conv_1_acc_local_5_0, conv_1_acc_local_5_16, conv_1_acc_local_6_0, conv_1_acc_local_6_16, conv_1_acc_local_7_0, conv_1_acc_local_7_16, conv_1_acc_local_8_0, conv_1_acc_local_8_16, conv_1_acc_local_9_0, conv_1_acc_local_9_16;
            conv_1_acc_local_0_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_0_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_1_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_1_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_2_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_2_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_3_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_3_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_4_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_4_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_5_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_5_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_6_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_6_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_7_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_7_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_8_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_8_16 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_9_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_9_16 = pc_splat_f32x16(0.0f);
            for (i64 c1 = 0; c1 < 16; c1 += 1) {
                PC_FORGET;
                f32x16 loaded_0, loaded_16;
                loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_1_[32 * c1]));
                loaded_16 = pc_rounded_f32x16(pc_load_f32x16(&constant_1_[32 * c1 + 16]));
                conv_1_acc_local_0_0 += pc_splat_f32x16(x_[49 * c1 + 39]) * loaded_0;
                conv_1_acc_local_0_16 += pc_splat_f32x16(x_[49 * c1 + 39]) * loaded_16;
                conv_1_acc_local_1_0 += pc_splat_f32x16(x_[49 * c1 + 40]) * loaded_0;
                conv_1_acc_local_1_16 += pc_splat_f32x16(x_[49 * c1 + 40]) * loaded_16;
                conv_1_acc_local_2_0 += pc_splat_f32x16(x_[49 * c1 + 41]) * loaded_0;
                conv_1_acc_local_2_16 += pc_splat_f32x16(x_[49 * c1 + 41]) * loaded_16;
                conv_1_acc_local_3_0 += pc_splat_f32x16(x_[49 * c1 + 42]) * loaded_0;
                conv_1_acc_local_3_16 += pc_splat_f32x16(x_[49 * c1 + 42]) * loaded_16;
                conv_1_acc_local_4_0 += pc_splat_f32x16(x_[49 * c1 + 43]) * loaded_0;
                conv_1_acc_local_4_16 += pc_splat_f32x16(x_[49 * c1 + 43]) * loaded_16;
                conv_1_acc_local_5_0 += pc_splat_f32x16(x_[49 * c1 + 44]) * loaded_0;
                conv_1_acc_local_5_16 += pc_splat_f32x16(x_[49 * c1 + 44]) * loaded_16;
                conv_1_acc_local_6_0 += pc_splat_f32x16(x_[49 * c1 + 45]) * loaded_0;
                conv_1_acc_local_6_16 += pc_splat_f32x16(x_[49 * c1 + 45]) * loaded_16;
                conv_1_acc_local_7_0 += pc_splat_f32x16(x_[49 * c1 + 46]) * loaded_0;
                conv_1_acc_local_7_16 += pc_splat_f32x16(x_[49 * c1 + 46]) * loaded_16;
                conv_1_acc_local_8_0 += pc_splat_f32x16(x_[49 * c1 + 47]) * loaded_0;
                conv_1_acc_local_8_16 += pc_splat_f32x16(x_[49 * c1 + 47]) * loaded_16;
                conv_1_acc_local_9_0 += pc_splat_f32x16(x_[49 * c1 + 48]) * loaded_0;
                conv_1_acc_local_9_16 += pc_splat_f32x16(x_[49 * c1 + 48]) * loaded_16;
            }
            pc_store_f32x16(&concat_0_[1888], pc_max_f32x16(conv_1_acc_local_0_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1904], pc_max_f32x16(conv_1_acc_local_0_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1936], pc_max_f32x16(conv_1_acc_local_1_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1952], pc_max_f32x16(conv_1_acc_local_1_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[1984], pc_max_f32x16(conv_1_acc_local_2_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2000], pc_max_f32x16(conv_1_acc_local_2_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2032], pc_max_f32x16(conv_1_acc_local_3_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2048], pc_max_f32x16(conv_1_acc_local_3_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2080], pc_max_f32x16(conv_1_acc_local_4_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2096], pc_max_f32x16(conv_1_acc_local_4_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2128], pc_max_f32x16(conv_1_acc_local_5_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2144], pc_max_f32x16(conv_1_acc_local_5_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2176], pc_max_f32x16(conv_1_acc_local_6_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2192], pc_max_f32x16(conv_1_acc_local_6_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2224], pc_max_f32x16(conv_1_acc_local_7_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2240], pc_max_f32x16(conv_1_acc_local_7_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2272], pc_max_f32x16(conv_1_acc_local_8_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2288], pc_max_f32x16(conv_1_acc_local_8_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2320], pc_max_f32x16(conv_1_acc_local_9_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[2336], pc_max_f32x16(conv_1_acc_local_9_16, pc_splat_f32x16(0.0f)));
        }
    }
}

/* ==== k2_Conv_5_out ==== */
/*
 * Nodes: Conv_5, Relu_6
 * conv_2_acc[n, o, y, x] = f(a constant)
 * conv_2_acc[n, o, y, x, c] add= f(concat_0, constant_2)
 * y[n, o, y, x] = f(conv_2_acc)
 * Schedule: order y x o | collapse y x | split y 25 | vector o | unroll y' | sink o y' | parallel y | keep conv_2_acc in registers at y
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#define PC_STRIDES
#include "polyc_vector.h"

void k2_Conv_5_out(const f32 *restrict concat_0_, const f32 *restrict constant_2_, f32 *restrict y_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(1) {
        {
            f32x16 conv_2_acc_local_0_0, conv_2_acc_local_1_0, conv_2_acc_local_2_0, conv_2_acc_local_3_0, conv_2_acc_local_4_0, conv_2_acc_local_5_0, conv_2_acc_local_6_0, conv_2_acc_local_7_0, conv_2_acc_local_8_0, conv_2_acc_local_9_0, conv_2_acc_local_10_0, conv_2_acc_local_11_0, conv_2_acc_local_12_0, conv_2_acc_local_13_0, conv_2_acc_local_14_0, conv_2_acc_local_15_0, conv_2_acc_local_16_0, conv_2_acc_local_17_0, conv_2_acc_local_18_0, conv_2_acc_local_19_0, conv_2_acc_local_20_0, conv_2_acc_local_21_0, conv_2_acc_local_22_0, conv_2_acc_local_23_0, conv_2_acc_local_24_0;
            conv_2_acc_local_0_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_1_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_2_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_3_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_4_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_5_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_6_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_7_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_8_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_9_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_10_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_11_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_12_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_13_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_14_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_15_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_16_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_17_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_18_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_19_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_20_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_21_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_22_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_23_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_24_0 = pc_splat_f32x16(0.0f);
            for (i64 c1 = 0; c1 < 48; c1 += 1) {
                f32x16 loaded_0;
                loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_2_[16 * c1]));
                conv_2_acc_local_0_0 += pc_splat_f32x16(concat_0_[c1]) * loaded_0;
                conv_2_acc_local_1_0 += pc_splat_f32x16(concat_0_[c1 + 48]) * loaded_0;
                conv_2_acc_local_2_0 += pc_splat_f32x16(concat_0_[c1 + 96]) * loaded_0;
                conv_2_acc_local_3_0 += pc_splat_f32x16(concat_0_[c1 + 144]) * loaded_0;
                conv_2_acc_local_4_0 += pc_splat_f32x16(concat_0_[c1 + 192]) * loaded_0;
                conv_2_acc_local_5_0 += pc_splat_f32x16(concat_0_[c1 + 240]) * loaded_0;
                conv_2_acc_local_6_0 += pc_splat_f32x16(concat_0_[c1 + 288]) * loaded_0;
                conv_2_acc_local_7_0 += pc_splat_f32x16(concat_0_[c1 + 336]) * loaded_0;
                conv_2_acc_local_8_0 += pc_splat_f32x16(concat_0_[c1 + 384]) * loaded_0;
                conv_2_acc_local_9_0 += pc_splat_f32x16(concat_0_[c1 + 432]) * loaded_0;
                conv_2_acc_local_10_0 += pc_splat_f32x16(concat_0_[c1 + 480]) * loaded_0;
                conv_2_acc_local_11_0 += pc_splat_f32x16(concat_0_[c1 + 528]) * loaded_0;
                conv_2_acc_local_12_0 += pc_splat_f32x16(concat_0_[c1 + 576]) * loaded_0;
                conv_2_acc_local_13_0 += pc_splat_f32x16(concat_0_[c1 + 624]) * loaded_0;
                conv_2_acc_local_14_0 += pc_splat_f32x16(concat_0_[c1 + 672]) * loaded_0;
                conv_2_acc_local_15_0 += pc_splat_f32x16(concat_0_[c1 + 720]) * loaded_0;
                conv_2_acc_local_16_0 += pc_splat_f32x16(concat_0_[c1 + 768]) * loaded_0;
                conv_2_acc_local_17_0 += pc_splat_f32x16(concat_0_[c1 + 816]) * loaded_0;
                conv_2_acc_local_18_0 += pc_splat_f32x16(concat_0_[c1 + 864]) * loaded_0;
                conv_2_acc_local_19_0 += pc_splat_f32x16(concat_0_[c1 + 912]) * loaded_0;
                conv_2_acc_local_20_0 += pc_splat_f32x16(concat_0_[c1 + 960]) * loaded_0;
                conv_2_acc_local_21_0 += pc_splat_f32x16(concat_0_[c1 + 1008]) * loaded_0;
                conv_2_acc_local_22_0 += pc_splat_f32x16(concat_0_[c1 + 1056]) * loaded_0;
                conv_2_acc_local_23_0 += pc_splat_f32x16(concat_0_[c1 + 1104]) * loaded_0;
                conv_2_acc_local_24_0 += pc_splat_f32x16(concat_0_[c1 + 1152]) * loaded_0;
            }
            pc_stores_f32x16(&y_[0], pc_max_f32x16(conv_2_acc_local_0_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[1], pc_max_f32x16(conv_2_acc_local_1_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[2], pc_max_f32x16(conv_2_acc_local_2_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[3], pc_max_f32x16(conv_2_acc_local_3_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[4], pc_max_f32x16(conv_2_acc_local_4_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[5], pc_max_f32x16(conv_2_acc_local_5_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[6], pc_max_f32x16(conv_2_acc_local_6_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[7], pc_max_f32x16(conv_2_acc_local_7_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[8], pc_max_f32x16(conv_2_acc_local_8_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[9], pc_max_f32x16(conv_2_acc_local_9_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[10], pc_max_f32x16(conv_2_acc_local_10_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[11], pc_max_f32x16(conv_2_acc_local_11_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[12], pc_max_f32x16(conv_2_acc_local_12_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[13], pc_max_f32x16(conv_2_acc_local_13_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[14], pc_max_f32x16(conv_2_acc_local_14_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[15], pc_max_f32x16(conv_2_acc_local_15_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[16], pc_max_f32x16(conv_2_acc_local_16_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[17], pc_max_f32x16(conv_2_acc_local_17_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[18], pc_max_f32x16(conv_2_acc_local_18_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[19], pc_max_f32x16(conv_2_acc_local_19_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[20], pc_max_f32x16(conv_2_acc_local_20_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[21], pc_max_f32x16(conv_2_acc_local_21_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[22], pc_max_f32x16(conv_2_acc_local_22_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[23], pc_max_f32x16(conv_2_acc_local_23_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[24], pc_max_f32x16(conv_2_acc_local_24_0, pc_splat_f32x16(0.0f)), 49);
        }
        {
            f32x16 conv_2_acc_local_0_0, conv_2_acc_local_1_0, conv_2_acc_local_2_0, conv_2_acc_local_3_0, conv_2_acc_local_4_0, conv_2_acc_local_5_0, conv_2_acc_local_6_0, conv_2_acc_local_7_0, conv_2_acc_local_8_0, conv_2_acc_local_9_0, conv_2_acc_local_10_0, conv_2_acc_local_11_0, conv_2_acc_local_12_0, conv_2_acc_local_13_0, conv_2_acc_local_14_0, conv_2_acc_local_15_0, conv_2_acc_local_16_0, conv_2_acc_local_17_0, conv_2_acc_local_18_0, conv_2_acc_local_19_0, conv_2_acc_local_20_0, conv_2_acc_local_21_0, conv_2_acc_local_22_0, conv_2_acc_local_23_0;
            conv_2_acc_local_0_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_1_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_2_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_3_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_4_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_5_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_6_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_7_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_8_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_9_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_10_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_11_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_12_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_13_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_14_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_15_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_16_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_17_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_18_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_19_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_20_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_21_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_22_0 = pc_splat_f32x16(0.0f);
            conv_2_acc_local_23_0 = pc_splat_f32x16(0.0f);
            for (i64 c1 = 0; c1 < 48; c1 += 1) {
                f32x16 loaded_0;
                loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_2_[16 * c1]));
                conv_2_acc_local_0_0 += pc_splat_f32x16(concat_0_[c1 + 1200]) * loaded_0;
                conv_2_acc_local_1_0 += pc_splat_f32x16(concat_0_[c1 + 1248]) * loaded_0;
                conv_2_acc_local_2_0 += pc_splat_f32x16(concat_0_[c1 + 1296]) * loaded_0;
                conv_2_acc_local_3_0 += pc_splat_f32x16(concat_0_[c1 + 1344]) * loaded_0;
                conv_2_acc_local_4_0 += pc_splat_f32x16(concat_0_[c1 + 1392]) * loaded_0;
                conv_2_acc_local_5_0 += pc_splat_f32x16(concat_0_[c1 + 1440]) * loaded_0;
                conv_2_acc_local_6_0 += pc_splat_f32x16(concat_0_[c1 + 1488]) * loaded_0;
                conv_2_acc_local_7_0 += pc_splat_f32x16(concat_0_[c1 + 1536]) * loaded_0;
                conv_2_acc_local_8_0 += pc_splat_f32x16(concat_0_[c1 + 1584]) * loaded_0;
                conv_2_acc_local_9_0 += pc_splat_f32x16(concat_0_[c1 + 1632]) * loaded_0;
                conv_2_acc_local_10_0 += pc_splat_f32x16(concat_0_[c1 + 1680]) * loaded_0;
                conv_2_acc_local_11_0 += pc_splat_f32x16(concat_0_[c1 + 1728]) * loaded_0;
                conv_2_acc_local_12_0 += pc_splat_f32x16(concat_0_[c1 + 1776]) * loaded_0;
                conv_2_acc_local_13_0 += pc_splat_f32x16(concat_0_[c1 + 1824]) * loaded_0;
                conv_2_acc_local_14_0 += pc_splat_f32x16(concat_0_[c1 + 1872]) * loaded_0;
                conv_2_acc_local_15_0 += pc_splat_f32x16(concat_0_[c1 + 1920]) * loaded_0;
                conv_2_acc_local_16_0 += pc_splat_f32x16(concat_0_[c1 + 1968]) * loaded_0;
                conv_2_acc_local_17_0 += pc_splat_f32x16(concat_0_[c1 + 2016]) * loaded_0;
                conv_2_acc_local_18_0 += pc_splat_f32x16(concat_0_[c1 + 2064]) * loaded_0;
                conv_2_acc_local_19_0 += pc_splat_f32x16(concat_0_[c1 + 2112]) * loaded_0;
                conv_2_acc_local_20_0 += pc_splat_f32x16(concat_0_[c1 + 2160]) * loaded_0;
                conv_2_acc_local_21_0 += pc_splat_f32x16(concat_0_[c1 + 2208]) * loaded_0;
                conv_2_acc_local_22_0 += pc_splat_f32x16(concat_0_[c1 + 2256]) * loaded_0;
                conv_2_acc_local_23_0 += pc_splat_f32x16(concat_0_[c1 + 2304]) * loaded_0;
            }
            pc_stores_f32x16(&y_[25], pc_max_f32x16(conv_2_acc_local_0_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[26], pc_max_f32x16(conv_2_acc_local_1_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[27], pc_max_f32x16(conv_2_acc_local_2_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[28], pc_max_f32x16(conv_2_acc_local_3_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[29], pc_max_f32x16(conv_2_acc_local_4_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[30], pc_max_f32x16(conv_2_acc_local_5_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[31], pc_max_f32x16(conv_2_acc_local_6_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[32], pc_max_f32x16(conv_2_acc_local_7_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[33], pc_max_f32x16(conv_2_acc_local_8_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[34], pc_max_f32x16(conv_2_acc_local_9_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[35], pc_max_f32x16(conv_2_acc_local_10_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[36], pc_max_f32x16(conv_2_acc_local_11_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[37], pc_max_f32x16(conv_2_acc_local_12_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[38], pc_max_f32x16(conv_2_acc_local_13_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[39], pc_max_f32x16(conv_2_acc_local_14_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[40], pc_max_f32x16(conv_2_acc_local_15_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[41], pc_max_f32x16(conv_2_acc_local_16_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[42], pc_max_f32x16(conv_2_acc_local_17_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[43], pc_max_f32x16(conv_2_acc_local_18_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[44], pc_max_f32x16(conv_2_acc_local_19_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[45], pc_max_f32x16(conv_2_acc_local_20_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[46], pc_max_f32x16(conv_2_acc_local_21_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[47], pc_max_f32x16(conv_2_acc_local_22_0, pc_splat_f32x16(0.0f)), 49);
            pc_stores_f32x16(&y_[48], pc_max_f32x16(conv_2_acc_local_23_0, pc_splat_f32x16(0.0f)), 49);
        }
    }
}
