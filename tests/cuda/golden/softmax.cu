/*
 * Nodes: Softmax_0
 * y_max[i0] = f(a constant)
 * y_max[i0, i1] max= f(x)
 * y_exp[i0, i1] = f(x, y_max)
 * y_inverse_acc[i0] = f(a constant)
 * y_inverse_acc[i0, i1] add= f(y_exp)
 * y_inverse[i0] = f(y_inverse_acc)
 * y[i0, i1] = f(y_exp, y_inverse)
 * Schedule: join i0 as e | cut i1 as k t v by 32 4 | partial Softmax_0.t | partial Softmax_0_2.t | block e | keep y_exp_joint y_inverse_acc_joint y_inverse_acc_joint_parts y_inverse_joint y_max_joint y_max_joint_parts in registers at e | order t k | thread t | combine Softmax_0_combine.t Softmax_0_2_combine.t | unroll k | vector v
 */
PC_KERNEL(32, 1) void k0_Softmax_0_4(const f32 *__restrict__ x_, f32 *__restrict__ y_, int *status)
{
    (void)status;
    const int c0 = PC_BLOCK_X;
    f32 y_exp_joint_local_0, y_exp_joint_local_1, y_exp_joint_local_2, y_exp_joint_local_3;
    f32 y_inverse_acc_joint_local;
    f32 y_inverse_acc_joint_parts_local;
    f32 y_inverse_joint_local;
    f32 y_max_joint_local;
    f32 y_max_joint_parts_local;
    y_max_joint_local = -__builtin_inff();
    {
        y_max_joint_parts_local = -__builtin_inff();
    }
    {
        const int c1 = PC_THREAD_X;
        if (24 >= c1) {
            {
                f32x4 wide0_0;
                wide0_0 = pc_load_f32x4(&x_[100 * c0 + 4 * c1]);
                y_max_joint_parts_local = pc_max_f32(y_max_joint_parts_local, wide0_0[0]);
                y_max_joint_parts_local = pc_max_f32(y_max_joint_parts_local, wide0_0[1]);
                y_max_joint_parts_local = pc_max_f32(y_max_joint_parts_local, wide0_0[2]);
                y_max_joint_parts_local = pc_max_f32(y_max_joint_parts_local, wide0_0[3]);
            }
        }
    }
    {
        f32 value = y_max_joint_parts_local;
        PC_UNROLL
        for (int apart = 16; apart; apart /= 2) {
            const f32 other = pc_shuffle_xor(value, apart);
            value = pc_max_f32(value, other);
        }
        y_max_joint_local = pc_max_f32(y_max_joint_local, value);
    }
    {
        const int c1 = PC_THREAD_X;
        if (24 >= c1) {
            {
                f32x4 wide1_0;
                wide1_0 = pc_load_f32x4(&x_[100 * c0 + 4 * c1]);
                y_exp_joint_local_0 = pc_exp_normal_f32(wide1_0[0] - y_max_joint_local);
                y_exp_joint_local_1 = pc_exp_normal_f32(wide1_0[1] - y_max_joint_local);
                y_exp_joint_local_2 = pc_exp_normal_f32(wide1_0[2] - y_max_joint_local);
                y_exp_joint_local_3 = pc_exp_normal_f32(wide1_0[3] - y_max_joint_local);
            }
        }
    }
    y_inverse_acc_joint_local = 0.0f;
    {
        y_inverse_acc_joint_parts_local = 0.0f;
    }
    {
        const int c1 = PC_THREAD_X;
        if (24 >= c1) {
            y_inverse_acc_joint_parts_local += y_exp_joint_local_0;
            y_inverse_acc_joint_parts_local += y_exp_joint_local_1;
            y_inverse_acc_joint_parts_local += y_exp_joint_local_2;
            y_inverse_acc_joint_parts_local += y_exp_joint_local_3;
        }
    }
    {
        f32 value = y_inverse_acc_joint_parts_local;
        PC_UNROLL
        for (int apart = 16; apart; apart /= 2) {
            const f32 other = pc_shuffle_xor(value, apart);
            value = (value + other);
        }
        y_inverse_acc_joint_local += value;
    }
    y_inverse_joint_local = pc_reciprocal_f32(y_inverse_acc_joint_local);
    {
        const int c1 = PC_THREAD_X;
        if (24 >= c1) {
            {
                f32x4 wide2_0;
                wide2_0[0] = (y_exp_joint_local_0 * y_inverse_joint_local);
                wide2_0[1] = (y_exp_joint_local_1 * y_inverse_joint_local);
                wide2_0[2] = (y_exp_joint_local_2 * y_inverse_joint_local);
                wide2_0[3] = (y_exp_joint_local_3 * y_inverse_joint_local);
                pc_store_f32x4(&y_[100 * c0 + 4 * c1], wide2_0);
            }
        }
    }
}
