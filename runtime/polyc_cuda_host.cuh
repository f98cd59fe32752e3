/* polyc_cuda_host.cuh: what the driver of a CUDA model offers to its caller besides polyc_run: memory
   of the device, streams, events, graphs. The driver includes it once.

   Every function returns 0 or an error that polyc_describe_error spells; none of them waits for the
   device but polyc_synchronise and polyc_profile. A stream is a cudaStream_t as void *, 0 the default
   one. With the emulator (no __CUDACC__) the device is this process, and all is done at once. */

#ifndef POLYC_CUDA_HOST_CUH
#define POLYC_CUDA_HOST_CUH

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "polyc_cuda.cuh"

/* What a call works on. io: inputs, then outputs; failed: by launch; events: one before the first
   launch and one behind each, or NULL. */
struct pc_call {
    void *const *io;
    const char *weights;
    char *arena;
    int *failed;
    void *stream;
    void **events;
};

#define PC_OUT_OF_MEMORY 2 /* cudaErrorMemoryAllocation */

/* An error, and the launch that met it, as one number. */
#define PC_REFUSED(k, error) (((k) + 1) * 65536 + (error))

static int pc_record(void *event, void *stream);

/* Launch k; leaves the function with the error if it is refused. */
#define PC_STEP(k, launch)                                           \
    do {                                                             \
        const int error = (launch);                                  \
        if (error)                                                   \
            return PC_REFUSED(k, error);                             \
        if (call->events)                                            \
            pc_record(call->events[(k) + 1], call->stream);          \
    } while (0)

extern "C" int polyc_run(void *const *buffers, void *workspace, void *stream);

/* Around what a call launches: the emulator runs one call at a time. */
static void pc_begin_call(void);
static void pc_end_call(void);

extern "C" int polyc_copy(void *target, const void *source, size_t bytes, void *stream)
{
    return bytes ? pc_copy(target, source, bytes, stream) : 0;
}

extern "C" int polyc_fill(void *target, int byte, size_t bytes, void *stream)
{
    return bytes ? pc_fill(target, byte, bytes, stream) : 0;
}

#ifdef __CUDACC__
#include "polyc_cuda_host_device.cuh"
#else
#include "polyc_cuda_host_emulated.cuh"
#endif

/* Memory that several own: an array and what has been made of it by DLPack. The last who lets go
   gives it back, behind everything that is in the streams that read it by then. */
#define PC_READERS 8
static pthread_mutex_t pc_buffers = PTHREAD_MUTEX_INITIALIZER;
struct pc_buffer {
    int owners;
    int device;
    void *memory;
    void *stream;
    int readers;
    void *reader[PC_READERS];
};

extern "C" int polyc_new_buffer(size_t bytes, void *stream, struct pc_buffer **buffer)
{
    struct pc_buffer *made = (struct pc_buffer *)calloc(1, sizeof *made);
    if (!made)
        return PC_OUT_OF_MEMORY;
    made->owners = 1;
    made->stream = stream;
    made->device = polyc_current_device();
    int error = made->device < 0 ? -made->device : 0;
    if (!error)
        error = polyc_allocate(&made->memory, bytes ? bytes : 1, stream);
    if (error) {
        free(made);
        made = NULL;
    }
    *buffer = made;
    return error;
}

extern "C" void *polyc_buffer_memory(const struct pc_buffer *buffer) { return buffer->memory; }

extern "C" uintptr_t polyc_buffer_address(const struct pc_buffer *buffer)
{
    return (uintptr_t)buffer->memory;
}

extern "C" void polyc_drop_buffer(struct pc_buffer *buffer)
{
    if (__atomic_sub_fetch(&buffer->owners, 1, __ATOMIC_ACQ_REL))
        return;
    const int before = polyc_current_device();
    const int moved = before >= 0 && before != buffer->device;
    if (moved)
        polyc_use_device(buffer->device);
    for (int k = 0; k < buffer->readers; k++)
        polyc_follow(buffer->stream, buffer->reader[k]);
    polyc_release(buffer->memory, buffer->stream);
    if (moved)
        polyc_use_device(before);
    free(buffer);
}

/* `reader` is about to read the buffer: it waits for who writes it. */
extern "C" int polyc_read_buffer(struct pc_buffer *buffer, void *reader)
{
    int known = 0;
    pthread_mutex_lock(&pc_buffers);
    while (known < buffer->readers && buffer->reader[known] != reader)
        known++;
    if (known == PC_READERS) /* rare enough to wait for one of them */
        polyc_synchronise(buffer->reader[--known]);
    if (reader != buffer->stream) {
        buffer->reader[known] = reader;
        buffer->readers += known == buffer->readers;
    }
    const int error = polyc_follow(reader, buffer->stream);
    pthread_mutex_unlock(&pc_buffers);
    return error;
}

/* `writer` is about to write it: it waits for all who read it, and for who wrote it before. */
extern "C" int polyc_write_buffer(struct pc_buffer *buffer, void *writer)
{
    pthread_mutex_lock(&pc_buffers);
    int error = polyc_follow(writer, buffer->stream);
    while (!error && buffer->readers)
        error = polyc_follow(writer, buffer->reader[--buffer->readers]);
    buffer->stream = writer;
    pthread_mutex_unlock(&pc_buffers);
    return error;
}

/* A buffer as DLPack has it (https://dmlc.github.io/dlpack/latest/): an owner of its own. */
struct pc_dlpack {
    void *data;
    struct { int32_t type, id; } device;
    int32_t dimensions;
    struct { uint8_t code, bits; uint16_t lanes; } element;
    int64_t *shape, *strides;
    uint64_t byte_offset;
    void *context;
    void (*deleter)(struct pc_dlpack *);
    int64_t extents[];
};

static void pc_drop_export(struct pc_dlpack *exported)
{
    polyc_drop_buffer((struct pc_buffer *)exported->context);
    free(exported);
}

/* NULL if there is no memory for it. */
extern "C" void *polyc_export_buffer(struct pc_buffer *buffer, int device_type, int code, int bits,
                                     int dimensions, const int64_t *shape)
{
    const size_t bytes = sizeof(int64_t) * (size_t)dimensions;
    struct pc_dlpack *made = (struct pc_dlpack *)calloc(1, sizeof *made + bytes);
    if (!made)
        return NULL;
    made->data = buffer->memory;
    made->device.type = device_type;
    made->device.id = buffer->device;
    made->dimensions = dimensions;
    made->element.code = (uint8_t)code;
    made->element.bits = (uint8_t)bits;
    made->element.lanes = 1;
    made->shape = (int64_t *)memcpy(made->extents, shape, bytes);
    made->context = buffer;
    made->deleter = pc_drop_export;
    __atomic_add_fetch(&buffer->owners, 1, __ATOMIC_RELAXED);
    return made;
}

#endif
