/* polyc_arc.h: asin, acos, atan of PC_LANES floats or doubles, of which polyc_f32_arc.h or
   polyc_f64_arc.h has defined the series.

   Reduction to a short interval around 0, then z + z^3 A(z^2) (W. J. Cody, W. Waite, 1980, ch. 10
   and 11, with polynomials for their quotients). */

/* Within 1.7 ulp. Above 1/2, asin x = pi/2 - 2 asin(sqrt((1 - x) / 2)); above 1 the root is NaN. */
PC_INLINE F FN(asin)(F x)
{
    F a = FN(abs)(x);
    I large = a > LITERAL(0.5);
    F z = FN(blend)(large, LITERAL(0.5) * (1 - a), a * a);
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
    I large = a > LITERAL(0.5);
    F z = FN(blend)(large, LITERAL(0.5) * (1 - a), a * a);
    F s = FN(blend)(large, FN(sqrt)(z), x);
    F tail = FN(asin_tail)(s, z);
    F near_1 = 2 * (s + tail);
    F near_minus_1 = 2 * (PI_2_HI - (s + (tail - PI_2_LO)));
    F between = PI_2_HI - (s + (tail - PI_2_LO));
    return FN(blend)(large, FN(blend)(x < 0, near_minus_1, near_1), between);
}

/* Within 2.9 ulp of f32, 2.5 of f64. With t = tan(pi/8): |x| <= t as it is; up to 1/t, pi/4 + atan((x-1)/(x+1));
   above, pi/2 + atan(-1/x). One division serves all three. */
PC_INLINE F FN(atan)(F x)
{
    F a = FN(abs)(x);
    I middle = a > TAN_PI_8, large = a > COT_PI_8;
    F numerator = FN(blend)(large, ALL(-1), FN(blend)(middle, a - 1, a));
    F denominator = FN(blend)(large, a, FN(blend)(middle, a + 1, ALL(1)));
    F offset = FN(blend)(large, ALL(PI_2_HI), FN(blend)(middle, ALL(LITERAL(0.5) * PI_2_HI), ALL(0)));
    F s = numerator / denominator;
    return FN(copysign)(offset + (FN(atan_tail)(s, s * s) + s), x);
}

SCALAR_1(asin)
SCALAR_1(acos)
SCALAR_1(atan)

#undef COT_PI_8
#undef TAN_PI_8
#undef PI_2_LO
#undef PI_2_HI
