/* polyc_f64_arc.h: asin, acos, atan of PC_LANES doubles, by the reductions of polyc_f32_arc.h. */

#include "polyc_f64_begin.h"

#define PI_2_HI 0x1.921fb54442d18p+0
#define PI_2_LO 0x1.1a62633145c07p-54

/* asin s - s, |s| <= 1/2, with z = s^2. */
PC_INLINE F FN(asin_tail)(F s, F z)
{
    F a = (0x1.0be9caa8e224dp-5 * z - 0x1.5a0621dc8e82fp-6) * z + 0x1.650bd8666a7b8p-6;
    a = ((a * z + 0x1.e13f09165b8f6p-9) * z + 0x1.618c4ea1a2fb6p-7) * z + 0x1.75775339f757cp-7;
    a = ((a * z + 0x1.ca21497d64417p-7) * z + 0x1.1c49dde030005p-6) * z + 0x1.6e8bdfe714e1ep-6;
    a = ((a * z + 0x1.f1c71a8ba5f73p-6) * z + 0x1.6db6db722b267p-5) * z + 0x1.333333332df1dp-4;
    return s * z * (a * z + 0x1.5555555555578p-3);
}

/* Within 1.7 ulp. Above 1/2, asin x = pi/2 - 2 asin(sqrt((1 - x) / 2)); above 1 the root is NaN. */
PC_INLINE F FN(asin)(F x)
{
    F a = FN(abs)(x);
    I large = a > 0.5;
    F z = FN(blend)(large, 0.5 * (1 - a), a * a);
    F s = FN(blend)(large, FN(sqrt)(z), a);
    F tail = FN(asin_tail)(s, z);
    F complement = PI_2_HI - (2 * s + (2 * tail - PI_2_LO));
    return FN(copysign)(FN(blend)(large, complement, s + tail), x);
}

/* Within 1.2 ulp. For |x| <= 1/2, pi/2 - asin x; above, acos |x| = 2 asin(sqrt((1 - |x|) / 2)), and
   acos x = pi - acos |x| for negative x. */
PC_INLINE F FN(acos)(F x)
{
    F a = FN(abs)(x);
    I large = a > 0.5;
    F z = FN(blend)(large, 0.5 * (1 - a), a * a);
    F s = FN(blend)(large, FN(sqrt)(z), x);
    F tail = FN(asin_tail)(s, z);
    F near_1 = 2 * (s + tail);
    F near_minus_1 = 2 * (PI_2_HI - (s + (tail - PI_2_LO)));
    F between = PI_2_HI - (s + (tail - PI_2_LO));
    return FN(blend)(large, FN(blend)(x < 0, near_minus_1, near_1), between);
}

/* Within 2.5 ulp. With t = tan(pi/8): |x| <= t as it is; up to 1/t, pi/4 + atan((x-1)/(x+1));
   above, pi/2 + atan(-1/x). One division serves all three. */
PC_INLINE F FN(atan)(F x)
{
    F a = FN(abs)(x);
    I middle = a > 0x1.a827999fcef32p-2, large = a > 0x1.3504f333f9de6p+1;
    F numerator = FN(blend)(large, ALL(-1), FN(blend)(middle, a - 1, a));
    F denominator = FN(blend)(large, a, FN(blend)(middle, a + 1, ALL(1)));
    F offset = FN(blend)(large, ALL(PI_2_HI), FN(blend)(middle, ALL(0.5 * PI_2_HI), ALL(0)));
    F s = numerator / denominator, z = s * s;
    F p = (-0x1.257696cc8884ap-6 * z + 0x1.37dc21229b23dp-5) * z - 0x1.9cd5a0b7caabep-5;
    p = ((p * z + 0x1.df1001200cde7p-5) * z - 0x1.10ebc5d9b1fb7p-4) * z + 0x1.3b111a6121b46p-4;
    p = ((p * z - 0x1.745cf8ef4d648p-4) * z + 0x1.c71c70e6b61acp-4) * z - 0x1.24924922aee52p-3;
    p = (p * z + 0x1.9999999995897p-3) * z - 0x1.555555555553dp-2;
    return FN(copysign)(offset + (s * z * p + s), x);
}

SCALAR_1(asin)
SCALAR_1(acos)
SCALAR_1(atan)

#undef PI_2_LO
#undef PI_2_HI

#include "polyc_f64_end.h"
