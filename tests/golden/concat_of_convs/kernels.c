/* ==== k0_Concat_4 ==== */
/*
 * Nodes: Conv_0, Relu_1, Concat_4
 * conv_0_acc[n, o, y, x] = f(a constant)
 * conv_0_acc[n, o, y, x, c] add= f(x, constant_0)
 * concat_0[i0, i1, i2, i3] = f(conv_0_acc)
 * Schedule: contraction: i1/16 i2 i3/7, unroll i3, vector i1, one thread
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#include "polyc_vector.h"

void k0_Concat_4(const f32 *restrict x, const f32 *restrict constant_0, f32 *restrict concat_0, pc_team *team, int *status)
{
    (void)team, (void)status;
    #pragma omp master
    {
        for (i64 c1 = 0; c1 < 7; c1 += 1) {
            f32x16 conv_0_acc_local_0_0, conv_0_acc_local_0_1, conv_0_acc_local_0_2, conv_0_acc_local_0_3, conv_0_acc_local_0_4, conv_0_acc_local_0_5, conv_0_acc_local_0_6;
            conv_0_acc_local_0_0 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_0_1 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_0_2 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_0_3 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_0_4 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_0_5 = pc_splat_f32x16(0.0f);
            conv_0_acc_local_0_6 = pc_splat_f32x16(0.0f);
            for (i64 c4 = 0; c4 < 16; c4 += 1) {
                conv_0_acc_local_0_0 += pc_splat_f32x16(x[7 * c1 + 49 * c4]) * pc_load_f32x16(&constant_0[16 * c4]);
                conv_0_acc_local_0_1 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 1]) * pc_load_f32x16(&constant_0[16 * c4]);
                conv_0_acc_local_0_2 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 2]) * pc_load_f32x16(&constant_0[16 * c4]);
                conv_0_acc_local_0_3 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 3]) * pc_load_f32x16(&constant_0[16 * c4]);
                conv_0_acc_local_0_4 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 4]) * pc_load_f32x16(&constant_0[16 * c4]);
                conv_0_acc_local_0_5 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 5]) * pc_load_f32x16(&constant_0[16 * c4]);
                conv_0_acc_local_0_6 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 6]) * pc_load_f32x16(&constant_0[16 * c4]);
            }
            pc_store_f32x16(&concat_0[336 * c1], pc_max_f32x16(conv_0_acc_local_0_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 48], pc_max_f32x16(conv_0_acc_local_0_1, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 96], pc_max_f32x16(conv_0_acc_local_0_2, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 144], pc_max_f32x16(conv_0_acc_local_0_3, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 192], pc_max_f32x16(conv_0_acc_local_0_4, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 240], pc_max_f32x16(conv_0_acc_local_0_5, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 288], pc_max_f32x16(conv_0_acc_local_0_6, pc_splat_f32x16(0.0f)));
        }
    }
    pc_barrier(team);
}

/* ==== k1_Concat_4_1 ==== */
/*
 * Nodes: Conv_2, Relu_3, Concat_4
 * conv_1_acc[n, o, y, x] = f(a constant)
 * conv_1_acc[n, o, y, x, c] add= f(x, constant_1)
 * concat_0[i0, i1, i2, i3] = f(conv_1_acc)
 * Schedule: contraction: i1/32 i2 i3/7, unroll i3, vector i1, one thread
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#include "polyc_vector.h"

void k1_Concat_4_1(const f32 *restrict x, const f32 *restrict constant_1, f32 *restrict concat_0, pc_team *team, int *status)
{
    (void)team, (void)status;
    #pragma omp master
    {
        for (i64 c1 = 0; c1 < 7; c1 += 1) {
            f32x16 conv_1_acc_local_0_0, conv_1_acc_local_0_1, conv_1_acc_local_0_2, conv_1_acc_local_0_3, conv_1_acc_local_0_4, conv_1_acc_local_0_5, conv_1_acc_local_0_6, conv_1_acc_local_16_0, conv_1_acc_local_16_1, conv_1_acc_local_16_2, conv_1_acc_local_16_3, conv_1_acc_local_16_4, conv_1_acc_local_16_5, conv_1_acc_local_16_6;
            conv_1_acc_local_0_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_0_1 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_0_2 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_0_3 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_0_4 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_0_5 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_0_6 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_16_0 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_16_1 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_16_2 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_16_3 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_16_4 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_16_5 = pc_splat_f32x16(0.0f);
            conv_1_acc_local_16_6 = pc_splat_f32x16(0.0f);
            for (i64 c4 = 0; c4 < 16; c4 += 1) {
                conv_1_acc_local_0_0 += pc_splat_f32x16(x[7 * c1 + 49 * c4]) * pc_load_f32x16(&constant_1[32 * c4]);
                conv_1_acc_local_0_1 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 1]) * pc_load_f32x16(&constant_1[32 * c4]);
                conv_1_acc_local_0_2 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 2]) * pc_load_f32x16(&constant_1[32 * c4]);
                conv_1_acc_local_0_3 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 3]) * pc_load_f32x16(&constant_1[32 * c4]);
                conv_1_acc_local_0_4 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 4]) * pc_load_f32x16(&constant_1[32 * c4]);
                conv_1_acc_local_0_5 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 5]) * pc_load_f32x16(&constant_1[32 * c4]);
                conv_1_acc_local_0_6 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 6]) * pc_load_f32x16(&constant_1[32 * c4]);
                conv_1_acc_local_16_0 += pc_splat_f32x16(x[7 * c1 + 49 * c4]) * pc_load_f32x16(&constant_1[32 * c4 + 16]);
                conv_1_acc_local_16_1 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 1]) * pc_load_f32x16(&constant_1[32 * c4 + 16]);
                conv_1_acc_local_16_2 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 2]) * pc_load_f32x16(&constant_1[32 * c4 + 16]);
                conv_1_acc_local_16_3 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 3]) * pc_load_f32x16(&constant_1[32 * c4 + 16]);
                conv_1_acc_local_16_4 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 4]) * pc_load_f32x16(&constant_1[32 * c4 + 16]);
                conv_1_acc_local_16_5 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 5]) * pc_load_f32x16(&constant_1[32 * c4 + 16]);
                conv_1_acc_local_16_6 += pc_splat_f32x16(x[7 * c1 + 49 * c4 + 6]) * pc_load_f32x16(&constant_1[32 * c4 + 16]);
            }
            pc_store_f32x16(&concat_0[336 * c1 + 16], pc_max_f32x16(conv_1_acc_local_0_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 64], pc_max_f32x16(conv_1_acc_local_0_1, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 112], pc_max_f32x16(conv_1_acc_local_0_2, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 160], pc_max_f32x16(conv_1_acc_local_0_3, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 208], pc_max_f32x16(conv_1_acc_local_0_4, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 256], pc_max_f32x16(conv_1_acc_local_0_5, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 304], pc_max_f32x16(conv_1_acc_local_0_6, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 32], pc_max_f32x16(conv_1_acc_local_16_0, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 80], pc_max_f32x16(conv_1_acc_local_16_1, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 128], pc_max_f32x16(conv_1_acc_local_16_2, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 176], pc_max_f32x16(conv_1_acc_local_16_3, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 224], pc_max_f32x16(conv_1_acc_local_16_4, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 272], pc_max_f32x16(conv_1_acc_local_16_5, pc_splat_f32x16(0.0f)));
            pc_store_f32x16(&concat_0[336 * c1 + 320], pc_max_f32x16(conv_1_acc_local_16_6, pc_splat_f32x16(0.0f)));
        }
    }
    pc_barrier(team);
}

/* ==== k2_Relu_6 ==== */
/*
 * Nodes: Conv_5, Relu_6
 * conv_2_acc[n, o, y, x] = f(a constant)
 * conv_2_acc[n, o, y, x, c] add= f(concat_0, constant_2)
 * y[i0, i1, i2, i3] = f(conv_2_acc)
 * Schedule: contraction: i1/16 i2 i3/7, unroll i3, vector i1, 3 parallel
 */
