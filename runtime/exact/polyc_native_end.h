/* polyc_native_end.h: ends what polyc_native_begin.h begins. */

#undef pc_index
#undef pc_widen_bf16
#undef pc_round_bf16
#undef pc_widen_f16
#undef pc_round_f16
#undef pc_value_f32
#undef pc_bits_f32
#undef f4e2m1
#undef f6e2m3
#undef f6e3m2
#undef f8e8m0
#undef f8e5m2fnuz
#undef f8e5m2
#undef f8e4m3fnuz
#undef f8e4m3fn
#undef bf16
#undef f16
#undef f64
#undef f32
