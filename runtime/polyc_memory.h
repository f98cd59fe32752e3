/* polyc_memory.h: vectors from and to memory: whole ones, every k-th element, the first lanes, squares
   that are transposed. A part of polyc_vector.h, whose macros it uses. */

typedef V FN(memory) __attribute__((aligned(sizeof(T)), may_alias));

PC_INLINE V FN(load)(const T *p) { return READ(*(const FN(memory) *)p); }
PC_INLINE void FN(store)(T *p, V v) { *(FN(memory) *)p = WRITTEN(v); }

#ifdef PC_STRIDES

/* Lane l from or to p[l * stride]. Of every second element, by a shuffle of two vectors, of which
   the other one ends where the last element does; backwards, by a shuffle of one. */
#define EVERY_SECOND(a, l) (2 * (l) + ((l) >= PC_LANES / 2))
#define BACKWARDS(a, l) (PC_LANES - 1 - (l))
PC_INLINE V FN(loads)(const T *p, i64 stride)
{
    if (__builtin_constant_p(stride) && stride == 2)
        return __builtin_shufflevector(FN(load)(p), FN(load)(p + PC_LANES - 1),
                                       PC_PASTE(PC_EACH_, PC_LANES)(EVERY_SECOND, 0, 0));
    if (__builtin_constant_p(stride) && stride == -1) {
        const V v = FN(load)(p - (PC_LANES - 1));
        return __builtin_shufflevector(v, v, PC_PASTE(PC_EACH_, PC_LANES)(BACKWARDS, 0, 0));
    }
    /* gcc 12.2 needs a minute and 3 GB to combine the lanes of 200 such loads that are inserted one
       by one; a gather is one instruction. */
#if defined __AVX512F__ && BITS == 32 && PC_LANES == 16
    if (-(1 << 27) < stride && stride < (1 << 27))
        return (V)__builtin_ia32_gathersiv16si((M){0}, p, (M){IOTA(0)} * (i32)stride, 0xffff, 4);
#elif defined __AVX512F__ && BITS == 64 && PC_LANES == 8
    typedef long long Q __attribute__((vector_size(64)));
    return (V)__builtin_ia32_gatherdiv8di((Q){0}, p, (Q){IOTA(0)} * stride, 0xff, 8);
#endif
    V v;
    EACH_LANE v[l] = READ(p[l * stride]);
    return v;
}
#undef EVERY_SECOND
#undef BACKWARDS

/* The first n elements over and over: p[0], …, p[n - 1], p[0], … */
PC_INLINE V FN(repeat)(const T *p, i64 n)
{
#if BITS * PC_LANES >= 32
    if (__builtin_constant_p(n) && BITS * n == 32) {
        typedef i32 FN(group) __attribute__((vector_size(BITS * PC_LANES / 8)));
        i32 group;
        PC_COPY(&group, p, 4);
        return READ((V)(group - (FN(group)){0}));
    }
#endif
    V v;
    EACH_LANE v[l] = READ(p[l % n]);
    return v;
}

/* Lane l is the lane of v that `lanes` has a literal for there. */
PC_INLINE V FN(pick)(V v, M lanes)
{
#ifdef __clang__
    V r;
    EACH_LANE r[l] = v[lanes[l]];
    return r;
#else
    return __builtin_shuffle(v, lanes);
#endif
}
PC_INLINE void FN(stores)(T *p, V v, i64 stride)
{
    EACH_LANE p[l * stride] = WRITTEN(v[l]);
}

#endif

/* The first n lanes only (none if n <= 0): no memory past them is touched; loaded, the rest is 0. */
#if BITS * PC_LANES == 512
#define WIDTH 512
#elif BITS * PC_LANES == 256
#define WIDTH 256
#elif BITS * PC_LANES <= 128
#define WIDTH 128 /* of fewer bits, the first ones of a register */
#endif
#if defined __AVX512VL__ && defined __AVX512BW__ && defined WIDTH
#define MASKED(name) PC_PASTE3(PC_PASTE3(__builtin_ia32_, name##dqu, PC_MODE), WIDTH, _mask)
#define PC_MODE PC_PASTE(PC_MODE_, BITS)
#define I PC_PASTE(PC_MODE_TYPE_, BITS)
typedef I FN(masked) __attribute__((vector_size(WIDTH / 8)));
PC_INLINE u64 FN(mask)(i64 n)
{
    const i64 lanes = n < PC_LANES ? n : PC_LANES;
    return lanes <= 0 ? 0 : ~(u64)0 >> (64 - lanes);
}
PC_INLINE V FN(loadn)(const T *p, i64 n)
{
    const FN(masked) wide = MASKED(load)((const void *)p, (FN(masked)){0}, FN(mask)(n));
    V v;
    PC_COPY(&v, &wide, sizeof v);
    return READ(v);
}
PC_INLINE void FN(storen)(T *p, V v, i64 n)
{
    FN(masked) wide = {0};
    const V written = WRITTEN(v);
    PC_COPY(&wide, &written, sizeof v);
    MASKED(store)((void *)p, wide, FN(mask)(n));
}
#undef I
#undef PC_MODE
#undef MASKED
#else
/* Unrolled early, these would become a chain of branches; left as loops, gcc makes masked loads and
   stores of them where the machine has such. The pragma ivdep says that p is not the local v. */
