/* polyc_tiles.h: eight registers for matrices of up to 16 rows of 64 bytes, and their products.

       static const pc_shapes shapes = {1, 0, {0}, {64, …}, {16, …}};   bytes of a row, and rows, of each
       PC_TILES;                       in a function that uses them, before
       PC_TILES_AS(shapes);            they hold these shapes from here on, and zeros if they held others
       PC_TILE_LOAD(4, p, step);       rows `step` elements apart
       PC_TILE_ZERO(0);
       PC_TILE_PRODUCT(u8i8, 0, 4, 6); of a's rows by b's columns, added to register 0
       PC_TILE_STORE(0, p, step);
       PC_TILES_END;                   behind all

   Register 0 has as many rows as 4, and as many columns, of 32 bits, as 6; these have words of 32
   bits: those of a row of a, and the rows of b. u8i8, i8u8 and i8i8 add up the products of four
   bytes modulo 2^32, bf16bf16 those of two numbers, of which the processor rounds subnormal ones
   to zero, and rounds each addition.

   A processor with AMX has them; else they are loops. */

#ifndef POLYC_TILES_H
#define POLYC_TILES_H

typedef struct {
    u8 palette, start_row, unused[14];
    u16 bytes[16];
    u8 rows[16];
} __attribute__((aligned(64))) pc_shapes;

#if defined __AMX_TILE__ && defined __linux__ && !defined PC_PRIME

/* Linux lets a process use them that has asked for it once (ARCH_REQ_XCOMP_PERM). */
PC_INLINE void pc_ask_for_tiles(void)
{
    static int asked;
    long result = 158; /* arch_prctl */
    if (__atomic_load_n(&asked, __ATOMIC_RELAXED))
        return;
    __asm__ volatile("syscall" : "+a"(result) : "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
    __atomic_store_n(&asked, 1, __ATOMIC_RELAXED);
}

#define PC_TILES \
    const pc_shapes *pc_now = 0; \
    pc_ask_for_tiles()
#define PC_TILES_AS(shapes) \
    do { \
        if (pc_now != &(shapes)) \
            __asm__ volatile("ldtilecfg %0" : : "m"(shapes)); \
        pc_now = &(shapes); \
    } while (0)
#define PC_TILE_LOAD(t, p, step) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t \
                     : : "r"(p), "r"((i64)(step) * (i64)sizeof *(p)) : "memory")
#define PC_TILE_STORE(t, p, step) \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" \
                     : : "r"(p), "r"((i64)(step) * (i64)sizeof *(p)) : "memory")
#define PC_TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t :)
#define PC_TILE_PRODUCT(kinds, t, a, b) PC_TILE_OF_##kinds(t, a, b)
#define PC_TILE_OF_u8i8(t, a, b) PC_TILE_RUN("tdpbusd", t, a, b)
#define PC_TILE_OF_i8u8(t, a, b) PC_TILE_RUN("tdpbsud", t, a, b)
#define PC_TILE_OF_i8i8(t, a, b) PC_TILE_RUN("tdpbssd", t, a, b)
#define PC_TILE_OF_bf16bf16(t, a, b) PC_TILE_RUN("tdpbf16ps", t, a, b)
#define PC_TILE_RUN(name, t, a, b) \
    __asm__ volatile(name " %%tmm" #b ", %%tmm" #a ", %%tmm" #t :)
#define PC_TILES_END \
    do { \
        if (pc_now) \
            __asm__ volatile("tilerelease" :); \
    } while (0)

#else

typedef struct {
    u8 cells[16][64] __attribute__((aligned(64)));
} pc_tile;

PC_INLINE void pc_tile_zero(pc_tile *t)
{
    const pc_tile empty = {{{0}}};
    *t = empty;
}

PC_INLINE void pc_tile_load(pc_tile *t, const pc_shapes *now, int n, const void *p, i64 apart)
{
    pc_tile_zero(t);
    for (int m = 0; m < now->rows[n]; m++)
        PC_COPY(t->cells[m], (const u8 *)p + m * apart, now->bytes[n]);
}

PC_INLINE void pc_tile_store(const pc_tile *t, const pc_shapes *now, int n, void *p, i64 apart)
{
    for (int m = 0; m < now->rows[n]; m++)
        PC_COPY((u8 *)p + m * apart, t->cells[m], now->bytes[n]);
}

/* terms: of a word; SUM(sum, x, y): what is added to a sum, or the sum with it. */
#define PC_TILE_LOOPS(kinds, A, B, T, terms, SUM) \
    PC_INLINE void pc_tile_##kinds(pc_tile *t, const pc_tile *a, const pc_tile *b, \
                                   const pc_shapes *now, int nt, int na) \
    { \
        for (int m = 0; m < now->rows[nt]; m++) \
            for (int n = 0; n < now->bytes[nt] / 4; n++) { \
                T sum; \
                PC_COPY(&sum, &t->cells[m][4 * n], 4); \
                for (int k = 0; k < now->bytes[na] / 4; k++) \
                    for (int r = 0; r < terms; r++) { \
                        A x; \
                        B y; \
                        PC_COPY(&x, &a->cells[m][4 * k + 4 / terms * r], sizeof x); \
                        PC_COPY(&y, &b->cells[k][4 * n + 4 / terms * r], sizeof y); \
                        sum = SUM(sum, x, y); \
                    } \
                PC_COPY(&t->cells[m][4 * n], &sum, 4); \
            } \
    }
#define PC_TILE_WHOLE(sum, x, y) (i32)((u32)(sum) + (u32)((i32)(x) * (i32)(y)))
PC_TILE_LOOPS(u8i8, u8, i8, i32, 4, PC_TILE_WHOLE)
PC_TILE_LOOPS(i8u8, i8, u8, i32, 4, PC_TILE_WHOLE)
PC_TILE_LOOPS(i8i8, i8, i8, i32, 4, PC_TILE_WHOLE)
#ifdef PC_PRIME
#define PC_TILE_WIDE(bits) f32::of(bits)
#else
#define PC_TILE_WIDE(bits) pc_tile_wide(bits)
PC_INLINE f32 pc_tile_wide(u16 bits)
{
    const u32 word = (u32)bits << 16;
    f32 x;
    PC_COPY(&x, &word, 4);
    return x;
}
#endif
#define PC_TILE_FLOAT(sum, x, y) ((sum) + PC_TILE_WIDE(x) * PC_TILE_WIDE(y))
PC_TILE_LOOPS(bf16bf16, u16, u16, f32, 2, PC_TILE_FLOAT)

#define PC_TILES \
    const pc_shapes *pc_now = 0; \
    pc_tile pc_tiles[8]
#define PC_TILES_AS(shapes) (pc_now = &(shapes))
#define PC_TILE_LOAD(t, p, step) \
    pc_tile_load(&pc_tiles[t], pc_now, t, p, (i64)(step) * (i64)sizeof *(p))
#define PC_TILE_STORE(t, p, step) \
    pc_tile_store(&pc_tiles[t], pc_now, t, p, (i64)(step) * (i64)sizeof *(p))
#define PC_TILE_ZERO(t) pc_tile_zero(&pc_tiles[t])
#define PC_TILE_PRODUCT(kinds, t, a, b) \
    pc_tile_##kinds(&pc_tiles[t], &pc_tiles[a], &pc_tiles[b], pc_now, t, a)
#define PC_TILES_END (void)pc_tiles

#endif

#endif
