/* polyc_f64_log.h: log, log2, log1p of PC_LANES doubles.

   x = 2^k m with m in [sqrt(1/2), sqrt(2)), f = m - 1:  log x = k ln 2 + log(1 + f). With
   s = f / (2 + f), log(1 + f) = 2 atanh s = 2 s + s R(s^2), and as 2 s = f - s f it is
   f - (f^2/2 - s (f^2/2 + R)), whose first term is exact (K. C. Ng, FreeBSD's msun, 1993). */

#include "polyc_f64_begin.h"

#define LOG2_E_LESS_1 0x1.c551d94ae0bf8p-2
#define SQRT_HALF_BITS 0x3fe6a09e667f3bcdu

/* k + 1023 for a normal x: the exponent after which the mantissa is in [sqrt(1/2), sqrt(2)). */
PC_INLINE U FN(log_biased)(F x) { return ((U)x + (ONE_BITS - SQRT_HALF_BITS)) >> 52; }

/* k of k + 1023, which is put into the low bits of 2^52. */
PC_INLINE F FN(log_whole)(U biased) { return (F)(biased | 0x4330000000000000u) - (0x1p52 + 1023); }

/* f - log(1 + f) - low, where low is small. */
PC_INLINE F FN(log_less)(F f, F low)
{
    F s = f / (2 + f), z = s * s, square = 0.5 * f * f;
    F p = (0x1.2f0460233f6ffp-3 * z + 0x1.39a1d9f72b437p-3) * z + 0x1.74663d6d58053p-3;
    p = ((p * z + 0x1.c71c521252e6dp-3) * z + 0x1.24924941e3164p-2) * z + 0x1.999999997ff0ap-2;
    p = p * z + 0x1.5555555555592p-1;
    return square - (s * (square + z * p) + low);
}

/* k ln 2 + log(1 + f), the small terms first. */
PC_INLINE F FN(log_sum)(F f, F k) { return k * LN2_HI - (FN(log_less)(f, k * LN2_LO) - f); }

/* v, but at the ends of the domain: -infinity at the pole, NaN below it, x if that is infinite or
   NaN. */
PC_INLINE F FN(log_ends)(F v, F x, double pole)
{
    v = FN(blend)(x < INF, v, x);
    v = FN(blend)(x < pole, ALL(NOT_A_NUMBER), v);
    return FN(blend)(x == pole, ALL(-INF), v);
}

/* f and k of x > 0; at the ends of the domain k is what the logarithm is, and f finite. A subnormal
   x is first made normal. */
PC_INLINE F FN(log_parts)(F x, F *k)
{
    I tiny = x < 0x1p-1022;
    F normal = FN(blend)(tiny, x * 0x1p52, x);
    U biased = FN(log_biased)(normal);
    F whole = FN(log_whole)(biased) - FN(blend)(tiny, ALL(52), ALL(0));
    *k = FN(log_ends)(whole, x, 0);
    return (F)((U)normal - ((biased - 1023) << 52)) - 1;
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
    F tail = -FN(log_less)(f, ALL(0));
    F small = (f + tail) * LOG2_E_LESS_1 + tail;
    return (small + f) + k;
}

/* Within 1.5 ulp. With 2^k the scale of 1 + x, f = 2^-k x + (2^-k - 1) loses nothing of x. 2^-k is
   taken in two halves, as k may be 1024. */
PC_INLINE F FN(log1p)(F x)
{
    U biased = FN(log_biased)(1 + x), down = 3 * 1023 - biased, half = down >> 1;
    F first = (F)(half << 52), second = (F)((down - half) << 52);
    F f = x * first * second + (first * second - 1);
    F result = FN(copysign)(FN(log_sum)(f, FN(log_whole)(biased)), x);
    return FN(log_ends)(result, x, -1);
}

SCALAR_1(log)
SCALAR_1(log2)
SCALAR_1(log1p)

#undef SQRT_HALF_BITS
#undef LOG2_E_LESS_1

#include "polyc_f64_end.h"
