/* polyc_f32_begin.h: the short names that the polyc_f32_*.h families share; see polyc_f32_end.h.

   The families are range reduction, then a polynomial whose coefficients are our own minimax fits
   (linear programming on Chebyshev nodes for the relative error of the whole function, leading
   coefficients rounded to float one at a time and the rest refitted). They hold for every input,
   with no assumption on the order of rounding except that + - * / are IEEE operations; contraction
   into FMA only lowers the error. Above each function stands a bound of its error in units in the
   last place (ulp) of the exact result, subnormals included: measured against double precision over
   all 2^32 inputs with FMA and over every third of them without (pow: over random pairs). Overflow,
   infinities, NaN and the signs of zero are libm's. */

#define F PC_PASTE(f32x, PC_LANES)
#define I PC_PASTE(i32x, PC_LANES)
#define U PC_PASTE(u32x, PC_LANES)
#define D PC_PASTE(f64x, PC_LANES)
#define UD PC_PASTE(u64x, PC_LANES)
#define FN(name) PC_PASTE3(pc_, name##_, F)
#define TO(type, v) __builtin_convertvector(v, type)

/* Adding 1.5 * 2^(mantissa bits) rounds to the nearest integer, ties to even, and leaves it in the
   low bits of the sum: two additions in place of round, and the conversion for free. */
#define ROUNDER 0x1.8p23f
#define ROUNDER_BITS 0x4b400000u
#define ROUNDER_D 0x1.8p52

#define INF __builtin_inff()
#define NOT_A_NUMBER __builtin_nanf("")
#define LITERAL(number) number##f
#define ALL(constant) ((F){0} + (constant))

/* The scalar function is lane 0 of the function of 4 lanes. */
#if PC_LANES == 4
#define SCALAR_1(name) \
    PC_INLINE f32 pc_##name##_f32(f32 a) { return pc_##name##_f32x4(pc_splat_f32x4(a))[0]; }
#define SCALAR_2(name) \
    PC_INLINE f32 pc_##name##_f32(f32 a, f32 b) \
    { \
        return pc_##name##_f32x4(pc_splat_f32x4(a), pc_splat_f32x4(b))[0]; \
    }
#else
#define SCALAR_1(name)
#define SCALAR_2(name)
#endif
