/* polyc_scalar.h of the exact run: arithmetic of PC_TYPE, in the field if it is a float. */

#if !PC_PASTE(PC_FIELD_, PC_TYPE)
#include "../polyc_scalar.h"
#else

#define T PC_TYPE
#define FN(name) PC_PASTE3(pc_, name##_, PC_TYPE)
#define KIND PC_PASTE(PC_KIND_, PC_TYPE)
#define U PC_PASTE(u, PC_PASTE(PC_BITS_, PC_TYPE))

PC_INLINE T FN(select)(b8 condition, T a, T b) { return condition ? a : b; }
PC_INLINE U FN(as_bits)(T a) { return a.r; }
PC_INLINE T FN(from_bits)(U bits) { return T::of(bits % pc_field::P); }

#if KIND == PC_FLOAT

#define COMPARISON(name) \
    PC_INLINE b8 FN(name)(T a, T b) { return (b8)pc_field::name(a.r, b.r); } \
    PC_INLINE T FN(select_##name)(T a, T b, T x, T y) { return pc_field::name(a.r, b.r) ? x : y; }
COMPARISON(eq) COMPARISON(ne) COMPARISON(lt) COMPARISON(le) COMPARISON(gt) COMPARISON(ge)
#undef COMPARISON

PC_INLINE b8 FN(isnan)(T a) { return (b8)pc_field::isnan(a.r, 0); }
PC_INLINE b8 FN(isinf)(T a) { return (b8)pc_field::isinf(a.r, 0); }

PC_INLINE T FN(min)(T a, T b) { return pc_field::smaller(a, b); }
PC_INLINE T FN(max)(T a, T b) { return pc_field::larger(a, b); }
PC_INLINE T FN(smaller)(T a, T b) { return pc_field::smaller(a, b); }
PC_INLINE T FN(larger)(T a, T b) { return pc_field::larger(a, b); }
PC_INLINE T FN(neg)(T a) { return pc_field::negative(a); }
PC_INLINE T FN(reciprocal)(T a) { return pc_field::reciprocal(a); }
PC_INLINE T FN(add)(T a, T b) { return a + b; }
PC_INLINE T FN(sub)(T a, T b) { return a - b; }
PC_INLINE T FN(mul)(T a, T b) { return a * b; }
PC_INLINE T FN(div)(T a, T b) { return a / b; }
PC_INLINE T FN(fma)(T a, T b, T c) { return a * b + c; }
PC_INLINE T FN(rounded)(T a) { return a; }

PC_RANDOM_1(sign, T) PC_RANDOM_1(abs, T) PC_RANDOM_1(sqrt, T)
PC_RANDOM_1(floor, T) PC_RANDOM_1(ceil, T) PC_RANDOM_1(trunc, T) PC_RANDOM_1(round, T)
PC_RANDOM_1(power_above, T) PC_RANDOM_1(power_nearest, T) PC_RANDOM_1(round_odd, T)
PC_RANDOM_2(copysign, T) PC_RANDOM_2(mod, T) PC_RANDOM_2(fmod, T)

#endif

#undef U
#undef KIND
#undef FN
#undef T
#undef PC_TYPE

#endif
