/* polyc_f64_log.h of the exact run: pseudo-random functions of PC_LANES f64, and of one. */

#define F PC_PASTE(f64x, PC_LANES)
PC_RANDOM_1(log, F) PC_RANDOM_1(log2, F) PC_RANDOM_1(log1p, F)
#undef F

#if PC_LANES == 2
#define F f64
PC_RANDOM_1(log, F) PC_RANDOM_1(log2, F) PC_RANDOM_1(log1p, F)
#undef F
#endif

#undef PC_LANES
