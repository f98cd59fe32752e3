/* polyc_f64_exp.h of the exact run: pseudo-random functions of PC_LANES f64, and of one. */

#define F PC_PASTE(f64x, PC_LANES)
PC_RANDOM_1(exp, F) PC_RANDOM_1(exp_normal, F) PC_RANDOM_1(exp2, F) PC_RANDOM_1(expm1, F)
PC_RANDOM_1(sigmoid, F) PC_RANDOM_1(sinh, F) PC_RANDOM_1(cosh, F) PC_RANDOM_1(tanh, F)
PC_RANDOM_1(erf, F)
#undef F

#if PC_LANES == 2
#define F f64
PC_RANDOM_1(exp, F) PC_RANDOM_1(exp_normal, F) PC_RANDOM_1(exp2, F) PC_RANDOM_1(expm1, F)
PC_RANDOM_1(sigmoid, F) PC_RANDOM_1(sinh, F) PC_RANDOM_1(cosh, F) PC_RANDOM_1(tanh, F)
PC_RANDOM_1(erf, F)
#undef F
#endif

#undef PC_LANES
