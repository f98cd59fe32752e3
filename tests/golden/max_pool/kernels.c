/* ==== k0_MaxPool_0_pad_8 ==== */
/*
 * Nodes: MaxPool_0.pad
 * x_padded[i0, i1, i2, i3] = f(x)
 * Schedule: order MaxPool_0_pad_4.i3 MaxPool_0_pad_4.i1 | order MaxPool_0_pad_5.i3 MaxPool_0_pad_5.i1 | order MaxPool_0_pad_6.i2 MaxPool_0_pad_6.i1 | order MaxPool_0_pad_7.i2 MaxPool_0_pad_7.i1 | order MaxPool_0_pad_8.i2 MaxPool_0_pad_8.i3 MaxPool_0_pad_8.i1 | vector MaxPool_0_pad_8.i1 | unroll MaxPool_0_pad_8.i3 | sink MaxPool_0_pad_8.i1 MaxPool_0_pad_8.i3
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#define PC_TRANSPOSITIONS
#include "polyc_vector.h"

void k0_MaxPool_0_pad_8(f32 *restrict x_padded_, const f32 *restrict x_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(1) {
        for (i64 c0 = 0; c0 < 11; c0 += 1) {
            for (i64 c1 = 0; c1 < 16; c1 += 1) {
                x_padded_[16 * c0 + c1] = -__builtin_inff();
            }
        }
        for (i64 c0 = 0; c0 < 11; c0 += 1) {
            for (i64 c1 = 0; c1 < 16; c1 += 1) {
                x_padded_[16 * c0 + c1 + 1760] = -__builtin_inff();
            }
        }
        for (i64 c0 = 0; c0 < 9; c0 += 1) {
            for (i64 c1 = 0; c1 < 16; c1 += 1) {
                x_padded_[176 * c0 + c1 + 176] = -__builtin_inff();
            }
        }
        for (i64 c0 = 0; c0 < 9; c0 += 1) {
            for (i64 c1 = 0; c1 < 16; c1 += 1) {
                x_padded_[176 * c0 + c1 + 336] = -__builtin_inff();
            }
        }
        for (i64 c0 = 0; c0 < 9; c0 += 1) {
            {
                f32 tile_0[256] __attribute__((aligned(64)));
                pc_store_f32x16(&tile_0[0], pc_loadn_f32x16(&x_[9 * c0], 9));
                pc_store_f32x16(&tile_0[16], pc_loadn_f32x16(&x_[9 * c0 + 81], 9));
                pc_store_f32x16(&tile_0[32], pc_loadn_f32x16(&x_[9 * c0 + 162], 9));
                pc_store_f32x16(&tile_0[48], pc_loadn_f32x16(&x_[9 * c0 + 243], 9));
                pc_store_f32x16(&tile_0[64], pc_loadn_f32x16(&x_[9 * c0 + 324], 9));
                pc_store_f32x16(&tile_0[80], pc_loadn_f32x16(&x_[9 * c0 + 405], 9));
                pc_store_f32x16(&tile_0[96], pc_loadn_f32x16(&x_[9 * c0 + 486], 9));
                pc_store_f32x16(&tile_0[112], pc_loadn_f32x16(&x_[9 * c0 + 567], 9));
                pc_store_f32x16(&tile_0[128], pc_loadn_f32x16(&x_[9 * c0 + 648], 9));
                pc_store_f32x16(&tile_0[144], pc_loadn_f32x16(&x_[9 * c0 + 729], 9));
                pc_store_f32x16(&tile_0[160], pc_loadn_f32x16(&x_[9 * c0 + 810], 9));
                pc_store_f32x16(&tile_0[176], pc_loadn_f32x16(&x_[9 * c0 + 891], 9));
                pc_store_f32x16(&tile_0[192], pc_loadn_f32x16(&x_[9 * c0 + 972], 9));
                pc_store_f32x16(&tile_0[208], pc_loadn_f32x16(&x_[9 * c0 + 1053], 9));
                pc_store_f32x16(&tile_0[224], pc_loadn_f32x16(&x_[9 * c0 + 1134], 9));
                pc_store_f32x16(&tile_0[240], pc_loadn_f32x16(&x_[9 * c0 + 1215], 9));
                pc_transpose_f32x16(tile_0);
                pc_store_f32x16(&x_padded_[176 * c0 + 192], pc_load_f32x16(&tile_0[0]));
                pc_store_f32x16(&x_padded_[176 * c0 + 208], pc_load_f32x16(&tile_0[16]));
                pc_store_f32x16(&x_padded_[176 * c0 + 224], pc_load_f32x16(&tile_0[32]));
                pc_store_f32x16(&x_padded_[176 * c0 + 240], pc_load_f32x16(&tile_0[48]));
                pc_store_f32x16(&x_padded_[176 * c0 + 256], pc_load_f32x16(&tile_0[64]));
                pc_store_f32x16(&x_padded_[176 * c0 + 272], pc_load_f32x16(&tile_0[80]));
                pc_store_f32x16(&x_padded_[176 * c0 + 288], pc_load_f32x16(&tile_0[96]));
                pc_store_f32x16(&x_padded_[176 * c0 + 304], pc_load_f32x16(&tile_0[112]));
                pc_store_f32x16(&x_padded_[176 * c0 + 320], pc_load_f32x16(&tile_0[128]));
            }
        }
    }
}

/* ==== k1_MaxPool_0_out ==== */
/*
 * Nodes: MaxPool_0
 * y_acc[n, c, y, x] = f(a constant)
 * y_acc[n, c, y, x, r, q] max= f(x_padded)
 * y[n, c, y, x] = f(y_acc)
 * Schedule: order y c x | vector c | unroll x | sink c x | keep y_acc in registers at y
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#define PC_TRANSPOSITIONS
#include "polyc_vector.h"

void k1_MaxPool_0_out(const f32 *restrict x_padded_, f32 *restrict y_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(1) {
        for (i64 c0 = 0; c0 < 5; c0 += 1) {
            f32x16 y_acc_local_0_0, y_acc_local_1_0, y_acc_local_2_0, y_acc_local_3_0, y_acc_local_4_0;
            y_acc_local_0_0 = pc_splat_f32x16(-__builtin_inff());
            y_acc_local_1_0 = pc_splat_f32x16(-__builtin_inff());
            y_acc_local_2_0 = pc_splat_f32x16(-__builtin_inff());
            y_acc_local_3_0 = pc_splat_f32x16(-__builtin_inff());
            y_acc_local_4_0 = pc_splat_f32x16(-__builtin_inff());
            for (i64 c1 = 0; c1 < 3; c1 += 1) {
                for (i64 c2 = 0; c2 < 3; c2 += 1) {
                    y_acc_local_0_0 = pc_max_f32x16(y_acc_local_0_0, pc_load_f32x16(&x_padded_[352 * c0 + 176 * c1 + 16 * c2]));
                    y_acc_local_1_0 = pc_max_f32x16(y_acc_local_1_0, pc_load_f32x16(&x_padded_[352 * c0 + 176 * c1 + 16 * c2 + 32]));
                    y_acc_local_2_0 = pc_max_f32x16(y_acc_local_2_0, pc_load_f32x16(&x_padded_[352 * c0 + 176 * c1 + 16 * c2 + 64]));
                    y_acc_local_3_0 = pc_max_f32x16(y_acc_local_3_0, pc_load_f32x16(&x_padded_[352 * c0 + 176 * c1 + 16 * c2 + 96]));
                    y_acc_local_4_0 = pc_max_f32x16(y_acc_local_4_0, pc_load_f32x16(&x_padded_[352 * c0 + 176 * c1 + 16 * c2 + 128]));
                }
            }
            {
                f32 tile_0[256] __attribute__((aligned(64)));
                pc_store_f32x16(&tile_0[0], y_acc_local_0_0);
                pc_store_f32x16(&tile_0[16], y_acc_local_1_0);
                pc_store_f32x16(&tile_0[32], y_acc_local_2_0);
                pc_store_f32x16(&tile_0[48], y_acc_local_3_0);
                pc_store_f32x16(&tile_0[64], y_acc_local_4_0);
                pc_transpose_f32x16(tile_0);
                pc_storen_f32x16(&y_[5 * c0], pc_load_f32x16(&tile_0[0]), 5);
                pc_storen_f32x16(&y_[5 * c0 + 25], pc_load_f32x16(&tile_0[16]), 5);
                pc_storen_f32x16(&y_[5 * c0 + 50], pc_load_f32x16(&tile_0[32]), 5);
                pc_storen_f32x16(&y_[5 * c0 + 75], pc_load_f32x16(&tile_0[48]), 5);
                pc_storen_f32x16(&y_[5 * c0 + 100], pc_load_f32x16(&tile_0[64]), 5);
                pc_storen_f32x16(&y_[5 * c0 + 125], pc_load_f32x16(&tile_0[80]), 5);
                pc_storen_f32x16(&y_[5 * c0 + 150], pc_load_f32x16(&tile_0[96]), 5);
                pc_storen_f32x16(&y_[5 * c0 + 175], pc_load_f32x16(&tile_0[112]), 5);
                pc_storen_f32x16(&y_[5 * c0 + 200], pc_load_f32x16(&tile_0[128]), 5);
                pc_storen_f32x16(&y_[5 * c0 + 225], pc_load_f32x16(&tile_0[144]), 5);
                pc_storen_f32x16(&y_[5 * c0 + 250], pc_load_f32x16(&tile_0[160]), 5);
                pc_storen_f32x16(&y_[5 * c0 + 275], pc_load_f32x16(&tile_0[176]), 5);
                pc_storen_f32x16(&y_[5 * c0 + 300], pc_load_f32x16(&tile_0[192]), 5);
                pc_storen_f32x16(&y_[5 * c0 + 325], pc_load_f32x16(&tile_0[208]), 5);
                pc_storen_f32x16(&y_[5 * c0 + 350], pc_load_f32x16(&tile_0[224]), 5);
                pc_storen_f32x16(&y_[5 * c0 + 375], pc_load_f32x16(&tile_0[240]), 5);
            }
        }
    }
}
