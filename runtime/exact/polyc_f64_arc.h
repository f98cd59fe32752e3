/* polyc_f64_arc.h of the exact run: pseudo-random functions of PC_LANES f64, and of one. */

#define F PC_PASTE(f64x, PC_LANES)
PC_RANDOM_1(asin, F) PC_RANDOM_1(acos, F) PC_RANDOM_1(atan, F)
#undef F

#if PC_LANES == 2
#define F f64
PC_RANDOM_1(asin, F) PC_RANDOM_1(acos, F) PC_RANDOM_1(atan, F)
#undef F
#endif

#undef PC_LANES
