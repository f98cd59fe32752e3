/* polyc_f64_math.h of the exact run: pseudo-random functions of PC_LANES f64. */

#define F PC_PASTE(f64x, PC_LANES)
PC_RANDOM_1(exp, F) PC_RANDOM_1(exp_normal, F) PC_RANDOM_1(exp2, F) PC_RANDOM_1(expm1, F)
PC_RANDOM_1(sigmoid, F)
PC_RANDOM_1(sinh, F) PC_RANDOM_1(cosh, F) PC_RANDOM_1(erf, F) PC_RANDOM_1(tanh, F) PC_RANDOM_1(log, F)
PC_RANDOM_1(log2, F) PC_RANDOM_1(log1p, F) PC_RANDOM_1(asin, F) PC_RANDOM_1(acos, F) PC_RANDOM_1(atan, F)
PC_RANDOM_1(sin, F) PC_RANDOM_1(cos, F) PC_RANDOM_1(tan, F) PC_RANDOM_1(asinh, F) PC_RANDOM_1(acosh, F)
PC_RANDOM_1(atanh, F) PC_RANDOM_2(pow, F)
#undef F
#undef PC_LANES
