/* polyc_f32_exp.h: exp, exp_normal, exp2, expm1, sigmoid, sinh, cosh of PC_LANES floats.

   Cody & Waite's reduction (Software Manual for the Elementary Functions, 1980, ch. 6):
       x = n ln 2 + r,  n = round(x / ln 2),  |r| <= ln 2 / 2,   e^x = 2^n e^r
   with ln 2 in two parts, the first of 15 bits, so that n times it is exact without FMA too. */

#include "polyc_f32_begin.h"

#define LOG2_E 0x1.715476p+0f
#define LN2_HI 0x1.62e4p-1f
#define LN2_LO 0x1.7f7d1cp-20f

/* p 2^n for a whole n in [-252, 254], rounded once: 2^n itself may not be a float, but the power of
   each half of n is, and the first product is exact for p near 1. The exponents of the two sum to
   n + 254, biases included; a shift by 23 and one by 22 put it, and the half of it, in place. */
PC_INLINE F FN(scale)(F p, F n)
{
#if defined __AVX512F__ && PC_LANES == 16
    return __builtin_ia32_scalefps512_mask(p, n, p, 0xffff, 4 /* current rounding */);
#else
    U sum = (U)(n + (ROUNDER + 254)), half = (sum << 22) & 0x7f800000u;
    return p * (F)half * (F)((sum << 23) - half);
#endif
}

/* x limited from below and from above; NaN stays. */
PC_INLINE F FN(at_least)(F x, float least) { return FN(larger)(x, ALL(least)); }
PC_INLINE F FN(at_most)(F x, float most) { return FN(smaller)(x, ALL(most)); }

/* y, or 0 for x < least. What attention masks is that, and half of all tokens may be: Intel's cores
   take 150 cycles for a vector with a product that underflows, which is therefore not computed. */
PC_INLINE F FN(unless_below)(float least, F x, F y) { return FN(blend)(x < least, ALL(0), y); }

#define VANISHED (-104) /* e^x is 0 from here on, */
#define SUBNORMAL (-87) /* and from here on a subnormal number, or nearly */
#define OVERFLOWN 104 /* e^x / 2 is infinity from here on */

/* e^r - 1 and n of the reduction. |error| < 2^-28 of e^r, 2^-26 of e^r - 1. */
PC_INLINE F FN(expm1_reduced)(F x, F *n)
{
    F whole = (x * LOG2_E + ROUNDER) - ROUNDER;
    F r = x - whole * LN2_HI - whole * LN2_LO;
    F q = ((0x1.6b9c78p-10f * r + 0x1.12254cp-7f) * r + 0x1.5556f2p-5f) * r + 0x1.5554b4p-3f;
    q = q * r + 0x1.fffffep-2f;
    *n = whole;
    return r * r * q + r;
}

/* e^x, but 0 for x < least: within 1.1 ulp. At 104 it is infinity. Where a register holds a table of
   16, x is reduced to multiples of ln 2 / 16 (P. T. P. Tang, Table-driven implementation of the
   exponential function, TOMS 1989): one shuffle gives their powers of two, three terms do,
   |error| < 2^-29, and the units that multiply, which the other form keeps busy, have a third less
   to do. */
#if defined __AVX512F__ && __has_builtin(__builtin_shuffle)
#ifndef POLYC_POWERS
#define POLYC_POWERS
static const f32 pc_powers[16] __attribute__((aligned(64))) = {
    1, 0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f,
    0x1.306fep+0f, 0x1.3dea64p+0f, 0x1.4bfdaep+0f, 0x1.5ab07ep+0f,
    0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
    0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f,
};
#endif

PC_INLINE F FN(exp_from)(float least, F x)
{
    F inside = FN(at_most)(FN(unless_below)(least, x, x), 104);
    F shifted = inside * LOG2_E + ROUNDER / 16, n = shifted - ROUNDER / 16; /* a multiple of 1/16 */
    F r = inside - n * LN2_HI - n * LN2_LO;
    F q = (0x1.55559ap-3f * r + 0x1.00021ep-1f) * r + 1;
    F power = FN(look_up)(pc_powers, (I)shifted);
#if PC_LANES != 16
    n = FN(floor)(n); /* as scalef does */
#endif
    return FN(unless_below)(least, x, FN(scale)(r * q * power + power, n));
}
#else
PC_INLINE F FN(exp_from)(float least, F x)
{
    F n, p = FN(expm1_reduced)(FN(at_most)(FN(unless_below)(least, x, x), 104), &n);
    return FN(unless_below)(least, x, FN(scale)(1 + p, n));
}
#endif

#include "polyc_exp.h"

/* Within 1.1 ulp. 2^n 2^r with n the nearest integer. */
PC_INLINE F FN(exp2)(F x)
{
    x = FN(at_most)(FN(at_least)(x, -151), 129);
    F n = (x + ROUNDER) - ROUNDER;
    F r = x - n;
    F q = ((0x1.4179ecp-13f * r + 0x1.5f096cp-10f) * r + 0x1.3b2dd4p-7f) * r + 0x1.c6af7ap-5f;
    q = (q * r + 0x1.ebfbdcp-3f) * r + 0x1.62e43p-1f;
    return FN(scale)(q * r + 1, n);
}

/* Within 1.7 ulp. e^x - 1 = 2 (2^(n-1) (e^r - 1) + 2^(n-1) - 1/2): no overflow before the last
   step. Below 2^-25 it is x, sign of zero and subnormals included. */
PC_INLINE F FN(expm1)(F x)
{
    F n, p = FN(expm1_reduced)(FN(at_most)(FN(at_least)(x, -20), 89), &n);
    F half = FN(scale)(ALL(0.5f), n);
    F result = 2 * (half * p + (half - 0.5f));
    return FN(blend)(FN(abs)(x) < 0x1p-25f, x, result);
}

/* Within 1.7 ulp. Below 1, where the difference would cancel, an odd polynomial. */
PC_INLINE F FN(sinh)(F x)
{
    F h = FN(half_exp)(x), z = x * x;
    F s = ((0x1.756c1ep-19f * z + 0x1.a022bcp-13f) * z + 0x1.1110ep-7f) * z + 0x1.555556p-3f;
    return FN(blend)(FN(abs)(x) < 1, x * z * s + x, FN(copysign)(h - 0.25f / h, x));
}

SCALAR_1(exp2)
SCALAR_1(expm1)
SCALAR_1(sinh)

#undef OVERFLOWN
#undef SUBNORMAL
#undef VANISHED
#undef LOG2_E
#undef LN2_HI
#undef LN2_LO

#include "polyc_f32_end.h"
