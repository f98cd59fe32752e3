/* polyc_emulator_mma.hpp: tensor cores and ldmatrix; the layouts stand in polyc_cuda_mma.cuh. */

#ifndef POLYC_EMULATOR_MMA_HPP
#define POLYC_EMULATOR_MMA_HPP

#include "polyc_emulator_counts.hpp"
#include "polyc_emulator_warp.hpp"

/* Waits for the warp, which has to be whole. */
PC_HIDDEN const pc_slot *pc_meet_whole_warp(const char *operation, int line)
{
    if ((pc_self->index | 31) >= pc_self->worker->size)
        pc_fail("does %s at line %d in a warp of less than 32 threads", operation, line);
    return pc_meet_warp(line, 0);
}

/* ---- ldmatrix: each thread gives an address, and reads what it is to receive --------------------- */

/* Where row i of matrix m lies, as thread 8m + i said. */
PC_HIDDEN void pc_exchange_rows(const char **rows, int count, const void *row, int line)
{
    if ((uintptr_t)row % 16 && pc_self->index % 32 < 8 * count)
        pc_fail("loads a row of a matrix at line %d that is not aligned to 16 bytes", line);
    const int lane = pc_self->index % 32;
    pc_move(pc_own_slot(), &row, sizeof row);
    const pc_slot *slots = pc_meet_whole_warp("ldmatrix", line);
    for (int m = 0; m < count; m++) {
        pc_move(&rows[3 * m], &slots[8 * m + lane / 4], sizeof row);
        pc_move(&rows[3 * m + 1], &slots[8 * m + 2 * (lane % 4)], sizeof row);
        pc_move(&rows[3 * m + 2], &slots[8 * m + 2 * (lane % 4) + 1], sizeof row);
    }
}

#ifdef PC_COUNT
#define PC_READER PC_HIDDEN /* whole rows have been counted */
#else
#define PC_READER PC_INLINE
#endif
template <int count, bool transposed> PC_READER void pc_ldmatrix(u32 *r, const void *row, int line)
{
    const char *rows[3 * count];
    pc_exchange_rows(rows, count, row, line);
    const int lane = PC_LANE;
    for (int m = 0; m < count; m++) {
        if (transposed) {
            const u16 first = ((const u16 *)rows[3 * m + 1])[lane / 4];
            r[m] = first | (u32)((const u16 *)rows[3 * m + 2])[lane / 4] << 16;
        } else
            r[m] = ((const u32 *)rows[3 * m])[lane % 4];
    }
}

#define PC_LDMATRIX(name, count, transposed) \
    PC_INLINE void name(u32 *r, const void *row, int line = __builtin_LINE()) \
    { \
        PC_COUNTS_ACCESS(0, row, PC_LANE < 8 * count ? 16 : 0); \
        pc_ldmatrix<count, transposed>(r, row, line); \
    }
PC_LDMATRIX(pc_ldmatrix_x1, 1, false)
PC_LDMATRIX(pc_ldmatrix_x2, 2, false)
PC_LDMATRIX(pc_ldmatrix_x4, 4, false)
PC_LDMATRIX(pc_ldmatrix_x1_transposed, 1, true)
PC_LDMATRIX(pc_ldmatrix_x2_transposed, 2, true)
PC_LDMATRIX(pc_ldmatrix_x4_transposed, 4, true)
#undef PC_LDMATRIX

/* ---- mma: each thread gives its parts of A and B as floats, and computes its part of D ----------- */

/* A slot: the thread's elements of row g of A, of row g + 8, and of column g of B, in one order. */
struct pc_fragments {
    pc_quad upper, lower, column;
};

/* d += the products of this thread's rows and columns, in f32; sums of four, then their sum. */
PC_HIDDEN void pc_multiply_fragments(f32 *d, const pc_fragments &own, int line)
{
    static_assert(sizeof(pc_fragments) <= sizeof(pc_slot), "fits");
    pc_move(pc_own_slot(), &own, sizeof own);
    const pc_slot *slots = pc_meet_whole_warp("mma", line);
    const int g = pc_self->index % 32 / 4, t = pc_self->index % 4;
    pc_quad sums[4] = {};
    for (int part = 0; part < 4; part++) {
        pc_fragments rows, left, right;
        pc_move(&rows, &slots[4 * g + part], sizeof rows);
        pc_move(&left, &slots[8 * t + part], sizeof left);
        pc_move(&right, &slots[8 * t + 4 + part], sizeof right);
        sums[0] += rows.upper * left.column;
        sums[1] += rows.upper * right.column;
        sums[2] += rows.lower * left.column;
        sums[3] += rows.lower * right.column;
    }
    for (int r = 0; r < 4; r++)
        d[r] += (sums[r][0] + sums[r][1]) + (sums[r][2] + sums[r][3]);
}

/* Both halves of a register, and the next register's: elements 2t, 2t + 1, 2t + 8, 2t + 9. */
template <f32 widen(u16)> static inline pc_quad pc_unpack(u32 first, u32 second)
{
    return pc_quad{widen((u16)first), widen((u16)(first >> 16)), widen((u16)second), widen((u16)(second >> 16))};
}
PC_INLINE void pc_mma_m16n8k16_bf16(f32 *d, const u32 *a, const u32 *b,
    int line = __builtin_LINE())
{
    pc_multiply_fragments(d, {pc_unpack<pc_widen_bf16>(a[0], a[2]), pc_unpack<pc_widen_bf16>(a[1], a[3]),
        pc_unpack<pc_widen_bf16>(b[0], b[1])}, line);
}
PC_INLINE void pc_mma_m16n8k16_f16(f32 *d, const u32 *a, const u32 *b,
    int line = __builtin_LINE())
{
    pc_multiply_fragments(d, {pc_unpack<pc_widen_f16>(a[0], a[2]), pc_unpack<pc_widen_f16>(a[1], a[3]),
        pc_unpack<pc_widen_f16>(b[0], b[1])}, line);
}

/* Two elements of tf32. */
static inline pc_quad pc_unpack_tf32(u32 first, u32 second)
{
    return pc_quad{pc_widen_tf32(first), pc_widen_tf32(second), 0, 0};
}
PC_INLINE void pc_mma_m16n8k8_tf32(f32 *d, const u32 *a, const u32 *b,
    int line = __builtin_LINE())
{
    pc_multiply_fragments(d, {pc_unpack_tf32(a[0], a[2]), pc_unpack_tf32(a[1], a[3]),
        pc_unpack_tf32(b[0], b[1])}, line);
}

#endif
