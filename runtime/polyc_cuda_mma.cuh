/* polyc_cuda_mma.cuh: products of small matrices by the tensor cores, D += A B for a whole warp
   (from sm_80 on). All 32 threads take part, each with a part of every matrix, a fragment; for
   thread l, with g = l / 4 and t = l % 4 (PTX ISA, "Matrix Fragments for mma.m16n8k16"):

   m16n8k16, bf16 or f16   A  a[r], r = 0..3: row g + 8 (r & 1), columns 2t + 8 (r >> 1) and the next
                           B  b[r], r = 0, 1: rows 2t + 8r and the next, column g
   m16n8k8, tf32           A  a[r], r = 0..3: row g + 8 (r & 1), column t + 4 (r >> 1)
                           B  b[r], r = 0, 1: row t + 4r, column g
   all                     D  d[r], r = 0..3: row g + 8 (r >> 1), column 2t + (r & 1), f32

   A register of A or B is a u32: two 16-bit floats, the first in the low half, or one f32 of which
   the tensor cores see the upper 19 bits.

       u32 a[4], b[4];    f32 d[2][4] = {…};
       pc_ldmatrix_x4(a, &x_tile[16-byte row of this thread]);
       pc_ldmatrix_x4_transposed(b, …);
       pc_mma_m16n8k16_bf16(d[0], a, b);    pc_mma_m16n8k16_bf16(d[1], a, b + 2);

   pc_ldmatrix_x1, x2, x4 load 8 x 8 matrices of 16-bit elements from shared memory. Row i of matrix m
   is the 16 bytes at the address that thread 8m + i gives. Register m of thread l gets elements
   2t and 2t + 1 of row g of matrix m; transposed, those of column g. That is A, and B, of m16n8k16. */

#ifndef POLYC_CUDA_MMA_CUH
#define POLYC_CUDA_MMA_CUH

#ifndef __CUDACC__
#include "polyc_emulator_mma.hpp"
#else

#define PC_LDMATRIX(count, suffix, modifier, registers, operands, ...) \
    PC_DEVICE void pc_ldmatrix_##count##suffix(u32 *r, const void *row) \
    { \
        asm volatile("ldmatrix.sync.aligned.m8n8." #count modifier ".shared.b16 " registers \
                     ", [" operands "];" : __VA_ARGS__ : "r"(pc_shared_address(row)) : "memory"); \
    }
#define PC_LDMATRIX_ALL(suffix, modifier) \
    PC_LDMATRIX(x1, suffix, modifier, "{%0}", "%1", "=r"(r[0])) \
    PC_LDMATRIX(x2, suffix, modifier, "{%0, %1}", "%2", "=r"(r[0]), "=r"(r[1])) \
    PC_LDMATRIX(x4, suffix, modifier, "{%0, %1, %2, %3}", "%4", "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]))
PC_LDMATRIX_ALL(, "")
PC_LDMATRIX_ALL(_transposed, ".trans")
#undef PC_LDMATRIX_ALL
#undef PC_LDMATRIX

#define PC_MMA(shape, type) \
    PC_DEVICE void pc_mma_##shape##_##type(f32 *d, const u32 *a, const u32 *b) \
    { \
        asm volatile("mma.sync.aligned." #shape ".row.col.f32." #type "." #type ".f32 " \
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
    }
PC_MMA(m16n8k16, bf16)
PC_MMA(m16n8k16, f16)
PC_MMA(m16n8k8, tf32)
#undef PC_MMA

#endif

#endif
