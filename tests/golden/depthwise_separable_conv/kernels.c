/* ==== k0_Conv_0_out ==== */
/*
 * Nodes: Conv_0, Relu_1
 * conv_0_acc[n, o, y, x] = f(a constant)
 * conv_0_acc[n, o, y, x, c] add= f(x, constant_0)
 * relu_0[n, o, y, x] = f(conv_0_acc)
 * Schedule: order o y x | vector o | unroll x | sink o x | parallel y | keep conv_0_acc in registers at y
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
    PC_SHARE(8) {
        const i64 c0 = pc_n;
        f32x16 conv_0_acc_local_0_0, conv_0_acc_local_0_16, conv_0_acc_local_1_0, conv_0_acc_local_1_16, conv_0_acc_local_2_0, conv_0_acc_local_2_16, conv_0_acc_local_3_0, conv_0_acc_local_3_16, conv_0_acc_local_4_0, conv_0_acc_local_4_16, conv_0_acc_local_5_0, conv_0_acc_local_5_16, conv_0_acc_local_6_0, conv_0_acc_local_6_16, conv_0_acc_local_7_0, conv_0_acc_local_7_16;
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
        for (i64 c1 = 0; c1 < 16; c1 += 1) {
            PC_FORGET;
            f32x16 loaded_0, loaded_16;
            loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_0_[32 * c1]));
            loaded_16 = pc_rounded_f32x16(pc_load_f32x16(&constant_0_[32 * c1 + 16]));
            conv_0_acc_local_0_0 += pc_splat_f32x16(x_[8 * c0 + 64 * c1]) * loaded_0;
            conv_0_acc_local_0_16 += pc_splat_f32x16(x_[8 * c0 + 64 * c1]) * loaded_16;
            conv_0_acc_local_1_0 += pc_splat_f32x16(x_[8 * c0 + 64 * c1 + 1]) * loaded_0;
            conv_0_acc_local_1_16 += pc_splat_f32x16(x_[8 * c0 + 64 * c1 + 1]) * loaded_16;
            conv_0_acc_local_2_0 += pc_splat_f32x16(x_[8 * c0 + 64 * c1 + 2]) * loaded_0;
            conv_0_acc_local_2_16 += pc_splat_f32x16(x_[8 * c0 + 64 * c1 + 2]) * loaded_16;
            conv_0_acc_local_3_0 += pc_splat_f32x16(x_[8 * c0 + 64 * c1 + 3]) * loaded_0;
            conv_0_acc_local_3_16 += pc_splat_f32x16(x_[8 * c0 + 64 * c1 + 3]) * loaded_16;
            conv_0_acc_local_4_0 += pc_splat_f32x16(x_[8 * c0 + 64 * c1 + 4]) * loaded_0;
            conv_0_acc_local_4_16 += pc_splat_f32x16(x_[8 * c0 + 64 * c1 + 4]) * loaded_16;
            conv_0_acc_local_5_0 += pc_splat_f32x16(x_[8 * c0 + 64 * c1 + 5]) * loaded_0;
            conv_0_acc_local_5_16 += pc_splat_f32x16(x_[8 * c0 + 64 * c1 + 5]) * loaded_16;
            conv_0_acc_local_6_0 += pc_splat_f32x16(x_[8 * c0 + 64 * c1 + 6]) * loaded_0;
            conv_0_acc_local_6_16 += pc_splat_f32x16(x_[8 * c0 + 64 * c1 + 6]) * loaded_16;
            conv_0_acc_local_7_0 += pc_splat_f32x16(x_[8 * c0 + 64 * c1 + 7]) * loaded_0;
            conv_0_acc_local_7_16 += pc_splat_f32x16(x_[8 * c0 + 64 * c1 + 7]) * loaded_16;
        }
        pc_store_f32x16(&relu_0_[256 * c0], pc_max_f32x16(conv_0_acc_local_0_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[256 * c0 + 16], pc_max_f32x16(conv_0_acc_local_0_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[256 * c0 + 32], pc_max_f32x16(conv_0_acc_local_1_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[256 * c0 + 48], pc_max_f32x16(conv_0_acc_local_1_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[256 * c0 + 64], pc_max_f32x16(conv_0_acc_local_2_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[256 * c0 + 80], pc_max_f32x16(conv_0_acc_local_2_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[256 * c0 + 96], pc_max_f32x16(conv_0_acc_local_3_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[256 * c0 + 112], pc_max_f32x16(conv_0_acc_local_3_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[256 * c0 + 128], pc_max_f32x16(conv_0_acc_local_4_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[256 * c0 + 144], pc_max_f32x16(conv_0_acc_local_4_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[256 * c0 + 160], pc_max_f32x16(conv_0_acc_local_5_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[256 * c0 + 176], pc_max_f32x16(conv_0_acc_local_5_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[256 * c0 + 192], pc_max_f32x16(conv_0_acc_local_6_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[256 * c0 + 208], pc_max_f32x16(conv_0_acc_local_6_16, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[256 * c0 + 224], pc_max_f32x16(conv_0_acc_local_7_0, pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&relu_0_[256 * c0 + 240], pc_max_f32x16(conv_0_acc_local_7_16, pc_splat_f32x16(0.0f)));
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
            for (i64 c1 = 0; c1 < 6; c1 += 2) {
                f32x16 conv_1_acc_local_0_0, conv_1_acc_local_0_16, conv_1_acc_local_1_0, conv_1_acc_local_1_16;
                conv_1_acc_local_0_0 = pc_splat_f32x16(0.0f);
                conv_1_acc_local_0_16 = pc_splat_f32x16(0.0f);
                conv_1_acc_local_1_0 = pc_splat_f32x16(0.0f);
                conv_1_acc_local_1_16 = pc_splat_f32x16(0.0f);
                for (i64 c2 = 0; c2 < 3; c2 += 1) {
                    for (i64 c3 = 0; c3 < 3; c3 += 1) {
                        conv_1_acc_local_0_0 += pc_load_f32x16(&relu_0_[256 * c0 + 32 * c1 + 256 * c2 + 32 * c3]) * pc_load_f32x16(&constant_1_[96 * c2 + 32 * c3]);
                        conv_1_acc_local_0_16 += pc_load_f32x16(&relu_0_[256 * c0 + 32 * c1 + 256 * c2 + 32 * c3 + 16]) * pc_load_f32x16(&constant_1_[96 * c2 + 32 * c3 + 16]);
                        conv_1_acc_local_1_0 += pc_load_f32x16(&relu_0_[256 * c0 + 32 * c1 + 256 * c2 + 32 * c3 + 32]) * pc_load_f32x16(&constant_1_[96 * c2 + 32 * c3]);
                        conv_1_acc_local_1_16 += pc_load_f32x16(&relu_0_[256 * c0 + 32 * c1 + 256 * c2 + 32 * c3 + 48]) * pc_load_f32x16(&constant_1_[96 * c2 + 32 * c3 + 16]);
                    }
                }
                pc_store_f32x16(&relu_1_[192 * c0 + 32 * c1], pc_max_f32x16(conv_1_acc_local_0_0 + pc_load_f32x16(&constant_2_[0]), pc_splat_f32x16(0.0f)));
                pc_store_f32x16(&relu_1_[192 * c0 + 32 * c1 + 16], pc_max_f32x16(conv_1_acc_local_0_16 + pc_load_f32x16(&constant_2_[16]), pc_splat_f32x16(0.0f)));
                pc_store_f32x16(&relu_1_[192 * c0 + 32 * c1 + 32], pc_max_f32x16(conv_1_acc_local_1_0 + pc_load_f32x16(&constant_2_[0]), pc_splat_f32x16(0.0f)));
                pc_store_f32x16(&relu_1_[192 * c0 + 32 * c1 + 48], pc_max_f32x16(conv_1_acc_local_1_16 + pc_load_f32x16(&constant_2_[16]), pc_splat_f32x16(0.0f)));
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
 * Schedule: order y o x | vector o | unroll x | sink o x | keep y_acc in registers at y
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#define PC_TRANSPOSITIONS
#include "polyc_vector.h"

void k2_Conv_4_out(const f32 *restrict relu_1_, const f32 *restrict constant_3_, f32 *restrict y_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(1) {
        for (i64 c0 = 0; c0 < 6; c0 += 1) {
            f32x16 y_acc_local_0_0, y_acc_local_1_0, y_acc_local_2_0, y_acc_local_3_0, y_acc_local_4_0, y_acc_local_5_0;
            y_acc_local_0_0 = pc_splat_f32x16(0.0f);
            y_acc_local_1_0 = pc_splat_f32x16(0.0f);
            y_acc_local_2_0 = pc_splat_f32x16(0.0f);
            y_acc_local_3_0 = pc_splat_f32x16(0.0f);
            y_acc_local_4_0 = pc_splat_f32x16(0.0f);
            y_acc_local_5_0 = pc_splat_f32x16(0.0f);
            for (i64 c1 = 0; c1 < 32; c1 += 1) {
                f32x16 loaded_0;
                loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_3_[16 * c1]));
                y_acc_local_0_0 += pc_splat_f32x16(relu_1_[192 * c0 + c1]) * loaded_0;
                y_acc_local_1_0 += pc_splat_f32x16(relu_1_[192 * c0 + c1 + 32]) * loaded_0;
                y_acc_local_2_0 += pc_splat_f32x16(relu_1_[192 * c0 + c1 + 64]) * loaded_0;
                y_acc_local_3_0 += pc_splat_f32x16(relu_1_[192 * c0 + c1 + 96]) * loaded_0;
                y_acc_local_4_0 += pc_splat_f32x16(relu_1_[192 * c0 + c1 + 128]) * loaded_0;
                y_acc_local_5_0 += pc_splat_f32x16(relu_1_[192 * c0 + c1 + 160]) * loaded_0;
            }
            {
                f32 tile_0[256] __attribute__((aligned(64)));
                pc_store_f32x16(&tile_0[0], y_acc_local_0_0);
                pc_store_f32x16(&tile_0[16], y_acc_local_1_0);
                pc_store_f32x16(&tile_0[32], y_acc_local_2_0);
                pc_store_f32x16(&tile_0[48], y_acc_local_3_0);
                pc_store_f32x16(&tile_0[64], y_acc_local_4_0);
                pc_store_f32x16(&tile_0[80], y_acc_local_5_0);
                pc_transpose_f32x16(tile_0);
                pc_storen_f32x16(&y_[6 * c0], pc_load_f32x16(&tile_0[0]), 6);
                pc_storen_f32x16(&y_[6 * c0 + 36], pc_load_f32x16(&tile_0[16]), 6);
                pc_storen_f32x16(&y_[6 * c0 + 72], pc_load_f32x16(&tile_0[32]), 6);
                pc_storen_f32x16(&y_[6 * c0 + 108], pc_load_f32x16(&tile_0[48]), 6);
                pc_storen_f32x16(&y_[6 * c0 + 144], pc_load_f32x16(&tile_0[64]), 6);
                pc_storen_f32x16(&y_[6 * c0 + 180], pc_load_f32x16(&tile_0[80]), 6);
                pc_storen_f32x16(&y_[6 * c0 + 216], pc_load_f32x16(&tile_0[96]), 6);
                pc_storen_f32x16(&y_[6 * c0 + 252], pc_load_f32x16(&tile_0[112]), 6);
                pc_storen_f32x16(&y_[6 * c0 + 288], pc_load_f32x16(&tile_0[128]), 6);
                pc_storen_f32x16(&y_[6 * c0 + 324], pc_load_f32x16(&tile_0[144]), 6);
                pc_storen_f32x16(&y_[6 * c0 + 360], pc_load_f32x16(&tile_0[160]), 6);
                pc_storen_f32x16(&y_[6 * c0 + 396], pc_load_f32x16(&tile_0[176]), 6);
                pc_storen_f32x16(&y_[6 * c0 + 432], pc_load_f32x16(&tile_0[192]), 6);
                pc_storen_f32x16(&y_[6 * c0 + 468], pc_load_f32x16(&tile_0[208]), 6);
                pc_storen_f32x16(&y_[6 * c0 + 504], pc_load_f32x16(&tile_0[224]), 6);
                pc_storen_f32x16(&y_[6 * c0 + 540], pc_load_f32x16(&tile_0[240]), 6);
            }
        }
    }
}
