/* ==== k0_MaxPool_0_pad_8 ==== */
/*
 * Nodes: MaxPool_0.pad
 * x_padded[i0, i1, i2, i3] = f(x)
 * Schedule: pointwise: i0 i1 i2 i3/9, vector i3, one thread
 */
#include "polyc.h"
PC_VECTORS(8)
#define PC_TYPE f32
#include "polyc_scalar.h"
#define PC_TYPE f32
#define PC_LANES 8
#include "polyc_vector.h"

void k0_MaxPool_0_pad_8(f32 *restrict x_padded, const f32 *restrict x, pc_team *team, int *status)
{
    (void)team, (void)status;
    #pragma omp master
    {
        for (i64 c1 = 0; c1 < 16; c1 += 1) {
            for (i64 c3 = 0; c3 < 11; c3 += 1) {
                x_padded[121 * c1 + c3] = -__builtin_inff();
            }
        }
        for (i64 c1 = 0; c1 < 16; c1 += 1) {
            for (i64 c3 = 0; c3 < 11; c3 += 1) {
                x_padded[121 * c1 + c3 + 110] = -__builtin_inff();
            }
        }
        for (i64 c1 = 0; c1 < 16; c1 += 1) {
            for (i64 c2 = 0; c2 < 9; c2 += 1) {
                x_padded[121 * c1 + 11 * c2 + 11] = -__builtin_inff();
            }
        }
        for (i64 c1 = 0; c1 < 16; c1 += 1) {
            for (i64 c2 = 0; c2 < 9; c2 += 1) {
                x_padded[121 * c1 + 11 * c2 + 21] = -__builtin_inff();
            }
        }
        for (i64 c1 = 0; c1 < 16; c1 += 1) {
            for (i64 c2 = 0; c2 < 9; c2 += 1) {
                pc_store_f32x8(&x_padded[121 * c1 + 11 * c2 + 12], pc_load_f32x8(&x[81 * c1 + 9 * c2]));
                x_padded[121 * c1 + 11 * c2 + 20] = x[81 * c1 + 9 * c2 + 8];
            }
        }
    }
    pc_barrier(team);
}

/* ==== k1_MaxPool_0_out ==== */
/*
 * Nodes: MaxPool_0
 * y_acc[n, c, y, x] = f(a constant)
 * y_acc[n, c, y, x, r, q] max= f(x_padded)
 * y[n, c, y, x] = f(y_acc)
 * Schedule: rows: n c y x, one thread
 */
#include "polyc.h"
#define PC_TYPE f32
#include "polyc_scalar.h"

void k1_MaxPool_0_out(const f32 *restrict x_padded, f32 *restrict y, pc_team *team, int *status)
{
    (void)team, (void)status;
    #pragma omp master
    {
        for (i64 c1 = 0; c1 < 16; c1 += 1) {
            for (i64 c2 = 0; c2 < 5; c2 += 1) {
                for (i64 c3 = 0; c3 < 5; c3 += 1) {
                    f32 y_acc_local;
                    y_acc_local = -__builtin_inff();
                    for (i64 c4 = 0; c4 < 3; c4 += 1) {
                        for (i64 c5 = 0; c5 < 3; c5 += 1) {
                            y_acc_local = pc_max_f32(y_acc_local, x_padded[121 * c1 + 22 * c2 + 2 * c3 + 11 * c4 + c5]);
                        }
                    }
                    y[25 * c1 + 5 * c2 + c3] = y_acc_local;
                }
            }
        }
    }
    pc_barrier(team);
}
