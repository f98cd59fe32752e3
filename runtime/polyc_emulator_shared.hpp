/* polyc_emulator_shared.hpp: the shared arrays of a block, made of the heap, to the byte, and full of
   NaN when the block begins. */

#ifndef POLYC_EMULATOR_SHARED_HPP
#define POLYC_EMULATOR_SHARED_HPP

#include "polyc_emulator_block.hpp"

/* At least `count` elements at *array. */
template <class T> PC_HIDDEN void pc_make_room(T **array, int *room, int count)
{
    if (count <= *room)
        return;
    *room = count < 32 ? 32 : 2 * count;
    PC_UNSEEN_BEGIN
    *array = (T *)realloc(*array, (size_t)*room * sizeof(T));
    PC_UNSEEN_END
    if (*array == NULL)
        abort();
}

/* Memory of the size, the last block's if it fits, filled with NaN. */
PC_HIDDEN void pc_make_array(pc_shared_array *array, const char *name, size_t bytes, i64 offset)
{
    size_t alignment = 16;
    while (offset >= 0 && alignment < 1024 && offset % (i64)(2 * alignment) == 0)
        alignment *= 2;
#ifndef PC_RACES
    if (array->bytes != bytes || array->offset != offset)
#endif
    {
        pc_free(array->data);
        array->data = (char *)pc_allocate(alignment, bytes);
        pc_free(array->seen);
        array->seen = NULL;
    }
    array->name = name;
    array->bytes = bytes;
    array->offset = offset;
    PC_UNSEEN_BEGIN
    memset(array->data, 0xff, bytes);
    if (array->seen)
        memset(array->seen, 0xff, bytes);
    PC_UNSEEN_END
}

/* The block's next shared array, of the thread that runs: all threads declare the same ones. */
PC_HIDDEN void *pc_declare_shared(const char *name, i64 bytes, i64 offset)
{
    PC_ENTER
    pc_worker *worker = pc_self->worker;
    const int k = pc_self->declared++;
    if (k == PC_MOST_ARRAYS)
        pc_fail("more than %d shared arrays", PC_MOST_ARRAYS);
    pc_shared_array *array = &worker->arrays[k];
    if (k < worker->array_count) {
        if (array->name != name)
            pc_fail("declares %s where others declare %s", name, array->name);
        PC_EXIT
        return array->data;
    }
    if (offset >= 0 && offset + bytes > worker->call->shared_bytes)
        pc_fail("%s ends at byte %lld of %lld that the launch reserves", name,
            (long long)(offset + bytes), (long long)worker->call->shared_bytes);
    for (int j = 0; j < k; j++) {
        const pc_shared_array *other = &worker->arrays[j];
        if (offset >= 0 && other->offset >= 0 && offset < other->offset + (i64)other->bytes
            && other->offset < offset + bytes)
            pc_fail("%s and %s overlap", name, other->name);
    }
    pc_make_array(array, name, (size_t)bytes, offset);
    worker->array_count = k + 1;
    PC_EXIT
    return array->data;
}

#endif
