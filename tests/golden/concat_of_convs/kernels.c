/* ==== k0_Conv_0_out ==== */
/*
 * Nodes: Conv_0, Relu_1, Concat_4
 * conv_0_acc[n, o, y, x] = f(a constant)
 * conv_0_acc[n, o, y, x, c] add= f(x, constant_0)
 * concat_0[n, o, y, x] = f(conv_0_acc)
 * Schedule: order o y x | vector o | unroll x | sink o x | keep conv_0_acc in registers at y
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
        for (i64 c0 = 0; c0 < 7; c0 += 1) {
            f32x16 conv_0_acc_local_0_0, conv_0_acc_local_1_0, conv_0_acc_local_2_0, conv_0_acc_local_3_0, conv_0_acc_local_4_0, conv_0_acc_local_5_0, conv_0_acc_local_6_0;
            conv_0_acc_local_0_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_1_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_2_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_3_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_4_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_5_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_6_0 = pc_splat_f32x16(0.0f);
            for (i64 c1 = 0; c1 < 16; c1 += 1) {
                PC_FORGET;
                f32x16 loaded_0;
                loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_0_[16 * c1]));
                conv_0_acc_local_0_0 += pc_splat_f32x16(x_[7 * c0 + 49 * c1]) * loaded_0;
                conv_0_acc_local_1_0 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 1]) * loaded_0;
                conv_0_acc_local_2_0 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 2]) * loaded_0;
                conv_0_acc_local_3_0 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 3]) * loaded_0;
                conv_0_acc_local_4_0 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 4]) * loaded_0;
                conv_0_acc_local_5_0 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 5]) * loaded_0;
                conv_0_acc_local_6_0 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 6]) * loaded_0;
            }
            pc_store_f32x16(&concat_0_[336 * c0], pc_max_f32x16(conv_0_acc_local_0_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 48], pc_max_f32x16(conv_0_acc_local_1_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 96], pc_max_f32x16(conv_0_acc_local_2_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 144], pc_max_f32x16(conv_0_acc_local_3_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 192], pc_max_f32x16(conv_0_acc_local_4_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 240], pc_max_f32x16(conv_0_acc_local_5_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 288], pc_max_f32x16(conv_0_acc_local_6_0, pc_splat_f32x16(0.0f)));
        }
    }
}

/* ==== k1_Conv_2_out ==== */
/*
 * Nodes: Conv_2, Relu_3, Concat_4
 * conv_1_acc[n, o, y, x] = f(a constant)
 * conv_1_acc[n, o, y, x, c] add= f(x, constant_1)
 * concat_0[n, o, y, x] = f(conv_1_acc)
 * Schedule: order o y x | vector o | unroll x | sink o x | keep conv_1_acc in registers at y
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
        for (i64 c0 = 0; c0 < 7; c0 += 1) {
            f32x16 conv_1_acc_local_0_0, conv_1_acc_local_0_16, conv_1_acc_local_1_0, conv_1_acc_local_1_16, conv_1_acc_local_2_0, conv_1_acc_local_2_16, conv_1_acc_local_3_0, conv_1_acc_local_3_16, conv_1_acc_local_4_0, conv_1_acc_local_4_16, conv_1_acc_local_5_0, conv_1_acc_local_5_16, conv_1_acc_local_6_0, conv_1_acc_local_6_16;
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
            for (i64 c1 = 0; c1 < 16; c1 += 1) {
                PC_FORGET;
                f32x16 loaded_0, loaded_16;
                loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_1_[32 * c1]));
                loaded_16 = pc_rounded_f32x16(pc_load_f32x16(&constant_1_[32 * c1 + 16]));
                conv_1_acc_local_0_0 += pc_splat_f32x16(x_[7 * c0 + 49 * c1]) * loaded_0;
                conv_1_acc_local_0_16 += pc_splat_f32x16(x_[7 * c0 + 49 * c1]) * loaded_16;
                conv_1_acc_local_1_0 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 1]) * loaded_0;
                conv_1_acc_local_1_16 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 1]) * loaded_16;
                conv_1_acc_local_2_0 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 2]) * loaded_0;
                conv_1_acc_local_2_16 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 2]) * loaded_16;
                conv_1_acc_local_3_0 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 3]) * loaded_0;
                conv_1_acc_local_3_16 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 3]) * loaded_16;
                conv_1_acc_local_4_0 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 4]) * loaded_0;
                conv_1_acc_local_4_16 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 4]) * loaded_16;
                conv_1_acc_local_5_0 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 5]) * loaded_0;
                conv_1_acc_local_5_16 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 5]) * loaded_16;
                conv_1_acc_local_6_0 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 6]) * loaded_0;
                conv_1_acc_local_6_16 += pc_splat_f32x16(x_[7 * c0 + 49 * c1 + 6]) * loaded_16;
            }
            pc_store_f32x16(&concat_0_[336 * c0 + 16], pc_max_f32x16(conv_1_acc_local_0_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 32], pc_max_f32x16(conv_1_acc_local_0_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 64], pc_max_f32x16(conv_1_acc_local_1_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 80], pc_max_f32x16(conv_1_acc_local_1_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 112], pc_max_f32x16(conv_1_acc_local_2_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 128], pc_max_f32x16(conv_1_acc_local_2_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 160], pc_max_f32x16(conv_1_acc_local_3_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 176], pc_max_f32x16(conv_1_acc_local_3_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 208], pc_max_f32x16(conv_1_acc_local_4_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 224], pc_max_f32x16(conv_1_acc_local_4_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 256], pc_max_f32x16(conv_1_acc_local_5_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 272], pc_max_f32x16(conv_1_acc_local_5_16, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 304], pc_max_f32x16(conv_1_acc_local_6_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0_[336 * c0 + 320], pc_max_f32x16(conv_1_acc_local_6_16, pc_splat_f32x16(0.0f)));
        }
    }
}

/* ==== k2_Conv_5_out ==== */
/*
 * Nodes: Conv_5, Relu_6
 * conv_2_acc[n, o, y, x] = f(a constant)
 * conv_2_acc[n, o, y, x, c] add= f(concat_0, constant_2)
 * y[n, o, y, x] = f(conv_2_acc)
 * Schedule: order y o x | vector o | unroll x | sink o x | parallel y | keep conv_2_acc in registers at y
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#define PC_TRANSPOSITIONS
#include "polyc_vector.h"

void k2_Conv_5_out(const f32 *restrict concat_0_, const f32 *restrict constant_2_, f32 *restrict y_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(7) {
        const i64 c0 = pc_n;
        f32x16 conv_2_acc_local_0_0, conv_2_acc_local_1_0, conv_2_acc_local_2_0, conv_2_acc_local_3_0, conv_2_acc_local_4_0, conv_2_acc_local_5_0, conv_2_acc_local_6_0;
        conv_2_acc_local_0_0 = pc_splat_f32x16(0.0f);
        conv_2_acc_local_1_0 = pc_splat_f32x16(0.0f);
        conv_2_acc_local_2_0 = pc_splat_f32x16(0.0f);
        conv_2_acc_local_3_0 = pc_splat_f32x16(0.0f);
        conv_2_acc_local_4_0 = pc_splat_f32x16(0.0f);
        conv_2_acc_local_5_0 = pc_splat_f32x16(0.0f);
        conv_2_acc_local_6_0 = pc_splat_f32x16(0.0f);
        for (i64 c1 = 0; c1 < 48; c1 += 1) {
            f32x16 loaded_0;
            loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_2_[16 * c1]));
            conv_2_acc_local_0_0 += pc_splat_f32x16(concat_0_[336 * c0 + c1]) * loaded_0;
            conv_2_acc_local_1_0 += pc_splat_f32x16(concat_0_[336 * c0 + c1 + 48]) * loaded_0;
            conv_2_acc_local_2_0 += pc_splat_f32x16(concat_0_[336 * c0 + c1 + 96]) * loaded_0;
            conv_2_acc_local_3_0 += pc_splat_f32x16(concat_0_[336 * c0 + c1 + 144]) * loaded_0;
            conv_2_acc_local_4_0 += pc_splat_f32x16(concat_0_[336 * c0 + c1 + 192]) * loaded_0;
            conv_2_acc_local_5_0 += pc_splat_f32x16(concat_0_[336 * c0 + c1 + 240]) * loaded_0;
            conv_2_acc_local_6_0 += pc_splat_f32x16(concat_0_[336 * c0 + c1 + 288]) * loaded_0;
        }
        {
            f32 tile_0[256] __attribute__((aligned(64)));
            pc_store_f32x16(&tile_0[0], pc_max_f32x16(conv_2_acc_local_0_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_0[16], pc_max_f32x16(conv_2_acc_local_1_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_0[32], pc_max_f32x16(conv_2_acc_local_2_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_0[48], pc_max_f32x16(conv_2_acc_local_3_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_0[64], pc_max_f32x16(conv_2_acc_local_4_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_0[80], pc_max_f32x16(conv_2_acc_local_5_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&tile_0[96], pc_max_f32x16(conv_2_acc_local_6_0, pc_splat_f32x16(0.0f)));
            pc_transpose_f32x16(tile_0);
            pc_storen_f32x16(&y_[7 * c0], pc_load_f32x16(&tile_0[0]), 7);
            pc_storen_f32x16(&y_[7 * c0 + 49], pc_load_f32x16(&tile_0[16]), 7);
            pc_storen_f32x16(&y_[7 * c0 + 98], pc_load_f32x16(&tile_0[32]), 7);
            pc_storen_f32x16(&y_[7 * c0 + 147], pc_load_f32x16(&tile_0[48]), 7);
            pc_storen_f32x16(&y_[7 * c0 + 196], pc_load_f32x16(&tile_0[64]), 7);
            pc_storen_f32x16(&y_[7 * c0 + 245], pc_load_f32x16(&tile_0[80]), 7);
            pc_storen_f32x16(&y_[7 * c0 + 294], pc_load_f32x16(&tile_0[96]), 7);
            pc_storen_f32x16(&y_[7 * c0 + 343], pc_load_f32x16(&tile_0[112]), 7);
            pc_storen_f32x16(&y_[7 * c0 + 392], pc_load_f32x16(&tile_0[128]), 7);
            pc_storen_f32x16(&y_[7 * c0 + 441], pc_load_f32x16(&tile_0[144]), 7);
            pc_storen_f32x16(&y_[7 * c0 + 490], pc_load_f32x16(&tile_0[160]), 7);
            pc_storen_f32x16(&y_[7 * c0 + 539], pc_load_f32x16(&tile_0[176]), 7);
            pc_storen_f32x16(&y_[7 * c0 + 588], pc_load_f32x16(&tile_0[192]), 7);
            pc_storen_f32x16(&y_[7 * c0 + 637], pc_load_f32x16(&tile_0[208]), 7);
            pc_storen_f32x16(&y_[7 * c0 + 686], pc_load_f32x16(&tile_0[224]), 7);
            pc_storen_f32x16(&y_[7 * c0 + 735], pc_load_f32x16(&tile_0[240]), 7);
        }
    }
}
