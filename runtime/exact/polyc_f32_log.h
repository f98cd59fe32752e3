/* polyc_f32_log.h of the exact run: pseudo-random functions of PC_LANES f32, and of one. */

#define F PC_PASTE(f32x, PC_LANES)
PC_RANDOM_1(log, F) PC_RANDOM_1(log2, F) PC_RANDOM_1(log1p, F)
#undef F

#if PC_LANES == 4
#define F f32
PC_RANDOM_1(log, F) PC_RANDOM_1(log2, F) PC_RANDOM_1(log1p, F)
#undef F
#endif

#undef PC_LANES
