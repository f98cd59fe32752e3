/* polyc_f64_begin.h: the short names that the polyc_f64_*.h families share; see polyc_f64_end.h.

   What polyc_f32_begin.h says of the families of floats holds here, with minimax fits of our own
   found by exchange (E. Remez, 1934) in 45 digits. The bound above each function, in units in the
   last place, is measured against the 64 bits of x87 on random numbers of all sizes, with FMA and
   without, as 2^64 inputs are too many. */

#define F PC_PASTE(f64x, PC_LANES)
#define I PC_PASTE(i64x, PC_LANES)
#define U PC_PASTE(u64x, PC_LANES)
#define FN(name) PC_PASTE3(pc_, name##_, F)

/* Adding 1.5 * 2^52 rounds to the nearest integer and leaves it in the low bits of the sum. */
#define ROUNDER 0x1.8p52
#define ONE_BITS 0x3ff0000000000000u

#define INF __builtin_inf()
#define NOT_A_NUMBER __builtin_nan("")
#define LITERAL(number) number
#define ALL(constant) ((F){0} + (constant))

/* ln 2 = LN2_HI + LN2_LO; the first has 41 bits, so that n times it is exact without FMA too. */
#define LN2_HI 0x1.62e42fefa3p-1
#define LN2_LO 0x1.3de6af278ece6p-42

/* The scalar function is lane 0 of the function of 2 lanes. */
#if PC_LANES == 2
#define SCALAR_1(name) \
    PC_INLINE f64 pc_##name##_f64(f64 a) { return pc_##name##_f64x2(pc_splat_f64x2(a))[0]; }
#define SCALAR_2(name) \
    PC_INLINE f64 pc_##name##_f64(f64 a, f64 b) \
    { \
        return pc_##name##_f64x2(pc_splat_f64x2(a), pc_splat_f64x2(b))[0]; \
    }
#else
#define SCALAR_1(name)
#define SCALAR_2(name)
#endif
