/* ==== k0_Softmax_0_4 ==== */
/*
 * Nodes: Softmax_0
 * y_max[i0] = f(a constant)
 * y_max[i0, i1] max= f(x)
 * y_exp[i0, i1] = f(x, y_max)
 * y_inverse_acc[i0] = f(a constant)
 * y_inverse_acc[i0, i1] add= f(y_exp)
 * y_inverse[i0] = f(y_inverse_acc)
 * y[i0, i1] = f(y_exp, y_inverse)
 * Schedule: parallel i0 | vector i1 | keep y_exp y_inverse y_inverse_acc y_max in registers at i0
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#define PC_REDUCTIONS
#include "polyc_vector.h"
#define PC_LANES 16
#include "polyc_f32_exp.h"

void k0_Softmax_0_4(const f32 *restrict x_, f32 *restrict y_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(256) {
        const i64 c0 = pc_n;
        f32x16 y_exp_local_0, y_exp_local_16, y_exp_local_32, y_exp_local_48, y_exp_local_64, y_exp_local_80, y_exp_local_96;
        f32 y_inverse_local;
        f32 y_inverse_acc_local;
        f32 y_max_local;
        y_max_local = -__builtin_inff();
        {
            f32x16 partial_0_0, partial_0_16, partial_0_32, partial_0_48, partial_0_64, partial_0_80;
            partial_0_0 = pc_load_f32x16(&x_[100 * c0]);
            partial_0_16 = pc_load_f32x16(&x_[100 * c0 + 16]);
            partial_0_32 = pc_load_f32x16(&x_[100 * c0 + 32]);
            partial_0_48 = pc_load_f32x16(&x_[100 * c0 + 48]);
            partial_0_64 = pc_load_f32x16(&x_[100 * c0 + 64]);
            partial_0_80 = pc_load_f32x16(&x_[100 * c0 + 80]);
            partial_0_0 = pc_max_f32x16(partial_0_0, pc_fill_f32x16(pc_loadn_f32x16(&x_[100 * c0 + 96], 4), 4, -__builtin_inff()));
            partial_0_0 = pc_max_f32x16(partial_0_0, partial_0_48);
            partial_0_16 = pc_max_f32x16(partial_0_16, partial_0_64);
            partial_0_32 = pc_max_f32x16(partial_0_32, partial_0_80);
            partial_0_0 = pc_max_f32x16(partial_0_0, partial_0_32);
            partial_0_0 = pc_max_f32x16(partial_0_0, partial_0_16);
            y_max_local = pc_max_f32(y_max_local, pc_reduce_max_f32x16(partial_0_0));
        }
        y_exp_local_0 = pc_exp_normal_f32x16(pc_load_f32x16(&x_[100 * c0]) - pc_splat_f32x16(y_max_local));
        y_exp_local_16 = pc_exp_normal_f32x16(pc_load_f32x16(&x_[100 * c0 + 16]) - pc_splat_f32x16(y_max_local));
        y_exp_local_32 = pc_exp_normal_f32x16(pc_load_f32x16(&x_[100 * c0 + 32]) - pc_splat_f32x16(y_max_local));
        y_exp_local_48 = pc_exp_normal_f32x16(pc_load_f32x16(&x_[100 * c0 + 48]) - pc_splat_f32x16(y_max_local));
        y_exp_local_64 = pc_exp_normal_f32x16(pc_load_f32x16(&x_[100 * c0 + 64]) - pc_splat_f32x16(y_max_local));
        y_exp_local_80 = pc_exp_normal_f32x16(pc_load_f32x16(&x_[100 * c0 + 80]) - pc_splat_f32x16(y_max_local));
        y_exp_local_96 = pc_exp_normal_f32x16(pc_loadn_f32x16(&x_[100 * c0 + 96], 4) - pc_splat_f32x16(y_max_local));
        y_inverse_acc_local = 0.0f;
        {
            f32x16 partial_1_0, partial_1_16, partial_1_32, partial_1_48, partial_1_64, partial_1_80;
            partial_1_0 = y_exp_local_0;
            partial_1_16 = y_exp_local_16;
            partial_1_32 = y_exp_local_32;
            partial_1_48 = y_exp_local_48;
            partial_1_64 = y_exp_local_64;
            partial_1_80 = y_exp_local_80;
            partial_1_0 += pc_fill_f32x16(y_exp_local_96, 4, 0.0f);
            partial_1_0 += partial_1_48;
            partial_1_16 += partial_1_64;
            partial_1_32 += partial_1_80;
            partial_1_0 += partial_1_32;
            partial_1_0 += partial_1_16;
            y_inverse_acc_local += pc_reduce_add_f32x16(partial_1_0);
        }
        y_inverse_local = pc_reciprocal_f32(y_inverse_acc_local);
        pc_store_f32x16(&y_[100 * c0], (y_exp_local_0 * pc_splat_f32x16(y_inverse_local)));
        pc_store_f32x16(&y_[100 * c0 + 16], (y_exp_local_16 * pc_splat_f32x16(y_inverse_local)));
        pc_store_f32x16(&y_[100 * c0 + 32], (y_exp_local_32 * pc_splat_f32x16(y_inverse_local)));
        pc_store_f32x16(&y_[100 * c0 + 48], (y_exp_local_48 * pc_splat_f32x16(y_inverse_local)));
        pc_store_f32x16(&y_[100 * c0 + 64], (y_exp_local_64 * pc_splat_f32x16(y_inverse_local)));
        pc_store_f32x16(&y_[100 * c0 + 80], (y_exp_local_80 * pc_splat_f32x16(y_inverse_local)));
        pc_storen_f32x16(&y_[100 * c0 + 96], (y_exp_local_96 * pc_splat_f32x16(y_inverse_local)), 4);
    }
}
