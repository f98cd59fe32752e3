/* polyc_emulator_wgmma.hpp: products by a warpgroup. Each thread computes its part of D when it waits
   for it, from shared memory as it is then; until then its part holds NaN. */

#ifndef POLYC_EMULATOR_WGMMA_HPP
#define POLYC_EMULATOR_WGMMA_HPP

#include "polyc_emulator_hopper.hpp"

/* Half of a descriptor: a tile that is swizzled by 128 bytes. */
struct pc_operand {
    i64 address, leading, stride;
    int along_k;        /* what is contiguous: k, or m and n */
    f32 (*widen)(u16);
};

struct pc_product {
    f32 *d;
    pc_operand a, b;
    int n, adds, line;
};

/* Sums on their way: the thread's d, and what it will be. */
struct pc_sums {
    f32 *d;
    int n;
    f32 values[128];
};

enum { PC_MOST_PRODUCTS = 256, PC_MOST_SUMS = 16 };

/* Of one thread. */
struct pc_products {
    pc_product items[PC_MOST_PRODUCTS]; /* not yet performed, in order */
    int count, open;
    int groups[PC_MOST_PRODUCTS];
    int group_count;
    int fenced;
    pc_sums sums[PC_MOST_SUMS];
    int sum_count;
};

PC_HIDDEN void pc_forget_products(pc_products *products)
{
    if (products)
        products->count = products->open = products->group_count = products->fenced = products->sum_count = 0;
}

PC_HIDDEN pc_products *pc_get_products(void)
{
    pc_hopper_state *state = pc_get_hopper();
    if (state->products == NULL) {
        PC_UNSEEN_BEGIN
        state->products = (pc_products *)calloc(1, sizeof(pc_products));
        PC_UNSEEN_END
    }
    return state->products;
}

PC_HIDDEN u64 pc_wgmma_operand(const void *tile, int leading_bytes, int stride_bytes, int line = __builtin_LINE())
{
    const pc_shared_array *array = pc_find_shared(tile, 1, line);
    if (leading_bytes % 16 || stride_bytes % 16 || (uintptr_t)tile % 16)
        pc_fail("describes a tile at line %d that is not made of 16 bytes", line);
    return ((u64)pc_shared_address(array, tile) & 0x3ffff) >> 4 | (u64)(leading_bytes >> 4) << 16
        | (u64)(stride_bytes >> 4) << 32 | (u64)1 << 62;
}

PC_HIDDEN pc_operand pc_read_operand(u64 descriptor, int along_k, f32 (*widen)(u16), int line)
{
    if (descriptor >> 62 != 1)
        pc_fail("multiplies by what is no operand at line %d", line);
    return {(i64)(descriptor & 0x3fff) << 4, (i64)(descriptor >> 16 & 0x3fff) << 4,
        (i64)(descriptor >> 32 & 0x3fff) << 4, along_k, widen};
}

/* ---- Reading tiles ------------------------------------------------------------------------------ */

/* Bytes at an address of a GPU's shared memory, as products see them. */
PC_HIDDEN const char *pc_read_shared(i64 address, int bytes, int line)
{
    pc_worker *worker = pc_self->worker;
    for (int k = 0; k < worker->array_count; k++) {
        pc_shared_array *array = &worker->arrays[k];
        const i64 distance = address - PC_SHARED_BASE - array->offset;
        if (array->offset < 0 || distance < 0 || distance + bytes > (i64)array->bytes)
            continue;
        PC_NOTE_READ(array->data + distance, bytes);
        return pc_get_seen(array) + distance;
    }
    pc_fail("multiplies by what lies outside of shared arrays at line %d", line);
}

/* Elements k = 0..15 of row or column i of an operand. */
PC_HIDDEN void pc_read_line(f32 *line_values, const pc_operand &operand, int i, int line)
{
    if (operand.along_k) {
        const i64 begin = operand.address + i / 8 * operand.stride + i % 8 * 128;
        for (int half = 0; half < 2; half++) {
            u16 bits[8];
            pc_move(bits, pc_read_shared(pc_swizzle(begin + 16 * half), 16, line), 16);
            for (int k = 0; k < 8; k++)
                line_values[8 * half + k] = operand.widen(bits[k]);
        }
        return;
    }
    for (int k = 0; k < 16; k++) {
        const i64 address = operand.address + i / 64 * operand.leading + i % 64 * 2 + k / 8 * operand.stride
            + k % 8 * 128;
        u16 bits;
        pc_move(&bits, pc_read_shared(pc_swizzle(address), 2, line), 2);
        line_values[k] = operand.widen(bits);
    }
}

