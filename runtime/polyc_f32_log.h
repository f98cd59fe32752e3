/* polyc_f32_log.h: log, log2, log1p of PC_LANES floats.

   x = 2^k m with m in [sqrt(1/2), sqrt(2)), f = m - 1:  log x = k ln 2 + log(1 + f), where
   log(1 + f) = f - f^2 / 2 + f^3 P(f). f is exact, so that the result is relatively accurate
   next to x = 1 too (W. J. Cody, W. Waite, 1980, ch. 5, with a polynomial for their quotient). */

#include "polyc_f32_begin.h"

#define LOG2_E_LESS_1 0x1.c551dap-2f
#define LN2_HI 0x1.62e4p-1f
#define LN2_LO 0x1.7f7d1cp-20f
#define SQRT_HALF_BITS 0x3f3504f3u
#define SQRT_2 0x1.6a09e8p+0f /* times a mantissa it is 2 or more just where k is up by 1 */

/* k for a normal x: the exponent after which the mantissa is in [sqrt(1/2), sqrt(2)). */
PC_INLINE I FN(log_exponent)(F x) { return (I)((U)x - SQRT_HALF_BITS) >> 23; }

/* log(1 + f) - f. */
PC_INLINE F FN(log_tail)(F f)
{
    F p = ((0x1.147262p-4f * f - 0x1.de011ep-4f) * f + 0x1.e6bffp-4f) * f - 0x1.fc28dap-4f;
    p = (((p * f + 0x1.233ba4p-3f) * f - 0x1.555c44p-3f) * f + 0x1.99a476p-3f) * f - 0x1.000006p-2f;
    p = p * f + 0x1.555548p-2f;
    F z = f * f;
    return z * (f * p - 0.5f);
}

/* k ln 2 + log(1 + f), the small terms first. */
PC_INLINE F FN(log_sum)(F f, F k)
{
    return (FN(log_tail)(f) + k * LN2_LO + f) + k * LN2_HI;
}

/* v, but at the ends of the domain: -infinity at the pole, NaN below it, x if that is infinite or
   NaN. */
PC_INLINE F FN(log_ends)(F v, F x, float pole)
{
    v = FN(blend)(x < INF, v, x);
    v = FN(blend)(x < pole, ALL(NOT_A_NUMBER), v);
    return FN(blend)(x == pole, ALL(-INF), v);
}

/* f and k of x > 0; at the ends of the domain k is what the logarithm is, and f finite or NaN. A
   subnormal x is first made normal. */
PC_INLINE F FN(log_parts)(F x, F *k)
{
#if defined __AVX512F__ && PC_LANES == 16
    /* Mantissas are in [1, 2), but NaN for x < 0; exponents of 0 and infinity are infinite. */
    F mantissa = __builtin_ia32_getmantps512_mask(x, 12, x, 0xffff, 4);
    F up = __builtin_ia32_getexpps512_mask(mantissa * SQRT_2, x, 0xffff, 4);
    *k = __builtin_ia32_getexpps512_mask(x, x, 0xffff, 4) + up;
    return __builtin_ia32_scalefps512_mask(mantissa, -up, x, 0xffff, 4) - 1;
#else
    I tiny = x < 0x1p-126f;
    F normal = FN(blend)(tiny, x * 0x1p23f, x);
    I exponent = FN(log_exponent)(normal);
    *k = FN(log_ends)(TO(F, exponent - (tiny & 23)), x, 0);
    return (F)((U)normal - ((U)exponent << 23)) - 1;
#endif
}

/* Within 0.9 ulp. */
PC_INLINE F FN(log)(F x)
{
    F k, f = FN(log_parts)(x, &k);
    return FN(log_sum)(f, k);
}

/* Within 1.5 ulp. log(1 + f) / ln 2 with 1 / ln 2 = 1 + 0.4427: f times the 1 is not rounded. */
PC_INLINE F FN(log2)(F x)
{
    F k, f = FN(log_parts)(x, &k);
    F tail = FN(log_tail)(f);
    F small = (f + tail) * LOG2_E_LESS_1 + tail;
    return (small + f) + k;
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

#undef SQRT_2
#undef SQRT_HALF_BITS
#undef LN2_LO
#undef LN2_HI
#undef LOG2_E_LESS_1

#include "polyc_f32_end.h"
