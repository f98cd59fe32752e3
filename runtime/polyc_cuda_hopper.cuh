/* polyc_cuda_hopper.cuh: what only sm_90a has - products by a warpgroup of 4 warps, copies of tiles by
   the tensor memory accelerator, and the barriers in shared memory that these complete. To be included
   after polyc_cuda.cuh. All tiles lie in shared memory that was declared by PC_SHARED_AT.

   BARRIERS IN SHARED MEMORY, of type pc_mbarrier. Their phases 0, 1, 2, … complete one after another:
   each when all arrivals that the barrier was made for have come, and all bytes that were announced.
       pc_mbarrier_init(&b, arrivals)   by one thread; then, by it, pc_mbarrier_init_fence(), and PC_SYNC
       pc_mbarrier_arrive(&b)           one arrival; what this thread did is seen by those that wait
       pc_mbarrier_expect(&b, bytes)    one arrival, which announces bytes that copies will bring
       pc_mbarrier_wait(&b, parity)     until the phase of this parity is complete: 0 for phase 0; 1 for
                                        phase 1, or before it for the one that preceded phase 0

   COPIES OF TILES. The host describes an array and the tiles of it; outside of it there are zeros.
       const pc_tensor_shape shape = {2, {columns, rows}, {1, columns}, {tile_columns, tile_rows}};
       int error = pc_make_tensor_map(&map, element_bytes, array, shape, swizzle_bytes);   0 or a
       PC_KERNEL(128, 1) void k(PC_TENSOR_MAP map, …)                                      cudaError_t
       pc_tensor_load(tile, &map, &b, column, row)    by one thread; brings tile_rows rows of
                                                      tile_columns elements, and their bytes to b
       pc_tensor_store(&map, column, row, tile), pc_tensor_store_commit(), pc_tensor_store_wait(n)
   Arrays that are loaded have 2 to 5 dimensions, innermost first, of which the first has step 1; the
   others' steps are multiples of 16 bytes, and tiles have at most 256 elements along each. With
   swizzle_bytes = 128 a row of the tile is at most 128 bytes, tiles are aligned to 1024, and address
   bits 4..6 are exclusive-ored with bits 7..9 (0: as it is).

   PROXIES. Copies of tiles and warpgroups' products see shared memory by another way than threads.
   What threads have written they see after each writer's pc_fence_async() and a barrier.

   PRODUCTS D (+)= A B of 64 x 16 by 16 x N, N = 64, 96, 128, 192 or 256, bf16 or f16, by 128 threads:
       pc_wgmma_fence();
       pc_wgmma_m64n128k16_bf16<0, 0>(d, a, b, adds);   adds 0: D = A B
       pc_wgmma_commit();    closes a group
       pc_wgmma_wait(n);     a literal: until at most n groups are left; until then d is not touched
   d: N / 2 floats; thread l of warp w of the four, with g = l / 4 and t = l % 4, has of
       d[4j + r]: row 16w + g + 8 (r >> 1), column 8j + 2t + (r & 1)
   a, b: pc_wgmma_operand(tile, leading, stride) of a tile swizzled by 128 bytes.
       <0, …>, <…, 0>: rows of A, columns of B, are contiguous along k, 64 elements in 128 bytes; 8 of
             them make 1024 bytes, and `stride` bytes lie between such groups. leading: any, 16.
             The next 16 of k: the descriptor + 2.
       <1, …>, <…, 1>: contiguous along m or n, 64 elements in 128 bytes, 8 of k make 1024 bytes;
             `stride` bytes between such groups of k, `leading` between groups of 64 along m or n. */

#ifndef POLYC_CUDA_HOPPER_CUH
#define POLYC_CUDA_HOPPER_CUH

typedef u64 pc_mbarrier;

/* An array and the tiles of it, innermost dimension first; steps: elements between neighbours. */
struct pc_tensor_shape {
    int rank;
    i64 extents[5], steps[5];
    int tile[5];
};

#ifndef __CUDACC__
#include "polyc_emulator_hopper.hpp"
#else

#include <cuda.h>

