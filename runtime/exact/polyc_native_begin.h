/* polyc_native_begin.h: the floats of the runtime's own headers get other names, up to
   polyc_native_end.h: the types of polyc_field.h take theirs. */

#define f32 pc_native_f32
#define f64 pc_native_f64
#define f16 pc_native_f16
#define bf16 pc_native_bf16
#define f8e4m3fn pc_native_f8e4m3fn
#define f8e4m3fnuz pc_native_f8e4m3fnuz
#define f8e5m2 pc_native_f8e5m2
#define f8e5m2fnuz pc_native_f8e5m2fnuz
#define f8e8m0 pc_native_f8e8m0
#define f6e3m2 pc_native_f6e3m2
#define f6e2m3 pc_native_f6e2m3
#define f4e2m1 pc_native_f4e2m1
#define pc_bits_f32 pc_native_bits_f32
#define pc_value_f32 pc_native_value_f32
#define pc_round_f16 pc_native_round_f16
#define pc_widen_f16 pc_native_widen_f16
#define pc_round_bf16 pc_native_round_bf16
#define pc_widen_bf16 pc_native_widen_bf16
#define pc_index pc_index_checked
