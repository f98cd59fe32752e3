/* polyc_vector.h: PC_LANES values of type PC_TYPE at a time (see polyc.h for the form of use).

   V is the vector, T its scalar, M the mask that a comparison of two V makes (a signed integer of
   the width of T, 0 or -1 a lane), B the b8 vector that stands for it in generated code.
   Arithmetic is lane by lane that of polyc_scalar.h. gcc 12 turns a loop over lanes into one
   instruction where there is one (floor: vrndscaleps), in every instruction set. No such loop may
   convert a comparison to a number, `r[l] = a[l] > 0`: gcc 12.2 then makes -1 of true. */

#define T PC_TYPE
#define V PC_PASTE3(PC_TYPE, x, PC_LANES)
#define B PC_PASTE(b8x, PC_LANES)
#define M PC_PASTE3(i, BITS, PC_PASTE(x, PC_LANES))
#define FN(name) PC_PASTE3(pc_, name##_, V)
#define SCALAR(name) PC_PASTE3(pc_, name##_, PC_TYPE)
#define KIND PC_PASTE(PC_KIND_, PC_TYPE)
#define BITS PC_PASTE(PC_BITS_, PC_TYPE)
#define IOTA PC_PASTE(PC_IOTA_, PC_LANES)
#define EACH_LANE for (int l = 0; l < PC_LANES; l++)

/* Between the mask of a comparison and b8. */
#define TO_B8(m) PC_PASTE3(PC_RESIZE_, BITS, _8)(i, m, PC_LANES)
#define TO_MASK(b) (PC_PASTE(PC_RESIZE_8_, BITS)(i, b, PC_LANES) != 0)

/* Between an element in memory and in a register: b8 is 1 there and -1 here. */
#if KIND == PC_BOOL
#define E i8
#define READ(x) (-(x))
#define WRITTEN(x) ((x) & 1)
#else
#define E T
#define READ(x) (x)
#define WRITTEN(x) (x)
#endif

#include "polyc_memory.h"

/* `a - 0` is a for every a; `a + 0` is not, for -0. */
PC_INLINE V FN(splat)(T a) { return (E)READ(a) - (V){0}; }

/* ---- Choice -------------------------------------------------------------------------------- */

/* A mask picks lanes of a where it is -1, of b where it is 0. Of the forms of one formula, this is
   what gcc 12 prints best: with AVX-512 as two logical operations under the comparison's mask
   register (the sum would compare twice), elsewhere as one blend. */
PC_INLINE V FN(blend)(M mask, V a, V b)
{
#ifdef __AVX512F__
    return (V)((mask & (M)a) | (~mask & (M)b));
#else
    return (V)((mask & (M)a) + (~mask & (M)b));
#endif
}
PC_INLINE V FN(select)(B condition, V a, V b) { return FN(blend)(TO_MASK(condition), a, b); }

/* The first n lanes of v, and in the others e. */
PC_INLINE V FN(fill)(V v, i64 n, T e)
{
    return FN(blend)((M){IOTA(0)} < (PC_PASTE(i, BITS))n, v, FN(splat)(e));
}

PC_INLINE PC_PASTE3(u, BITS, PC_PASTE(x, PC_LANES)) FN(as_bits)(V a)
{
    return (PC_PASTE3(u, BITS, PC_PASTE(x, PC_LANES)))WRITTEN(a);
}
PC_INLINE V FN(from_bits)(PC_PASTE3(u, BITS, PC_PASTE(x, PC_LANES)) bits) { return READ((V)bits); }

#if KIND != PC_STORED

PC_INLINE B FN(eq)(V a, V b) { return TO_B8(a == b); }
PC_INLINE B FN(ne)(V a, V b) { return TO_B8(a != b); }

/* ---- Reductions: halves folded onto each other, log2(PC_LANES) steps ------------------------- */