/* ---- Barriers in shared memory -------------------------------------------------------------- */

PC_DEVICE void pc_mbarrier_init(pc_mbarrier *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(pc_shared_address(barrier)), "r"(arrivals)
                 : "memory");
}
PC_DEVICE void pc_mbarrier_init_fence(void)
{
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
}
PC_DEVICE void pc_mbarrier_arrive(pc_mbarrier *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(pc_shared_address(barrier)) : "memory");
}
PC_DEVICE void pc_mbarrier_expect(pc_mbarrier *barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(pc_shared_address(barrier)), "r"(bytes) : "memory");
}
PC_DEVICE void pc_mbarrier_wait(pc_mbarrier *barrier, int parity)
{
    asm volatile("{\n"
                 "    .reg .pred done;\n"
                 "again:\n"
                 "    mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "    @!done bra again;\n"
                 "}" ::"r"(pc_shared_address(barrier)), "r"(parity) : "memory");
}
PC_DEVICE void pc_fence_async(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* ---- Copies of tiles ------------------------------------------------------------------------ */

typedef CUtensorMap pc_tensor_map;
#define PC_TENSOR_MAP const __grid_constant__ pc_tensor_map

#define PC_TENSOR_LOAD(rank, barrier_at, places, operands, ...) \
    PC_DEVICE void pc_tensor_load(void *tile, const pc_tensor_map *map, pc_mbarrier *barrier, __VA_ARGS__) \
    { \
        asm volatile("cp.async.bulk.tensor." #rank "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes " \
                     "[%0], [%1, {" places "}], [%" #barrier_at "];" ::"r"(pc_shared_address(tile)), "l"(map), \
                     PC_LIST operands, "r"(pc_shared_address(barrier)) : "memory"); \
    }
#define PC_LIST(...) __VA_ARGS__
PC_TENSOR_LOAD(2, 4, "%2, %3", ("r"(i), "r"(j)), int i, int j)
PC_TENSOR_LOAD(3, 5, "%2, %3, %4", ("r"(i), "r"(j), "r"(k)), int i, int j, int k)
PC_TENSOR_LOAD(4, 6, "%2, %3, %4, %5", ("r"(i), "r"(j), "r"(k), "r"(l)), int i, int j, int k, int l)
PC_TENSOR_LOAD(5, 7, "%2, %3, %4, %5, %6", ("r"(i), "r"(j), "r"(k), "r"(l), "r"(m)),
    int i, int j, int k, int l, int m)
PC_DEVICE void pc_tensor_store(const pc_tensor_map *map, int column, int row, const void *tile)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(map), "r"(column), "r"(row), "r"(pc_shared_address(tile)) : "memory");
}
PC_DEVICE void pc_tensor_store_commit(void) { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
#define pc_tensor_store_wait(n) asm volatile("cp.async.bulk.wait_group %0;" ::"n"(n) : "memory")

static inline int pc_make_tensor_map(pc_tensor_map *map, int element_bytes, const void *array,
    const pc_tensor_shape &shape, int swizzle_bytes)
{
    /* The driver's function is asked for at run time: nothing links with the driver. */
    typedef CUresult encode(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
        const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
        CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    static void *found = NULL;
    if (found == NULL) {
        cudaDriverEntryPointQueryResult result;
        const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
            cudaEnableDefault, &result);
        if (error != cudaSuccess || found == NULL)
            return error != cudaSuccess ? (int)error : (int)cudaErrorSymbolNotFound;
    }
    const CUtensorMapDataType types[] = {CU_TENSOR_MAP_DATA_TYPE_UINT8, CU_TENSOR_MAP_DATA_TYPE_UINT16,
        CU_TENSOR_MAP_DATA_TYPE_UINT32, CU_TENSOR_MAP_DATA_TYPE_UINT64};
    const int log2_bytes = element_bytes == 1 ? 0 : element_bytes == 2 ? 1 : element_bytes == 4 ? 2 : 3;
    cuuint64_t extents[5], strides[5];
    cuuint32_t box[5];
    const cuuint32_t each[5] = {1, 1, 1, 1, 1};
    for (int d = 0; d < shape.rank; d++) {
        extents[d] = (cuuint64_t)shape.extents[d];
        strides[d] = (cuuint64_t)(shape.steps[d] * element_bytes);
        box[d] = (cuuint32_t)shape.tile[d];
    }
    const CUresult error = ((encode *)found)(map, types[log2_bytes], (cuuint32_t)shape.rank, (void *)array,
        extents, strides + 1, box, each, CU_TENSOR_MAP_INTERLEAVE_NONE,
        swizzle_bytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return error == CUDA_SUCCESS ? 0 : (int)cudaErrorInvalidValue;
}

/* ---- Products by a warpgroup ---------------------------------------------------------------- */

PC_DEVICE u64 pc_wgmma_operand(const void *tile, int leading_bytes, int stride_bytes)
{
    return (pc_shared_address(tile) & 0x3ffff) >> 4 | (u64)(leading_bytes >> 4) << 16
        | (u64)(stride_bytes >> 4) << 32 | (u64)1 << 62;
}
PC_DEVICE void pc_wgmma_fence(void) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
PC_DEVICE void pc_wgmma_commit(void) { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
#define pc_wgmma_wait(n) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")

/* Registers for a warpgroup, a multiple of 8 from 24 to 240, taken from or given to the others. */
#define pc_take_registers(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n))
#define pc_give_registers(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n))

/* Names of 16 operands, and the operands. */
#define PC_R0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define PC_R16 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define PC_R32 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define PC_R48 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define PC_R64 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define PC_R80 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define PC_R96 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define PC_R112 "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define PC_D4(k) "+f"(d[k]), "+f"(d[(k) + 1]), "+f"(d[(k) + 2]), "+f"(d[(k) + 3])
#define PC_D16(k) PC_D4(k), PC_D4((k) + 4), PC_D4((k) + 8), PC_D4((k) + 12)

#define PC_WGMMA(n, type, a_at, b_at, adds_at, m_major_at, n_major_at, names, ...) \
    template <int m_major, int n_major> \
    PC_DEVICE void pc_wgmma_m64n##n##k16_##type(f32 *d, u64 a, u64 b, int adds) \
    { \
        asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" #adds_at ", 0;\n" \
                     "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." #type "." #type " {" names "}, %" #a_at \
                     ", %" #b_at ", adds, 1, 1, %" #m_major_at ", %" #n_major_at ";\n}" \
                     : __VA_ARGS__ : "l"(a), "l"(b), "r"(adds), "n"(m_major), "n"(n_major)); \
    }
#define PC_WGMMAS(type) \
    PC_WGMMA(64, type, 32, 33, 34, 35, 36, PC_R0 ", " PC_R16, PC_D16(0), PC_D16(16)) \
    PC_WGMMA(96, type, 48, 49, 50, 51, 52, PC_R0 ", " PC_R16 ", " PC_R32, PC_D16(0), PC_D16(16), PC_D16(32)) \
    PC_WGMMA(128, type, 64, 65, 66, 67, 68, PC_R0 ", " PC_R16 ", " PC_R32 ", " PC_R48, \
        PC_D16(0), PC_D16(16), PC_D16(32), PC_D16(48)) \
    PC_WGMMA(192, type, 96, 97, 98, 99, 100, PC_R0 ", " PC_R16 ", " PC_R32 ", " PC_R48 ", " PC_R64 ", " PC_R80, \
        PC_D16(0), PC_D16(16), PC_D16(32), PC_D16(48), PC_D16(64), PC_D16(80)) \
    PC_WGMMA(256, type, 128, 129, 130, 131, 132, \
        PC_R0 ", " PC_R16 ", " PC_R32 ", " PC_R48 ", " PC_R64 ", " PC_R80 ", " PC_R96 ", " PC_R112, \
        PC_D16(0), PC_D16(16), PC_D16(32), PC_D16(48), PC_D16(64), PC_D16(80), PC_D16(96), PC_D16(112))
PC_WGMMAS(bf16)
PC_WGMMAS(f16)

#endif

#endif
