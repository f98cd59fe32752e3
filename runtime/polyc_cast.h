/* polyc_cast.h: conversion from PC_FROM to PC_TO (two different types) of PC_LANES lanes, 1 meaning
   scalars (see polyc.h for the form of use).

   integer -> integer   the value modulo 2^width, as in C
   float   -> integer   truncation towards zero; out of range the nearest integer there is; NaN -> 0
   any     -> b8        x != 0 (so NaN -> 1)
   b8      -> any       0 or 1
   any     -> float     the nearest
   f32     -> stored    the nearest, ties to even; stored -> f32: exact (polyc_narrow.h) */

#define FROM_KIND PC_PASTE(PC_KIND_, PC_FROM)
#define TO_KIND PC_PASTE(PC_KIND_, PC_TO)
#define FROM_BITS PC_PASTE(PC_BITS_, PC_FROM)
#define TO_BITS PC_PASTE(PC_BITS_, PC_TO)
#define NAME PC_PASTE(PC_PASTE3(pc_cast_, PC_FROM, _), PC_TO)

#if FROM_KIND == PC_STORED || TO_KIND == PC_STORED
#include "polyc_narrow.h"
#endif

/* Floats strictly between LEAST and LIMIT truncate to an integer of PC_TO; both bounds are 0 or a
   power of two, so they are exact as floats. Beyond them the result is SMALLEST or LARGEST. */
#if TO_KIND == PC_UNSIGNED
#define LEAST 0.0f
#define LIMIT (2.0f * (1ull << (TO_BITS - 1)))
#define SMALLEST 0
#define LARGEST (~0ull >> (64 - TO_BITS))
#else
#define LEAST (-1.0f * (1ull << (TO_BITS - 1)))
#define LIMIT (1.0f * (1ull << (TO_BITS - 1)))
#define SMALLEST (-(i64)LARGEST - 1)
#define LARGEST (~0ull >> (65 - TO_BITS))
#endif

#if PC_LANES == 1

PC_INLINE PC_TO NAME(PC_FROM a)
{
#if (FROM_KIND == PC_STORED || TO_KIND == PC_STORED) && defined __cplusplus && !defined PC_C_AS_CPP
    return (PC_TO)a; /* the types do it */
#elif FROM_KIND == PC_STORED
    return PC_PASTE(pc_widen_, PC_FROM)(a);
#elif TO_KIND == PC_STORED
    return PC_PASTE(pc_round_, PC_TO)(a);
#elif TO_KIND == PC_BOOL
    return a != 0;
#elif FROM_KIND == PC_FLOAT && TO_KIND != PC_FLOAT
    if (a > LEAST && a < LIMIT)
        return (PC_TO)a;
    if (a >= LIMIT)
        return (PC_TO)LARGEST;
    return a <= LEAST ? (PC_TO)SMALLEST : 0; /* 0 is for NaN */
#else
    return (PC_TO)a;
#endif
}

#else

#define OF(type) PC_PASTE3(type, x, PC_LANES)
#define CONVERT(v, type) __builtin_convertvector(v, OF(type))
#define RESIZE(kind, from, to, v) PC_PASTE(PC_PASTE3(PC_RESIZE_, from, _), to)(kind, v, PC_LANES)

#if FROM_KIND == PC_UNSIGNED
#define EXTENSION u
#else
#define EXTENSION i
#endif

/* Narrow integers meet floats as i32, the narrowest integer that machines convert. */
#if TO_BITS < 32
#define STAGE i32
#define STAGE_BITS 32
#else
#define STAGE PC_TO
#define STAGE_BITS TO_BITS
#endif

/* Bytes to more bits in one step: gcc takes one for each factor of two (polyc.h), and four for eight
   of them to 16 bits. */
#if FROM_BITS == 8 && (FROM_KIND == PC_SIGNED || FROM_KIND == PC_UNSIGNED) && !defined __clang__
#if FROM_KIND == PC_UNSIGNED
#define EXTEND(to) PC_PASTE(__builtin_ia32_pmovzxb, to)
#else
#define EXTEND(to) PC_PASTE(__builtin_ia32_pmovsxb, to)
#endif
#define WIDENED \
    typedef char bytes __attribute__((vector_size(16))); \
    typedef i64 pair __attribute__((vector_size(16), unused)); \
    typedef i32 quad __attribute__((vector_size(16), unused)); \
    typedef long long most __attribute__((vector_size(64), unused));
#define FIRST_8(a) (bytes)(pair){(i64)(a), 0}
#define FIRST_4(a) (bytes)(quad){(i32)(a), 0, 0, 0}
#if PC_LANES == 16 && defined __AVX512F__
#define WIDEN(a) EXTEND(d512_mask)((bytes)(a), (i32x16){0}, 0xffff)
#elif PC_LANES == 8 && defined __AVX2__
#define WIDEN(a) EXTEND(d256)(FIRST_8(a))
#define WIDEN_TWICE(a) EXTEND(w128)(FIRST_8(a))
#elif PC_LANES == 4 && defined __SSE4_1__
#define WIDEN(a) EXTEND(d128)(FIRST_4(a))
#endif
#if PC_LANES == 8 && defined __AVX512F__
#define WIDEN_MOST(a) EXTEND(q512_mask)(FIRST_8(a), (most){0}, 0xff)
#elif PC_LANES == 4 && defined __AVX2__
#define WIDEN_MOST(a) EXTEND(q256)(FIRST_4(a))
#endif
#endif

/* Floats to bytes, which is how results are quantised: bounds of bytes are floats themselves, so that
   two instructions keep within them before anything is converted. CLIP(op, a, b) is b for a NaN. */
