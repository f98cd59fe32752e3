/* polyc_cuda_floats.cuh: all that CUDA and its emulator know of the bits of floats. The exact run has
   a header of its own in its place. */

#ifndef POLYC_CUDA_FLOATS_CUH
#define POLYC_CUDA_FLOATS_CUH

PC_STORAGE(f16, u16, f32) PC_STORAGE(bf16, u16, f32)
PC_STORAGE(f8e4m3fn, u8, f32) PC_STORAGE(f8e4m3fnuz, u8, f32)
PC_STORAGE(f8e5m2, u8, f32) PC_STORAGE(f8e5m2fnuz, u8, f32)
PC_STORAGE(f8e8m0, u8, f32) PC_STORAGE(f6e3m2, u8, f32) PC_STORAGE(f6e2m3, u8, f32)
PC_STORAGE(f4e2m1, u8, f32)

/* Two floats rounded to one register of a fragment, and one to tf32, ties away from 0. */
PC_INLINE u32 pc_pack_bf16x2(f32 low, f32 high)
{
#ifdef __CUDA_ARCH__
    u32 packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
#else
    return pc_round_bf16(low) | (u32)pc_round_bf16(high) << 16;
#endif
}
PC_INLINE u32 pc_pack_f16x2(f32 low, f32 high)
{
#ifdef __CUDA_ARCH__
    u32 packed;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
#else
    return pc_round_f16(low) | (u32)pc_round_f16(high) << 16;
#endif
}
PC_INLINE u32 pc_round_tf32(f32 value)
{
#ifdef __CUDA_ARCH__
    u32 rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
    return rounded;
#else
    const u32 bits = pc_bits_f32(value);
    return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & 0xffffe000;
#endif
}

#ifndef __CUDACC__

/* What the emulator's tensor cores see of a register with an f32: all but its last 13 bits. */
PC_INLINE f32 pc_widen_tf32(u32 bits) { return pc_value_f32(bits & 0xffffe000); }

/* Four floats, which they multiply and add at once. */
typedef f32 pc_quad __attribute__((vector_size(16), may_alias));

#endif

#endif
