/* polyc_cuda_types.cuh: narrow types, and the short vectors that one instruction loads or stores. */

#ifndef POLYC_CUDA_TYPES_CUH
#define POLYC_CUDA_TYPES_CUH

#include "polyc_narrow.h"

PC_INLINE i32 pc_count_bits(u32 bits) { return __builtin_popcount(bits); }

/* Storage types: arithmetic is done in a wide type, to which they convert by themselves. */
#define PC_STORAGE(type, bits_type, wide) \
    struct type { \
        bits_type bits; \
        type() = default; \
        __host__ __device__ explicit type(wide value) : bits(pc_round_##type(value)) {} \
        __host__ __device__ operator wide() const { return pc_widen_##type(bits); } \
    };
PC_STORAGE(i4, u8, i8) PC_STORAGE(u4, u8, u8) PC_STORAGE(i2, u8, i8) PC_STORAGE(u2, u8, u8)
#include "polyc_cuda_floats.cuh"
#undef PC_STORAGE

/* ---- Vectors ---------------------------------------------------------------------------------

   f32x4 v = pc_load_f32x4(p); v[2] += 1; pc_store_f32x4(q, v);   one access of 4, 8 or 16 bytes,
   to whose size the address is aligned. */

/* One access, however the compiler would like to split it. */
#ifdef __CUDACC__
template <class V> PC_INLINE V pc_load_whole(const void *p) { return *(const V *)p; }
template <class V> PC_INLINE void pc_store_whole(void *p, V v) { *(V *)p = v; }
#else
template <int bytes> struct pc_whole;
template <> struct pc_whole<4> { typedef u32 type __attribute__((may_alias)); };
template <> struct pc_whole<8> { typedef u64 type __attribute__((may_alias)); };
template <> struct pc_whole<16> { typedef u32 type __attribute__((vector_size(16), may_alias)); };
template <class V> PC_INLINE V pc_load_whole(const void *p)
{
    const typename pc_whole<sizeof(V)>::type whole = *(const typename pc_whole<sizeof(V)>::type *)p;
    V v;
    memcpy(&v, &whole, sizeof v);
    return v;
}
template <class V> PC_INLINE void pc_store_whole(void *p, V v)
{
    typename pc_whole<sizeof(V)>::type whole;
    memcpy(&whole, &v, sizeof v);
    *(typename pc_whole<sizeof(V)>::type *)p = whole;
}
#endif

#define PC_SHORT_VECTOR(type, n) \
    struct alignas(n * sizeof(type)) type##x##n { \
        type lane[n]; \
        __host__ __device__ type &operator[](int l) { return lane[l]; } \
        __host__ __device__ const type &operator[](int l) const { return lane[l]; } \
    }; \
    PC_INLINE type##x##n pc_load_##type##x##n(const type *p) { return pc_load_whole<type##x##n>(p); } \
    PC_INLINE void pc_store_##type##x##n(type *p, type##x##n v) { pc_store_whole(p, v); } \
    PC_INLINE type##x##n pc_splat_##type##x##n(type value) \
    { \
        type##x##n v; \
        for (int l = 0; l < n; l++) \
            v.lane[l] = value; \
        return v; \
    }
#define PC_SHORT_VECTORS_8(type) PC_SHORT_VECTOR(type, 4) PC_SHORT_VECTOR(type, 8) PC_SHORT_VECTOR(type, 16)
#define PC_SHORT_VECTORS_16(type) PC_SHORT_VECTOR(type, 2) PC_SHORT_VECTOR(type, 4) PC_SHORT_VECTOR(type, 8)
#define PC_SHORT_VECTORS_32(type) PC_SHORT_VECTOR(type, 2) PC_SHORT_VECTOR(type, 4)

PC_SHORT_VECTORS_8(i8) PC_SHORT_VECTORS_8(u8)
PC_SHORT_VECTORS_8(f8e4m3fn) PC_SHORT_VECTORS_8(f8e4m3fnuz)
PC_SHORT_VECTORS_8(f8e5m2) PC_SHORT_VECTORS_8(f8e5m2fnuz)
PC_SHORT_VECTORS_8(f8e8m0) PC_SHORT_VECTORS_8(f6e3m2) PC_SHORT_VECTORS_8(f6e2m3)
PC_SHORT_VECTORS_8(f4e2m1)
PC_SHORT_VECTORS_8(i4) PC_SHORT_VECTORS_8(u4) PC_SHORT_VECTORS_8(i2) PC_SHORT_VECTORS_8(u2)
PC_SHORT_VECTORS_16(i16) PC_SHORT_VECTORS_16(u16) PC_SHORT_VECTORS_16(f16) PC_SHORT_VECTORS_16(bf16)
PC_SHORT_VECTORS_32(i32) PC_SHORT_VECTORS_32(u32) PC_SHORT_VECTORS_32(f32)
PC_SHORT_VECTOR(i64, 2) PC_SHORT_VECTOR(u64, 2) PC_SHORT_VECTOR(f64, 2)

typedef u8x4 b8x4;
typedef u8x8 b8x8;
typedef u8x16 b8x16;
#define pc_load_b8x4 pc_load_u8x4
#define pc_load_b8x8 pc_load_u8x8
#define pc_load_b8x16 pc_load_u8x16
#define pc_store_b8x4 pc_store_u8x4
#define pc_store_b8x8 pc_store_u8x8
#define pc_store_b8x16 pc_store_u8x16

#undef PC_SHORT_VECTORS_32
#undef PC_SHORT_VECTORS_16
#undef PC_SHORT_VECTORS_8
#undef PC_SHORT_VECTOR

#endif
