/* polyc_f32_pow.h: pow, asinh, acosh, atanh of PC_LANES floats, through a double-precision log2.

   Double carries the digits that float would lose: y log2 x in pow, 1 +- x in the inverses of the
   hyperbolic functions. Comparisons and choices stay in float, whose vectors are the machine's. */

#include "polyc_f32_begin.h"

#define LN2 0x1.62e42fefa39efp-1
#define SQRT_HALF_BITS 0x3fe6a09e667f3bcdu
#define ONE_BITS 0x3ff0000000000000u

/* log2 of a positive normal double to 2^-45 relative, next to 1 to 2^-52 absolute. v = 2^k m, m in
   [sqrt(1/2), sqrt(2)), s = (m - 1) / (m + 1): log m = 2 atanh s. k + 1023 becomes a double by
   being put into the low bits of 2^52. */
PC_INLINE D FN(log2_double)(D v)
{
    UD biased = ((UD)v + (ONE_BITS - SQRT_HALF_BITS)) >> 52;
    D m = (D)((UD)v - ((biased - 1023) << 52));
    D k = (D)(biased | 0x4330000000000000u) - (0x1p52 + 1023);
    D s = (m - 1) / (m + 1), z = s * s;
    D p = (0x1.21b4ccb2b868dp-2 * z + 0x1.4795117d0a0bfp-2) * z + 0x1.a61a306e94973p-2;
    p = ((p * z + 0x1.2776c29139191p-1) * z + 0x1.ec709dc53e1e6p-1) * z + 0x1.71547652b825p+1;
    return s * p + k;
}

/* 2^t to 2^-40 relative for |t| < 1000; anything at all outside. */
PC_INLINE D FN(exp2_double)(D t)
{
    D shifted = t + ROUNDER_D;
    D r = t - (shifted - ROUNDER_D);
    D p = (0x1.640e161de7e62p-20 * r + 0x1.00dc4a9fc8287p-16) * r + 0x1.43086fa8e364p-13;
    p = ((p * r + 0x1.5d8745a679378p-10) * r + 0x1.3b2ab73e2295fp-7) * r + 0x1.c6b08dd6fe1cfp-5;
    p = ((p * r + 0x1.ebfbdff80564fp-3) * r + 0x1.62e42fef84ce2p-1) * r + 1;
    return (D)((UD)p + ((UD)shifted << 52));
}

/* Within 0.51 ulp, with the special cases of C99, annex F.9.4.4. */
PC_INLINE F FN(pow)(F x, F y)
{
    F a = FN(abs)(x);
    D t = TO(D, y) * FN(log2_double)(TO(D, a));
    F exponent = TO(F, t), zero = ALL(0), infinity = ALL(INF);
    F r = TO(F, FN(exp2_double)(t));
    r = FN(blend)(exponent > 200, infinity, r); /* nearer to the limits, the conversion does it */
    r = FN(blend)(exponent < -200, zero, r);

    I down = y < 0;
    r = FN(blend)(a == 0, FN(blend)(down, infinity, zero), r);
    r = FN(blend)(a == INF, FN(blend)(down, zero, infinity), r);
    F outwards = FN(blend)((a > 1) ^ down, infinity, zero);
    r = FN(blend)(FN(abs)(y) == INF, FN(blend)(a == 1, ALL(1), outwards), r);

    /* Floats from 2^24 on are even; y / 2 is exact for the others that matter. */
    I whole = FN(trunc)(y) == y, even = FN(trunc)(0.5f * y) == 0.5f * y;
    r = (F)((I)r | ((I)x & (I)(-zero) & whole & ~even));
    I root_of_negative = (x < 0) & (x > -INF) & ~whole;
    r = FN(blend)(root_of_negative | (x != x) | (y != y), ALL(NOT_A_NUMBER), r);
    return FN(blend)((x == 1) | (y == 0), ALL(1), r);
}

PC_INLINE D FN(sqrt_double)(D v)
{
    D r;
    for (int l = 0; l < PC_LANES; l++)
        r[l] = __builtin_sqrt(v[l]);
    return r;
}

/* Within 0.51 ulp. log(|x| + sqrt(x^2 + 1)); near 0, where 1 swallows x, the Taylor polynomial. */
PC_INLINE F FN(asinh)(F x)
{
    F a = FN(abs)(x), z = x * x;
    D v = TO(D, a);
    F r = TO(F, FN(log2_double)(v + FN(sqrt_double)(v * v + 1)) * LN2);
    r = FN(blend)(a < 0x1p-5f, (0.075f * z - 0x1.555556p-3f) * z * a + a, r);
    return FN(copysign)(FN(blend)(a < INF, r, a), x);
}

/* Within 0.51 ulp. log(x + sqrt(x^2 - 1)); x^2 is exact in double. */
PC_INLINE F FN(acosh)(F x)
{
    D v = TO(D, x);
    F r = TO(F, FN(log2_double)(v + FN(sqrt_double)(v * v - 1)) * LN2);
    return FN(blend)(x < INF, FN(blend)(x < 1, ALL(NOT_A_NUMBER), r), x);
}

/* Within 0.51 ulp. log((1 + x) / (1 - x)) / 2; near 0 the Taylor polynomial. */
PC_INLINE F FN(atanh)(F x)
{
    F a = FN(abs)(x), z = x * x;
    D v = TO(D, a);
    F r = TO(F, FN(log2_double)((1 + v) / (1 - v)) * (0.5 * LN2));
    r = FN(blend)(a < 0x1p-6f, (0.2f * z + 0x1.555556p-2f) * z * a + a, r);
    r = FN(blend)(a == 1, ALL(INF), r);
    return FN(copysign)(FN(blend)(a <= 1, r, ALL(NOT_A_NUMBER)), x);
}

SCALAR_2(pow)
SCALAR_1(asinh)
SCALAR_1(acosh)
SCALAR_1(atanh)

#undef ONE_BITS
#undef SQRT_HALF_BITS
#undef LN2

#include "polyc_f32_end.h"
