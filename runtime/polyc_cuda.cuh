/* polyc_cuda.cuh: the ground that generated CUDA stands on. The same text compiles by nvcc for a
   GPU and, as C++17, by g++ for the emulator (polyc_emulator.hpp), which finds on a CPU what is hard
   to find on a GPU. Generated text uses no CUDA name of its own, only these:

   A FILE      #include "polyc_cuda.cuh", then polyc_scalar.h, polyc_libm.h and polyc_cast.h with
               their parameters, as in C (polyc_types.h names what is common).
   A KERNEL    PC_KERNEL(256, 2) void name(const f32 *__restrict__ x, f32 *__restrict__ y) { … }
               Launched with at most 256 threads a block; registers for 2 blocks on a multiprocessor.
               PC_DEVICE for its functions; PC_UNROLL or PC_ROLLED before a loop.
   WHERE       PC_BLOCK_X Y Z, PC_THREAD_X Y Z, PC_THREAD (its number in the block, x fastest),
               PC_WARP, PC_LANE: ints
   SHARED      PC_SHARED(f32, tile, 1024);              at most 48 KiB of these in a kernel
               PC_SHARED_AT(f32, tile, 1024, offset);   in what the launch reserves; offsets in bytes
               Aligned to 16 bytes, at an offset to its largest power of two up to 1024. Like a
               static variable, what is declared in a loop is one array.
               tile[PC_SWIZZLE(k, shift, mask)]: places exchanged, so that rows meet other banks;
               PC_SWIZZLE_PARTS(k, upper, shift, mask): of k + upper, where k is less than one in it
   BARRIERS    PC_SYNC() of the block, PC_SYNC_WARP(), PC_SYNC_SOME(id, threads) of some whole warps,
               1 <= id < 16
   SHORT VECTORS  f32x4, bf16x8, …: pc_load_f32x4(p), pc_store_f32x4(p, v), v[2]
   A WARP      pc_shuffle(v, lane), pc_shuffle_xor(v, mask), pc_shuffle_down(v, lanes),
               pc_shuffle_up(v, lanes) of 4- and 8-byte values; pc_ballot(condition). All 32 take part.
               pc_count_bits(u32)
   ATOMICS     pc_atomic_add, pc_atomic_min, pc_atomic_max (pointer, value), returning the old value;
               pc_fence() orders this thread's writes for all of the device
   COPIES      global to shared, in the background: pc_copy_async_16 (_8, _4)(shared, global),
               pc_copy_async_16_of (_8_of, _4_of)(shared, global, bytes), the rest 0;
               pc_copy_async_commit() closes a group; pc_copy_async_wait(n), a literal, waits until at most n groups are left. Other
               threads see what was copied after a barrier that follows the wait.
   TENSOR CORES   polyc_cuda_mma.cuh; those of Hopper, and its copies, polyc_cuda_hopper.cuh
   THE HOST    int error = PC_LAUNCH(kernel, pc_dim3(gx, gy, gz), pc_dim3(tx, ty, tz), shared_bytes,
                                     stream, arguments…);     0, or a cudaError_t
               pc_copy(target, source, bytes, stream), pc_fill(target, byte, bytes, stream): likewise */

#ifndef POLYC_CUDA_CUH
#define POLYC_CUDA_CUH

#include "polyc_types.h"

#ifndef __CUDACC__
#define __host__
#define __device__
#endif

#define PC_SWIZZLE(k, shift, mask) ((k) ^ ((k) >> (shift) & (mask)))
#define PC_SWIZZLE_PARTS(k, upper, shift, mask) (((k) ^ ((upper) >> (shift) & (mask))) + (upper))

#include "polyc_cuda_types.cuh"

#ifdef __CUDACC__
#include "polyc_cuda_device.cuh"
#else
#include "polyc_emulator.hpp"
#endif

#include "polyc_cuda_mma.cuh"

#endif