PC_INLINE V FN(loadn)(const T *p, i64 n)
{
    V v;
    int limit = n <= 0 ? 0 : n < PC_LANES ? (int)n : PC_LANES;
    _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
    EACH_LANE v[l] = l < limit ? READ(p[l]) : 0;
    return v;
}
PC_INLINE void FN(storen)(T *p, V v, i64 n)
{
#if BITS * PC_LANES >= 128
    /* A known number of lanes may be one element of another type, which is one instruction. */
#define ALONE(type, bits) \
    if (__builtin_constant_p(n) && BITS * n == (bits)) { \
        typedef type FN(wide) __attribute__((vector_size(BITS * PC_LANES / 8))); \
        const type part = ((FN(wide))WRITTEN(v))[0]; \
        PC_COPY(p, &part, (bits) / 8); \
        return; \
    }
    ALONE(i32, 32)
    ALONE(i64, 64)
#undef ALONE
#endif
    int limit = n <= 0 ? 0 : n < PC_LANES ? (int)n : PC_LANES;
    _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
    EACH_LANE if (l < limit) p[l] = WRITTEN(v[l]);
}
#endif
#undef WIDTH

#ifdef PC_TRANSPOSITIONS

/* The square of PC_LANES rows at p, aligned to a vector, transposed: log2(PC_LANES) stages, each of
   which swaps the blocks off the diagonal of squares of twice their side d. Once inlined, gcc keeps
   the rows in registers between the stores before it and the loads after it. */
#define EACH PC_PASTE(PC_EACH_, PC_LANES)
#define UPPER(d, l) ((l) & (d) ? PC_LANES + (l) - (d) : (l))
#define LOWER(d, l) ((l) & (d) ? PC_LANES + (l) : (l) + (d))
#define SWAP_BLOCKS(d) \
    _Pragma("GCC unroll 64") \
    for (int k = 0; k < PC_LANES; k++) \
        if (!(k & (d)) && (d) < PC_LANES) { \
            V a = row[k], b = row[(k + (d)) % PC_LANES]; \
            row[k] = __builtin_shufflevector(a, b, EACH(UPPER, (d) % PC_LANES, 0)); \
            row[(k + (d)) % PC_LANES] = __builtin_shufflevector(a, b, EACH(LOWER, (d) % PC_LANES, 0)); \
        }
PC_INLINE void FN(transpose)(T *p)
{
    typedef V FN(row) __attribute__((may_alias));
    FN(row) *row = (FN(row) *)p;
    SWAP_BLOCKS(32) SWAP_BLOCKS(16) SWAP_BLOCKS(8) SWAP_BLOCKS(4) SWAP_BLOCKS(2) SWAP_BLOCKS(1)
}
#undef SWAP_BLOCKS

/* The rows at p, 2, 4, … of them, with their elements in turns: a0 b0 c0 d0 a1 b1 … In each of
   log2(rows) stages row k of one half meets row k of the other. */
#define LOW(d, l) ((l) / 2 + ((l) & 1) * PC_LANES)
#define HIGH(d, l) (PC_LANES / 2 + (l) / 2 + ((l) & 1) * PC_LANES)
PC_INLINE void FN(interleave)(T *p, i64 rows)
{
    typedef V FN(row) __attribute__((may_alias));
    FN(row) *row = (FN(row) *)p;
    V from[PC_LANES], to[PC_LANES];
    _Pragma("GCC unroll 64")
    for (int k = 0; k < rows; k++)
        from[k] = row[k];
    _Pragma("GCC unroll 8")
    for (int n = 1; n < rows; n *= 2) {
        _Pragma("GCC unroll 64")
        for (int k = 0; k < rows / 2; k++) {
            to[2 * k] = __builtin_shufflevector(from[k], from[k + rows / 2], EACH(LOW, 0, 0));
            to[2 * k + 1] = __builtin_shufflevector(from[k], from[k + rows / 2], EACH(HIGH, 0, 0));
        }
        _Pragma("GCC unroll 64")
        for (int k = 0; k < rows; k++)
            from[k] = to[k];
    }
    _Pragma("GCC unroll 64")
    for (int k = 0; k < rows; k++)
        row[k] = from[k];
}
#undef HIGH
#undef LOW
#undef LOWER
#undef UPPER
#undef EACH

#endif
