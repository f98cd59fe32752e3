/* polyc_cuda_host_device.cuh: what polyc_cuda_host.cuh offers, by the CUDA runtime. */

#ifndef POLYC_CUDA_HOST_DEVICE_CUH
#define POLYC_CUDA_HOST_DEVICE_CUH

#include <cuda_runtime_api.h>

#define PC_STREAM(stream) ((cudaStream_t)(stream))
#define PC_MOST_DEVICES 64
#define PC_KEPT_BYTES (256ull << 20) /* of memory that is free, before it goes back to the system */

static void pc_begin_call(void) {}
static void pc_end_call(void) {}

extern "C" const char *polyc_describe_error(int error) { return cudaGetErrorString((cudaError_t)error); }

/* The number of this thread's device, or an error below 0. */
extern "C" int polyc_current_device(void)
{
    int device = 0;
    const cudaError_t error = cudaGetDevice(&device);
    return error ? -(int)error : device;
}

extern "C" int polyc_use_device(int device) { return (int)cudaSetDevice(device); }

static cudaError_t pc_new_pool(int device, cudaMemPool_t *pool)
{
    unsigned long long kept = PC_KEPT_BYTES;
    cudaMemPoolProps wanted = {};
    wanted.allocType = cudaMemAllocationTypePinned;
    wanted.location.type = cudaMemLocationTypeDevice;
    wanted.location.id = device;
    const cudaError_t error = cudaMemPoolCreate(pool, &wanted);
    return error ? error : cudaMemPoolSetAttribute(*pool, cudaMemPoolAttrReleaseThreshold, &kept);
}

/* The current device's own pool: the default one is others' as well. */
static cudaError_t pc_pool(cudaMemPool_t *pool)
{
    static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
    static cudaMemPool_t pools[PC_MOST_DEVICES];
    int device = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error)
        return error;
    if (device >= PC_MOST_DEVICES)
        return cudaErrorInvalidDevice;
    pthread_mutex_lock(&guard);
    if (!pools[device])
        error = pc_new_pool(device, &pools[device]);
    *pool = pools[device];
    pthread_mutex_unlock(&guard);
    return error;
}

extern "C" int polyc_allocate(void **memory, size_t bytes, void *stream)
{
    cudaMemPool_t pool;
    const cudaError_t error = pc_pool(&pool);
    return (int)(error ? error : cudaMallocFromPoolAsync(memory, bytes, pool, PC_STREAM(stream)));
}

extern "C" int polyc_release(void *memory, void *stream)
{
    return (int)cudaFreeAsync(memory, PC_STREAM(stream));
}

extern "C" int polyc_synchronise(void *stream)
{
    return (int)cudaStreamSynchronize(PC_STREAM(stream));
}

/* What `stream` does from now on waits for all that is in `other` by now. */
extern "C" int polyc_follow(void *stream, void *other)
{
    cudaEvent_t event;
    if (stream == other)
        return 0;
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error)
        return (int)error;
    error = cudaEventRecord(event, PC_STREAM(other));
    if (!error)
        error = cudaStreamWaitEvent(PC_STREAM(stream), event, 0);
    cudaEventDestroy(event); /* given back once it has happened */
    return (int)error;
}

static int pc_record(void *event, void *stream)
{
    return (int)cudaEventRecord((cudaEvent_t)event, PC_STREAM(stream));
}

static int pc_new_event(void **event) { return (int)cudaEventCreate((cudaEvent_t *)event); }

static void pc_drop_event(void *event) { cudaEventDestroy((cudaEvent_t)event); }

static double pc_seconds(void *first, void *last)
{
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, (cudaEvent_t)first, (cudaEvent_t)last);
    return 1e-3 * milliseconds;
}

/* polyc_run on these buffers as a graph: polyc_replay launches all of it at once. */
extern "C" int polyc_capture(void *const *buffers, void *workspace, void **graph)
{
    cudaStream_t stream;
    cudaGraph_t recorded = NULL;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error)
        return (int)error;
    error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (!error) {
        const int status = polyc_run(buffers, workspace, stream);
        error = cudaStreamEndCapture(stream, &recorded);
        if (status) {
            if (recorded)
                cudaGraphDestroy(recorded);
            cudaStreamDestroy(stream);
            return status;
        }
    }
    if (!error) {
        error = cudaGraphInstantiateWithFlags((cudaGraphExec_t *)graph, recorded, 0);
        cudaGraphDestroy(recorded);
    }
    cudaStreamDestroy(stream);
    return (int)error;
}

extern "C" int polyc_replay(void *graph, void *stream)
{
    return (int)cudaGraphLaunch((cudaGraphExec_t)graph, PC_STREAM(stream));
}

extern "C" void polyc_forget(void *graph) { cudaGraphExecDestroy((cudaGraphExec_t)graph); }

#endif
