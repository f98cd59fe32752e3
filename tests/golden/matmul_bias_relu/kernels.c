/* ==== k0_MatMul_0_out ==== */
/*
 * Nodes: MatMul_0, Add_1, Relu_2
 * matmul_0_acc[i, j] = f(a constant)
 * matmul_0_acc[i, j, k] add= f(x, constant_0)
 * y[i, j] = f(matmul_0_acc, constant_1)
 * Schedule: order j i | split j 32 | split i 11 | vector j' | unroll i' | sink j' i' | parallel j i | keep matmul_0_acc in registers at i
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#include "polyc_vector.h"

void k0_MatMul_0_out(const f32 *restrict x_, const f32 *restrict constant_0_, f32 *restrict y_, const f32 *restrict constant_1_, pc_thread *pc_self, int *status)
{
    (void)pc_self, (void)status;
    PC_SHARE(6) {
        const i64 c0 = pc_n / 3;
        const i64 c1 = pc_n % 3;
        f32x16 matmul_0_acc_local_0_0, matmul_0_acc_local_0_16, matmul_0_acc_local_1_0, matmul_0_acc_local_1_16, matmul_0_acc_local_2_0, matmul_0_acc_local_2_16, matmul_0_acc_local_3_0, matmul_0_acc_local_3_16, matmul_0_acc_local_4_0, matmul_0_acc_local_4_16, matmul_0_acc_local_5_0, matmul_0_acc_local_5_16, matmul_0_acc_local_6_0, matmul_0_acc_local_6_16, matmul_0_acc_local_7_0, matmul_0_acc_local_7_16, matmul_0_acc_local_8_0, matmul_0_acc_local_8_16, matmul_0_acc_local_9_0, matmul_0_acc_local_9_16, matmul_0_acc_local_10_0, matmul_0_acc_local_10_16;
        matmul_0_acc_local_0_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_0_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_1_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_1_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_2_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_2_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_3_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_3_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_4_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_4_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_5_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_5_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_6_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_6_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_7_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_7_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_8_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_8_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_9_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_9_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_10_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_10_16 = pc_splat_f32x16(0.0f);
        for (i64 c2 = 0; c2 < 40; c2 += 1) {
            f32x16 loaded_0, loaded_16;
            loaded_0 = pc_rounded_f32x16(pc_load_f32x16(&constant_0_[1280 * c0 + 32 * c2]));
            loaded_16 = pc_rounded_f32x16(pc_load_f32x16(&constant_0_[1280 * c0 + 32 * c2 + 16]));
            matmul_0_acc_local_0_0 += pc_splat_f32x16(x_[440 * c1 + c2]) * loaded_0;
            matmul_0_acc_local_0_16 += pc_splat_f32x16(x_[440 * c1 + c2]) * loaded_16;
            matmul_0_acc_local_1_0 += pc_splat_f32x16(x_[440 * c1 + c2 + 40]) * loaded_0;
            matmul_0_acc_local_1_16 += pc_splat_f32x16(x_[440 * c1 + c2 + 40]) * loaded_16;
            matmul_0_acc_local_2_0 += pc_splat_f32x16(x_[440 * c1 + c2 + 80]) * loaded_0;
            matmul_0_acc_local_2_16 += pc_splat_f32x16(x_[440 * c1 + c2 + 80]) * loaded_16;
            matmul_0_acc_local_3_0 += pc_splat_f32x16(x_[440 * c1 + c2 + 120]) * loaded_0;
            matmul_0_acc_local_3_16 += pc_splat_f32x16(x_[440 * c1 + c2 + 120]) * loaded_16;
            matmul_0_acc_local_4_0 += pc_splat_f32x16(x_[440 * c1 + c2 + 160]) * loaded_0;
            matmul_0_acc_local_4_16 += pc_splat_f32x16(x_[440 * c1 + c2 + 160]) * loaded_16;
            matmul_0_acc_local_5_0 += pc_splat_f32x16(x_[440 * c1 + c2 + 200]) * loaded_0;
            matmul_0_acc_local_5_16 += pc_splat_f32x16(x_[440 * c1 + c2 + 200]) * loaded_16;
            matmul_0_acc_local_6_0 += pc_splat_f32x16(x_[440 * c1 + c2 + 240]) * loaded_0;
            matmul_0_acc_local_6_16 += pc_splat_f32x16(x_[440 * c1 + c2 + 240]) * loaded_16;
            matmul_0_acc_local_7_0 += pc_splat_f32x16(x_[440 * c1 + c2 + 280]) * loaded_0;
            matmul_0_acc_local_7_16 += pc_splat_f32x16(x_[440 * c1 + c2 + 280]) * loaded_16;
            matmul_0_acc_local_8_0 += pc_splat_f32x16(x_[440 * c1 + c2 + 320]) * loaded_0;
            matmul_0_acc_local_8_16 += pc_splat_f32x16(x_[440 * c1 + c2 + 320]) * loaded_16;
            matmul_0_acc_local_9_0 += pc_splat_f32x16(x_[440 * c1 + c2 + 360]) * loaded_0;
            matmul_0_acc_local_9_16 += pc_splat_f32x16(x_[440 * c1 + c2 + 360]) * loaded_16;
            matmul_0_acc_local_10_0 += pc_splat_f32x16(x_[440 * c1 + c2 + 400]) * loaded_0;
            matmul_0_acc_local_10_16 += pc_splat_f32x16(x_[440 * c1 + c2 + 400]) * loaded_16;
        }
        pc_store_f32x16(&y_[32 * c0 + 704 * c1], pc_max_f32x16(matmul_0_acc_local_0_0 + pc_load_f32x16(&constant_1_[32 * c0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 16], pc_max_f32x16(matmul_0_acc_local_0_16 + pc_load_f32x16(&constant_1_[32 * c0 + 16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 64], pc_max_f32x16(matmul_0_acc_local_1_0 + pc_load_f32x16(&constant_1_[32 * c0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 80], pc_max_f32x16(matmul_0_acc_local_1_16 + pc_load_f32x16(&constant_1_[32 * c0 + 16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 128], pc_max_f32x16(matmul_0_acc_local_2_0 + pc_load_f32x16(&constant_1_[32 * c0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 144], pc_max_f32x16(matmul_0_acc_local_2_16 + pc_load_f32x16(&constant_1_[32 * c0 + 16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 192], pc_max_f32x16(matmul_0_acc_local_3_0 + pc_load_f32x16(&constant_1_[32 * c0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 208], pc_max_f32x16(matmul_0_acc_local_3_16 + pc_load_f32x16(&constant_1_[32 * c0 + 16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 256], pc_max_f32x16(matmul_0_acc_local_4_0 + pc_load_f32x16(&constant_1_[32 * c0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 272], pc_max_f32x16(matmul_0_acc_local_4_16 + pc_load_f32x16(&constant_1_[32 * c0 + 16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 320], pc_max_f32x16(matmul_0_acc_local_5_0 + pc_load_f32x16(&constant_1_[32 * c0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 336], pc_max_f32x16(matmul_0_acc_local_5_16 + pc_load_f32x16(&constant_1_[32 * c0 + 16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 384], pc_max_f32x16(matmul_0_acc_local_6_0 + pc_load_f32x16(&constant_1_[32 * c0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 400], pc_max_f32x16(matmul_0_acc_local_6_16 + pc_load_f32x16(&constant_1_[32 * c0 + 16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 448], pc_max_f32x16(matmul_0_acc_local_7_0 + pc_load_f32x16(&constant_1_[32 * c0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 464], pc_max_f32x16(matmul_0_acc_local_7_16 + pc_load_f32x16(&constant_1_[32 * c0 + 16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 512], pc_max_f32x16(matmul_0_acc_local_8_0 + pc_load_f32x16(&constant_1_[32 * c0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 528], pc_max_f32x16(matmul_0_acc_local_8_16 + pc_load_f32x16(&constant_1_[32 * c0 + 16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 576], pc_max_f32x16(matmul_0_acc_local_9_0 + pc_load_f32x16(&constant_1_[32 * c0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 592], pc_max_f32x16(matmul_0_acc_local_9_16 + pc_load_f32x16(&constant_1_[32 * c0 + 16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 640], pc_max_f32x16(matmul_0_acc_local_10_0 + pc_load_f32x16(&constant_1_[32 * c0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y_[32 * c0 + 704 * c1 + 656], pc_max_f32x16(matmul_0_acc_local_10_16 + pc_load_f32x16(&constant_1_[32 * c0 + 16]), pc_splat_f32x16(0.0f)));
    }
}
