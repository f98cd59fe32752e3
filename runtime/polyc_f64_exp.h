/* polyc_f64_exp.h: exp, exp_normal, exp2, expm1, sigmoid, sinh, cosh, tanh, erf of PC_LANES doubles.

   The reduction is that of polyc_f32_exp.h: x = n ln 2 + r, |r| <= ln 2 / 2, e^x = 2^n e^r. */

#include "polyc_f64_begin.h"

#define LOG2_E 0x1.71547652b82fep+0

/* p 2^n for a whole n in [-2046, 2048], rounded once: by the powers of the two halves of n, whose
   exponents sum to n + 2046, biases included. */
PC_INLINE F FN(scale)(F p, F n)
{
#if defined __AVX512F__ && PC_LANES == 8
    return __builtin_ia32_scalefpd512_mask(p, n, p, 0xff, 4 /* current rounding */);
#else
    U sum = (U)(n + (ROUNDER + 2046)), half = (sum << 51) & 0x7ff0000000000000u;
    return p * (F)half * (F)((sum << 52) - half);
#endif
}

/* x limited from below and from above; NaN stays. */
PC_INLINE F FN(at_least)(F x, double least) { return FN(larger)(x, ALL(least)); }
PC_INLINE F FN(at_most)(F x, double most) { return FN(smaller)(x, ALL(most)); }

/* y, or 0 for x < least: products that underflow take Intel's cores 150 cycles. */
PC_INLINE F FN(unless_below)(double least, F x, F y) { return FN(blend)(x < least, ALL(0), y); }

#define VANISHED (-746) /* e^x is 0 from here on, */
#define SUBNORMAL (-708) /* and from here on a subnormal number, or nearly */
#define OVERFLOWN 712 /* e^x / 2 is infinity from here on */

/* e^r - 1 and n of the reduction. |error| < 2^-61 r. */
PC_INLINE F FN(expm1_reduced)(F x, F *n)
{
    F whole = (x * LOG2_E + ROUNDER) - ROUNDER;
    F r = x - whole * LN2_HI - whole * LN2_LO;
    F q = (0x1.1f63baa1b3175p-29 * r + 0x1.af5ff63a81c6dp-26) * r + 0x1.27e4e31521de9p-22;
    q = ((q * r + 0x1.71ddf7af01448p-19) * r + 0x1.a01a01a43e8ddp-16) * r + 0x1.a01a01b02070fp-13;
    q = ((q * r + 0x1.6c16c16c16834p-10) * r + 0x1.111111110f62ap-7) * r + 0x1.5555555555555p-5;
    q = (q * r + 0x1.5555555555559p-3) * r + 0.5;
    *n = whole;
    return r * r * q + r;
}

/* e^x, but 0 for x < least: within 1.1 ulp. At 710 it is infinity. */
PC_INLINE F FN(exp_from)(double least, F x)
{
    F n, p = FN(expm1_reduced)(FN(at_most)(FN(unless_below)(least, x, x), 710), &n);
    return FN(unless_below)(least, x, FN(scale)(1 + p, n));
}

#include "polyc_exp.h"

/* Within 1.1 ulp. 2^n 2^r with n the nearest integer. */
PC_INLINE F FN(exp2)(F x)
{
    x = FN(at_most)(FN(at_least)(x, -1076), 1025);
    F n = (x + ROUNDER) - ROUNDER;
    F r = x - n;
    F q = (0x1.ee9c22a864ab6p-32 * r + 0x1.e62b11ba8777bp-28) * r + 0x1.b521e3132f3b4p-24;
    q = ((q * r + 0x1.62bfbe7cf0a83p-20) * r + 0x1.ffcbfdd5893cbp-17) * r + 0x1.4309131274f1p-13;
    q = ((q * r + 0x1.5d87fe785cd23p-10) * r + 0x1.3b2ab6fb9ef4ep-7) * r + 0x1.c6b08d704a225p-5;
    q = (q * r + 0x1.ebfbdff82c5abp-3) * r + 0x1.62e42fefa39efp-1;
    return FN(scale)(q * r + 1, n);
}

/* (e^x - 1) / 2 = 2^(n-1) (e^r - 1) + 2^(n-1) - 1/2, which does not overflow where e^x - 1 does
   not. */
