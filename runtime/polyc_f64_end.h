/* polyc_f64_end.h: takes back the names of polyc_f64_begin.h and the parameter. */

#undef SCALAR_2
#undef SCALAR_1
#undef LN2_LO
#undef LN2_HI
#undef ALL
#undef LITERAL
#undef NOT_A_NUMBER
#undef INF
#undef ONE_BITS
#undef ROUNDER
#undef FN
#undef U
#undef I
#undef F
#undef PC_LANES
