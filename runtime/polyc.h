/* polyc.h: the ground that generated C stands on - vector types, names, threads.

   Kernels are C11 with gcc's vector extensions. Nothing here needs a particular instruction set:
   the same text compiles for AVX-512, AVX2 and plain x86-64, and gcc splits vectors that are wider
   than the machine's. Only libm and POSIX threads are linked. Expected flags:
   -O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast -Wno-psabi (no vector crosses an ABI:
   all functions that take one are inlined); never -ffast-math (NaN and inf count).

   WHAT A TRANSLATION UNIT SAYS (polyc/printing/runtime_table.py prints it, in this order)

       #include "polyc.h"
       PC_VECTORS(16)                      // the vector types of 16 lanes: f32x16, b8x16, ...

       #define PC_TYPE f32                 // scalar functions of one type: pc_max_f32, ...
       #include "polyc_scalar.h"

       #define PC_TYPE f32                 // vector functions of one type: pc_max_f32x16, ...
       #define PC_LANES 16                 //   (its scalar functions come first)
       #define PC_REDUCTIONS               //   with pc_reduce_max_f32x16, ...
       #define PC_STRIDES                  //   with pc_loads_f32x16, ...
       #define PC_TRANSPOSITIONS           //   with pc_transpose_f32x16
       #define PC_QUANTISED                //   with pc_quantised_u8x16, of PC_TYPE u8 or i8
       #include "polyc_vector.h"

       #define PC_LANES 16                 // mathematics, one family a header: pc_exp_f32x16, ...
       #include "polyc_f32_exp.h"          //   (the vector functions of f32 x 16 come first)

       #define PC_FROM f32                 // one conversion: pc_cast_f32_i32x16
       #define PC_TO i32
       #define PC_LANES 16                 //   lanes 1: scalar, pc_cast_f32_i32
       #include "polyc_cast.h"

   A header with parameters undefines them at its end and is included once for each combination.
   Functions are `pc_<function>_<type>`, where a type is a scalar (f32) or a vector (f32x16).
   The types of polyc_narrow.h are loaded, stored, chosen, and converted to and from a wide type.
   A scalar function of the mathematics headers is lane 0 of the vector function of 4 lanes, of 2 for
   f64, so that a scalar remainder loop agrees bit for bit with the vector loop before it (but for
   the sign and payload of NaN, and given -mfma beside -mavx512f: without it 4 lanes have no FMA). */

#ifndef POLYC_H
#define POLYC_H

#include "polyc_types.h"

/* What is only stored is its bits. */
typedef u16 f16, bf16;
typedef u8 f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, f6e3m2, f6e2m3, f4e2m1, i4, u4, i2, u2;

/* The vector types of n lanes. b8 is 0 or 1 in memory and in a scalar; in a vector register it is a
   mask, 0 or -1 a lane, which is what comparisons make and selections take. */
#define PC_VECTORS(n) \
    PC_VECTOR(f32, f32, n) PC_VECTOR(f64, f64, n) PC_VECTOR(b8, i8, n) \
    PC_VECTOR(i8, i8, n) PC_VECTOR(i16, i16, n) PC_VECTOR(i32, i32, n) PC_VECTOR(i64, i64, n) \
    PC_VECTOR(u8, u8, n) PC_VECTOR(u16, u16, n) PC_VECTOR(u32, u32, n) PC_VECTOR(u64, u64, n) \
    PC_VECTOR(f16, u16, n) PC_VECTOR(bf16, u16, n) PC_VECTOR(f8e4m3fn, u8, n) \
    PC_VECTOR(f8e4m3fnuz, u8, n) PC_VECTOR(f8e5m2, u8, n) PC_VECTOR(f8e5m2fnuz, u8, n) \
    PC_VECTOR(f8e8m0, u8, n) PC_VECTOR(f6e3m2, u8, n) PC_VECTOR(f6e2m3, u8, n) \
    PC_VECTOR(f4e2m1, u8, n) PC_VECTOR(i4, u8, n) PC_VECTOR(u4, u8, n) PC_VECTOR(i2, u8, n) \
    PC_VECTOR(u2, u8, n)
#define PC_VECTOR(type, element, n) \
    typedef element type##x##n __attribute__((vector_size(n * sizeof(element))));

/* Nothing that was read from memory before stays in a register. A tile of sums fills them all: what
   gcc keeps there for the next tile (a bias, say), it makes room for in the innermost loop. */
#define PC_FORGET __asm__ volatile("" ::: "memory")

/* Has a line brought into the second-level cache, and waits for nothing. There may be none there. */
#define PC_FETCH(place) __builtin_prefetch(place, 0, 2)

/* What gcc's instruction names call the integers of a width, and the types that they take. */
#define PC_MODE_8 qi
#define PC_MODE_16 hi
#define PC_MODE_32 si
#define PC_MODE_64 di
#define PC_MODE_TYPE_8 char
#define PC_MODE_TYPE_16 short
#define PC_MODE_TYPE_32 int
#define PC_MODE_TYPE_64 long long

