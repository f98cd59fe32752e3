/* polyc_f64_math.h: the mathematics of PC_LANES f64, lane by lane; the scalar functions of
   polyc_libm.h come first. */

#define D PC_PASTE(f64x, PC_LANES)
#define LANEWISE_1(name) \
    PC_INLINE D PC_PASTE(pc_##name##_, D)(D a) \
    { \
        for (int l = 0; l < PC_LANES; l++) \
            a[l] = pc_##name##_f64(a[l]); \
        return a; \
    }
LANEWISE_1(exp) LANEWISE_1(exp_normal) LANEWISE_1(exp2) LANEWISE_1(expm1)
LANEWISE_1(sinh) LANEWISE_1(cosh)
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
#undef PC_LANES
