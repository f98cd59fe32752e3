/* polyc_f64_pow.h: pow, asinh, acosh, atanh of PC_LANES doubles; polyc_f64_exp.h and polyc_f64_log.h
   come first. */

#include "polyc_f64_begin.h"

#define LN2 0x1.62e42fefa39efp-1

/* The upper 26 bits of v: the product of two such is exact. */
PC_INLINE F FN(upper)(F v) { return (F)((U)v & 0xfffffffff8000000u); }

/* log2 x = high + low for x > 0, to 2^-64 of it; high, which is returned, has 26 bits (K. C. Ng,
   FreeBSD's msun, 1993). With k, m, s of polyc_f64_log.h, s = h + l where h has 26 bits:
       log m = 2/3 s (3 + s^2 + r),   r = 3 (s^4 / 5 + s^6 / 7 + ...)
   and 3 + s^2 + r = h^2 + (3 + (s + h) l + r), whose upper part times h is exact again. */
PC_INLINE F FN(log2_parts)(F x, F *low)
{
    F k, f = FN(log_parts)(x, &k), m = f + 1, g = m + 1;
    F s = f / g, h = FN(upper)(s), g_high = FN(upper)(g);
    F l = ((f - h * g_high) - h * (m - (g_high - 1))) / g;

    F z = s * s, square = h * h;
    F r = (0x1.9564681f572d2p-3 * z + 0x1.973fd57ab0748p-3) * z + 0x1.d8ae625be272ap-3;
    r = ((r * z + 0x1.1745af69f2d5ap-2) * z + 0x1.555555a20db96p-2) * z + 0x1.b6db6db683c06p-2;
    r = (r * z + 0x1.3333333333464p-1) * z * z + l * (h + s);
    F sum = FN(upper)(3 + square + r), lost = r - ((sum - 3) - square);
    F u = h * sum, v = l * sum + lost * s;
    F high = FN(upper)(u + v), rest = v - (high - u);

    /* times 2 / (3 ln 2), of which the first part has 26 bits */
    F a = 0x1.ec709d8p-1 * high, b = 0x1.0e80ff5d27f05p-27 * high + 0x1.ec709dc3a03fdp-1 * rest;
    F whole = FN(upper)((a + b) + k);
    *low = b - ((whole - k) - a);
    return whole;
}

/* 2^(high + low) for whatever sums to between -1080 and 1025. */
PC_INLINE F FN(exp2_parts)(F high, F low)
{
    F n = ((high + low) + ROUNDER) - ROUNDER, more;
    high -= n;
    F t = FN(upper)(high + low), u = 0x1.62e42f8p-1 * t;
    F v = (low - (t - high)) * LN2 + 0x1.be8e7bcd5e4f2p-27 * t;
    F p = FN(expm1_reduced)(u + v, &more), rest = v - ((u + v) - u);
    return FN(scale)(1 + (p + rest * (1 + p)), n + more);
}

/* Within 1.3 ulp, with the special cases of C99, annex F.9.4.4. From 2^64 on y gives 0 or infinity,
   unless x is 1. */
PC_INLINE F FN(pow)(F x, F y)
{
    F a = FN(abs)(x), zero = ALL(0), infinity = ALL(INF);
    F finite = FN(at_most)(FN(at_least)(y, -0x1p64), 0x1p64), upper = FN(upper)(finite);
    F low, high = FN(log2_parts)(a, &low);
    low = (finite - upper) * high + finite * low;
    high *= upper;
    F r = FN(exp2_parts)(high, low);
    r = FN(blend)(high + low > 1025, infinity, r);
    r = FN(blend)(high + low < -1080, zero, r);

    I down = y < 0;
    r = FN(blend)(a == 0, FN(blend)(down, infinity, zero), r);
    r = FN(blend)(a == INF, FN(blend)(down, zero, infinity), r);
    F outwards = FN(blend)((a > 1) ^ down, infinity, zero);
    r = FN(blend)(FN(abs)(y) == INF, FN(blend)(a == 1, ALL(1), outwards), r);

    /* Doubles from 2^53 on are even; y / 2 is exact for the others that matter. */
    I whole = FN(trunc)(y) == y, even = FN(trunc)(0.5 * y) == 0.5 * y;
    r = (F)((I)r | ((I)x & (I)(-zero) & whole & ~even));
    I root_of_negative = (x < 0) & (x > -INF) & ~whole;
    r = FN(blend)(root_of_negative | (x != x) | (y != y), ALL(NOT_A_NUMBER), r);
    return FN(blend)((x == 1) | (y == 0), ALL(1), r);
}

/* log(1 + u); where that is log(2 x), as x^2 may be infinite, log x + log 2. */
PC_INLINE F FN(log_of_twice)(F u, F x)
{
    I huge = x > 0x1p500;
    return FN(log1p)(FN(blend)(huge, x, u)) + FN(blend)(huge, ALL(LN2), ALL(0));
}

/* Within 2.1 ulp. log(a + sqrt(a^2 + 1)) with a = |x|: 1 + a + a^2 / (1 + sqrt(a^2 + 1)). */
PC_INLINE F FN(asinh)(F x)
{
    F a = FN(abs)(x), z = a * a;
    return FN(copysign)(FN(log_of_twice)(a + z / (1 + FN(sqrt)(z + 1)), a), x);
}

/* Within 2.3 ulp. log(x + sqrt(x^2 - 1)) with x = 1 + t. */
PC_INLINE F FN(acosh)(F x)
{
    F t = x - 1;
    F r = FN(log_of_twice)(t + FN(sqrt)(2 * t + t * t), x);
    return FN(blend)(x < 1, ALL(NOT_A_NUMBER), r);
}

/* Within 2.1 ulp. log((1 + a) / (1 - a)) / 2 with a = |x|. */
PC_INLINE F FN(atanh)(F x)
{
    F a = FN(abs)(x);
    return FN(copysign)(0.5 * FN(log1p)(2 * a / (1 - a)), x);
}

SCALAR_1(asinh)
SCALAR_1(acosh)
SCALAR_1(atanh)
SCALAR_2(pow)

#undef LN2

#include "polyc_f64_end.h"
