/* ==== k0_LayerNormalization_0_4 ==== */
/*
 * Nodes: LayerNormalization_0
 * y_mean_acc[i0] = f(a constant)
 * y_mean_acc[i0, i1] add= f(x)
 * y_mean[i0] = f(y_mean_acc)
 * y_inverse_acc[i0] = f(a constant)
 * y_inverse_acc[i0, i1] add= f(x, y_mean)
 * y_inverse[i0] = f(y_inverse_acc)
 * y[i0, i1] = f(x, y_mean, y_inverse, constant_0, constant_1)
 * Schedule: parallel i0 | vector i1 | keep y_inverse y_inverse_acc y_mean y_mean_acc in registers at i0
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#define PC_REDUCTIONS
#include "polyc_vector.h"

void k0_LayerNormalization_0_4(const f32 *restrict x_, f32 *restrict y_, const f32 *restrict constant_0_, const f32 *restrict constant_1_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(256) {
        const i64 c0 = pc_n;
        f32 y_inverse_local;
        f32 y_inverse_acc_local;
        f32 y_mean_local;
        f32 y_mean_acc_local;
        y_mean_acc_local = 0.0f;
        {
            f32x16 partial_0_0, partial_0_16, partial_0_32;
            partial_0_0 = pc_load_f32x16(&x_[48 * c0]);
            partial_0_16 = pc_load_f32x16(&x_[48 * c0 + 16]);
            partial_0_32 = pc_load_f32x16(&x_[48 * c0 + 32]);
            partial_0_0 += partial_0_32;
            partial_0_0 += partial_0_16;
            y_mean_acc_local += pc_reduce_add_f32x16(partial_0_0);
        }
        y_mean_local = (y_mean_acc_local / 48.0f);
        y_inverse_acc_local = 0.0f;
        {
            f32x16 partial_1_0, partial_1_16, partial_1_32;
            partial_1_0 = ((pc_load_f32x16(&x_[48 * c0]) - pc_splat_f32x16(y_mean_local)) * (pc_load_f32x16(&x_[48 * c0]) - pc_splat_f32x16(y_mean_local)));
            partial_1_16 = ((pc_load_f32x16(&x_[48 * c0 + 16]) - pc_splat_f32x16(y_mean_local)) * (pc_load_f32x16(&x_[48 * c0 + 16]) - pc_splat_f32x16(y_mean_local)));
            partial_1_32 = ((pc_load_f32x16(&x_[48 * c0 + 32]) - pc_splat_f32x16(y_mean_local)) * (pc_load_f32x16(&x_[48 * c0 + 32]) - pc_splat_f32x16(y_mean_local)));
            partial_1_0 += partial_1_32;
            partial_1_0 += partial_1_16;
            y_inverse_acc_local += pc_reduce_add_f32x16(partial_1_0);
        }
        y_inverse_local = pc_reciprocal_f32(pc_sqrt_f32((y_inverse_acc_local / 48.0f) + 1e-05f));
        pc_store_f32x16(&y_[48 * c0], ((((pc_load_f32x16(&x_[48 * c0]) - pc_splat_f32x16(y_mean_local)) * pc_splat_f32x16(y_inverse_local)) * pc_load_f32x16(&constant_0_[0])) + pc_load_f32x16(&constant_1_[0])));
        pc_store_f32x16(&y_[48 * c0 + 16], ((((pc_load_f32x16(&x_[48 * c0 + 16]) - pc_splat_f32x16(y_mean_local)) * pc_splat_f32x16(y_inverse_local)) * pc_load_f32x16(&constant_0_[16])) + pc_load_f32x16(&constant_1_[16])));
        pc_store_f32x16(&y_[48 * c0 + 32], ((((pc_load_f32x16(&x_[48 * c0 + 32]) - pc_splat_f32x16(y_mean_local)) * pc_splat_f32x16(y_inverse_local)) * pc_load_f32x16(&constant_0_[32])) + pc_load_f32x16(&constant_1_[32])));
    }
}
