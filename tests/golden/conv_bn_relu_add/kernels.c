/* ==== k0_Conv_0_out ==== */
/*
 * Nodes: Conv_0, Add_2, Relu_3
 * batchnormalization_0_acc[n, o, y, x] = f(a constant)
 * batchnormalization_0_acc[n, o, y, x, c] add= f(x, batchnormalization_0_weights_1)
 * y[n, o, y, x] = f(batchnormalization_0_acc, batchnormalization_0_bias_1, r)
 * Schedule: order y o x | vector o | unroll x | sink o x | parallel y | keep batchnormalization_0_acc in registers at y
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#define PC_TRANSPOSITIONS
#include "polyc_vector.h"

void k0_Conv_0_out(const f32 *restrict x_, const f32 *restrict batchnormalization_0_weights_1_, f32 *restrict y_, const f32 *restrict batchnormalization_0_bias_1_, const f32 *restrict r_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(9) {
        const i64 c0 = pc_n;
        f32x16 batchnormalization_0_acc_local_0_0, batchnormalization_0_acc_local_0_16, batchnormalization_0_acc_local_1_0, batchnormalization_0_acc_local_1_16, batchnormalization_0_acc_local_2_0, batchnormalization_0_acc_local_2_16, batchnormalization_0_acc_local_3_0, batchnormalization_0_acc_local_3_16, batchnormalization_0_acc_local_4_0, batchnormalization_0_acc_local_4_16, batchnormalization_0_acc_local_5_0, batchnormalization_0_acc_local_5_16, batchnormalization_0_acc_local_6_0, batchnormalization_0_acc_local_6_16, batchnormalization_0_acc_local_7_0, batchnormalization_0_acc_local_7_16, batchnormalization_0_acc_local_8_0, batchnormalization_0_acc_local_8_16;
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
        for (i64 c1 = 0; c1 < 16; c1 += 1) {
            PC_FORGET;
            f32x16 loaded_0, loaded_16;
            loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&batchnormalization_0_weights_1_[32 * c1]));
            loaded_16 = pc_rounded_f32x16(pc_load_f32x16(&batchnormalization_0_weights_1_[32 * c1 + 16]));
            batchnormalization_0_acc_local_0_0 += pc_splat_f32x16(x_[9 * c0 + 81 * c1]) * loaded_0;
            batchnormalization_0_acc_local_0_16 += pc_splat_f32x16(x_[9 * c0 + 81 * c1]) * loaded_16;
            batchnormalization_0_acc_local_1_0 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 1]) * loaded_0;
            batchnormalization_0_acc_local_1_16 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 1]) * loaded_16;
            batchnormalization_0_acc_local_2_0 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 2]) * loaded_0;
            batchnormalization_0_acc_local_2_16 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 2]) * loaded_16;
            batchnormalization_0_acc_local_3_0 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 3]) * loaded_0;
            batchnormalization_0_acc_local_3_16 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 3]) * loaded_16;
            batchnormalization_0_acc_local_4_0 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 4]) * loaded_0;
            batchnormalization_0_acc_local_4_16 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 4]) * loaded_16;
            batchnormalization_0_acc_local_5_0 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 5]) * loaded_0;
            batchnormalization_0_acc_local_5_16 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 5]) * loaded_16;
            batchnormalization_0_acc_local_6_0 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 6]) * loaded_0;
            batchnormalization_0_acc_local_6_16 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 6]) * loaded_16;
            batchnormalization_0_acc_local_7_0 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 7]) * loaded_0;
            batchnormalization_0_acc_local_7_16 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 7]) * loaded_16;
            batchnormalization_0_acc_local_8_0 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 8]) * loaded_0;
            batchnormalization_0_acc_local_8_16 += pc_splat_f32x16(x_[9 * c0 + 81 * c1 + 8]) * loaded_16;
        }
        {
            f32 tile_0[256] __attribute__((aligned(64)));
            f32 tile_1[256] __attribute__((aligned(64)));
            pc_store_f32x16(&tile_0[0], pc_loadn_f32x16(&r_[9 * c0], 9));
            pc_store_f32x16(&tile_0[16], pc_loadn_f32x16(&r_[9 * c0 + 81], 9));
            pc_store_f32x16(&tile_0[32], pc_loadn_f32x16(&r_[9 * c0 + 162], 9));
            pc_store_f32x16(&tile_0[48], pc_loadn_f32x16(&r_[9 * c0 + 243], 9));
            pc_store_f32x16(&tile_0[64], pc_loadn_f32x16(&r_[9 * c0 + 324], 9));
            pc_store_f32x16(&tile_0[80], pc_loadn_f32x16(&r_[9 * c0 + 405], 9));
            pc_store_f32x16(&tile_0[96], pc_loadn_f32x16(&r_[9 * c0 + 486], 9));
            pc_store_f32x16(&tile_0[112], pc_loadn_f32x16(&r_[9 * c0 + 567], 9));
            pc_store_f32x16(&tile_0[128], pc_loadn_f32x16(&r_[9 * c0 + 648], 9));
            pc_store_f32x16(&tile_0[144], pc_loadn_f32x16(&r_[9 * c0 + 729], 9));
            pc_store_f32x16(&tile_0[160], pc_loadn_f32x16(&r_[9 * c0 + 810], 9));
            pc_store_f32x16(&tile_0[176], pc_loadn_f32x16(&r_[9 * c0 + 891], 9));
            pc_store_f32x16(&tile_0[192], pc_loadn_f32x16(&r_[9 * c0 + 972], 9));
            pc_store_f32x16(&tile_0[208], pc_loadn_f32x16(&r_[9 * c0 + 1053], 9));
            pc_store_f32x16(&tile_0[224], pc_loadn_f32x16(&r_[9 * c0 + 1134], 9));
            pc_store_f32x16(&tile_0[240], pc_loadn_f32x16(&r_[9 * c0 + 1215], 9));
            pc_transpose_f32x16(tile_0);
            pc_store_f32x16(&tile_1[0], pc_max_f32x16((batchnormalization_0_acc_local_0_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_load_f32x16(&tile_0[0]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_1[16], pc_max_f32x16((batchnormalization_0_acc_local_1_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_load_f32x16(&tile_0[16]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_1[32], pc_max_f32x16((batchnormalization_0_acc_local_2_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_load_f32x16(&tile_0[32]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_1[48], pc_max_f32x16((batchnormalization_0_acc_local_3_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_load_f32x16(&tile_0[48]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_1[64], pc_max_f32x16((batchnormalization_0_acc_local_4_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_load_f32x16(&tile_0[64]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_1[80], pc_max_f32x16((batchnormalization_0_acc_local_5_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_load_f32x16(&tile_0[80]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_1[96], pc_max_f32x16((batchnormalization_0_acc_local_6_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_load_f32x16(&tile_0[96]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_1[112], pc_max_f32x16((batchnormalization_0_acc_local_7_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_load_f32x16(&tile_0[112]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_1[128], pc_max_f32x16((batchnormalization_0_acc_local_8_0 + pc_load_f32x16(&batchnormalization_0_bias_1_[0])) + pc_load_f32x16(&tile_0[128]), pc_splat_f32x16(0.0f)));
            pc_transpose_f32x16(tile_1);
            pc_storen_f32x16(&y_[9 * c0], pc_load_f32x16(&tile_1[0]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 81], pc_load_f32x16(&tile_1[16]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 162], pc_load_f32x16(&tile_1[32]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 243], pc_load_f32x16(&tile_1[48]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 324], pc_load_f32x16(&tile_1[64]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 405], pc_load_f32x16(&tile_1[80]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 486], pc_load_f32x16(&tile_1[96]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 567], pc_load_f32x16(&tile_1[112]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 648], pc_load_f32x16(&tile_1[128]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 729], pc_load_f32x16(&tile_1[144]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 810], pc_load_f32x16(&tile_1[160]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 891], pc_load_f32x16(&tile_1[176]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 972], pc_load_f32x16(&tile_1[192]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 1053], pc_load_f32x16(&tile_1[208]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 1134], pc_load_f32x16(&tile_1[224]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 1215], pc_load_f32x16(&tile_1[240]), 9);
        }
        {
            f32 tile_2[256] __attribute__((aligned(64)));
            f32 tile_3[256] __attribute__((aligned(64)));
            pc_store_f32x16(&tile_2[0], pc_loadn_f32x16(&r_[9 * c0 + 1296], 9));
            pc_store_f32x16(&tile_2[16], pc_loadn_f32x16(&r_[9 * c0 + 1377], 9));
            pc_store_f32x16(&tile_2[32], pc_loadn_f32x16(&r_[9 * c0 + 1458], 9));
            pc_store_f32x16(&tile_2[48], pc_loadn_f32x16(&r_[9 * c0 + 1539], 9));
            pc_store_f32x16(&tile_2[64], pc_loadn_f32x16(&r_[9 * c0 + 1620], 9));
            pc_store_f32x16(&tile_2[80], pc_loadn_f32x16(&r_[9 * c0 + 1701], 9));
            pc_store_f32x16(&tile_2[96], pc_loadn_f32x16(&r_[9 * c0 + 1782], 9));
            pc_store_f32x16(&tile_2[112], pc_loadn_f32x16(&r_[9 * c0 + 1863], 9));
            pc_store_f32x16(&tile_2[128], pc_loadn_f32x16(&r_[9 * c0 + 1944], 9));
            pc_store_f32x16(&tile_2[144], pc_loadn_f32x16(&r_[9 * c0 + 2025], 9));
            pc_store_f32x16(&tile_2[160], pc_loadn_f32x16(&r_[9 * c0 + 2106], 9));
            pc_store_f32x16(&tile_2[176], pc_loadn_f32x16(&r_[9 * c0 + 2187], 9));
            pc_store_f32x16(&tile_2[192], pc_loadn_f32x16(&r_[9 * c0 + 2268], 9));
            pc_store_f32x16(&tile_2[208], pc_loadn_f32x16(&r_[9 * c0 + 2349], 9));
            pc_store_f32x16(&tile_2[224], pc_loadn_f32x16(&r_[9 * c0 + 2430], 9));
            pc_store_f32x16(&tile_2[240], pc_loadn_f32x16(&r_[9 * c0 + 2511], 9));
            pc_transpose_f32x16(tile_2);
            pc_store_f32x16(&tile_3[0], pc_max_f32x16((batchnormalization_0_acc_local_0_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_load_f32x16(&tile_2[0]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_3[16], pc_max_f32x16((batchnormalization_0_acc_local_1_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_load_f32x16(&tile_2[16]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_3[32], pc_max_f32x16((batchnormalization_0_acc_local_2_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_load_f32x16(&tile_2[32]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_3[48], pc_max_f32x16((batchnormalization_0_acc_local_3_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_load_f32x16(&tile_2[48]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_3[64], pc_max_f32x16((batchnormalization_0_acc_local_4_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_load_f32x16(&tile_2[64]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_3[80], pc_max_f32x16((batchnormalization_0_acc_local_5_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_load_f32x16(&tile_2[80]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_3[96], pc_max_f32x16((batchnormalization_0_acc_local_6_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_load_f32x16(&tile_2[96]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_3[112], pc_max_f32x16((batchnormalization_0_acc_local_7_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_load_f32x16(&tile_2[112]), pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_3[128], pc_max_f32x16((batchnormalization_0_acc_local_8_16 + pc_load_f32x16(&batchnormalization_0_bias_1_[16])) + pc_load_f32x16(&tile_2[128]), pc_splat_f32x16(0.0f)));
            pc_transpose_f32x16(tile_3);
            pc_storen_f32x16(&y_[9 * c0 + 1296], pc_load_f32x16(&tile_3[0]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 1377], pc_load_f32x16(&tile_3[16]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 1458], pc_load_f32x16(&tile_3[32]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 1539], pc_load_f32x16(&tile_3[48]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 1620], pc_load_f32x16(&tile_3[64]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 1701], pc_load_f32x16(&tile_3[80]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 1782], pc_load_f32x16(&tile_3[96]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 1863], pc_load_f32x16(&tile_3[112]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 1944], pc_load_f32x16(&tile_3[128]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 2025], pc_load_f32x16(&tile_3[144]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 2106], pc_load_f32x16(&tile_3[160]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 2187], pc_load_f32x16(&tile_3[176]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 2268], pc_load_f32x16(&tile_3[192]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 2349], pc_load_f32x16(&tile_3[208]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 2430], pc_load_f32x16(&tile_3[224]), 9);
            pc_storen_f32x16(&y_[9 * c0 + 2511], pc_load_f32x16(&tile_3[240]), 9);
        }
    }
}
