/* ==== k0_x_cast ==== */
/*
 * Nodes: x.cast
 * x_wide[i0, i1] = f(x)
 * Schedule: split i1 32 | vector i1'
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE bf16
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#include "polyc_vector.h"
#define PC_TYPE bf16
#define PC_LANES 16
#include "polyc_vector.h"
#define PC_FROM bf16
#define PC_TO f32
#define PC_LANES 16
#include "polyc_cast.h"

void k0_x_cast(f32 *restrict x_wide_, const bf16 *restrict x_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(1) {
        pc_store_f32x16(&x_wide_[0], pc_cast_bf16_f32x16(pc_load_bf16x16(&x_[0])));
        pc_store_f32x16(&x_wide_[16], pc_cast_bf16_f32x16(pc_load_bf16x16(&x_[16])));
        pc_store_f32x16(&x_wide_[32], pc_cast_bf16_f32x16(pc_load_bf16x16(&x_[32])));
    }
}

/* ==== k1_MatMul_0_out ==== */
/*
 * Nodes: MatMul_0, constant_0.cast, Add_1, Relu_2
 * matmul_0_wide_acc[i, j] = f(a constant)
 * matmul_0_wide_acc[i, j, k] add= f(x_wide, constant_0)
 * y[i, j] = f(matmul_0_wide_acc, constant_1_wide)
 * Schedule: vector j | sink j | keep matmul_0_wide_acc in registers
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE bf16
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#include "polyc_vector.h"
#define PC_TYPE bf16
#define PC_LANES 16
#include "polyc_vector.h"
#define PC_FROM bf16
#define PC_TO f32
#define PC_LANES 16
#include "polyc_cast.h"
#define PC_FROM f32
#define PC_TO bf16
#define PC_LANES 16
#include "polyc_cast.h"

void k1_MatMul_0_out(const f32 *restrict x_wide_, const bf16 *restrict constant_0_, bf16 *restrict y_, const f32 *restrict constant_1_wide_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(1) {
        {
            f32x16 matmul_0_wide_acc_local_0, matmul_0_wide_acc_local_16;
            matmul_0_wide_acc_local_0 = pc_splat_f32x16(0.0f);
            matmul_0_wide_acc_local_16 = pc_splat_f32x16(0.0f);
            for (i64 c0 = 0; c0 < 48; c0 += 1) {
                matmul_0_wide_acc_local_0 += pc_splat_f32x16(x_wide_[c0]) * pc_cast_bf16_f32x16(pc_load_bf16x16(&constant_0_[32 * c0]));
                matmul_0_wide_acc_local_16 += pc_splat_f32x16(x_wide_[c0]) * pc_cast_bf16_f32x16(pc_load_bf16x16(&constant_0_[32 * c0 + 16]));
            }
            pc_store_bf16x16(&y_[0], pc_cast_f32_bf16x16(pc_max_f32x16(matmul_0_wide_acc_local_0 + pc_load_f32x16(&constant_1_wide_[0]), pc_splat_f32x16(0.0f))));
            pc_store_bf16x16(&y_[16], pc_cast_f32_bf16x16(pc_max_f32x16(matmul_0_wide_acc_local_16 + pc_load_f32x16(&constant_1_wide_[16]), pc_splat_f32x16(0.0f))));
        }
    }
}
