/* polyc_f32_exp.h: exp, exp2, expm1, sigmoid, tanh, erf, sinh, cosh of PC_LANES floats.

   Cody & Waite's reduction (Software Manual for the Elementary Functions, 1980, ch. 6):
       x = n ln 2 + r,  n = round(x / ln 2),  |r| <= ln 2 / 2,   e^x = 2^n e^r
   with ln 2 in two parts, the first of 15 bits, so that n times it is exact without FMA too. */

#include "polyc_f32_begin.h"

#define LOG2_E 0x1.715476p+0f
#define LN2_HI 0x1.62e4p-1f
#define LN2_LO 0x1.7f7d1cp-20f

/* p 2^n for a whole n in [-300, 256], rounded once: 2^n itself may not be a float, but the power of
   each half of n is, and the first product is exact for p near 1. */
PC_INLINE F FN(scale)(F p, F n)
{
#if defined __AVX512F__ && PC_LANES == 16
    return __builtin_ia32_scalefps512_mask(p, n, p, 0xffff, 4 /* current rounding */);
#else
    I exponent = (I)((U)(n + ROUNDER) - ROUNDER_BITS);
    I half = exponent >> 1, rest = (I)((U)exponent - (U)half);
    return p * (F)(((U)half + 127u) << 23) * (F)(((U)rest + 127u) << 23);
#endif
}

/* x limited from below and from above; NaN stays. */
PC_INLINE F FN(at_least)(F x, float least) { return FN(larger)(x, ALL(least)); }
PC_INLINE F FN(at_most)(F x, float most) { return FN(smaller)(x, ALL(most)); }

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

/* e^x for x in [-104, 104]; at the ends it is 0 and infinity. */
PC_INLINE F FN(exp_within)(F x)
{
    F n, p = FN(expm1_reduced)(x, &n);
    return FN(scale)(1 + p, n);
}

/* Within 1.1 ulp. */
PC_INLINE F FN(exp)(F x) { return FN(exp_within)(FN(at_most)(FN(at_least)(x, -104), 104)); }

/* 2^x for x in [-300, 256]: 2^n 2^r with n the nearest integer. */
PC_INLINE F FN(exp2_within)(F x)
{
    F n = (x + ROUNDER) - ROUNDER;
    F r = x - n;
    F q = ((0x1.4179ecp-13f * r + 0x1.5f096cp-10f) * r + 0x1.3b2dd4p-7f) * r + 0x1.c6af7ap-5f;
    q = (q * r + 0x1.ebfbdcp-3f) * r + 0x1.62e43p-1f;
    return FN(scale)(q * r + 1, n);
}

/* Within 1.1 ulp. */
PC_INLINE F FN(exp2)(F x) { return FN(exp2_within)(FN(at_most)(FN(at_least)(x, -151), 129)); }

/* Within 1.7 ulp. e^x - 1 = 2 (2^(n-1) (e^r - 1) + 2^(n-1) - 1/2): no overflow before the last
   step. Below 2^-25 it is x, sign of zero and subnormals included. */
PC_INLINE F FN(expm1)(F x)
{
    F n, p = FN(expm1_reduced)(FN(at_most)(FN(at_least)(x, -20), 89), &n);
    F half = FN(scale)(ALL(0.5f), n);
    F result = 2 * (half * p + (half - 0.5f));
    return FN(blend)(FN(abs)(x) < 0x1p-25f, x, result);
}

/* Within 2.5 ulp. 1 / (1 + e^-x), for x < 0 as e^x / (1 + e^x), so that nothing overflows. */
PC_INLINE F FN(sigmoid)(F x)
{
    F e = FN(exp_within)(FN(at_least)(-FN(abs)(x), -104));
    return FN(blend)(x < 0, e, ALL(1)) / (1 + e);
}

/* Within 2.6 ulp. -m / (m + 2) with m = e^(-2|x|) - 1, which keeps its accuracy next to 0; beyond
   10 the result is 1. */
PC_INLINE F FN(tanh)(F x)
{
    F n, p = FN(expm1_reduced)(FN(at_least)(-2 * FN(abs)(x), -20), &n);
    F power = FN(scale)(ALL(1), n);
    F m = power * p + (power - 1);
    return FN(copysign)(m / (m + 2), x);
}

/* Within 1.6 ulp. Below 1 an odd polynomial, x + x (2/sqrt(pi) - 1) + ...; above, 1 - 2^G(|x|),
   where the polynomial G = log2 erfc need only be good to 2^-26 / erfc. From 3.925 on, 1. */
PC_INLINE F FN(erf)(F x)
{
    F a = FN(at_most)(FN(abs)(x), 3.925f), z = x * x;
    F s = ((0x1.4771fcp-14f * z - 0x1.a3515ep-11f) * z + 0x1.53f224p-8f) * z - 0x1.b7f71ap-6f;
    s = ((s * z + 0x1.ce2ce6p-4f) * z - 0x1.81273ep-2f) * z + 0x1.06eba8p-3f;
    F g = ((-0x1.b3142cp-10f * a + 0x1.5d4f68p-6f) * a - 0x1.05e19ap-3f) * a - 0x1.e371ecp-1f;
    g = (g * a - 0x1.9cb41p+0f) * a - 0x1.f93a0ap-9f;
    F tail = FN(copysign)(1 - FN(exp2_within)(g), x);
    return FN(blend)(a < 1, x * s + x, tail);
}

/* e^|x| / 2, finite wherever sinh and cosh are. */
PC_INLINE F FN(half_exp)(F x)
{
    F n, p = FN(expm1_reduced)(FN(at_most)(FN(abs)(x), 104), &n);
    return FN(scale)(1 + p, n - 1);
}

/* Within 1.6 ulp. */
PC_INLINE F FN(cosh)(F x)
{
    F h = FN(half_exp)(x);
    return h + 0.25f / h;
}

/* Within 1.7 ulp. Below 1, where the difference would cancel, an odd polynomial. */
PC_INLINE F FN(sinh)(F x)
{
    F h = FN(half_exp)(x), z = x * x;
    F s = ((0x1.756c1ep-19f * z + 0x1.a022bcp-13f) * z + 0x1.1110ep-7f) * z + 0x1.555556p-3f;
    return FN(blend)(FN(abs)(x) < 1, x * z * s + x, FN(copysign)(h - 0.25f / h, x));
}

SCALAR_1(exp)
SCALAR_1(exp2)
SCALAR_1(expm1)
SCALAR_1(sigmoid)
SCALAR_1(tanh)
SCALAR_1(erf)
SCALAR_1(sinh)
SCALAR_1(cosh)

#undef LOG2_E
#undef LN2_HI
#undef LN2_LO

#include "polyc_f32_end.h"