#if FROM_KIND == PC_FLOAT && FROM_BITS == 32 && TO_BITS == 8 && TO_KIND != PC_BOOL && \
    TO_KIND != PC_STORED
#if PC_LANES == 16 && defined __AVX512F__ && !defined __clang__
#define CLIP(op, a, b) PC_PASTE3(__builtin_ia32_, op, ps512_mask)(a, b, a, 0xffff, 4)
#elif PC_LANES == 8 && defined __AVX__
#define CLIP(op, a, b) PC_PASTE3(__builtin_ia32_, op, ps256)(a, b)
#if TO_KIND == PC_SIGNED
#define PACK(v) __builtin_ia32_packsswb128(v, v)
#else
#define PACK(v) __builtin_ia32_packuswb128(v, v)
#endif
#elif PC_LANES == 4 && defined __SSE2__
#define CLIP(op, a, b) PC_PASTE3(__builtin_ia32_, op, ps)(a, b)
#endif
#endif

#if FROM_KIND == PC_STORED || TO_KIND == PC_STORED
#include "polyc_cast_narrow.h"
#else

PC_INLINE OF(PC_TO) PC_PASTE3(NAME, x, PC_LANES)(OF(PC_FROM) a)
{
#if TO_KIND == PC_BOOL
    return RESIZE(i, FROM_BITS, 8, a != 0);
#elif FROM_KIND == PC_BOOL && TO_KIND == PC_FLOAT
    return CONVERT(RESIZE(i, 8, 32, a & 1), PC_TO);
#elif FROM_KIND == PC_BOOL
    return (OF(PC_TO))RESIZE(i, 8, TO_BITS, a & 1);
#elif FROM_KIND == PC_FLOAT && TO_KIND == PC_FLOAT
    return CONVERT(a, PC_TO);
#elif defined CLIP
#if TO_KIND == PC_SIGNED
    a = (OF(f32))((a == a) & (OF(i32))a); /* 0 for NaN */
#endif
#if PC_LANES == 8 && defined __AVX2__
    /* Packing keeps within bounds; what is too large for 32 bits, and NaN, is the least of them. */
    typedef i32 four __attribute__((vector_size(16)));
    typedef i64 pair __attribute__((vector_size(16)));
    a = CLIP(min, (OF(f32)){0} + (float)LARGEST, a);
    const OF(i32) r = __builtin_ia32_cvttps2dq256(a);
    const four low = __builtin_shufflevector(r, r, 0, 1, 2, 3);
    const four high = __builtin_shufflevector(r, r, 4, 5, 6, 7);
    return (OF(PC_TO))((pair)PACK(__builtin_ia32_packssdw128(low, high)))[0];
#else
    a = CLIP(max, a, (OF(f32)){0} + (float)SMALLEST);
    a = CLIP(min, a, (OF(f32)){0} + (float)LARGEST);
#if PC_LANES == 16
    typedef char OF(c) __attribute__((vector_size(16)));
    return (OF(PC_TO))__builtin_ia32_pmovdb512_mask(CONVERT(a, i32), (OF(c)){0}, 0xffff);
#else
    return (OF(PC_TO))RESIZE(i, 32, 8, CONVERT(a, i32));
#endif
#endif
#elif FROM_KIND == PC_FLOAT
    typedef OF(PC_PASTE(i, FROM_BITS)) M;
    typedef OF(STAGE) S;
    PC_FROM least = LEAST, limit = LIMIT;
    OF(PC_FROM) inside = (OF(PC_FROM))(((a > least) & (a < limit)) & (M)a);
    S r = CONVERT(inside, STAGE); /* 0 outside and for NaN */
    r |= (S)RESIZE(i, FROM_BITS, STAGE_BITS, a >= limit) & (STAGE)LARGEST;
    r |= (S)RESIZE(i, FROM_BITS, STAGE_BITS, a <= least) & (STAGE)SMALLEST;
    return (OF(PC_TO))RESIZE(i, STAGE_BITS, TO_BITS, r);
#elif defined WIDEN && TO_KIND == PC_FLOAT
    WIDENED
    return CONVERT(WIDEN(a), PC_TO);
#elif defined WIDEN && TO_BITS == 32
    WIDENED
    return (OF(PC_TO))WIDEN(a);
#elif defined WIDEN_MOST && TO_BITS == 64
    WIDENED
    return (OF(PC_TO))WIDEN_MOST(a);
#elif defined WIDEN_TWICE && TO_BITS == 16
    WIDENED
    return (OF(PC_TO))WIDEN_TWICE(a);
#elif TO_KIND == PC_FLOAT && FROM_BITS < 32
    return CONVERT((OF(i32))RESIZE(EXTENSION, FROM_BITS, 32, a), PC_TO);
#elif TO_KIND == PC_FLOAT
    return CONVERT(a, PC_TO);
#else
    return (OF(PC_TO))RESIZE(EXTENSION, FROM_BITS, TO_BITS, a);
#endif
}

#endif

#undef WIDEN_MOST
#undef WIDEN_TWICE
#undef WIDEN
#undef FIRST_4
#undef FIRST_8
#undef WIDENED
#undef EXTEND
#undef PACK
#undef CLIP
#undef STAGE_BITS
#undef STAGE
#undef EXTENSION
#undef RESIZE
#undef CONVERT
#undef OF

#endif

#undef LARGEST
#undef SMALLEST
#undef LIMIT
#undef LEAST
#undef NAME
#undef TO_BITS
#undef FROM_BITS
#undef TO_KIND
#undef FROM_KIND
#undef PC_LANES
#undef PC_TO
#undef PC_FROM
