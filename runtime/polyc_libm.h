/* polyc_libm.h: the scalar mathematics of PC_TYPE, f32 or f64, by the platform's library: libm on
   the host, CUDA's own on a device, where the special function units do most of the work (their
   errors stand in the CUDA C++ programming guide, "Mathematical Functions": at most 2 ulp in f32). */

#define T PC_TYPE
#define FN(name) PC_PASTE3(pc_, name##_, PC_TYPE)
#define LIBM(name) PC_PASTE(PC_LIBM_, PC_TYPE)(name)
#define PC_LIBM_f32(name) __builtin_##name##f
#define PC_LIBM_f64(name) __builtin_##name

#define LIBM_1(name) PC_INLINE T FN(name)(T a) { return LIBM(name)(a); }
LIBM_1(exp) LIBM_1(exp2) LIBM_1(expm1) LIBM_1(sinh) LIBM_1(cosh) LIBM_1(tanh) LIBM_1(erf)
LIBM_1(log) LIBM_1(log2) LIBM_1(log1p) LIBM_1(asinh) LIBM_1(acosh) LIBM_1(atanh)
LIBM_1(sin) LIBM_1(cos) LIBM_1(tan) LIBM_1(asin) LIBM_1(acos) LIBM_1(atan)
#undef LIBM_1

PC_INLINE T FN(pow)(T a, T b) { return LIBM(pow)(a, b); }

/* e^x, 0 from where on it is a subnormal number, or nearly. */
PC_INLINE T FN(exp_normal)(T a) { return a < (sizeof a == 4 ? -87 : -708) ? 0 : LIBM(exp)(a); }

/* e^x / (1 + e^x) for x < 0, so that nothing overflows or cancels. */
PC_INLINE T FN(sigmoid)(T a)
{
    T e = LIBM(exp)(-LIBM(fabs)(a));
    return (a < 0 ? e : 1) / (1 + e);
}

#undef PC_LIBM_f64
#undef PC_LIBM_f32
#undef LIBM
#undef FN
#undef T
#undef PC_TYPE
