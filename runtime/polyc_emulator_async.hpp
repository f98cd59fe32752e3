/* polyc_emulator_async.hpp: copies to shared memory in the background. They are performed by the wait
   that the program relies on, not before; until then the place holds NaN. Whoever reads too early,
   or writes to where a slower thread still reads, so gets a wrong result. */

#ifndef POLYC_EMULATOR_ASYNC_HPP
#define POLYC_EMULATOR_ASYNC_HPP

#include "polyc_emulator_counts.hpp"
#include "polyc_emulator_shared.hpp"

PC_HIDDEN void pc_add_copy(void *shared, const void *global, int bytes, int filled)
{
    pc_thread *self = pc_self;
    if ((uintptr_t)shared % (uintptr_t)filled || (uintptr_t)global % (uintptr_t)filled)
        pc_fail("asks for a copy of %d bytes that is not aligned to them", filled);
    pc_make_room(&self->copies, &self->copy_room, self->copy_count + 1);
    self->copies[self->copy_count++] = {shared, global, bytes, filled};
    self->open++;
    PC_COUNTS_ACCESS(0, shared, filled);
    PC_COUNTS_ACCESS(1, global, bytes);
}

PC_INLINE void pc_copy_async(void *shared, const void *global, int bytes, int filled)
{
    pc_add_copy(shared, global, bytes, filled);
    memset(shared, 0xff, (size_t)filled);
}

#define PC_COPY_ASYNC(bytes) \
    PC_INLINE void pc_copy_async_##bytes(void *shared, const void *global) \
    { \
        pc_copy_async(shared, global, bytes, bytes); \
    } \
    PC_INLINE void pc_copy_async_##bytes##_of(void *shared, const void *global, int there) \
    { \
        pc_copy_async(shared, global, there, bytes); \
    }
PC_COPY_ASYNC(16)
PC_COPY_ASYNC(8)
PC_COPY_ASYNC(4)
#undef PC_COPY_ASYNC

PC_HIDDEN void pc_copy_async_commit(void)
{
    pc_thread *self = pc_self;
    pc_make_room(&self->groups, &self->group_room, self->group_count + 1);
    self->groups[self->group_count++] = self->open;
    self->open = 0;
}

/* How many copies a wait that leaves `left` groups has to perform. */
PC_HIDDEN int pc_count_due(int left)
{
    int due = 0;
    for (int g = 0; g < pc_self->group_count - left; g++)
        due += pc_self->groups[g];
    return due;
}
PC_HIDDEN pc_copy_request pc_get_copy(int k) { return pc_self->copies[k]; }
PC_HIDDEN void pc_forget_copies(int count, int left)
{
    pc_thread *self = pc_self;
    if (self->group_count > left) {
        pc_move(self->groups, self->groups + self->group_count - left, (size_t)left * sizeof(int));
        self->group_count = left;
    }
    self->copy_count -= count;
    pc_move(self->copies, self->copies + count, (size_t)self->copy_count * sizeof(pc_copy_request));
}

PC_INLINE void pc_copy_async_wait(int left)
{
    const int due = pc_count_due(left);
    for (int k = 0; k < due; k++) {
        const pc_copy_request copy = pc_get_copy(k);
        memcpy(copy.shared, copy.global, (size_t)copy.bytes);
        memset((char *)copy.shared + copy.bytes, 0, (size_t)(copy.filled - copy.bytes));
    }
    pc_forget_copies(due, left);
}

#endif