#include "polyc.h"
PC_VECTORS(16)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 16
#include "polyc_vector.h"

void k2_Relu_6(const f32 *restrict concat_0, const f32 *restrict constant_2, f32 *restrict y, pc_team *team, int *status)
{
    (void)team, (void)status;
    #pragma omp for schedule(static) nowait
    for (i64 c1 = 0; c1 < 7; c1 += 1) {
        f32x16 conv_2_acc_local_0_0, conv_2_acc_local_0_1, conv_2_acc_local_0_2, conv_2_acc_local_0_3, conv_2_acc_local_0_4, conv_2_acc_local_0_5, conv_2_acc_local_0_6;
        conv_2_acc_local_0_0 = pc_splat_f32x16(0.0f);
        conv_2_acc_local_0_1 = pc_splat_f32x16(0.0f);
        conv_2_acc_local_0_2 = pc_splat_f32x16(0.0f);
        conv_2_acc_local_0_3 = pc_splat_f32x16(0.0f);
        conv_2_acc_local_0_4 = pc_splat_f32x16(0.0f);
        conv_2_acc_local_0_5 = pc_splat_f32x16(0.0f);
        conv_2_acc_local_0_6 = pc_splat_f32x16(0.0f);
        for (i64 c4 = 0; c4 < 48; c4 += 1) {
            conv_2_acc_local_0_0 += pc_splat_f32x16(concat_0[336 * c1 + c4]) * pc_load_f32x16(&constant_2[16 * c4]);
            conv_2_acc_local_0_1 += pc_splat_f32x16(concat_0[336 * c1 + c4 + 48]) * pc_load_f32x16(&constant_2[16 * c4]);
            conv_2_acc_local_0_2 += pc_splat_f32x16(concat_0[336 * c1 + c4 + 96]) * pc_load_f32x16(&constant_2[16 * c4]);
            conv_2_acc_local_0_3 += pc_splat_f32x16(concat_0[336 * c1 + c4 + 144]) * pc_load_f32x16(&constant_2[16 * c4]);
            conv_2_acc_local_0_4 += pc_splat_f32x16(concat_0[336 * c1 + c4 + 192]) * pc_load_f32x16(&constant_2[16 * c4]);
            conv_2_acc_local_0_5 += pc_splat_f32x16(concat_0[336 * c1 + c4 + 240]) * pc_load_f32x16(&constant_2[16 * c4]);
            conv_2_acc_local_0_6 += pc_splat_f32x16(concat_0[336 * c1 + c4 + 288]) * pc_load_f32x16(&constant_2[16 * c4]);
        }
        pc_stores_f32x16(&y[7 * c1], pc_max_f32x16(conv_2_acc_local_0_0, pc_splat_f32x16(0.0f)), 49);
        pc_stores_f32x16(&y[7 * c1 + 1], pc_max_f32x16(conv_2_acc_local_0_1, pc_splat_f32x16(0.0f)), 49);
        pc_stores_f32x16(&y[7 * c1 + 2], pc_max_f32x16(conv_2_acc_local_0_2, pc_splat_f32x16(0.0f)), 49);
        pc_stores_f32x16(&y[7 * c1 + 3], pc_max_f32x16(conv_2_acc_local_0_3, pc_splat_f32x16(0.0f)), 49);
        pc_stores_f32x16(&y[7 * c1 + 4], pc_max_f32x16(conv_2_acc_local_0_4, pc_splat_f32x16(0.0f)), 49);
        pc_stores_f32x16(&y[7 * c1 + 5], pc_max_f32x16(conv_2_acc_local_0_5, pc_splat_f32x16(0.0f)), 49);
        pc_stores_f32x16(&y[7 * c1 + 6], pc_max_f32x16(conv_2_acc_local_0_6, pc_splat_f32x16(0.0f)), 49);
    }
    pc_barrier(team);
}
