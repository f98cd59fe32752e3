/* polyc_cuda_floats.cuh of the exact run: an element in registers, where CUDA has the bits of floats.
   It has the guard of the header in whose place it stands. */

#ifndef POLYC_CUDA_FLOATS_CUH
#define POLYC_CUDA_FLOATS_CUH

PC_INLINE u32 pc_bits_f32(f32 value) { return value.r; }
PC_INLINE f32 pc_value_f32(u32 bits) { return f32::of(bits); }

/* Elements take all bits of a register: nothing is rounded. */
PC_INLINE u16 pc_round_f16(f32 value) { return (u16)value.r; }
PC_INLINE u16 pc_round_bf16(f32 value) { return (u16)value.r; }
PC_INLINE u32 pc_round_tf32(f32 value) { return value.r; }
PC_INLINE f32 pc_widen_f16(u16 bits) { return f32::of(bits); }
PC_INLINE f32 pc_widen_bf16(u16 bits) { return f32::of(bits); }
PC_INLINE f32 pc_widen_tf32(u32 bits) { return f32::of(bits); }

PC_INLINE u32 pc_pack_f16x2(f32 low, f32 high) { return low.r | high.r << 16; }
PC_INLINE u32 pc_pack_bf16x2(f32 low, f32 high) { return low.r | high.r << 16; }

/* Four elements, which the emulator's tensor cores multiply and add at once. */
typedef pc_field::lanes<f32, 4> pc_quad;

#endif
