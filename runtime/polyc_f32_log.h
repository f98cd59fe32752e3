/* polyc_f32_log.h: log, log2, log1p of PC_LANES floats.

   x = 2^k m with m in [sqrt(1/2), sqrt(2)), f = m - 1:  log x = k ln 2 + log(1 + f), where
   log(1 + f) = f - f^2 / 2 + f^3 P(f). f is exact, so that the result is relatively accurate
   next to x = 1 too (W. J. Cody, W. Waite, 1980, ch. 5, with a polynomial for their quotient). */

#include "polyc_f32_begin.h"

#define LOG2_E_LESS_1 0x1.c551dap-2f
#define LN2_HI 0x1.62e4p-1f
#define LN2_LO 0x1.7f7d1cp-20f
#define SQRT_HALF_BITS 0x3f3504f3u

/* k for a normal x: the exponent after which the mantissa is in [sqrt(1/2), sqrt(2)). */
PC_INLINE I FN(log_exponent)(F x) { return (I)((U)x - SQRT_HALF_BITS) >> 23; }

/* log(1 + f) - f. */
PC_INLINE F FN(log_tail)(F f)
{
    F p = ((0x1.147262p-4f * f - 0x1.de011ep-4f) * f + 0x1.e6bffp-4f) * f - 0x1.fc28dap-4f;
    p = (((p * f + 0x1.233ba4p-3f) * f - 0x1.555c44p-3f) * f + 0x1.99a476p-3f) * f - 0x1.000006p-2f;
    p = p * f + 0x1.555548p-2f;
    F z = f * f;
    return f * z * p - 0.5f * z;
}

/* k ln 2 + log(1 + f), the small terms first. */
PC_INLINE F FN(log_sum)(F f, F k)
{
    return (FN(log_tail)(f) + k * LN2_LO + f) + k * LN2_HI;
}

/* f and k of x > 0; a subnormal x is first made normal. */
PC_INLINE F FN(log_parts)(F x, F *k)
{
    I tiny = x < 0x1p-126f;
    x = FN(blend)(tiny, x * 0x1p23f, x);
    I exponent = FN(log_exponent)(x);
    *k = TO(F, exponent - (tiny & 23));
    return (F)((U)x - ((U)exponent << 23)) - 1;
}

/* Puts in the values at the ends of the domain: -infinity at the pole, NaN below it; infinity. */
PC_INLINE F FN(log_ends)(F result, F x, float pole)
{
    result = FN(blend)(x < INF, result, x);
    result = FN(blend)(x < pole, ALL(NOT_A_NUMBER), result);
    return FN(blend)(x == pole, ALL(-INF), result);
}

/* Within 0.9 ulp. */
PC_INLINE F FN(log)(F x)
{
    F k, f = FN(log_parts)(x, &k);
    return FN(log_ends)(FN(log_sum)(f, k), x, 0);
}

/* Within 1.5 ulp. log(1 + f) / ln 2 with 1 / ln 2 = 1 + 0.4427: f times the 1 is not rounded. */
PC_INLINE F FN(log2)(F x)
{
    F k, f = FN(log_parts)(x, &k);
    F tail = FN(log_tail)(f);
    F small = (f + tail) * LOG2_E_LESS_1 + tail;
    return FN(log_ends)((small + f) + k, x, 0);
}

/* Within 1.5 ulp. With 2^k the scale of 1 + x, f = 2^-k x + (2^-k - 1) loses nothing of x. 2^-k is
   taken in two halves, as k may be 128. */
PC_INLINE F FN(log1p)(F x)
{
    I k = FN(log_exponent)(1 + x), half = k >> 1, rest = k - half;
    F down = (F)((U)(127 - half) << 23), down_rest = (F)((U)(127 - rest) << 23);
    F f = x * down * down_rest + (down * down_rest - 1);
    F result = FN(copysign)(FN(log_sum)(f, TO(F, k)), x);
    return FN(log_ends)(result, x, -1);
}

SCALAR_1(log)
SCALAR_1(log2)
SCALAR_1(log1p)

#undef SQRT_HALF_BITS
#undef LN2_LO
#undef LN2_HI
#undef LOG2_E_LESS_1

#include "polyc_f32_end.h"
