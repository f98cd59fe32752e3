/*
 * Nodes: MatMul_0, Add_1, Relu_2
 * matmul_0_acc[i, j] = f(a constant)
 * matmul_0_acc[i, j, k] add= f(x, constant_0)
 * y[i, j] = f(matmul_0_acc, constant_1)
 * Schedule: contraction: 33x64x40 in tiles of 32x64x16, 4x4 a thread
 */
PC_KERNEL(128, 1) void k0_MatMul_0_out(const f32 *__restrict__ x, const f32 *__restrict__ constant_0, f32 *__restrict__ y, const f32 *__restrict__ constant_1, int *status)
{
    (void)status;
    const int c1 = PC_BLOCK_X;
    f32 matmul_0_acc_tiles_local_0_0, matmul_0_acc_tiles_local_0_1, matmul_0_acc_tiles_local_0_2, matmul_0_acc_tiles_local_0_3, matmul_0_acc_tiles_local_1_0, matmul_0_acc_tiles_local_1_1, matmul_0_acc_tiles_local_1_2, matmul_0_acc_tiles_local_1_3, matmul_0_acc_tiles_local_2_0, matmul_0_acc_tiles_local_2_1, matmul_0_acc_tiles_local_2_2, matmul_0_acc_tiles_local_2_3, matmul_0_acc_tiles_local_3_0, matmul_0_acc_tiles_local_3_1, matmul_0_acc_tiles_local_3_2, matmul_0_acc_tiles_local_3_3;
    {
        {
            matmul_0_acc_tiles_local_0_0 = 0.0f;
            matmul_0_acc_tiles_local_0_1 = 0.0f;
            matmul_0_acc_tiles_local_0_2 = 0.0f;
            matmul_0_acc_tiles_local_0_3 = 0.0f;
            matmul_0_acc_tiles_local_1_0 = 0.0f;
            matmul_0_acc_tiles_local_1_1 = 0.0f;
            matmul_0_acc_tiles_local_1_2 = 0.0f;
            matmul_0_acc_tiles_local_1_3 = 0.0f;
            matmul_0_acc_tiles_local_2_0 = 0.0f;
            matmul_0_acc_tiles_local_2_1 = 0.0f;
            matmul_0_acc_tiles_local_2_2 = 0.0f;
            matmul_0_acc_tiles_local_2_3 = 0.0f;
            matmul_0_acc_tiles_local_3_0 = 0.0f;
            matmul_0_acc_tiles_local_3_1 = 0.0f;
            matmul_0_acc_tiles_local_3_2 = 0.0f;
            matmul_0_acc_tiles_local_3_3 = 0.0f;
        }
    }
    for (int c3 = 0; c3 < 3; c3 += 1) {
        PC_SHARED(f32, matmul_0_acc_left_local, 512);
        PC_SHARED(f32, matmul_0_acc_right_local, 1024);
        PC_SYNC();
        {
            const int c4 = PC_THREAD_X / 4;
            {
                const int c5 = PC_THREAD_X % 4;
                {
                    f32x4 wide0_0;
                    if ((32 >= 32 * c1 + c4 && 9 >= 4 * c3 + c5)) {
                        wide0_0 = pc_load_f32x4(&x[1280 * c1 + 16 * c3 + 40 * c4 + 4 * c5]);
                    } else {
                        wide0_0[0] = 0.0f;
                        wide0_0[1] = 0.0f;
                        wide0_0[2] = 0.0f;
                        wide0_0[3] = 0.0f;
                    }
                    matmul_0_acc_left_local[c4 + 128 * c5] = wide0_0[0];
                    matmul_0_acc_left_local[c4 + 128 * c5 + 32] = wide0_0[1];
                    matmul_0_acc_left_local[c4 + 128 * c5 + 64] = wide0_0[2];
                    matmul_0_acc_left_local[c4 + 128 * c5 + 96] = wide0_0[3];
                }
            }
        }
        {
            const int c4 = PC_THREAD_X / 16;
            {
                const int c5 = PC_THREAD_X % 16;
                {
                    f32x4 wide1_0;
                    f32x4 wide2_0;
                    if (4 >= 2 * c3) {
                        wide1_0 = pc_load_f32x4(&constant_0[1024 * c3 + 64 * c4 + 4 * c5]);
                    } else {
                        wide1_0[0] = 0.0f;
                        wide1_0[1] = 0.0f;
                        wide1_0[2] = 0.0f;
                        wide1_0[3] = 0.0f;
                    }
                    wide2_0[0] = wide1_0[0];
                    wide2_0[1] = wide1_0[1];
                    wide2_0[2] = wide1_0[2];
                    wide2_0[3] = wide1_0[3];
                    pc_store_f32x4(&matmul_0_acc_right_local[64 * c4 + 4 * c5], wide2_0);
                }
                {
                    f32x4 wide1_0;
                    f32x4 wide2_0;
                    if (3 >= 2 * c3) {
                        wide1_0 = pc_load_f32x4(&constant_0[1024 * c3 + 64 * c4 + 4 * c5 + 512]);
                    } else {
                        wide1_0[0] = 0.0f;
                        wide1_0[1] = 0.0f;
                        wide1_0[2] = 0.0f;
                        wide1_0[3] = 0.0f;
                    }
                    wide2_0[0] = wide1_0[0];
                    wide2_0[1] = wide1_0[1];
                    wide2_0[2] = wide1_0[2];
                    wide2_0[3] = wide1_0[3];
                    pc_store_f32x4(&matmul_0_acc_right_local[64 * c4 + 4 * c5 + 512], wide2_0);
                }
            }
        }
        PC_SYNC();
        {
            const int c4 = PC_THREAD_X / 16;
            {
                const int c5 = PC_THREAD_X % 16;
                PC_UNROLL
                for (int c6 = 0; c6 < 16; c6 += 1) {
                    matmul_0_acc_tiles_local_0_0 += matmul_0_acc_left_local[4 * c4 + 32 * c6] * matmul_0_acc_right_local[4 * c5 + 64 * c6];
                    matmul_0_acc_tiles_local_0_1 += matmul_0_acc_left_local[4 * c4 + 32 * c6] * matmul_0_acc_right_local[4 * c5 + 64 * c6 + 1];
                    matmul_0_acc_tiles_local_0_2 += matmul_0_acc_left_local[4 * c4 + 32 * c6] * matmul_0_acc_right_local[4 * c5 + 64 * c6 + 2];
                    matmul_0_acc_tiles_local_0_3 += matmul_0_acc_left_local[4 * c4 + 32 * c6] * matmul_0_acc_right_local[4 * c5 + 64 * c6 + 3];
                    matmul_0_acc_tiles_local_1_0 += matmul_0_acc_left_local[4 * c4 + 32 * c6 + 1] * matmul_0_acc_right_local[4 * c5 + 64 * c6];
                    matmul_0_acc_tiles_local_1_1 += matmul_0_acc_left_local[4 * c4 + 32 * c6 + 1] * matmul_0_acc_right_local[4 * c5 + 64 * c6 + 1];
                    matmul_0_acc_tiles_local_1_2 += matmul_0_acc_left_local[4 * c4 + 32 * c6 + 1] * matmul_0_acc_right_local[4 * c5 + 64 * c6 + 2];
                    matmul_0_acc_tiles_local_1_3 += matmul_0_acc_left_local[4 * c4 + 32 * c6 + 1] * matmul_0_acc_right_local[4 * c5 + 64 * c6 + 3];
                    matmul_0_acc_tiles_local_2_0 += matmul_0_acc_left_local[4 * c4 + 32 * c6 + 2] * matmul_0_acc_right_local[4 * c5 + 64 * c6];
                    matmul_0_acc_tiles_local_2_1 += matmul_0_acc_left_local[4 * c4 + 32 * c6 + 2] * matmul_0_acc_right_local[4 * c5 + 64 * c6 + 1];
                    matmul_0_acc_tiles_local_2_2 += matmul_0_acc_left_local[4 * c4 + 32 * c6 + 2] * matmul_0_acc_right_local[4 * c5 + 64 * c6 + 2];
                    matmul_0_acc_tiles_local_2_3 += matmul_0_acc_left_local[4 * c4 + 32 * c6 + 2] * matmul_0_acc_right_local[4 * c5 + 64 * c6 + 3];
                    matmul_0_acc_tiles_local_3_0 += matmul_0_acc_left_local[4 * c4 + 32 * c6 + 3] * matmul_0_acc_right_local[4 * c5 + 64 * c6];
                    matmul_0_acc_tiles_local_3_1 += matmul_0_acc_left_local[4 * c4 + 32 * c6 + 3] * matmul_0_acc_right_local[4 * c5 + 64 * c6 + 1];
                    matmul_0_acc_tiles_local_3_2 += matmul_0_acc_left_local[4 * c4 + 32 * c6 + 3] * matmul_0_acc_right_local[4 * c5 + 64 * c6 + 2];
                    matmul_0_acc_tiles_local_3_3 += matmul_0_acc_left_local[4 * c4 + 32 * c6 + 3] * matmul_0_acc_right_local[4 * c5 + 64 * c6 + 3];
                }
            }
        }
    }
    {
        const int c3 = PC_THREAD_X / 16;
        if (pc_min(7, -8 * c1 + 8) >= c3) {
            {
                const int c4 = PC_THREAD_X % 16;
                if (pc_min(3, -32 * c1 - 4 * c3 + 32) >= 0) {
                    {
                        f32x4 wide3_0;
                        f32x4 wide4_0;
                        wide3_0 = pc_load_f32x4(&constant_1[4 * c4]);
                        wide4_0[0] = pc_max_f32(matmul_0_acc_tiles_local_0_0 + wide3_0[0], 0.0f);
                        wide4_0[1] = pc_max_f32(matmul_0_acc_tiles_local_0_1 + wide3_0[1], 0.0f);
                        wide4_0[2] = pc_max_f32(matmul_0_acc_tiles_local_0_2 + wide3_0[2], 0.0f);
                        wide4_0[3] = pc_max_f32(matmul_0_acc_tiles_local_0_3 + wide3_0[3], 0.0f);
                        pc_store_f32x4(&y[2048 * c1 + 256 * c3 + 4 * c4], wide4_0);
                    }
                }
                if (pc_min(3, -32 * c1 - 4 * c3 + 32) >= 1) {
                    {
                        f32x4 wide3_0;
                        f32x4 wide4_0;
                        wide3_0 = pc_load_f32x4(&constant_1[4 * c4]);
                        wide4_0[0] = pc_max_f32(matmul_0_acc_tiles_local_1_0 + wide3_0[0], 0.0f);
                        wide4_0[1] = pc_max_f32(matmul_0_acc_tiles_local_1_1 + wide3_0[1], 0.0f);
                        wide4_0[2] = pc_max_f32(matmul_0_acc_tiles_local_1_2 + wide3_0[2], 0.0f);
                        wide4_0[3] = pc_max_f32(matmul_0_acc_tiles_local_1_3 + wide3_0[3], 0.0f);
                        pc_store_f32x4(&y[2048 * c1 + 256 * c3 + 4 * c4 + 64], wide4_0);
                    }
                }
                if (pc_min(3, -32 * c1 - 4 * c3 + 32) >= 2) {
                    {
                        f32x4 wide3_0;
                        f32x4 wide4_0;
                        wide3_0 = pc_load_f32x4(&constant_1[4 * c4]);
                        wide4_0[0] = pc_max_f32(matmul_0_acc_tiles_local_2_0 + wide3_0[0], 0.0f);
                        wide4_0[1] = pc_max_f32(matmul_0_acc_tiles_local_2_1 + wide3_0[1], 0.0f);
                        wide4_0[2] = pc_max_f32(matmul_0_acc_tiles_local_2_2 + wide3_0[2], 0.0f);
                        wide4_0[3] = pc_max_f32(matmul_0_acc_tiles_local_2_3 + wide3_0[3], 0.0f);
                        pc_store_f32x4(&y[2048 * c1 + 256 * c3 + 4 * c4 + 128], wide4_0);
                    }
                }
                if (pc_min(3, -32 * c1 - 4 * c3 + 32) >= 3) {
                    {
                        f32x4 wide3_0;
                        f32x4 wide4_0;
                        wide3_0 = pc_load_f32x4(&constant_1[4 * c4]);
                        wide4_0[0] = pc_max_f32(matmul_0_acc_tiles_local_3_0 + wide3_0[0], 0.0f);
                        wide4_0[1] = pc_max_f32(matmul_0_acc_tiles_local_3_1 + wide3_0[1], 0.0f);
                        wide4_0[2] = pc_max_f32(matmul_0_acc_tiles_local_3_2 + wide3_0[2], 0.0f);
                        wide4_0[3] = pc_max_f32(matmul_0_acc_tiles_local_3_3 + wide3_0[3], 0.0f);
                        pc_store_f32x4(&y[2048 * c1 + 256 * c3 + 4 * c4 + 192], wide4_0);
                    }
                }
            }
        }
    }
}
