/*
 * Nodes: MatMul_0, Add_1, Relu_2
 * matmul_0_acc[i, j] = f(a constant)
 * matmul_0_acc[i, j, k] add= f(x, constant_0)
 * y[i, j] = f(matmul_0_acc, constant_1)
 * Schedule: tile i as rm 1 wm 2 lm 2 pm 2 im 4 by j as rn 1 wn 2 ln 4 pn 2 jn 4 over k as ki 16 into wm wn lm ln pm pn rm im rn jn | block b mt nt | fuse matmul_0_acc_left.kt matmul_0_acc_right.kt MatMul_0.kt | pipeline matmul_0_acc_left.kt matmul_0_acc_right.kt 3 | keep matmul_0_acc_tiles in registers at nt | keep matmul_0_acc_left matmul_0_acc_right in shared at nt | warp wm wn | thread lm ln pm pn | unroll rm im rn jn | order MatMul_0.ki MatMul_0.rm MatMul_0.im MatMul_0.rn MatMul_0.jn | vector MatMul_0_out.jn | collapse matmul_0_acc_left.mr matmul_0_acc_left.mi | split matmul_0_acc_left.mr 32 | split matmul_0_acc_left.ki 16 | split matmul_0_acc_left.ki' 4 | order matmul_0_acc_left.mr' matmul_0_acc_left.ki' matmul_0_acc_left.mr matmul_0_acc_left.ki matmul_0_acc_left.ki'' | thread matmul_0_acc_left.mr' matmul_0_acc_left.ki' | unroll matmul_0_acc_left.mr matmul_0_acc_left.ki | copy matmul_0_acc_left.ki'' | swizzle matmul_0_acc_left 2 3 7 | collapse matmul_0_acc_right.nr matmul_0_acc_right.ni | split matmul_0_acc_right.ki 8 | split matmul_0_acc_right.nr 64 | split matmul_0_acc_right.nr' 4 | order matmul_0_acc_right.ki' matmul_0_acc_right.nr' matmul_0_acc_right.ki matmul_0_acc_right.nr matmul_0_acc_right.nr'' | thread matmul_0_acc_right.ki' matmul_0_acc_right.nr' | unroll matmul_0_acc_right.ki matmul_0_acc_right.nr | copy matmul_0_acc_right.nr''
 */
