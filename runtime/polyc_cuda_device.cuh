/* polyc_cuda_device.cuh: what polyc_cuda.cuh describes, on a GPU. */

#ifndef POLYC_CUDA_DEVICE_CUH
#define POLYC_CUDA_DEVICE_CUH

#define PC_DEVICE static __device__ __forceinline__ __attribute__((unused))

#define PC_KERNEL(threads, min_blocks) extern "C" __global__ __launch_bounds__(threads, min_blocks)
#define PC_UNROLL _Pragma("unroll")
#define PC_ROLLED _Pragma("unroll 1")

#define PC_BLOCK_X ((int)blockIdx.x)
#define PC_BLOCK_Y ((int)blockIdx.y)
#define PC_BLOCK_Z ((int)blockIdx.z)
#define PC_THREAD_X ((int)threadIdx.x)
#define PC_THREAD_Y ((int)threadIdx.y)
#define PC_THREAD_Z ((int)threadIdx.z)
#define PC_THREAD \
    ((int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)))
#define PC_WARP (PC_THREAD >> 5)
#define PC_LANE (PC_THREAD & 31)

#define PC_SHARED(type, name, count) __shared__ alignas(16) type name[count]
#define PC_SHARED_AT(type, name, count, offset) type *const name = (type *)(pc_shared_memory + (offset))
extern __shared__ __align__(1024) unsigned char pc_shared_memory[];

#define PC_SYNC() __syncthreads()
#define PC_SYNC_WARP() __syncwarp()
#define PC_SYNC_SOME(id, threads) asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory")

/* ---- A warp --------------------------------------------------------------------------------- */

template <class T> PC_DEVICE T pc_shuffle(T v, int lane) { return __shfl_sync(~0u, v, lane); }
template <class T> PC_DEVICE T pc_shuffle_xor(T v, int mask) { return __shfl_xor_sync(~0u, v, mask); }
template <class T> PC_DEVICE T pc_shuffle_down(T v, int lanes) { return __shfl_down_sync(~0u, v, lanes); }
template <class T> PC_DEVICE T pc_shuffle_up(T v, int lanes) { return __shfl_up_sync(~0u, v, lanes); }
PC_DEVICE u32 pc_ballot(int condition) { return __ballot_sync(~0u, condition); }

/* ---- Atomics -------------------------------------------------------------------------------- */

PC_DEVICE void pc_fence(void) { __threadfence(); }

PC_DEVICE i32 pc_atomic_add(i32 *p, i32 v) { return atomicAdd(p, v); }
PC_DEVICE u32 pc_atomic_add(u32 *p, u32 v) { return atomicAdd(p, v); }
PC_DEVICE i64 pc_atomic_add(i64 *p, i64 v) { return (i64)atomicAdd((unsigned long long *)p, (unsigned long long)v); }
PC_DEVICE f32 pc_atomic_add(f32 *p, f32 v) { return atomicAdd(p, v); }
PC_DEVICE f64 pc_atomic_add(f64 *p, f64 v) { return atomicAdd(p, v); }

PC_DEVICE i32 pc_atomic_min(i32 *p, i32 v) { return atomicMin(p, v); }
PC_DEVICE i32 pc_atomic_max(i32 *p, i32 v) { return atomicMax(p, v); }
PC_DEVICE u32 pc_atomic_min(u32 *p, u32 v) { return atomicMin(p, v); }
PC_DEVICE u32 pc_atomic_max(u32 *p, u32 v) { return atomicMax(p, v); }
PC_DEVICE i64 pc_atomic_min(i64 *p, i64 v) { return atomicMin((long long *)p, (long long)v); }
PC_DEVICE i64 pc_atomic_max(i64 *p, i64 v) { return atomicMax((long long *)p, (long long)v); }

/* Floats by compare and swap, as pc_min_f32 and pc_max_f32 do it: NaN wins. */
#define PC_ATOMIC_FLOAT(name, comparison) \
    PC_DEVICE f32 pc_atomic_##name(f32 *p, f32 v) \
    { \
        f32 old = *(volatile f32 *)p; \
        while (v != v ? old == old : v comparison old) { \
            f32 found = __int_as_float(atomicCAS((int *)p, __float_as_int(old), __float_as_int(v))); \
            if (__float_as_int(found) == __float_as_int(old)) \
                break; \
            old = found; \
        } \
        return old; \
    }
PC_ATOMIC_FLOAT(min, <)
PC_ATOMIC_FLOAT(max, >)
#undef PC_ATOMIC_FLOAT

/* ---- Copies to shared memory in the background ------------------------------------------------ */

PC_DEVICE u32 pc_shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

#define PC_COPY_ASYNC(bytes, cached) \
    PC_DEVICE void pc_copy_async_##bytes(void *shared, const void *global) \
    { \
        asm volatile("cp.async." cached ".shared.global [%0], [%1], " #bytes ";" \
                     ::"r"(pc_shared_address(shared)), "l"(__cvta_generic_to_global(global)) \
                     : "memory"); \
    } \
    PC_DEVICE void pc_copy_async_##bytes##_of(void *shared, const void *global, int there) \
    { \
        asm volatile("cp.async." cached ".shared.global [%0], [%1], " #bytes ", %2;" \
                     ::"r"(pc_shared_address(shared)), "l"(__cvta_generic_to_global(global)), \
                     "r"(there) : "memory"); \
    }
PC_COPY_ASYNC(16, "cg")
PC_COPY_ASYNC(8, "ca")
PC_COPY_ASYNC(4, "ca")
#undef PC_COPY_ASYNC

PC_DEVICE void pc_copy_async_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
#define pc_copy_async_wait(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

/* ---- The host ------------------------------------------------------------------------------- */

#include <cuda_runtime_api.h>

#define pc_dim3(x, y, z) dim3((unsigned)(x), (unsigned)(y), (unsigned)(z))

/* More shared memory than 48 KiB is given to kernels that ask before. */
template <class Kernel> static cudaError_t pc_reserve_shared(Kernel *kernel, int bytes)
{
    if (bytes <= 48 << 10)
        return cudaSuccess;
    return cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

#define PC_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    (pc_reserve_shared(kernel, shared_bytes) \
         ? (int)cudaGetLastError() \
         : (kernel<<<grid, block, shared_bytes, (cudaStream_t)(stream)>>>(__VA_ARGS__), \
            (int)cudaGetLastError()))

static inline int pc_copy(void *target, const void *source, size_t bytes, void *stream)
{
    return (int)cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, (cudaStream_t)stream);
}
static inline int pc_fill(void *target, int byte, size_t bytes, void *stream)
{
    return (int)cudaMemsetAsync(target, byte, bytes, (cudaStream_t)stream);
}

#endif
