/* polyc_f64_trig.h of the exact run: pseudo-random functions of PC_LANES f64, and of one. */

#define F PC_PASTE(f64x, PC_LANES)
PC_RANDOM_1(sin, F) PC_RANDOM_1(cos, F) PC_RANDOM_1(tan, F)
#undef F

#if PC_LANES == 2
#define F f64
PC_RANDOM_1(sin, F) PC_RANDOM_1(cos, F) PC_RANDOM_1(tan, F)
#undef F
#endif

#undef PC_LANES
