/* polyc_cuda_host_emulated.cuh: what polyc_cuda_host.cuh offers, where the device is this process. */

#ifndef POLYC_CUDA_HOST_EMULATED_CUH
#define POLYC_CUDA_HOST_EMULATED_CUH


#define PC_ALIGNMENT 256   /* of cudaMalloc */

static pthread_mutex_t pc_calls = PTHREAD_MUTEX_INITIALIZER;

static void pc_begin_call(void) { pthread_mutex_lock(&pc_calls); }
static void pc_end_call(void) { pthread_mutex_unlock(&pc_calls); }

extern "C" const char *polyc_describe_error(int error)
{
    const char *message = polyc_emulator_message();
    return *message ? message : error == PC_OUT_OF_MEMORY ? "out of memory" : "no error";
}

extern "C" int polyc_current_device(void) { return 0; }
extern "C" int polyc_use_device(int) { return 0; }

extern "C" int polyc_allocate(void **memory, size_t bytes, void *)
{
    *memory = aligned_alloc(PC_ALIGNMENT, (bytes + PC_ALIGNMENT - 1) / PC_ALIGNMENT * PC_ALIGNMENT);
    if (!*memory)
        return PC_OUT_OF_MEMORY;
    memset(*memory, 0xff, bytes); /* NaN: nobody is to count on zeros */
    return 0;
}

extern "C" int polyc_release(void *memory, void *)
{
    free(memory);
    return 0;
}

extern "C" int polyc_synchronise(void *) { return 0; }
extern "C" int polyc_follow(void *, void *) { return 0; }


static int pc_record(void *event, void *)
{
    *(double *)event = pc_now();
    return 0;
}

static int pc_new_event(void **event)
{
    *event = calloc(1, sizeof(double));
    return *event ? 0 : PC_OUT_OF_MEMORY;
}

static void pc_drop_event(void *event) { free(event); }

static double pc_seconds(void *first, void *last) { return *(double *)last - *(double *)first; }

struct pc_graph {
    void *workspace;
    void *buffers[];
};

extern "C" int polyc_buffer_count(void);

extern "C" int polyc_capture(void *const *buffers, void *workspace, void **graph)
{
    const size_t bytes = sizeof(void *) * (size_t)polyc_buffer_count();
    struct pc_graph *made = (struct pc_graph *)malloc(sizeof *made + bytes);
    if (!made)
        return PC_OUT_OF_MEMORY;
    made->workspace = workspace;
    memcpy(made->buffers, buffers, bytes);
    *graph = made;
    return 0;
}

extern "C" int polyc_replay(void *graph, void *stream)
{
    struct pc_graph *made = (struct pc_graph *)graph;
    return polyc_run(made->buffers, made->workspace, stream);
}

extern "C" void polyc_forget(void *graph) { free(graph); }

#endif
