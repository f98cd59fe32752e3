/* polyc_f32_trig.h: sin, cos, tan of PC_LANES floats, of any size.

   x = q pi/2 + r with |r| <= pi/4, in double; sin and cos of r by polynomials; the two are swapped
   and negated as q mod 4 says. */

#ifndef POLYC_TRIG_REDUCTION
#define POLYC_TRIG_REDUCTION

/* r for |x| > 2^22, and q mod 4, by the method of M. Payne and R. Hanek (Radian reduction for
   trigonometric functions, SIGNUM 1983): x = m 2^e with a whole m, and only 96 bits of 2/pi matter,
   as those above make whole turns and those below less than 2^-70. The table is floor(2/pi 2^224)
   after a word of zeros. Infinity and NaN give NaN. */
static inline double pc_reduce_turn(f32 x, i32 *quarter)
{
    static const u32 two_over_pi[8] = {0,
        0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
    union { f32 value; u32 bits; } u = {x};
    int e = (int)(u.bits >> 23 & 0xff) - 150;
    if (e == 255 - 150) {
        *quarter = 0;
        return x - x;
    }
    const u32 *word = two_over_pi + (e + 30) / 32;
    int skipped = (e + 30) % 32;
    unsigned __int128 window = (unsigned __int128)((u64)word[0] << 32 | word[1]) << 64
        | ((u64)word[2] << 32 | word[3]);
    window = window << skipped >> 32;

    /* Fixed point in quarter turns, two bits before the point; split at the nearest whole. */
    u32 m = (u.bits & 0x7fffff) | 0x800000;
    unsigned __int128 product = window * m << 32;
    u32 nearest = (u32)((product + ((unsigned __int128)1 << 125)) >> 126);
    i64 fraction = (i64)((product - ((unsigned __int128)nearest << 126)) >> 64);
    double r = (double)fraction * (0x1p-62 * 0x1.921fb54442d18p+0);
    *quarter = (i32)(x < 0 ? -nearest : nearest);
    return x < 0 ? -r : r;
}

#endif

#include "polyc_f32_begin.h"

/* pi/2 = PI_2_HI + PI_2_LO; the first has 30 bits, so n < 2^23 times it is exact. */
#define TWO_PI_INVERSE 0x1.45f306dc9c883p-1
#define PI_2_HI 0x1.921fb54p+0
#define PI_2_LO 0x1.10b4611a62633p-30

/* The same r and q where |x| is so large that the usual way loses them. Apart, for it is seldom
   taken, and a kernel may have a hundred sines. */
static __attribute__((noinline, cold)) void FN(reduce_huge)(F x, I huge, D *r, I *q)
{
    for (int l = 0; l < PC_LANES; l++)
        if (huge[l]) {
            i32 quarter;
            (*r)[l] = pc_reduce_turn(x[l], &quarter);
            (*q)[l] = quarter;
        }
}

/* Sine and cosine of r, and q: x = q pi/2 + r. */
PC_INLINE F FN(sin_cos_reduced)(F x, F *cosine, I *q)
{
    D wide = TO(D, x);
    D shifted = wide * TWO_PI_INVERSE + ROUNDER_D;
    D n = shifted - ROUNDER_D;
    D r = wide - n * PI_2_HI - n * PI_2_LO;
    *q = TO(I, TO(U, (UD)shifted));

    I huge = ~(FN(abs)(x) <= 0x1p22f);
    i32 any = 0;
    for (int l = 0; l < PC_LANES; l++)
        any |= huge[l];
    if (__builtin_expect(any, 0)) {
        D r_huge = r; /* copies, so that r and q stay in registers on the usual way */
        I q_huge = *q;
        FN(reduce_huge)(x, huge, &r_huge, &q_huge);
        r = r_huge;
        *q = q_huge;
    }

    D z = r * r;
    D s = ((0x1.6cd1a2e7e4a81p-19 * z - 0x1.a00f7ddbaacfp-13) * z + 0x1.11110868c59afp-7) * z;
    D c = ((0x1.9933c3c6cdca5p-16 * z - 0x1.6c087cc82d39p-10) * z + 0x1.55553e0c1b273p-5) * z;
    *cosine = TO(F, (c - 0x1.ffffffd0ba7a9p-2) * z + 1);
    return TO(F, (s - 0x1.5555554c6f9dbp-3) * z * r + r);
}

/* Within 0.51 ulp. sin(q pi/2 + r): the cosine where q is odd, negated where bit 1 of q is set. */
PC_INLINE F FN(sin)(F x)
{
    I q;
    F c, s = FN(sin_cos_reduced)(x, &c, &q);
    F r = FN(blend)((q & 1) != 0, c, s);
    r = (F)((U)r ^ ((U)q & 2u) << 30);
    return FN(blend)(x == 0, x, r);
}

/* Within 0.51 ulp. cos x = sin(x + pi/2). */
PC_INLINE F FN(cos)(F x)
{
    I q;
    F c, s = FN(sin_cos_reduced)(x, &c, &q);
    F r = FN(blend)((q & 1) != 0, s, c);
    return (F)((U)r ^ (((U)q + 1u) & 2u) << 30);
}

/* Within 2.0 ulp. tan(q pi/2 + r) = tan r or, where q is odd, -1 / tan r. */
PC_INLINE F FN(tan)(F x)
{
    I q;
    F c, s = FN(sin_cos_reduced)(x, &c, &q);
    I odd = (q & 1) != 0;
    F r = FN(blend)(odd, -c, s) / FN(blend)(odd, s, c);
    return FN(blend)(x == 0, x, r);
}

SCALAR_1(sin)
SCALAR_1(cos)
SCALAR_1(tan)

#undef PI_2_LO
#undef PI_2_HI
#undef TWO_PI_INVERSE

#include "polyc_f32_end.h"
