/*
 * Nodes: MaxPool_0.pad
 * x_padded[i0, i1, i2, i3] = f(a constant)
 * Schedule: threads: e/32
 */
PC_KERNEL(32, 1) void k0_MaxPool_0_pad_4(f32 *__restrict__ x_padded, int *status)
{
    (void)status;
    const int c0 = PC_BLOCK_X;
    {
        const int c1 = PC_THREAD_X;
        if (pc_min(31, -32 * c0 + 175) >= c1) {
            x_padded[-10 * pc_mod(32 * c0 + c1, 11) + 352 * c0 + 11 * c1] = -__builtin_inff();
        }
    }
}

/*
 * Nodes: MaxPool_0.pad
 * x_padded[i0, i1, i2, i3] = f(a constant)
 * Schedule: threads: e/32
 */
PC_KERNEL(32, 1) void k1_MaxPool_0_pad_5(f32 *__restrict__ x_padded, int *status)
{
    (void)status;
    const int c0 = PC_BLOCK_X;
    {
        const int c1 = PC_THREAD_X;
        if (pc_min(31, -32 * c0 + 175) >= c1) {
            x_padded[-10 * pc_mod(32 * c0 + c1, 11) + 352 * c0 + 11 * c1 + 110] = -__builtin_inff();
        }
    }
}

/*
 * Nodes: MaxPool_0.pad
 * x_padded[i0, i1, i2, i3] = f(a constant)
 * Schedule: threads: e/32
 */
PC_KERNEL(32, 1) void k2_MaxPool_0_pad_6(f32 *__restrict__ x_padded, int *status)
{
    (void)status;
    const int c0 = PC_BLOCK_X;
    {
        const int c1 = PC_THREAD_X;
        if (pc_min(31, -32 * c0 + 143) >= c1) {
            x_padded[121 * pc_floordiv(32 * c0 + c1, 9) + 11 * pc_mod(32 * c0 + c1, 9) + 11] = -__builtin_inff();
        }
    }
}

/*
 * Nodes: MaxPool_0.pad
 * x_padded[i0, i1, i2, i3] = f(a constant)
 * Schedule: threads: e/32
 */
PC_KERNEL(32, 1) void k3_MaxPool_0_pad_7(f32 *__restrict__ x_padded, int *status)
{
    (void)status;
    const int c0 = PC_BLOCK_X;
    {
        const int c1 = PC_THREAD_X;
        if (pc_min(31, -32 * c0 + 143) >= c1) {
            x_padded[121 * pc_floordiv(32 * c0 + c1, 9) + 11 * pc_mod(32 * c0 + c1, 9) + 21] = -__builtin_inff();
        }
    }
}

/*
 * Nodes: MaxPool_0.pad
 * x_padded[i0, i1, i2, i3] = f(x)
 * Schedule: threads: e/32
 */
PC_KERNEL(32, 1) void k4_MaxPool_0_pad_8(f32 *__restrict__ x_padded, const f32 *__restrict__ x, int *status)
{
    (void)status;
    const int c0 = PC_BLOCK_X;
    {
        const int c1 = PC_THREAD_X;
        if (pc_min(31, -32 * c0 + 1295) >= c1) {
            x_padded[22 * pc_floordiv(32 * c0 + c1, 81) + 11 * pc_floordiv(32 * c0 + c1, 9) + pc_mod(32 * c0 + c1, 9) + 12] = x[32 * c0 + c1];
        }
    }
}

/*
 * Nodes: MaxPool_0
 * y_acc[n, c, y, x] = f(a constant)
 * y_acc[n, c, y, x, r, q] max= f(x_padded)
 * y[n, c, y, x] = f(y_acc)
 * Schedule: threads: e/32
 */
PC_KERNEL(32, 1) void k5_MaxPool_0_out(const f32 *__restrict__ x_padded, f32 *__restrict__ y, int *status)
{
    (void)status;
    const int c0 = PC_BLOCK_X;
    {
        const int c1 = PC_THREAD_X;
        if (pc_min(31, -32 * c0 + 399) >= c1) {
            f32 y_acc_e_local;
            y_acc_e_local = -__builtin_inff();
            PC_UNROLL
            for (int c2 = 0; c2 < 3; c2 += 1) {
                PC_UNROLL
                for (int c3 = 0; c3 < 3; c3 += 1) {
                    y_acc_e_local = pc_max_f32(y_acc_e_local, x_padded[11 * pc_floordiv(32 * c0 + c1, 25) + 22 * pc_floordiv(32 * c0 + c1, 5) + 2 * pc_mod(32 * c0 + c1, 5) + 11 * c2 + c3]);
                }
            }
            y[32 * c0 + c1] = y_acc_e_local;
        }
    }
}
