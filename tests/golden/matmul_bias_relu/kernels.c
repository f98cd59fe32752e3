/* ==== k0_Relu_2 ==== */
/*
 * Nodes: MatMul_0, Add_1, Relu_2
 * matmul_0_acc[i, j] = f(a constant)
 * matmul_0_acc[i, j, k] add= f(x, constant_0)
 * y[i0, i1] = f(matmul_0_acc, constant_1)
 * Schedule: contraction: i1/32 i0/12, unroll i0, vector i1, 2 parallel
 */
#include "polyc.h"
PC_VECTORS(2)
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 2
#include "polyc_vector.h"
#define PC_TYPE f32
#define PC_LANES 16
#include "polyc_vector.h"

void k0_Relu_2(const f32 *restrict x, const f32 *restrict constant_0, f32 *restrict y, const f32 *restrict constant_1, pc_team *team, int *status)
{
    (void)team, (void)status;
    #pragma omp for schedule(static) nowait
    for (i64 c1 = 0; c1 < 48; c1 += 12) {
        f32x16 matmul_0_acc_local_0_0, matmul_0_acc_local_1_0, matmul_0_acc_local_2_0, matmul_0_acc_local_3_0, matmul_0_acc_local_4_0, matmul_0_acc_local_5_0, matmul_0_acc_local_6_0, matmul_0_acc_local_7_0, matmul_0_acc_local_8_0, matmul_0_acc_local_9_0, matmul_0_acc_local_10_0, matmul_0_acc_local_11_0, matmul_0_acc_local_0_16, matmul_0_acc_local_1_16, matmul_0_acc_local_2_16, matmul_0_acc_local_3_16, matmul_0_acc_local_4_16, matmul_0_acc_local_5_16, matmul_0_acc_local_6_16, matmul_0_acc_local_7_16, matmul_0_acc_local_8_16, matmul_0_acc_local_9_16, matmul_0_acc_local_10_16, matmul_0_acc_local_11_16;
        matmul_0_acc_local_0_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_1_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_2_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_3_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_4_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_5_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_6_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_7_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_8_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_9_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_10_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_11_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_0_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_1_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_2_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_3_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_4_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_5_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_6_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_7_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_8_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_9_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_10_16 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_11_16 = pc_splat_f32x16(0.0f);
        for (i64 c2 = 0; c2 < 40; c2 += 1) {
            matmul_0_acc_local_0_0 += pc_splat_f32x16(x[40 * c1 + c2]) * pc_load_f32x16(&constant_0[64 * c2]);
            matmul_0_acc_local_1_0 += pc_splat_f32x16(x[40 * c1 + c2 + 40]) * pc_load_f32x16(&constant_0[64 * c2]);
            matmul_0_acc_local_2_0 += pc_splat_f32x16(x[40 * c1 + c2 + 80]) * pc_load_f32x16(&constant_0[64 * c2]);
            matmul_0_acc_local_3_0 += pc_splat_f32x16(x[40 * c1 + c2 + 120]) * pc_load_f32x16(&constant_0[64 * c2]);
            matmul_0_acc_local_4_0 += pc_splat_f32x16(x[40 * c1 + c2 + 160]) * pc_load_f32x16(&constant_0[64 * c2]);
            matmul_0_acc_local_5_0 += pc_splat_f32x16(x[40 * c1 + c2 + 200]) * pc_load_f32x16(&constant_0[64 * c2]);
            matmul_0_acc_local_6_0 += pc_splat_f32x16(x[40 * c1 + c2 + 240]) * pc_load_f32x16(&constant_0[64 * c2]);
            matmul_0_acc_local_7_0 += pc_splat_f32x16(x[40 * c1 + c2 + 280]) * pc_load_f32x16(&constant_0[64 * c2]);
            matmul_0_acc_local_8_0 += pc_splat_f32x16(x[40 * c1 + c2 + 320]) * pc_load_f32x16(&constant_0[64 * c2]);
            matmul_0_acc_local_9_0 += pc_splat_f32x16(x[40 * c1 + c2 + 360]) * pc_load_f32x16(&constant_0[64 * c2]);
            matmul_0_acc_local_10_0 += pc_splat_f32x16(x[40 * c1 + c2 + 400]) * pc_load_f32x16(&constant_0[64 * c2]);
            matmul_0_acc_local_11_0 += pc_splat_f32x16(x[40 * c1 + c2 + 440]) * pc_load_f32x16(&constant_0[64 * c2]);
            matmul_0_acc_local_0_16 += pc_splat_f32x16(x[40 * c1 + c2]) * pc_load_f32x16(&constant_0[64 * c2 + 16]);
            matmul_0_acc_local_1_16 += pc_splat_f32x16(x[40 * c1 + c2 + 40]) * pc_load_f32x16(&constant_0[64 * c2 + 16]);
            matmul_0_acc_local_2_16 += pc_splat_f32x16(x[40 * c1 + c2 + 80]) * pc_load_f32x16(&constant_0[64 * c2 + 16]);
            matmul_0_acc_local_3_16 += pc_splat_f32x16(x[40 * c1 + c2 + 120]) * pc_load_f32x16(&constant_0[64 * c2 + 16]);
            matmul_0_acc_local_4_16 += pc_splat_f32x16(x[40 * c1 + c2 + 160]) * pc_load_f32x16(&constant_0[64 * c2 + 16]);
            matmul_0_acc_local_5_16 += pc_splat_f32x16(x[40 * c1 + c2 + 200]) * pc_load_f32x16(&constant_0[64 * c2 + 16]);
            matmul_0_acc_local_6_16 += pc_splat_f32x16(x[40 * c1 + c2 + 240]) * pc_load_f32x16(&constant_0[64 * c2 + 16]);
            matmul_0_acc_local_7_16 += pc_splat_f32x16(x[40 * c1 + c2 + 280]) * pc_load_f32x16(&constant_0[64 * c2 + 16]);
            matmul_0_acc_local_8_16 += pc_splat_f32x16(x[40 * c1 + c2 + 320]) * pc_load_f32x16(&constant_0[64 * c2 + 16]);
            matmul_0_acc_local_9_16 += pc_splat_f32x16(x[40 * c1 + c2 + 360]) * pc_load_f32x16(&constant_0[64 * c2 + 16]);
            matmul_0_acc_local_10_16 += pc_splat_f32x16(x[40 * c1 + c2 + 400]) * pc_load_f32x16(&constant_0[64 * c2 + 16]);
            matmul_0_acc_local_11_16 += pc_splat_f32x16(x[40 * c1 + c2 + 440]) * pc_load_f32x16(&constant_0[64 * c2 + 16]);
        }
        pc_store_f32x16(&y[50 * c1], pc_max_f32x16(matmul_0_acc_local_0_0 + pc_load_f32x16(&constant_1[0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 50], pc_max_f32x16(matmul_0_acc_local_1_0 + pc_load_f32x16(&constant_1[0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 100], pc_max_f32x16(matmul_0_acc_local_2_0 + pc_load_f32x16(&constant_1[0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 150], pc_max_f32x16(matmul_0_acc_local_3_0 + pc_load_f32x16(&constant_1[0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 200], pc_max_f32x16(matmul_0_acc_local_4_0 + pc_load_f32x16(&constant_1[0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 250], pc_max_f32x16(matmul_0_acc_local_5_0 + pc_load_f32x16(&constant_1[0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 300], pc_max_f32x16(matmul_0_acc_local_6_0 + pc_load_f32x16(&constant_1[0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 350], pc_max_f32x16(matmul_0_acc_local_7_0 + pc_load_f32x16(&constant_1[0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 400], pc_max_f32x16(matmul_0_acc_local_8_0 + pc_load_f32x16(&constant_1[0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 450], pc_max_f32x16(matmul_0_acc_local_9_0 + pc_load_f32x16(&constant_1[0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 500], pc_max_f32x16(matmul_0_acc_local_10_0 + pc_load_f32x16(&constant_1[0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 550], pc_max_f32x16(matmul_0_acc_local_11_0 + pc_load_f32x16(&constant_1[0]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 16], pc_max_f32x16(matmul_0_acc_local_0_16 + pc_load_f32x16(&constant_1[16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 66], pc_max_f32x16(matmul_0_acc_local_1_16 + pc_load_f32x16(&constant_1[16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 116], pc_max_f32x16(matmul_0_acc_local_2_16 + pc_load_f32x16(&constant_1[16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 166], pc_max_f32x16(matmul_0_acc_local_3_16 + pc_load_f32x16(&constant_1[16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 216], pc_max_f32x16(matmul_0_acc_local_4_16 + pc_load_f32x16(&constant_1[16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 266], pc_max_f32x16(matmul_0_acc_local_5_16 + pc_load_f32x16(&constant_1[16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 316], pc_max_f32x16(matmul_0_acc_local_6_16 + pc_load_f32x16(&constant_1[16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 366], pc_max_f32x16(matmul_0_acc_local_7_16 + pc_load_f32x16(&constant_1[16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 416], pc_max_f32x16(matmul_0_acc_local_8_16 + pc_load_f32x16(&constant_1[16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 466], pc_max_f32x16(matmul_0_acc_local_9_16 + pc_load_f32x16(&constant_1[16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 516], pc_max_f32x16(matmul_0_acc_local_10_16 + pc_load_f32x16(&constant_1[16]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 566], pc_max_f32x16(matmul_0_acc_local_11_16 + pc_load_f32x16(&constant_1[16]), pc_splat_f32x16(0.0f)));
    }
    pc_barrier(team);
    #pragma omp for schedule(static) nowait
    for (i64 c1 = 0; c1 < 48; c1 += 12) {
        f32x16 matmul_0_acc_local_0_0, matmul_0_acc_local_1_0, matmul_0_acc_local_2_0, matmul_0_acc_local_3_0, matmul_0_acc_local_4_0, matmul_0_acc_local_5_0, matmul_0_acc_local_6_0, matmul_0_acc_local_7_0, matmul_0_acc_local_8_0, matmul_0_acc_local_9_0, matmul_0_acc_local_10_0, matmul_0_acc_local_11_0;
        f32x2 matmul_0_acc_local_0_16, matmul_0_acc_local_1_16, matmul_0_acc_local_2_16, matmul_0_acc_local_3_16, matmul_0_acc_local_4_16, matmul_0_acc_local_5_16, matmul_0_acc_local_6_16, matmul_0_acc_local_7_16, matmul_0_acc_local_8_16, matmul_0_acc_local_9_16, matmul_0_acc_local_10_16, matmul_0_acc_local_11_16;
        matmul_0_acc_local_0_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_1_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_2_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_3_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_4_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_5_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_6_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_7_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_8_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_9_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_10_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_11_0 = pc_splat_f32x16(0.0f);
        matmul_0_acc_local_0_16 = pc_splat_f32x2(0.0f);
        matmul_0_acc_local_1_16 = pc_splat_f32x2(0.0f);
        matmul_0_acc_local_2_16 = pc_splat_f32x2(0.0f);
        matmul_0_acc_local_3_16 = pc_splat_f32x2(0.0f);
        matmul_0_acc_local_4_16 = pc_splat_f32x2(0.0f);
        matmul_0_acc_local_5_16 = pc_splat_f32x2(0.0f);
        matmul_0_acc_local_6_16 = pc_splat_f32x2(0.0f);
        matmul_0_acc_local_7_16 = pc_splat_f32x2(0.0f);
        matmul_0_acc_local_8_16 = pc_splat_f32x2(0.0f);
        matmul_0_acc_local_9_16 = pc_splat_f32x2(0.0f);
        matmul_0_acc_local_10_16 = pc_splat_f32x2(0.0f);
        matmul_0_acc_local_11_16 = pc_splat_f32x2(0.0f);
        for (i64 c2 = 0; c2 < 40; c2 += 1) {
            matmul_0_acc_local_0_0 += pc_splat_f32x16(x[40 * c1 + c2]) * pc_load_f32x16(&constant_0[64 * c2 + 32]);
            matmul_0_acc_local_1_0 += pc_splat_f32x16(x[40 * c1 + c2 + 40]) * pc_load_f32x16(&constant_0[64 * c2 + 32]);
            matmul_0_acc_local_2_0 += pc_splat_f32x16(x[40 * c1 + c2 + 80]) * pc_load_f32x16(&constant_0[64 * c2 + 32]);
            matmul_0_acc_local_3_0 += pc_splat_f32x16(x[40 * c1 + c2 + 120]) * pc_load_f32x16(&constant_0[64 * c2 + 32]);
            matmul_0_acc_local_4_0 += pc_splat_f32x16(x[40 * c1 + c2 + 160]) * pc_load_f32x16(&constant_0[64 * c2 + 32]);
            matmul_0_acc_local_5_0 += pc_splat_f32x16(x[40 * c1 + c2 + 200]) * pc_load_f32x16(&constant_0[64 * c2 + 32]);
            matmul_0_acc_local_6_0 += pc_splat_f32x16(x[40 * c1 + c2 + 240]) * pc_load_f32x16(&constant_0[64 * c2 + 32]);
            matmul_0_acc_local_7_0 += pc_splat_f32x16(x[40 * c1 + c2 + 280]) * pc_load_f32x16(&constant_0[64 * c2 + 32]);
            matmul_0_acc_local_8_0 += pc_splat_f32x16(x[40 * c1 + c2 + 320]) * pc_load_f32x16(&constant_0[64 * c2 + 32]);
            matmul_0_acc_local_9_0 += pc_splat_f32x16(x[40 * c1 + c2 + 360]) * pc_load_f32x16(&constant_0[64 * c2 + 32]);
            matmul_0_acc_local_10_0 += pc_splat_f32x16(x[40 * c1 + c2 + 400]) * pc_load_f32x16(&constant_0[64 * c2 + 32]);
            matmul_0_acc_local_11_0 += pc_splat_f32x16(x[40 * c1 + c2 + 440]) * pc_load_f32x16(&constant_0[64 * c2 + 32]);
            matmul_0_acc_local_0_16 += pc_splat_f32x2(x[40 * c1 + c2]) * pc_load_f32x2(&constant_0[64 * c2 + 48]);
            matmul_0_acc_local_1_16 += pc_splat_f32x2(x[40 * c1 + c2 + 40]) * pc_load_f32x2(&constant_0[64 * c2 + 48]);
            matmul_0_acc_local_2_16 += pc_splat_f32x2(x[40 * c1 + c2 + 80]) * pc_load_f32x2(&constant_0[64 * c2 + 48]);
            matmul_0_acc_local_3_16 += pc_splat_f32x2(x[40 * c1 + c2 + 120]) * pc_load_f32x2(&constant_0[64 * c2 + 48]);
            matmul_0_acc_local_4_16 += pc_splat_f32x2(x[40 * c1 + c2 + 160]) * pc_load_f32x2(&constant_0[64 * c2 + 48]);
            matmul_0_acc_local_5_16 += pc_splat_f32x2(x[40 * c1 + c2 + 200]) * pc_load_f32x2(&constant_0[64 * c2 + 48]);
            matmul_0_acc_local_6_16 += pc_splat_f32x2(x[40 * c1 + c2 + 240]) * pc_load_f32x2(&constant_0[64 * c2 + 48]);
            matmul_0_acc_local_7_16 += pc_splat_f32x2(x[40 * c1 + c2 + 280]) * pc_load_f32x2(&constant_0[64 * c2 + 48]);
            matmul_0_acc_local_8_16 += pc_splat_f32x2(x[40 * c1 + c2 + 320]) * pc_load_f32x2(&constant_0[64 * c2 + 48]);
            matmul_0_acc_local_9_16 += pc_splat_f32x2(x[40 * c1 + c2 + 360]) * pc_load_f32x2(&constant_0[64 * c2 + 48]);
            matmul_0_acc_local_10_16 += pc_splat_f32x2(x[40 * c1 + c2 + 400]) * pc_load_f32x2(&constant_0[64 * c2 + 48]);
            matmul_0_acc_local_11_16 += pc_splat_f32x2(x[40 * c1 + c2 + 440]) * pc_load_f32x2(&constant_0[64 * c2 + 48]);
        }
        pc_store_f32x16(&y[50 * c1 + 32], pc_max_f32x16(matmul_0_acc_local_0_0 + pc_load_f32x16(&constant_1[32]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 82], pc_max_f32x16(matmul_0_acc_local_1_0 + pc_load_f32x16(&constant_1[32]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 132], pc_max_f32x16(matmul_0_acc_local_2_0 + pc_load_f32x16(&constant_1[32]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 182], pc_max_f32x16(matmul_0_acc_local_3_0 + pc_load_f32x16(&constant_1[32]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 232], pc_max_f32x16(matmul_0_acc_local_4_0 + pc_load_f32x16(&constant_1[32]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 282], pc_max_f32x16(matmul_0_acc_local_5_0 + pc_load_f32x16(&constant_1[32]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 332], pc_max_f32x16(matmul_0_acc_local_6_0 + pc_load_f32x16(&constant_1[32]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 382], pc_max_f32x16(matmul_0_acc_local_7_0 + pc_load_f32x16(&constant_1[32]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 432], pc_max_f32x16(matmul_0_acc_local_8_0 + pc_load_f32x16(&constant_1[32]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 482], pc_max_f32x16(matmul_0_acc_local_9_0 + pc_load_f32x16(&constant_1[32]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 532], pc_max_f32x16(matmul_0_acc_local_10_0 + pc_load_f32x16(&constant_1[32]), pc_splat_f32x16(0.0f)));
        pc_store_f32x16(&y[50 * c1 + 582], pc_max_f32x16(matmul_0_acc_local_11_0 + pc_load_f32x16(&constant_1[32]), pc_splat_f32x16(0.0f)));
        pc_store_f32x2(&y[50 * c1 + 48], pc_max_f32x2(matmul_0_acc_local_0_16 + pc_load_f32x2(&constant_1[48]), pc_splat_f32x2(0.0f)));
        pc_store_f32x2(&y[50 * c1 + 98], pc_max_f32x2(matmul_0_acc_local_1_16 + pc_load_f32x2(&constant_1[48]), pc_splat_f32x2(0.0f)));
        pc_store_f32x2(&y[50 * c1 + 148], pc_max_f32x2(matmul_0_acc_local_2_16 + pc_load_f32x2(&constant_1[48]), pc_splat_f32x2(0.0f)));
        pc_store_f32x2(&y[50 * c1 + 198], pc_max_f32x2(matmul_0_acc_local_3_16 + pc_load_f32x2(&constant_1[48]), pc_splat_f32x2(0.0f)));
        pc_store_f32x2(&y[50 * c1 + 248], pc_max_f32x2(matmul_0_acc_local_4_16 + pc_load_f32x2(&constant_1[48]), pc_splat_f32x2(0.0f)));
        pc_store_f32x2(&y[50 * c1 + 298], pc_max_f32x2(matmul_0_acc_local_5_16 + pc_load_f32x2(&constant_1[48]), pc_splat_f32x2(0.0f)));
        pc_store_f32x2(&y[50 * c1 + 348], pc_max_f32x2(matmul_0_acc_local_6_16 + pc_load_f32x2(&constant_1[48]), pc_splat_f32x2(0.0f)));
        pc_store_f32x2(&y[50 * c1 + 398], pc_max_f32x2(matmul_0_acc_local_7_16 + pc_load_f32x2(&constant_1[48]), pc_splat_f32x2(0.0f)));
        pc_store_f32x2(&y[50 * c1 + 448], pc_max_f32x2(matmul_0_acc_local_8_16 + pc_load_f32x2(&constant_1[48]), pc_splat_f32x2(0.0f)));
        pc_store_f32x2(&y[50 * c1 + 498], pc_max_f32x2(matmul_0_acc_local_9_16 + pc_load_f32x2(&constant_1[48]), pc_splat_f32x2(0.0f)));
        pc_store_f32x2(&y[50 * c1 + 548], pc_max_f32x2(matmul_0_acc_local_10_16 + pc_load_f32x2(&constant_1[48]), pc_splat_f32x2(0.0f)));
        pc_store_f32x2(&y[50 * c1 + 598], pc_max_f32x2(matmul_0_acc_local_11_16 + pc_load_f32x2(&constant_1[48]), pc_splat_f32x2(0.0f)));
    }
    pc_barrier(team);
}
