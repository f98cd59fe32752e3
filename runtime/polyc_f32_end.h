/* polyc_f32_end.h: takes back the names of polyc_f32_begin.h and the parameter. */

#undef SCALAR_2
#undef SCALAR_1
#undef ALL
#undef LITERAL
#undef NOT_A_NUMBER
#undef INF
#undef ROUNDER_D
#undef ROUNDER_BITS
#undef ROUNDER
#undef TO
#undef FN
#undef UD
#undef D
#undef U
#undef I
#undef F
#undef PC_LANES
