/* polyc_emulator_shared.hpp: the shared arrays of a block, made of the heap, and full of NaN when the
   block begins. To AddressSanitizer they are made to the byte; without it, each lies between two strips
   that the block must have left alone when it ends. */

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

#if defined __SANITIZE_ADDRESS__ || defined PC_RACES || defined PC_COUNT
enum { PC_STRIP = 0 };
#else
enum { PC_STRIP = 16 << 10 }; /* bytes on either side; keeps alignments */
#endif
enum { PC_UNTOUCHED = 0xa5 };

PC_HIDDEN void pc_free_array(pc_shared_array *array)
{
    if (array->data)
        pc_free(array->data - PC_STRIP);
    pc_free(array->seen);
    array->seen = NULL;
}

PC_HIDDEN char *pc_allocate_array(size_t alignment, size_t bytes)
{
    char *whole = (char *)pc_allocate(alignment, bytes + 2 * PC_STRIP);
    memset(whole, PC_UNTOUCHED, PC_STRIP);
    memset(whole + PC_STRIP + bytes, PC_UNTOUCHED, PC_STRIP);
    return whole + PC_STRIP;
}

/* Whether a strip holds what it did: its first byte does, and each the same as the one before. */
PC_HIDDEN bool pc_is_untouched(const char *strip)
{
    return PC_STRIP == 0 || ((u8)*strip == PC_UNTOUCHED && memcmp(strip, strip + 1, PC_STRIP - 1) == 0);
}

/* The block fails if something next to one of its arrays was written. */
PC_HIDDEN void pc_check_strips(pc_worker *worker)
{
    for (int k = 0; k < worker->array_count; k++) {
        const pc_shared_array *array = &worker->arrays[k];
        if (!pc_is_untouched(array->data - PC_STRIP) || !pc_is_untouched(array->data + array->bytes))
            pc_stop_at(&worker->threads[0], "its block writes outside of shared array %s", array->name);
    }
}

/* The thread fails if a GPU would not have the memory. */
PC_HIDDEN void pc_check_array(const char *name, i64 bytes, i64 offset)
{
    const pc_worker *worker = pc_self->worker;
    i64 total = bytes;
    for (int k = 0; k < worker->array_count; k++) {
        const pc_shared_array *other = &worker->arrays[k];
        if (offset >= 0 && other->offset >= 0 && offset < other->offset + (i64)other->bytes
            && other->offset < offset + bytes)
            pc_fail("declares %s and %s, which overlap", name, other->name);
        if (other->offset < 0)
            total += (i64)(other->bytes + 15) / 16 * 16;
    }
    if (offset >= 0 && offset + bytes > worker->call->shared_bytes)
        pc_fail("declares %s up to byte %lld of %lld that the launch reserves", name,
            (long long)(offset + bytes), (long long)worker->call->shared_bytes);
    if (offset < 0 && total > 48 << 10)
        pc_fail("declares %lld bytes by PC_SHARED, with %s; there are 48 KiB", (long long)total, name);
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
        pc_free_array(array);
        array->data = pc_allocate_array(alignment, bytes);
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

/* The block's shared array of a place in the program, which `site` stands for. */
PC_HIDDEN void *pc_declare_shared(const void *site, const char *name, i64 bytes, i64 offset)
{
    PC_ENTER
    pc_worker *worker = pc_self->worker;
    int k = 0;
    while (k < worker->array_count && worker->arrays[k].site != site)
        k++;
    pc_shared_array *array = &worker->arrays[k];
    if (k == worker->array_count) {
        if (k == PC_MOST_ARRAYS)
            pc_fail("declares more than %d shared arrays", PC_MOST_ARRAYS);
        pc_check_array(name, bytes, offset);
        pc_make_array(array, name, (size_t)bytes, offset);
        array->site = site;
        worker->array_count++;
    }
    PC_EXIT
    return array->data;
}

#endif
