/* polyc_exp.h: exp, exp_normal, sigmoid, cosh of PC_LANES floats or doubles, of which polyc_f32_exp.h
   or polyc_f64_exp.h has defined the reduction, and where each of them ends. */

PC_INLINE F FN(exp)(F x) { return FN(exp_from)(VANISHED, x); }

/* For a softmax, whose largest term is 1. A mask of -100 makes all others subnormal, and whatever
   is multiplied with these takes 150 cycles as well. */
PC_INLINE F FN(exp_normal)(F x) { return FN(exp_from)(SUBNORMAL, x); }

/* Within 2.5 ulp. 1 / (1 + e^-x) as c / (c + c e^-x), where c = 2^-64 keeps c e^-x from overflowing
   before the result is 0. From 40 on it is 1. */
PC_INLINE F FN(sigmoid)(F x)
{
    F n, p = FN(expm1_reduced)(-FN(at_most)(FN(at_least)(x, VANISHED), 40), &n);
    return LITERAL(0x1p-64) / (FN(scale)(1 + p, n - 64) + LITERAL(0x1p-64));
}

/* e^|x| / 2, finite wherever sinh and cosh are. */
PC_INLINE F FN(half_exp)(F x)
{
    F n, p = FN(expm1_reduced)(FN(at_most)(FN(abs)(x), OVERFLOWN), &n);
    return FN(scale)(1 + p, n - 1);
}

/* Within 1.6 ulp. */
PC_INLINE F FN(cosh)(F x)
{
    F h = FN(half_exp)(x);
    return h + LITERAL(0.25) / h;
}

SCALAR_1(exp)
SCALAR_1(exp_normal)
SCALAR_1(sigmoid)
SCALAR_1(cosh)