/* Neighbours change places, which shuffles inside of 16 bytes do, where a rotation crosses them. */
#define FLIP PC_PASTE(PC_FLIP_, PC_LANES)
#define FLIPPED(v, w) __builtin_shufflevector(v, v, FLIP(0, (w) % PC_LANES))
#ifdef PC_REDUCTIONS
#define REDUCTION(name, OP) \
    PC_INLINE T FN(reduce_##name)(V v) \
    { \
        if (PC_LANES > 32) v = OP(v, FLIPPED(v, 32)); \
        if (PC_LANES > 16) v = OP(v, FLIPPED(v, 16)); \
        if (PC_LANES > 8) v = OP(v, FLIPPED(v, 8)); \
        if (PC_LANES > 4) v = OP(v, FLIPPED(v, 4)); \
        if (PC_LANES > 2) v = OP(v, FLIPPED(v, 2)); \
        v = OP(v, FLIPPED(v, 1)); \
        return (T)WRITTEN(v[0]); \
    }
#else
#define REDUCTION(name, OP)
#endif

#if KIND == PC_BOOL

PC_INLINE V FN(and)(V a, V b) { return a & b; }
PC_INLINE V FN(or)(V a, V b) { return a | b; }
PC_INLINE V FN(xor)(V a, V b) { return a ^ b; }
PC_INLINE V FN(not)(V a) { return ~a; }
REDUCTION(and, FN(and))
REDUCTION(or, FN(or))

#else

PC_INLINE B FN(lt)(V a, V b) { return TO_B8(a < b); }
PC_INLINE B FN(le)(V a, V b) { return TO_B8(a <= b); }
PC_INLINE B FN(gt)(V a, V b) { return TO_B8(a > b); }
PC_INLINE B FN(ge)(V a, V b) { return TO_B8(a >= b); }

/* select(a < b, x, y) with no way through b8, for a condition that is used once. */
PC_INLINE V FN(select_eq)(V a, V b, V x, V y) { return FN(blend)(a == b, x, y); }
PC_INLINE V FN(select_ne)(V a, V b, V x, V y) { return FN(blend)(a != b, x, y); }
PC_INLINE V FN(select_lt)(V a, V b, V x, V y) { return FN(blend)(a < b, x, y); }
PC_INLINE V FN(select_le)(V a, V b, V x, V y) { return FN(blend)(a <= b, x, y); }
PC_INLINE V FN(select_gt)(V a, V b, V x, V y) { return FN(blend)(a > b, x, y); }
PC_INLINE V FN(select_ge)(V a, V b, V x, V y) { return FN(blend)(a >= b, x, y); }

/* Comparisons as masks, -1 and 0 of the elements' width, for conditions that stay in registers. */
PC_INLINE M FN(mask_eq)(V a, V b) { return a == b; }
PC_INLINE M FN(mask_ne)(V a, V b) { return a != b; }
PC_INLINE M FN(mask_lt)(V a, V b) { return a < b; }
PC_INLINE M FN(mask_le)(V a, V b) { return a <= b; }
PC_INLINE M FN(mask_gt)(V a, V b) { return a > b; }
PC_INLINE M FN(mask_ge)(V a, V b) { return a >= b; }
PC_INLINE V FN(choose)(M mask, V a, V b) { return FN(blend)(mask, a, b); }

/* A function of each lane: by instructions of the machine that gcc finds, or, where there are none
   (division of integers, libm), by a loop that is kept as one. */
#define LANEWISE_1(name) \
    PC_INLINE V FN(name)(V a) { V r; EACH_LANE r[l] = SCALAR(name)(a[l]); return r; }
#define LANEWISE_2(name) \
    PC_INLINE V FN(name)(V a, V b) { V r; EACH_LANE r[l] = SCALAR(name)(a[l], b[l]); return r; }

#define LOOP_2(name) \
    PC_INLINE V FN(name)(V a, V b) \
    { \
        V r; \
        _Pragma("GCC unroll 1") EACH_LANE r[l] = SCALAR(name)(a[l], b[l]); \
        return r; \
    }

LOOP_2(mod)
LOOP_2(fmod)

#if KIND == PC_FLOAT

/* `a < b ? b : a` and `b < a ? b : a`, so a where it is NaN and where both are zeros: just what the
   x86 instructions do, but gcc 12 sees that only where neither operand is a constant (and clang,
   which has no such function of 16 lanes, always). */
#if BITS == 32
#define X86(name, width) __builtin_ia32_##name##ps##width
#else
#define X86(name, width) __builtin_ia32_##name##pd##width
#endif
#if defined __AVX512F__ && !defined __clang__ && BITS * PC_LANES == 512
#define ORDERED(v, predicate) X86(cmp, 512_mask)(v, v, predicate, -1, 4)
#define SOME_NAN(v) (ORDERED(v, 3) != 0)
PC_INLINE V FN(larger)(V a, V b) { return X86(max, 512_mask)(b, a, a, -1, 4); }
PC_INLINE V FN(smaller)(V a, V b) { return X86(min, 512_mask)(b, a, a, -1, 4); }

/* Where b is a number; elsewhere it stays: one instruction, and one that those with the same b
   share. For a constant b there is nothing to ask. */
PC_INLINE V FN(max)(V a, V b)
{
    if (__builtin_constant_p(b[0]))
        return FN(blend)(b != b, b, FN(larger)(a, b));
    return X86(max, 512_mask)(b, a, b, ORDERED(b, 7), 4);
}
PC_INLINE V FN(min)(V a, V b)
{
    if (__builtin_constant_p(b[0]))
        return FN(blend)(b != b, b, FN(smaller)(a, b));
    return X86(min, 512_mask)(b, a, b, ORDERED(b, 7), 4);
}
#else
#if defined __AVX__ && BITS * PC_LANES == 256
#define SOME_NAN(v) (X86(movmsk, 256)((V)(v != v)) != 0)
PC_INLINE V FN(larger)(V a, V b) { return X86(max, 256)(b, a); }
PC_INLINE V FN(smaller)(V a, V b) { return X86(min, 256)(b, a); }
#elif defined __SSE2__ && BITS * PC_LANES == 128
PC_INLINE V FN(larger)(V a, V b) { return X86(max, )(b, a); }
PC_INLINE V FN(smaller)(V a, V b) { return X86(min, )(b, a); }
#else
PC_INLINE V FN(larger)(V a, V b) { return FN(blend)(a < b, b, a); }
PC_INLINE V FN(smaller)(V a, V b) { return FN(blend)(b < a, b, a); }
#endif

/* For a constant b, the test for NaN is gone: one instruction. */
PC_INLINE V FN(max)(V a, V b) { return FN(blend)(b != b, b, FN(larger)(a, b)); }
PC_INLINE V FN(min)(V a, V b) { return FN(blend)(b != b, b, FN(smaller)(a, b)); }
#endif

PC_INLINE V FN(sign)(V a) { return FN(blend)(a > 0, (V){0} + 1, FN(blend)(a < 0, (V){0} - 1, a)); }
PC_INLINE V FN(abs)(V a) { return (V)((M)a & ~(M)(-(V){0})); }
PC_INLINE V FN(copysign)(V magnitude, V sign)
{
    const M bit = (M)(-(V){0});
    return (V)(((M)magnitude & ~bit) | ((M)sign & bit));
}
PC_INLINE V FN(neg)(V a) { return -a; }
PC_INLINE V FN(add)(V a, V b) { return a + b; }
PC_INLINE V FN(mul)(V a, V b) { return a * b; }
PC_INLINE V FN(fma)(V a, V b, V c) { return a * b + c; }
PC_INLINE V FN(reciprocal)(V a) { return 1 / a; }
/* As in polyc_scalar.h. (gcc's __builtin_assoc_barrier takes vectors apart.) */
PC_INLINE V FN(rounded)(V a)
{
#if (BITS * PC_LANES == 128 && defined __SSE2__) || (BITS * PC_LANES == 256 && defined __AVX__) || \
    (BITS * PC_LANES == 512 && defined __AVX512F__)
    __asm__("" : "+v"(a));
#elif BITS * PC_LANES == 128 && defined __aarch64__
    __asm__("" : "+w"(a));
#else
    __asm__("" : "+m"(a));
#endif
    return a;
}
#if BITS == 32
LANEWISE_1(power_above)
LANEWISE_1(power_nearest)
#elif BITS == 64
PC_INLINE V FN(round_odd)(V a)
{
    const M lost = (M){0} + (1 << 29) - 1, rest = (M)a & lost;
    return (V)(((M)a & ~lost) | ((rest != 0) & (lost + 1)));
}
#endif
PC_INLINE B FN(isnan)(V a) { return TO_B8(a != a); }
PC_INLINE B FN(isinf)(V a) { return TO_B8(FN(abs)(a) == (T)__builtin_inf()); }
LANEWISE_1(sqrt)
LANEWISE_1(floor)
LANEWISE_1(ceil)
LANEWISE_1(trunc)
LANEWISE_1(round)

/* table[i mod 16] in each lane; where a register or two hold the table, by one shuffle. */
PC_INLINE V FN(look_up)(const T table[16], M i)
{
#if __has_builtin(__builtin_shuffle) && defined __AVX512F__ && BITS == 32 && PC_LANES == 16
    return __builtin_shuffle(*(const V *)table, i);
#elif __has_builtin(__builtin_shuffle) && defined __AVX2__ && BITS == 32 && PC_LANES == 8
    return __builtin_shuffle(((const V *)table)[0], ((const V *)table)[1], i);
#else
    V v;
    EACH_LANE v[l] = table[i[l] & 15];
    return v;
#endif
}

#else

#define U PC_PASTE3(u, BITS, PC_PASTE(x, PC_LANES))
PC_INLINE V FN(neg)(V a) { return (V)(0 - (U)a); }
PC_INLINE V FN(add)(V a, V b) { return (V)((U)a + (U)b); }
PC_INLINE V FN(sub)(V a, V b) { return (V)((U)a - (U)b); }
PC_INLINE V FN(mul)(V a, V b) { return (V)((U)a * (U)b); }
PC_INLINE V FN(fma)(V a, V b, V c) { return (V)((U)a * (U)b + (U)c); }
PC_INLINE V FN(bitand)(V a, V b) { return a & b; }
PC_INLINE V FN(bitor)(V a, V b) { return a | b; }
PC_INLINE V FN(bitxor)(V a, V b) { return a ^ b; }
PC_INLINE V FN(bitnot)(V a) { return ~a; }
PC_INLINE V FN(sign)(V a) { return (V)((a < 0) - (a > 0)); }
#if KIND == PC_SIGNED
PC_INLINE V FN(abs)(V a)
{
    const V sign = a >> (BITS - 1); /* -1 where a is negative: ~a + 1 is -a */
    return (V)(((U)a ^ (U)sign) - (U)sign);
}
#else
PC_INLINE V FN(abs)(V a) { return a; }
#endif
LANEWISE_2(min)
LANEWISE_2(max)
#if BITS > 8
#define COUNTED(shifted) (V)((U)(shifted) & (U)((U)b < BITS))
PC_INLINE V FN(shl)(V a, V b) { return COUNTED((U)a << ((U)b % BITS)); }
PC_INLINE V FN(shr)(V a, V b) { return COUNTED(a >> (V)((U)b % BITS)); }
#undef COUNTED
#else
LANEWISE_2(shl)
#if KIND == PC_UNSIGNED
/* No machine shifts bytes. Of two in 16 bits, the upper one is shifted with the lower one, which is
   cut off, and the lower one alone. A shift by 8 leaves nothing, and so do all counts beyond. */
PC_INLINE V FN(shr)(V a, V b)
{
    typedef u16 P __attribute__((vector_size(PC_LANES)));
    const V most = (V){0} + 8, in_range = (V)(b < most);
    const P v = (P)a, n = (P)((b & in_range) | (most & ~in_range));
    return (V)(((v & 255) >> (n & 255)) | (v >> (n >> 8) & 0xff00));
}
#else
LANEWISE_2(shr)
#endif
#endif
LOOP_2(div)
LOOP_2(pow)
#undef U

#if BITS == 8 && defined PC_QUANTISED
#include "polyc_quantised.h"
#endif

#if KIND == PC_UNSIGNED && BITS == 32
#define WIDE(v) __builtin_convertvector(v, PC_PASTE(u64x, PC_LANES))
#define HIGH(v, factor) __builtin_convertvector((WIDE(v) * factor##ull) >> 32, V)
PC_INLINE V FN(philox)(V a, V b, V key0, V key1)
{
    V c = (V){0}, d = (V){0};
    for (int round = 0; round < 10; round++) {
        V high = HIGH(a, 0xD2511F53), low = a * 0xD2511F53u;
        a = HIGH(c, 0xCD9E8D57) ^ b ^ key0;
        b = c * 0xCD9E8D57u;
        c = high ^ d ^ key1;
        d = low;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return a;
}
#undef HIGH
#undef WIDE
#endif

#endif

PC_INLINE V FN(iota)(T start) { return FN(add)(FN(splat)(start), (V){IOTA(0)}); }

REDUCTION(add, FN(add))
REDUCTION(mul, FN(mul))
#if KIND == PC_FLOAT
REDUCTION(smaller, FN(smaller))
REDUCTION(larger, FN(larger))
#endif
#if KIND == PC_FLOAT && defined SOME_NAN && defined PC_REDUCTIONS
/* Whether there is a NaN is asked once, beside the halves. */
PC_INLINE T FN(reduce_min)(V v)
{
    return SOME_NAN(v) ? __builtin_nanf("") : FN(reduce_smaller)(v);
}
PC_INLINE T FN(reduce_max)(V v)
{
    return SOME_NAN(v) ? __builtin_nanf("") : FN(reduce_larger)(v);
}
#else
REDUCTION(min, FN(min))
REDUCTION(max, FN(max))
#endif
#undef SOME_NAN
#undef ORDERED
#undef X86

#undef LOOP_2
#undef LANEWISE_1
#undef LANEWISE_2

#endif

#undef REDUCTION
#undef FLIPPED
#undef FLIP

#endif

#undef WRITTEN
#undef READ
#undef E
#undef TO_MASK
#undef TO_B8
#undef EACH_LANE
#undef IOTA
#undef BITS
#undef KIND
#undef SCALAR
#undef FN
#undef M
#undef B
#undef V
#undef T
#undef PC_QUANTISED
#undef PC_TRANSPOSITIONS
#undef PC_STRIDES
#undef PC_REDUCTIONS
#undef PC_LANES
#undef PC_TYPE
