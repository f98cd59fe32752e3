/* polyc_f64_pow.h: pow, asinh, acosh, atanh of PC_LANES doubles: the platform's library, lane by
   lane, as what they are made of would need more digits than a double has. */

#define F PC_PASTE(f64x, PC_LANES)
#define LANEWISE_1(name) \
    PC_INLINE F PC_PASTE(pc_##name##_, F)(F a) \
    { \
        for (int l = 0; l < PC_LANES; l++) \
            a[l] = __builtin_##name(a[l]); \
        return a; \
    }
LANEWISE_1(asinh) LANEWISE_1(acosh) LANEWISE_1(atanh)

PC_INLINE F PC_PASTE(pc_pow_, F)(F a, F b)
{
    for (int l = 0; l < PC_LANES; l++)
        a[l] = __builtin_pow(a[l], b[l]);
    return a;
}

#if PC_LANES == 2
PC_INLINE f64 pc_pow_f64(f64 a, f64 b) { return __builtin_pow(a, b); }
PC_INLINE f64 pc_asinh_f64(f64 a) { return __builtin_asinh(a); }
PC_INLINE f64 pc_acosh_f64(f64 a) { return __builtin_acosh(a); }
PC_INLINE f64 pc_atanh_f64(f64 a) { return __builtin_atanh(a); }
#endif

#undef LANEWISE_1
#undef F
#undef PC_LANES