/* Lane numbers from s on, as a list for an initialiser or a shuffle. */
#define PC_IOTA_2(s) (s), (s) + 1
#define PC_IOTA_4(s) PC_IOTA_2(s), PC_IOTA_2((s) + 2)
#define PC_IOTA_8(s) PC_IOTA_4(s), PC_IOTA_4((s) + 4)
#define PC_IOTA_16(s) PC_IOTA_8(s), PC_IOTA_8((s) + 8)
#define PC_IOTA_32(s) PC_IOTA_16(s), PC_IOTA_16((s) + 16)
#define PC_IOTA_64(s) PC_IOTA_32(s), PC_IOTA_32((s) + 32)
/* The same, with w lanes and the w next ones in each other's places. */
#define PC_FLIP_2(s, w) (s) ^ (w), ((s) + 1) ^ (w)
#define PC_FLIP_4(s, w) PC_FLIP_2(s, w), PC_FLIP_2((s) + 2, w)
#define PC_FLIP_8(s, w) PC_FLIP_4(s, w), PC_FLIP_4((s) + 4, w)
#define PC_FLIP_16(s, w) PC_FLIP_8(s, w), PC_FLIP_8((s) + 8, w)
#define PC_FLIP_32(s, w) PC_FLIP_16(s, w), PC_FLIP_16((s) + 16, w)
#define PC_FLIP_64(s, w) PC_FLIP_32(s, w), PC_FLIP_32((s) + 32, w)

/* F(a, 0), F(a, 1), …: a list of one entry a lane. */
#define PC_EACH_2(F, a, s) F(a, s), F(a, (s) + 1)
#define PC_EACH_4(F, a, s) PC_EACH_2(F, a, s), PC_EACH_2(F, a, (s) + 2)
#define PC_EACH_8(F, a, s) PC_EACH_4(F, a, s), PC_EACH_4(F, a, (s) + 4)
#define PC_EACH_16(F, a, s) PC_EACH_8(F, a, s), PC_EACH_8(F, a, (s) + 8)
#define PC_EACH_32(F, a, s) PC_EACH_16(F, a, s), PC_EACH_16(F, a, (s) + 16)
#define PC_EACH_64(F, a, s) PC_EACH_32(F, a, s), PC_EACH_32(F, a, (s) + 32)

/* PC_RESIZE_<from>_<to>(kind, v, n): integers of n lanes from one width to another; kind i or u
   says whether widening repeats the sign. gcc makes vector code only of steps by a factor of two: a
   single __builtin_convertvector from 32 to 8 bits is done lane by lane. */
#define PC_TO_8(kind, v, n) __builtin_convertvector(v, PC_PASTE(kind##8x, n))
#define PC_TO_16(kind, v, n) __builtin_convertvector(v, PC_PASTE(kind##16x, n))
#define PC_TO_32(kind, v, n) __builtin_convertvector(v, PC_PASTE(kind##32x, n))
#define PC_TO_64(kind, v, n) __builtin_convertvector(v, PC_PASTE(kind##64x, n))

#define PC_RESIZE_8_8(kind, v, n) (v)
#define PC_RESIZE_8_16(kind, v, n) PC_TO_16(kind, v, n)
#define PC_RESIZE_8_32(kind, v, n) PC_TO_32(kind, PC_RESIZE_8_16(kind, v, n), n)
#define PC_RESIZE_8_64(kind, v, n) PC_TO_64(kind, PC_RESIZE_8_32(kind, v, n), n)
#define PC_RESIZE_16_8(kind, v, n) PC_TO_8(kind, v, n)
#define PC_RESIZE_16_16(kind, v, n) (v)
#define PC_RESIZE_16_32(kind, v, n) PC_TO_32(kind, v, n)
#define PC_RESIZE_16_64(kind, v, n) PC_TO_64(kind, PC_RESIZE_16_32(kind, v, n), n)
#define PC_RESIZE_32_8(kind, v, n) PC_RESIZE_16_8(kind, PC_RESIZE_32_16(kind, v, n), n)
#define PC_RESIZE_32_16(kind, v, n) PC_TO_16(kind, v, n)
#define PC_RESIZE_32_32(kind, v, n) (v)
#define PC_RESIZE_32_64(kind, v, n) PC_TO_64(kind, v, n)
#define PC_RESIZE_64_8(kind, v, n) PC_RESIZE_32_8(kind, PC_RESIZE_64_32(kind, v, n), n)
#define PC_RESIZE_64_16(kind, v, n) PC_RESIZE_32_16(kind, PC_RESIZE_64_32(kind, v, n), n)
#define PC_RESIZE_64_32(kind, v, n) PC_TO_32(kind, v, n)
#define PC_RESIZE_64_64(kind, v, n) (v)

/* ---- Threads -------------------------------------------------------------------------------- */

#include "polyc_team.h"

#endif
