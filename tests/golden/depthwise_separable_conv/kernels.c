/* ==== k0_Conv_0_out ==== */
/*
 * Nodes: Conv_0, Relu_1
 * conv_0_acc[n, o, y, x] = f(a constant)
 * conv_0_acc[n, o, y, x, c] add= f(x, constant_0)
 * relu_0[n, o, y, x] = f(conv_0_acc)
 * Schedule: order o y x | collapse y x | split y 13 | vector o | unroll y' | sink o y' | parallel y | keep conv_0_acc in registers at y
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#include "polyc_vector.h"

void k0_Conv_0_out(const f32 *restrict x_, const f32 *restrict constant_0_, f32 *restrict relu_0_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(4) {
        const i64 c0 = pc_n;
        f32x16 conv_0_acc_local_0_0, conv_0_acc_local_0_16, conv_0_acc_local_1_0, conv_0_acc_local_1_16, conv_0_acc_local_2_0, conv_0_acc_local_2_16, conv_0_acc_local_3_0, conv_0_acc_local_3_16, conv_0_acc_local_4_0, conv_0_acc_local_4_16, conv_0_acc_local_5_0, conv_0_acc_local_5_16, conv_0_acc_local_6_0, conv_0_acc_local_6_16, conv_0_acc_local_7_0, conv_0_acc_local_7_16, conv_0_acc_local_8_0, conv_0_acc_local_8_16, conv_0_acc_local_9_0, conv_0_acc_local_9_16, conv_0_acc_local_10_0, conv_0_acc_local_10_16, conv_0_acc_local_11_0, conv_0_acc_local_11_16, conv_0_acc_local_12_0, conv_0_acc_local_12_16;
        conv_0_acc_local_0_0 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_0_16 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_1_0 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_1_16 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_2_0 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_2_16 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_3_0 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_3_16 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_4_0 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_4_16 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_5_0 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_5_16 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_6_0 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_6_16 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_7_0 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_7_16 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_8_0 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_8_16 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_9_0 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_9_16 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_10_0 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_10_16 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_11_0 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_11_16 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_12_0 = pc_splat_f32x16(0.0f);
        conv_0_acc_local_12_16 = pc_splat_f32x16(0.0f);
        for (i64 c1 = 0; c1 < 16; c1 += 1) {
            PC_FORGET;
            f32x16 loaded_0, loaded_16;
            loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_0_[32 * c1]));
            loaded_16 = pc_rounded_f32x16(pc_load_f32x16(&constant_0_[32 * c1 + 16]));
            conv_0_acc_local_0_0 += pc_splat_f32x16(x_[13 * c0 + 64 * c1]) * loaded_0;
            conv_0_acc_local_0_16 += pc_splat_f32x16(x_[13 * c0 + 64 * c1]) * loaded_16;
            conv_0_acc_local_1_0 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 1]) * loaded_0;
            conv_0_acc_local_1_16 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 1]) * loaded_16;
            conv_0_acc_local_2_0 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 2]) * loaded_0;
            conv_0_acc_local_2_16 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 2]) * loaded_16;
            conv_0_acc_local_3_0 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 3]) * loaded_0;
            conv_0_acc_local_3_16 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 3]) * loaded_16;
            conv_0_acc_local_4_0 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 4]) * loaded_0;
            conv_0_acc_local_4_16 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 4]) * loaded_16;
            conv_0_acc_local_5_0 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 5]) * loaded_0;
            conv_0_acc_local_5_16 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 5]) * loaded_16;
            conv_0_acc_local_6_0 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 6]) * loaded_0;
            conv_0_acc_local_6_16 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 6]) * loaded_16;
            conv_0_acc_local_7_0 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 7]) * loaded_0;
            conv_0_acc_local_7_16 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 7]) * loaded_16;
            conv_0_acc_local_8_0 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 8]) * loaded_0;
            conv_0_acc_local_8_16 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 8]) * loaded_16;
            conv_0_acc_local_9_0 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 9]) * loaded_0;
            conv_0_acc_local_9_16 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 9]) * loaded_16;
            conv_0_acc_local_10_0 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 10]) * loaded_0;
            conv_0_acc_local_10_16 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 10]) * loaded_16;
            conv_0_acc_local_11_0 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 11]) * loaded_0;
            conv_0_acc_local_11_16 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 11]) * loaded_16;
            conv_0_acc_local_12_0 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 12]) * loaded_0;
            conv_0_acc_local_12_16 += pc_splat_f32x16(x_[13 * c0 + 64 * c1 + 12]) * loaded_16;
        }
        pc_store_f32x16(&relu_0_[416 * c0], pc_max_f32x16(conv_0_acc_local_0_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 16], pc_max_f32x16(conv_0_acc_local_0_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 32], pc_max_f32x16(conv_0_acc_local_1_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 48], pc_max_f32x16(conv_0_acc_local_1_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 64], pc_max_f32x16(conv_0_acc_local_2_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 80], pc_max_f32x16(conv_0_acc_local_2_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 96], pc_max_f32x16(conv_0_acc_local_3_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 112], pc_max_f32x16(conv_0_acc_local_3_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 128], pc_max_f32x16(conv_0_acc_local_4_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 144], pc_max_f32x16(conv_0_acc_local_4_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 160], pc_max_f32x16(conv_0_acc_local_5_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 176], pc_max_f32x16(conv_0_acc_local_5_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 192], pc_max_f32x16(conv_0_acc_local_6_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 208], pc_max_f32x16(conv_0_acc_local_6_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 224], pc_max_f32x16(conv_0_acc_local_7_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 240], pc_max_f32x16(conv_0_acc_local_7_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 256], pc_max_f32x16(conv_0_acc_local_8_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 272], pc_max_f32x16(conv_0_acc_local_8_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 288], pc_max_f32x16(conv_0_acc_local_9_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 304], pc_max_f32x16(conv_0_acc_local_9_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 320], pc_max_f32x16(conv_0_acc_local_10_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 336], pc_max_f32x16(conv_0_acc_local_10_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 352], pc_max_f32x16(conv_0_acc_local_11_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 368], pc_max_f32x16(conv_0_acc_local_11_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 384], pc_max_f32x16(conv_0_acc_local_12_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[416 * c0 + 400], pc_max_f32x16(conv_0_acc_local_12_16, pc_splat_f32x16(0.0f)));
    }
    PC_SHARE(1) {
        {
            f32x16 conv_0_acc_local_0_0, conv_0_acc_local_0_16, conv_0_acc_local_1_0, conv_0_acc_local_1_16, conv_0_acc_local_2_0, conv_0_acc_local_2_16, conv_0_acc_local_3_0, conv_0_acc_local_3_16, conv_0_acc_local_4_0, conv_0_acc_local_4_16, conv_0_acc_local_5_0, conv_0_acc_local_5_16, conv_0_acc_local_6_0, conv_0_acc_local_6_16, conv_0_acc_local_7_0, conv_0_acc_local_7_16, conv_0_acc_local_8_0, conv_0_acc_local_8_16, conv_0_acc_local_9_0, conv_0_acc_local_9_16, conv_0_acc_local_10_0, conv_0_acc_local_10_16, conv_0_acc_local_11_0, conv_0_acc_local_11_16;
            conv_0_acc_local_0_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_0_16 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_1_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_1_16 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_2_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_2_16 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_3_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_3_16 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_4_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_4_16 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_5_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_5_16 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_6_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_6_16 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_7_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_7_16 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_8_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_8_16 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_9_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_9_16 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_10_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_10_16 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_11_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_11_16 = pc_splat_f32x16(0.0f);
            for (i64 c1 = 0; c1 < 16; c1 += 1) {
                PC_FORGET;
                f32x16 loaded_0, loaded_16;
                loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_0_[32 * c1]));
                loaded_16 = pc_rounded_f32x16(pc_load_f32x16(&constant_0_[32 * c1 + 16]));
                conv_0_acc_local_0_0 += pc_splat_f32x16(x_[64 * c1 + 52]) * loaded_0;
                conv_0_acc_local_0_16 += pc_splat_f32x16(x_[64 * c1 + 52]) * loaded_16;
                conv_0_acc_local_1_0 += pc_splat_f32x16(x_[64 * c1 + 53]) * loaded_0;
                conv_0_acc_local_1_16 += pc_splat_f32x16(x_[64 * c1 + 53]) * loaded_16;
                conv_0_acc_local_2_0 += pc_splat_f32x16(x_[64 * c1 + 54]) * loaded_0;
                conv_0_acc_local_2_16 += pc_splat_f32x16(x_[64 * c1 + 54]) * loaded_16;
                conv_0_acc_local_3_0 += pc_splat_f32x16(x_[64 * c1 + 55]) * loaded_0;
                conv_0_acc_local_3_16 += pc_splat_f32x16(x_[64 * c1 + 55]) * loaded_16;
                conv_0_acc_local_4_0 += pc_splat_f32x16(x_[64 * c1 + 56]) * loaded_0;
                conv_0_acc_local_4_16 += pc_splat_f32x16(x_[64 * c1 + 56]) * loaded_16;
                conv_0_acc_local_5_0 += pc_splat_f32x16(x_[64 * c1 + 57]) * loaded_0;
                conv_0_acc_local_5_16 += pc_splat_f32x16(x_[64 * c1 + 57]) * loaded_16;
                conv_0_acc_local_6_0 += pc_splat_f32x16(x_[64 * c1 + 58]) * loaded_0;
                conv_0_acc_local_6_16 += pc_splat_f32x16(x_[64 * c1 + 58]) * loaded_16;
                conv_0_acc_local_7_0 += pc_splat_f32x16(x_[64 * c1 + 59]) * loaded_0;
                conv_0_acc_local_7_16 += pc_splat_f32x16(x_[64 * c1 + 59]) * loaded_16;
                conv_0_acc_local_8_0 += pc_splat_f32x16(x_[64 * c1 + 60]) * loaded_0;
                conv_0_acc_local_8_16 += pc_splat_f32x16(x_[64 * c1 + 60]) * loaded_16;
                conv_0_acc_local_9_0 += pc_splat_f32x16(x_[64 * c1 + 61]) * loaded_0;
                conv_0_acc_local_9_16 += pc_splat_f32x16(x_[64 * c1 + 61]) * loaded_16;
                conv_0_acc_local_10_0 += pc_splat_f32x16(x_[64 * c1 + 62]) * loaded_0;
                conv_0_acc_local_10_16 += pc_splat_f32x16(x_[64 * c1 + 62]) * loaded_16;
                conv_0_acc_local_11_0 += pc_splat_f32x16(x_[64 * c1 + 63]) * loaded_0;
                conv_0_acc_local_11_16 += pc_splat_f32x16(x_[64 * c1 + 63]) * loaded_16;
            }
            pc_store_f32x16(&relu_0_[1664], pc_max_f32x16(conv_0_acc_local_0_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1680], pc_max_f32x16(conv_0_acc_local_0_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1696], pc_max_f32x16(conv_0_acc_local_1_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1712], pc_max_f32x16(conv_0_acc_local_1_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1728], pc_max_f32x16(conv_0_acc_local_2_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1744], pc_max_f32x16(conv_0_acc_local_2_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1760], pc_max_f32x16(conv_0_acc_local_3_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1776], pc_max_f32x16(conv_0_acc_local_3_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1792], pc_max_f32x16(conv_0_acc_local_4_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1808], pc_max_f32x16(conv_0_acc_local_4_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1824], pc_max_f32x16(conv_0_acc_local_5_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1840], pc_max_f32x16(conv_0_acc_local_5_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1856], pc_max_f32x16(conv_0_acc_local_6_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1872], pc_max_f32x16(conv_0_acc_local_6_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1888], pc_max_f32x16(conv_0_acc_local_7_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1904], pc_max_f32x16(conv_0_acc_local_7_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1920], pc_max_f32x16(conv_0_acc_local_8_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1936], pc_max_f32x16(conv_0_acc_local_8_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1952], pc_max_f32x16(conv_0_acc_local_9_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1968], pc_max_f32x16(conv_0_acc_local_9_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[1984], pc_max_f32x16(conv_0_acc_local_10_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[2000], pc_max_f32x16(conv_0_acc_local_10_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[2016], pc_max_f32x16(conv_0_acc_local_11_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&relu_0_[2032], pc_max_f32x16(conv_0_acc_local_11_16, pc_splat_f32x16(0.0f)));
        }
    }
}

/* ==== k1_Conv_2_out ==== */
/*
 * Nodes: Conv_2, Relu_3
 * conv_1_acc[n, g, y, x] = f(a constant)
 * conv_1_acc[n, g, y, x, r, q] add= f(relu_0, constant_1)
 * relu_1[n, g, y, x] = f(conv_1_acc, constant_2)
 * Schedule: order g y x | split x 2 | vector g | unroll x' | sink g x' | keep conv_1_acc in registers at x
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#include "polyc_vector.h"

void k1_Conv_2_out(const f32 *restrict relu_0_, const f32 *restrict constant_1_, f32 *restrict relu_1_, const f32 *restrict constant_2_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(1) {
        for (i64 c0 = 0; c0 < 6; c0 += 1) {
            for (i64 c1 = 0; c1 < 3; c1 += 1) {
                f32x16 conv_1_acc_local_0_0, conv_1_acc_local_0_16, conv_1_acc_local_1_0, conv_1_acc_local_1_16;
                conv_1_acc_local_0_0 = pc_splat_f32x16(0.0f);
                conv_1_acc_local_0_16 = pc_splat_f32x16(0.0f);
                conv_1_acc_local_1_0 = pc_splat_f32x16(0.0f);
                conv_1_acc_local_1_16 = pc_splat_f32x16(0.0f);
                for (i64 c2 = 0; c2 < 3; c2 += 1) {
                    for (i64 c3 = 0; c3 < 3; c3 += 1) {
                        conv_1_acc_local_0_0 += pc_load_f32x16(&relu_0_[256 * c0 + 64 * c1 + 256 * c2 + 32 * c3]) * pc_load_f32x16(&constant_1_[96 * c2 + 32 * c3]);
                        conv_1_acc_local_0_16 += pc_load_f32x16(&relu_0_[256 * c0 + 64 * c1 + 256 * c2 + 32 * c3 + 16]) * pc_load_f32x16(&constant_1_[96 * c2 + 32 * c3 + 16]);
                        conv_1_acc_local_1_0 += pc_load_f32x16(&relu_0_[256 * c0 + 64 * c1 + 256 * c2 + 32 * c3 + 32]) * pc_load_f32x16(&constant_1_[96 * c2 + 32 * c3]);
                        conv_1_acc_local_1_16 += pc_load_f32x16(&relu_0_[256 * c0 + 64 * c1 + 256 * c2 + 32 * c3 + 48]) * pc_load_f32x16(&constant_1_[96 * c2 + 32 * c3 + 16]);
                    }
                }
                pc_store_f32x16(&relu_1_[192 * c0 + 64 * c1], pc_max_f32x16(conv_1_acc_local_0_0 + pc_load_f32x16(&constant_2_[0]), pc_splat_f32x16(0.0f)));
                pc_store_f32x16(&relu_1_[192 * c0 + 64 * c1 + 16], pc_max_f32x16(conv_1_acc_local_0_16 + pc_load_f32x16(&constant_2_[16]), pc_splat_f32x16(0.0f)));
                pc_store_f32x16(&relu_1_[192 * c0 + 64 * c1 + 32], pc_max_f32x16(conv_1_acc_local_1_0 + pc_load_f32x16(&constant_2_[0]), pc_splat_f32x16(0.0f)));
                pc_store_f32x16(&relu_1_[192 * c0 + 64 * c1 + 48], pc_max_f32x16(conv_1_acc_local_1_16 + pc_load_f32x16(&constant_2_[16]), pc_splat_f32x16(0.0f)));
            }
        }
    }
}

/* ==== k2_Conv_4_out ==== */
/*
 * Nodes: Conv_4
 * y_acc[n, o, y, x] = f(a constant)
 * y_acc[n, o, y, x, c] add= f(relu_1, constant_3)
 * y[n, o, y, x] = f(y_acc)
 * Schedule: order y x o | collapse y x | split y 18 | vector o | unroll y' | sink o y' | keep y_acc in registers at y
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#define PC_STRIDES
#include "polyc_vector.h"

void k2_Conv_4_out(const f32 *restrict relu_1_, const f32 *restrict constant_3_, f32 *restrict y_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(1) {
        for (i64 c0 = 0; c0 < 2; c0 += 1) {
            f32x16 y_acc_local_0_0, y_acc_local_1_0, y_acc_local_2_0, y_acc_local_3_0, y_acc_local_4_0, y_acc_local_5_0, y_acc_local_6_0, y_acc_local_7_0, y_acc_local_8_0, y_acc_local_9_0, y_acc_local_10_0, y_acc_local_11_0, y_acc_local_12_0, y_acc_local_13_0, y_acc_local_14_0, y_acc_local_15_0, y_acc_local_16_0, y_acc_local_17_0;
            y_acc_local_0_0 = pc_splat_f32x16(0.0f);
            y_acc_local_1_0 = pc_splat_f32x16(0.0f);
            y_acc_local_2_0 = pc_splat_f32x16(0.0f);
            y_acc_local_3_0 = pc_splat_f32x16(0.0f);
            y_acc_local_4_0 = pc_splat_f32x16(0.0f);
            y_acc_local_5_0 = pc_splat_f32x16(0.0f);
            y_acc_local_6_0 = pc_splat_f32x16(0.0f);
            y_acc_local_7_0 = pc_splat_f32x16(0.0f);
            y_acc_local_8_0 = pc_splat_f32x16(0.0f);
            y_acc_local_9_0 = pc_splat_f32x16(0.0f);
            y_acc_local_10_0 = pc_splat_f32x16(0.0f);
            y_acc_local_11_0 = pc_splat_f32x16(0.0f);
            y_acc_local_12_0 = pc_splat_f32x16(0.0f);
            y_acc_local_13_0 = pc_splat_f32x16(0.0f);
            y_acc_local_14_0 = pc_splat_f32x16(0.0f);
            y_acc_local_15_0 = pc_splat_f32x16(0.0f);
            y_acc_local_16_0 = pc_splat_f32x16(0.0f);
            y_acc_local_17_0 = pc_splat_f32x16(0.0f);
            for (i64 c1 = 0; c1 < 32; c1 += 1) {
                f32x16 loaded_0;
                loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_3_[16 * c1]));
                y_acc_local_0_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1]) * loaded_0;
                y_acc_local_1_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 32]) * loaded_0;
                y_acc_local_2_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 64]) * loaded_0;
                y_acc_local_3_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 96]) * loaded_0;
                y_acc_local_4_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 128]) * loaded_0;
                y_acc_local_5_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 160]) * loaded_0;
                y_acc_local_6_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 192]) * loaded_0;
                y_acc_local_7_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 224]) * loaded_0;
                y_acc_local_8_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 256]) * loaded_0;
                y_acc_local_9_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 288]) * loaded_0;
                y_acc_local_10_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 320]) * loaded_0;
                y_acc_local_11_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 352]) * loaded_0;
                y_acc_local_12_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 384]) * loaded_0;
                y_acc_local_13_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 416]) * loaded_0;
                y_acc_local_14_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 448]) * loaded_0;
                y_acc_local_15_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 480]) * loaded_0;
                y_acc_local_16_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 512]) * loaded_0;
                y_acc_local_17_0 += pc_splat_f32x16(relu_1_[576 * c0 + c1 + 544]) * loaded_0;
            }
            pc_stores_f32x16(&y_[18 * c0], y_acc_local_0_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 1], y_acc_local_1_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 2], y_acc_local_2_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 3], y_acc_local_3_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 4], y_acc_local_4_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 5], y_acc_local_5_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 6], y_acc_local_6_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 7], y_acc_local_7_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 8], y_acc_local_8_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 9], y_acc_local_9_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 10], y_acc_local_10_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 11], y_acc_local_11_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 12], y_acc_local_12_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 13], y_acc_local_13_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 14], y_acc_local_14_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 15], y_acc_local_15_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 16], y_acc_local_16_0, 36);
            pc_stores_f32x16(&y_[18 * c0 + 17], y_acc_local_17_0, 36);
        }
    }
}