PC_HIDDEN void pc_perform_product(const pc_product &product, f32 *sums)
{
    const int thread = pc_self->index % 128, g = thread % 32 / 4, t = thread % 4;
    f32 rows[2][16], column[16];
    for (int h = 0; h < 2; h++)
        pc_read_line(rows[h], product.a, thread / 32 * 16 + g + 8 * h, product.line);
    for (int j = 0; j < product.n / 8; j++)
        for (int c = 0; c < 2; c++) {
            pc_read_line(column, product.b, 8 * j + 2 * t + c, product.line);
            for (int h = 0; h < 2; h++) {
                f32 sum = 0;
                for (int k = 0; k < 16; k++)
                    sum += rows[h][k] * column[k];
                f32 *place = &sums[4 * j + 2 * h + c];
                *place = product.adds ? *place + sum : sum;
            }
        }
}

/* ---- What a kernel calls ------------------------------------------------------------------------ */

PC_HIDDEN void pc_meet_warpgroup(const char *operation, int line)
{
    if ((pc_self->index | 127) >= pc_self->worker->size)
        pc_fail("does %s at line %d in a warpgroup of less than 128 threads", operation, line);
    pc_meet_warp(line, 0);
}

PC_HIDDEN void pc_wgmma_fence(int line = __builtin_LINE())
{
    pc_meet_warpgroup("pc_wgmma_fence", line);
    pc_get_products()->fenced = 1;
}

PC_HIDDEN pc_sums *pc_find_sums(pc_products *products, const f32 *d)
{
    for (int k = 0; k < products->sum_count; k++)
        if (products->sums[k].d == d)
            return &products->sums[k];
    return NULL;
}

PC_HIDDEN void pc_add_product(const pc_product &product)
{
    pc_products *products = pc_get_products();
    if (!products->fenced)
        pc_fail("multiplies at line %d without pc_wgmma_fence", product.line);
    if (products->count == PC_MOST_PRODUCTS)
        pc_fail("has more than %d products on their way at line %d", PC_MOST_PRODUCTS, product.line);
    products->items[products->count++] = product;
    products->open++;
    if (pc_find_sums(products, product.d))
        return;
    if (products->sum_count == PC_MOST_SUMS)
        pc_fail("adds to more than %d fragments at once at line %d", PC_MOST_SUMS, product.line);
    pc_sums *sums = &products->sums[products->sum_count++];
    sums->d = product.d;
    sums->n = product.n;
    pc_move(sums->values, product.d, (size_t)product.n / 2 * sizeof(f32));
    PC_UNSEEN_BEGIN
    memset(product.d, 0xff, (size_t)product.n / 2 * sizeof(f32));
    PC_UNSEEN_END
}

PC_HIDDEN void pc_wgmma_commit(int line = __builtin_LINE())
{
    pc_meet_warpgroup("pc_wgmma_commit", line);
    pc_products *products = pc_get_products();
    if (products->group_count == PC_MOST_PRODUCTS)
        pc_fail("has more than %d groups of products on their way at line %d", PC_MOST_PRODUCTS, line);
    products->groups[products->group_count++] = products->open;
    products->open = 0;
}

PC_HIDDEN void pc_wgmma_wait(int left, int line = __builtin_LINE())
{
    pc_meet_warpgroup("pc_wgmma_wait", line);
    pc_products *products = pc_get_products();
    int due = 0;
    const int groups = products->group_count > left ? products->group_count - left : 0;
    for (int g = 0; g < groups; g++)
        due += products->groups[g];
    for (int k = 0; k < due; k++)
        pc_perform_product(products->items[k], pc_find_sums(products, products->items[k].d)->values);
    products->count -= due;
    products->group_count -= groups;
    products->fenced = 0;
    pc_move(products->items, products->items + due, (size_t)products->count * sizeof(pc_product));
    pc_move(products->groups, products->groups + groups, (size_t)products->group_count * sizeof(int));
    for (int k = products->sum_count - 1; k >= 0; k--) {
        pc_sums *sums = &products->sums[k];
        bool awaited = false;
        for (int p = 0; p < products->count; p++)
            awaited = awaited || products->items[p].d == sums->d;
        if (awaited)
            continue;
        pc_move(sums->d, sums->values, (size_t)sums->n / 2 * sizeof(f32));
        pc_move(sums, &products->sums[--products->sum_count], sizeof(pc_sums));
    }
}

#define PC_WGMMA(size, type) \
    template <int m_major, int n_major> \
    static inline void pc_wgmma_m64n##size##k16_##type(f32 *d, u64 a, u64 b, int adds, int line = __builtin_LINE()) \
    { \
        pc_add_product({d, pc_read_operand(a, !m_major, pc_widen_##type, line), \
            pc_read_operand(b, !n_major, pc_widen_##type, line), size, adds, line}); \
    }
PC_WGMMA(64, bf16) PC_WGMMA(96, bf16) PC_WGMMA(128, bf16) PC_WGMMA(192, bf16) PC_WGMMA(256, bf16)
PC_WGMMA(64, f16) PC_WGMMA(96, f16) PC_WGMMA(128, f16) PC_WGMMA(192, f16) PC_WGMMA(256, f16)
#undef PC_WGMMA

#define pc_take_registers(n) (void)(n)
#define pc_give_registers(n) (void)(n)

#endif
