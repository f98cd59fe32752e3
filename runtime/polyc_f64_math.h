/* polyc_f64_math.h: the mathematics of f64, by libm lane by lane; PC_LANES 1 means scalars, which
   come first. */

#if PC_LANES == 1

#define LIBM_1(name) PC_INLINE f64 pc_##name##_f64(f64 a) { return __builtin_##name(a); }
LIBM_1(exp) LIBM_1(exp2) LIBM_1(expm1) LIBM_1(sinh) LIBM_1(cosh) LIBM_1(tanh) LIBM_1(erf)
LIBM_1(log) LIBM_1(log2) LIBM_1(log1p) LIBM_1(asinh) LIBM_1(acosh) LIBM_1(atanh)
LIBM_1(sin) LIBM_1(cos) LIBM_1(tan) LIBM_1(asin) LIBM_1(acos) LIBM_1(atan)
#undef LIBM_1

PC_INLINE f64 pc_pow_f64(f64 a, f64 b) { return __builtin_pow(a, b); }

/* As in f32: e^x / (1 + e^x) for x < 0, so that nothing overflows or cancels. */
PC_INLINE f64 pc_sigmoid_f64(f64 a)
{
    f64 e = __builtin_exp(-__builtin_fabs(a));
    return (a < 0 ? e : 1) / (1 + e);
}

#else

#define D PC_PASTE(f64x, PC_LANES)
#define LANEWISE_1(name) \
    PC_INLINE D PC_PASTE(pc_##name##_, D)(D a) \
    { \
        for (int l = 0; l < PC_LANES; l++) \
            a[l] = pc_##name##_f64(a[l]); \
        return a; \
    }
LANEWISE_1(exp) LANEWISE_1(exp2) LANEWISE_1(expm1) LANEWISE_1(sinh) LANEWISE_1(cosh)
LANEWISE_1(tanh) LANEWISE_1(erf) LANEWISE_1(sigmoid)
LANEWISE_1(log) LANEWISE_1(log2) LANEWISE_1(log1p)
LANEWISE_1(asinh) LANEWISE_1(acosh) LANEWISE_1(atanh)
LANEWISE_1(sin) LANEWISE_1(cos) LANEWISE_1(tan)
LANEWISE_1(asin) LANEWISE_1(acos) LANEWISE_1(atan)

PC_INLINE D PC_PASTE(pc_pow_, D)(D a, D b)
{
    for (int l = 0; l < PC_LANES; l++)
        a[l] = pc_pow_f64(a[l], b[l]);
    return a;
}

#undef LANEWISE_1
#undef D

#endif

#undef PC_LANES
