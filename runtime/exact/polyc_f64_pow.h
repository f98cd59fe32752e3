/* polyc_f64_pow.h of the exact run: pseudo-random functions of PC_LANES f64, and of one. */

#define F PC_PASTE(f64x, PC_LANES)
PC_RANDOM_1(asinh, F) PC_RANDOM_1(acosh, F) PC_RANDOM_1(atanh, F) PC_RANDOM_2(pow, F)
#undef F

#if PC_LANES == 2
#define F f64
PC_RANDOM_1(asinh, F) PC_RANDOM_1(acosh, F) PC_RANDOM_1(atanh, F) PC_RANDOM_2(pow, F)
#undef F
#endif

#undef PC_LANES
