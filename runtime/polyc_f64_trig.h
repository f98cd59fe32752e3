/* polyc_f64_trig.h: sin, cos, tan of PC_LANES doubles, of any size.

   x = q pi/2 + r + t with |r| <= pi/4 and t what r is rounded by; sin and cos of r + t by
   polynomials; the two are swapped and negated as q mod 4 says. */

#include "polyc_f64_begin.h"

/* pi/2 in four parts. The first three have 33 bits, so that n < 2^20 times each is exact; what is
   beyond the last is less than 2^-157. */
#define TWO_PI_INVERSE 0x1.45f306dc9c883p-1
#define PI_2_A 0x1.921fb544p+0
#define PI_2_B 0x1.0b4611a6p-34
#define PI_2_C 0x1.3198a2ep-69
#define PI_2_D 0x1.b839a252049c1p-104
#define USUAL 0x1p20 /* the largest |x| that these parts reduce */

/* The few beyond, by the platform's library. Apart, for it is seldom taken. */
#define BEYOND(name) \
    static __attribute__((noinline, cold, unused)) F FN(name##_beyond)(F x, F usual) \
    { \
        for (int l = 0; l < PC_LANES; l++) \
            if (!(__builtin_fabs(x[l]) <= USUAL)) \
                usual[l] = __builtin_##name(x[l]); \
        return usual; \
    } \
    PC_INLINE F FN(name##_of_any)(F x, F usual) \
    { \
        I huge = ~(FN(abs)(x) <= USUAL); \
        i64 any = 0; \
        for (int l = 0; l < PC_LANES; l++) \
            any |= huge[l]; \
        return __builtin_expect(any != 0, 0) ? FN(name##_beyond)(x, usual) : usual; \
    }
BEYOND(sin)
BEYOND(cos)
BEYOND(tan)

/* Sine and cosine of r + t, and q in the low bits: x = q pi/2 + r + t. Each difference of two, and
   what it loses, is exact: the subtrahend is, and the minuend a multiple of its last bit. */
PC_INLINE F FN(sin_cos_reduced)(F x, F *cosine, U *q)
{
    F shifted = x * TWO_PI_INVERSE + ROUNDER, n = shifted - ROUNDER;
    *q = (U)shifted;
    F a = x - n * PI_2_A;
    F b = a - n * PI_2_B, lost_b = (a - b) - n * PI_2_B;
    F c = b - n * PI_2_C, lost_c = (b - c) - n * PI_2_C;
    F rest = (lost_c - n * PI_2_D) + lost_b;
    F r = c + rest, t = (c - r) + rest;

    F z = r * r, half = 0.5 * z, w = 1 - half;
    F s = (0x1.5d935099e9f88p-33 * z - 0x1.ae5e679a85c19p-26) * z + 0x1.71de357a00583p-19;
    s = ((s * z - 0x1.a01a019c1523ep-13) * z + 0x1.111111110f8a2p-7) * z - 0x1.5555555555549p-3;
    F p = (-0x1.8fb0c665408b4p-37 * z + 0x1.1ee9f09f73948p-29) * z - 0x1.27e4f811dd53dp-22;
    p = ((p * z + 0x1.a01a019cbe841p-16) * z - 0x1.6c16c16c1521ap-10) * z + 0x1.555555555554cp-5;
    *cosine = w + (((1 - w) - half) + (z * z * p - r * t));
    return r + (r * z * s + t * w);
}

/* v, or -v where bit 1 of q is set. */
PC_INLINE F FN(turned)(F v, U q) { return (F)((U)v ^ (q & 2u) << 62); }

/* Within 0.9 ulp. sin(q pi/2 + r): the cosine where q is odd, negated where bit 1 of q is set. */
PC_INLINE F FN(sin)(F x)
{
    U q;
    F c, s = FN(sin_cos_reduced)(x, &c, &q);
    F r = FN(turned)(FN(blend)((q & 1) != 0, c, s), q);
    return FN(sin_of_any)(x, FN(blend)(x == 0, x, r));
}

/* Within 0.9 ulp. cos x = sin(x + pi/2). */
PC_INLINE F FN(cos)(F x)
{
    U q;
    F c, s = FN(sin_cos_reduced)(x, &c, &q);
    return FN(cos_of_any)(x, FN(turned)(FN(blend)((q & 1) != 0, s, c), q + 1));
}

/* Within 2.2 ulp. tan(q pi/2 + r) = tan r or, where q is odd, -1 / tan r. */
PC_INLINE F FN(tan)(F x)
{
    U q;
    F c, s = FN(sin_cos_reduced)(x, &c, &q);
    I odd = (q & 1) != 0;
    F r = FN(blend)(odd, -c, s) / FN(blend)(odd, s, c);
    return FN(tan_of_any)(x, FN(blend)(x == 0, x, r));
}

SCALAR_1(sin)
SCALAR_1(cos)
SCALAR_1(tan)

#undef BEYOND
#undef USUAL
#undef PI_2_D
#undef PI_2_C
#undef PI_2_B
#undef PI_2_A
#undef TWO_PI_INVERSE

#include "polyc_f64_end.h"
