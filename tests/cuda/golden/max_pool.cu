/*
 * Nodes: MaxPool_0
 * y_acc[n, c, y, x] = f(a constant)
 * y_acc[n, c, y, x, r, q] max= f(x)
 * y[n, c, y, x] = f(y_acc)
 * Schedule: join n c y x as e | split e 32 | block e | thread e' | keep y_acc_joint in stack at e'
 */
PC_KERNEL(32, 1) void k0_MaxPool_0_out(const f32 *__restrict__ x_, f32 *__restrict__ y_, int *status)
{
    (void)status;
    const int c0 = PC_BLOCK_X;
    {
        const int c1 = PC_THREAD_X;
        if (pc_min(31, -32 * c0 + 399) >= c1) {
            f32 y_acc_joint_local;
            y_acc_joint_local = -__builtin_inff();
            PC_UNROLL
            for (int c2 = 0; c2 < 3; c2 += 1) {
                PC_UNROLL
                for (int c3 = 0; c3 < 3; c3 += 1) {
                    y_acc_joint_local = pc_max_f32(y_acc_joint_local, pc_select_f32(((2 * pc_mod(2 * c0 + c1, 5) + c3 >= 1 && 9 >= 2 * pc_mod(2 * c0 + c1, 5) + c3) && 2 * pc_floordiv(2 * c0 + c1, 5) + 2 * c0 + c2 >= 10 * pc_floordiv(7 * c0 + c1, 25) + 1) && 10 * pc_floordiv(7 * c0 + c1, 25) + 9 >= 2 * pc_floordiv(2 * c0 + c1, 5) + 2 * c0 + c2, x_[((((2 * pc_mod(2 * c0 + c1, 5) + c3 >= 1 && 9 >= 2 * pc_mod(2 * c0 + c1, 5) + c3) && 2 * pc_floordiv(2 * c0 + c1, 5) + 2 * c0 + c2 >= 10 * pc_floordiv(7 * c0 + c1, 25) + 1) && 10 * pc_floordiv(7 * c0 + c1, 25) + 9 >= 2 * pc_floordiv(2 * c0 + c1, 5) + 2 * c0 + c2)) ? 18 * pc_floordiv(2 * c0 + c1, 5) - 9 * pc_floordiv(7 * c0 + c1, 25) + 2 * pc_mod(2 * c0 + c1, 5) + 99 * c0 + 9 * c2 + c3 - 10 : 0], -__builtin_inff()));
                }
            }
            y_[32 * c0 + c1] = y_acc_joint_local;
        }
    }
}