PC_INLINE F FN(half_expm1)(F x)
{
    F n, p = FN(expm1_reduced)(x, &n);
    F half = FN(scale)(ALL(0.5), n);
    return half * p + (half - 0.5);
}

/* Within 2.0 ulp. Below 2^-54 it is x, sign of zero and subnormals included. */
PC_INLINE F FN(expm1)(F x)
{
    F result = 2 * FN(half_expm1)(FN(at_most)(FN(at_least)(x, -40), 710));
    return FN(blend)(FN(abs)(x) < 0x1p-54, x, result);
}

/* Within 1.7 ulp. Below 1, where the difference would cancel, an odd polynomial. */
PC_INLINE F FN(sinh)(F x)
{
    F h = FN(half_exp)(x), z = x * x;
    F s = (0x1.b5baebbf80b9fp-41 * z + 0x1.61171e2193a7ep-33) * z + 0x1.ae646f95f8053p-26;
    s = ((s * z + 0x1.71de3a3b6ba3cp-19) * z + 0x1.a01a01a036c5fp-13) * z + 0x1.111111111102p-7;
    s = s * z + 0x1.5555555555556p-3;
    return FN(blend)(FN(abs)(x) < 1, x * z * s + x, FN(copysign)(h - 0.25 / h, x));
}

/* Within 2.7 ulp. With h = (e^2|x| - 1) / 2 it is h / (h + 1); from 20 on it is 1. */
PC_INLINE F FN(tanh)(F x)
{
    F h = FN(half_expm1)(2 * FN(at_most)(FN(abs)(x), 20));
    return FN(copysign)(FN(blend)(FN(abs)(x) < 0x1p-54, x, h / (h + 1)), x);
}

/* Within 1.5 ulp. Below 1, x plus x times a polynomial in x^2; above, 1 - e^-x^2 g(t), where
   t = (|x| - 2) / (|x| + 2) spreads what is left evenly (M. M. Shepherd, J. G. Laframboise,
   Chebyshev approximation of (1 + 2x) exp(x^2) erfc x, Mathematics of Computation 1981). e^-x^2 is
   less than 2^-50 of 1 where rounding x^2 tells. From 6 on it is 1. */
PC_INLINE F FN(erf)(F x)
{
    F a = FN(at_most)(FN(abs)(x), 6), z = a * a;
    F p = (-0x1.a0baca1a42a47p-31 * z + 0x1.d35d505a4e639p-27) * z - 0x1.5b7a390a20573p-23;
    p = ((p * z + 0x1.b968751baa36p-20) * z - 0x1.f4c7e76c2af7fp-17) * z + 0x1.f9a29254df0b2p-14;
    p = ((p * z - 0x1.c02dae8c3de6p-11) * z + 0x1.565bcceddf5d9p-8) * z - 0x1.b82ce311a3301p-6;
    p = ((p * z + 0x1.ce2f21a03f79p-4) * z - 0x1.812746b03799cp-2) * z + 0x1.06eba8214db68p-3;

    F t = (a - 2) / (a + 2);
    F g = (-0x1.acef4ab2040c7p-17 * t - 0x1.c10c951b762dap-16) * t + 0x1.cea88b6714cb9p-16;
    g = ((g * t + 0x1.6d85a5e346f9ep-13) * t + 0x1.6d40c4fe9b523p-15) * t - 0x1.016b49f81201cp-10;
    g = ((g * t - 0x1.bc2592540b89fp-11) * t + 0x1.ca95ed69d9b84p-8) * t + 0x1.e947158b841bp-9;
    g = ((g * t - 0x1.437f0b68c8224p-4) * t + 0x1.eeea7dc8a7a26p-3) * t - 0x1.b57034efd3f5fp-2;
    g = g * t + 0x1.058671b52c776p-2;
    F n, e = FN(expm1_reduced)(-z, &n);
    F above = 1 - FN(scale)(1 + e, n) * g;
    return FN(copysign)(FN(blend)(a < 1, a * p + a, above), x);
}

SCALAR_1(exp2)
SCALAR_1(expm1)
SCALAR_1(sinh)
SCALAR_1(tanh)
SCALAR_1(erf)

#undef OVERFLOWN
#undef SUBNORMAL
#undef VANISHED
#undef LOG2_E

#include "polyc_f64_end.h"