PC_KERNEL(128, 1) void k0_MatMul_0_out(const f32 *__restrict__ x_, const f32 *__restrict__ constant_0_, f32 *__restrict__ y_, const f32 *__restrict__ constant_1_, int *status)
{
    (void)status;
    const int c1 = PC_BLOCK_X;
    PC_SHARED(f32, matmul_0_acc_left_local, 1536);
    PC_SHARED(f32, matmul_0_acc_right_local, 3072);
    f32 matmul_0_acc_tiles_local_0_0, matmul_0_acc_tiles_local_0_1, matmul_0_acc_tiles_local_0_2, matmul_0_acc_tiles_local_0_3, matmul_0_acc_tiles_local_1_0, matmul_0_acc_tiles_local_1_1, matmul_0_acc_tiles_local_1_2, matmul_0_acc_tiles_local_1_3, matmul_0_acc_tiles_local_2_0, matmul_0_acc_tiles_local_2_1, matmul_0_acc_tiles_local_2_2, matmul_0_acc_tiles_local_2_3, matmul_0_acc_tiles_local_3_0, matmul_0_acc_tiles_local_3_1, matmul_0_acc_tiles_local_3_2, matmul_0_acc_tiles_local_3_3;
    {
        {
            {
                {
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
                }
            }
        }
    }
    for (int c3 = -2; c3 < 3; c3 += 1) {
        {
            const int c4 = PC_THREAD_X / 4;
            if (0 >= c3) {
                {
                    const int c5 = PC_THREAD_X % 4;
                    pc_copy_async_4_of(&matmul_0_acc_left_local[512 * c3 + PC_SWIZZLE_PARTS(c4, 128 * c5 + 1024, 4, 24)], &x_[((32 >= 32 * c1 + c4 && 1 >= 4 * c3 + c5)) ? 1280 * c1 + 16 * c3 + 40 * c4 + 4 * c5 + 32 : 0], ((32 >= 32 * c1 + c4 && 1 >= 4 * c3 + c5)) ? 4 : 0);
                    pc_copy_async_4_of(&matmul_0_acc_left_local[512 * c3 + PC_SWIZZLE_PARTS(c4 + 32, 128 * c5 + 1024, 4, 24)], &x_[((32 >= 32 * c1 + c4 && 1 >= 4 * c3 + c5)) ? 1280 * c1 + 16 * c3 + 40 * c4 + 4 * c5 + 33 : 0], ((32 >= 32 * c1 + c4 && 1 >= 4 * c3 + c5)) ? 4 : 0);
                    pc_copy_async_4_of(&matmul_0_acc_left_local[512 * c3 + PC_SWIZZLE_PARTS(c4 + 64, 128 * c5 + 1024, 4, 24)], &x_[((32 >= 32 * c1 + c4 && 1 >= 4 * c3 + c5)) ? 1280 * c1 + 16 * c3 + 40 * c4 + 4 * c5 + 34 : 0], ((32 >= 32 * c1 + c4 && 1 >= 4 * c3 + c5)) ? 4 : 0);
                    pc_copy_async_4_of(&matmul_0_acc_left_local[512 * c3 + PC_SWIZZLE_PARTS(c4 + 96, 128 * c5 + 1024, 4, 24)], &x_[((32 >= 32 * c1 + c4 && 1 >= 4 * c3 + c5)) ? 1280 * c1 + 16 * c3 + 40 * c4 + 4 * c5 + 35 : 0], ((32 >= 32 * c1 + c4 && 1 >= 4 * c3 + c5)) ? 4 : 0);
                }
            }
        }
        {
            const int c4 = PC_THREAD_X / 16;
            if (0 >= c3) {
                {
                    const int c5 = PC_THREAD_X % 16;
                    pc_copy_async_16_of(&matmul_0_acc_right_local[1024 * c3 + 64 * c4 + 4 * c5 + 2048], &constant_0_[(0 >= 2 * c3) ? 1024 * c3 + 64 * c4 + 4 * c5 + 2048 : 0], (0 >= 2 * c3) ? 16 : 0);
                    pc_copy_async_16_of(&matmul_0_acc_right_local[1024 * c3 + 64 * c4 + 4 * c5 + 2560], &constant_0_[(0 >= 2 * c3 + 1) ? 1024 * c3 + 64 * c4 + 4 * c5 + 2560 : 0], (0 >= 2 * c3 + 1) ? 16 : 0);
                }
            }
        }
        pc_copy_async_commit();
        pc_copy_async_wait(2);
        PC_SYNC();
        {
            const int c4 = PC_THREAD_X / 64;
            if (c3 >= 0) {
                {
                    const int c5 = PC_THREAD_X / 32 % 2;
                    {
                        const int c6 = PC_THREAD_X / 16 % 2;
                        {
                            const int c7 = PC_THREAD_X / 4 % 4;
                            {
                                const int c8 = PC_THREAD_X / 2 % 2;
                                {
                                    const int c9 = PC_THREAD_X % 2;
                                    PC_UNROLL
                                    for (int c10 = 0; c10 < 16; c10 += 1) {
                                        f32x4 wide0_0;
                                        f32x4 wide1_0;
                                        wide0_0 = pc_load_f32x4(&matmul_0_acc_left_local[512 * c3 + PC_SWIZZLE_PARTS(16 * c4 + 8 * c6 + 4 * c8, 32 * c10, 4, 24)]);
                                        wide1_0 = pc_load_f32x4(&matmul_0_acc_right_local[64 * c10 + 1024 * c3 + 32 * c5 + 8 * c7 + 4 * c9]);
                                        matmul_0_acc_tiles_local_0_0 += wide0_0[0] * wide1_0[0];
                                        matmul_0_acc_tiles_local_0_1 += wide0_0[0] * wide1_0[1];
                                        matmul_0_acc_tiles_local_0_2 += wide0_0[0] * wide1_0[2];
                                        matmul_0_acc_tiles_local_0_3 += wide0_0[0] * wide1_0[3];
                                        matmul_0_acc_tiles_local_1_0 += wide0_0[1] * wide1_0[0];
                                        matmul_0_acc_tiles_local_1_1 += wide0_0[1] * wide1_0[1];
                                        matmul_0_acc_tiles_local_1_2 += wide0_0[1] * wide1_0[2];
                                        matmul_0_acc_tiles_local_1_3 += wide0_0[1] * wide1_0[3];
                                        matmul_0_acc_tiles_local_2_0 += wide0_0[2] * wide1_0[0];
                                        matmul_0_acc_tiles_local_2_1 += wide0_0[2] * wide1_0[1];
                                        matmul_0_acc_tiles_local_2_2 += wide0_0[2] * wide1_0[2];
                                        matmul_0_acc_tiles_local_2_3 += wide0_0[2] * wide1_0[3];
                                        matmul_0_acc_tiles_local_3_0 += wide0_0[3] * wide1_0[0];
                                        matmul_0_acc_tiles_local_3_1 += wide0_0[3] * wide1_0[1];
                                        matmul_0_acc_tiles_local_3_2 += wide0_0[3] * wide1_0[2];
                                        matmul_0_acc_tiles_local_3_3 += wide0_0[3] * wide1_0[3];
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    {
        const int c3 = PC_THREAD_X / 64;
        const int c4 = PC_THREAD_X / 32 % 2;
        if (pc_min(1, -2 * c1 + 2) >= c3) {
            {
                const int c5 = PC_THREAD_X / 16 % 2;
                const int c6 = PC_THREAD_X / 4 % 4;
                if (pc_min(1, -4 * c1 - 2 * c3 + 4) >= c5) {
                    {
                        const int c7 = PC_THREAD_X / 2 % 2;
                        const int c8 = PC_THREAD_X % 2;
                        if (pc_min(1, -8 * c1 - 4 * c3 - 2 * c5 + 8) >= c7) {
                            if (pc_min(3, -32 * c1 - 16 * c3 - 8 * c5 - 4 * c7 + 32) >= 0) {
                                {
                                    f32x4 wide2_0;
                                    f32x4 wide3_0;
                                    wide2_0 = pc_load_f32x4(&constant_1_[32 * c4 + 8 * c6 + 4 * c8]);
                                    wide3_0[0] = pc_max_f32(matmul_0_acc_tiles_local_0_0 + wide2_0[0], 0.0f);
                                    wide3_0[1] = pc_max_f32(matmul_0_acc_tiles_local_0_1 + wide2_0[1], 0.0f);
                                    wide3_0[2] = pc_max_f32(matmul_0_acc_tiles_local_0_2 + wide2_0[2], 0.0f);
                                    wide3_0[3] = pc_max_f32(matmul_0_acc_tiles_local_0_3 + wide2_0[3], 0.0f);
                                    pc_store_f32x4(&y_[2048 * c1 + 1024 * c3 + 32 * c4 + 512 * c5 + 8 * c6 + 256 * c7 + 4 * c8], wide3_0);
                                }
                            }
                            if (pc_min(3, -32 * c1 - 16 * c3 - 8 * c5 - 4 * c7 + 32) >= 1) {
                                {
                                    f32x4 wide2_0;
                                    f32x4 wide3_0;
                                    wide2_0 = pc_load_f32x4(&constant_1_[32 * c4 + 8 * c6 + 4 * c8]);
                                    wide3_0[0] = pc_max_f32(matmul_0_acc_tiles_local_1_0 + wide2_0[0], 0.0f);
                                    wide3_0[1] = pc_max_f32(matmul_0_acc_tiles_local_1_1 + wide2_0[1], 0.0f);
                                    wide3_0[2] = pc_max_f32(matmul_0_acc_tiles_local_1_2 + wide2_0[2], 0.0f);
                                    wide3_0[3] = pc_max_f32(matmul_0_acc_tiles_local_1_3 + wide2_0[3], 0.0f);
                                    pc_store_f32x4(&y_[2048 * c1 + 1024 * c3 + 32 * c4 + 512 * c5 + 8 * c6 + 256 * c7 + 4 * c8 + 64], wide3_0);
                                }
                            }
                            if (pc_min(3, -32 * c1 - 16 * c3 - 8 * c5 - 4 * c7 + 32) >= 2) {
                                {
                                    f32x4 wide2_0;
                                    f32x4 wide3_0;
                                    wide2_0 = pc_load_f32x4(&constant_1_[32 * c4 + 8 * c6 + 4 * c8]);
                                    wide3_0[0] = pc_max_f32(matmul_0_acc_tiles_local_2_0 + wide2_0[0], 0.0f);
                                    wide3_0[1] = pc_max_f32(matmul_0_acc_tiles_local_2_1 + wide2_0[1], 0.0f);
                                    wide3_0[2] = pc_max_f32(matmul_0_acc_tiles_local_2_2 + wide2_0[2], 0.0f);
                                    wide3_0[3] = pc_max_f32(matmul_0_acc_tiles_local_2_3 + wide2_0[3], 0.0f);
                                    pc_store_f32x4(&y_[2048 * c1 + 1024 * c3 + 32 * c4 + 512 * c5 + 8 * c6 + 256 * c7 + 4 * c8 + 128], wide3_0);
                                }
                            }
                            if (pc_min(3, -32 * c1 - 16 * c3 - 8 * c5 - 4 * c7 + 32) >= 3) {
                                {
                                    f32x4 wide2_0;
                                    f32x4 wide3_0;
                                    wide2_0 = pc_load_f32x4(&constant_1_[32 * c4 + 8 * c6 + 4 * c8]);
                                    wide3_0[0] = pc_max_f32(matmul_0_acc_tiles_local_3_0 + wide2_0[0], 0.0f);
                                    wide3_0[1] = pc_max_f32(matmul_0_acc_tiles_local_3_1 + wide2_0[1], 0.0f);
                                    wide3_0[2] = pc_max_f32(matmul_0_acc_tiles_local_3_2 + wide2_0[2], 0.0f);
                                    wide3_0[3] = pc_max_f32(matmul_0_acc_tiles_local_3_3 + wide2_0[3], 0.0f);
                                    pc_store_f32x4(&y_[2048 * c1 + 1024 * c3 + 32 * c4 + 512 * c5 + 8 * c6 + 256 * c7 + 4 * c8 + 192], wide3_0);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
