/* polyc_emulator_hopper.hpp: barriers in shared memory and copies of tiles, as polyc_cuda_hopper.cuh
   describes them. A copy is performed when nothing else can go on, or, in random order, some time
   before; until then its place holds NaN.

   Copies of tiles and warpgroups' products see arrays of their own, `seen`: what a thread has written
   gets there by pc_fence_async(). It takes over all that has been written so far, by whatever thread:
   a fence that one thread of several has forgotten is not found. */

#ifndef POLYC_EMULATOR_HOPPER_HPP
#define POLYC_EMULATOR_HOPPER_HPP

#include "polyc_emulator_shared.hpp"
#include "polyc_emulator_warp.hpp"

/* ---- Places in shared memory ----------------------------------------------------------------- */

enum { PC_SHARED_BASE = 1024 }; /* where a launch's own shared memory begins, as on a GPU */

PC_HIDDEN char *pc_get_seen(pc_shared_array *array)
{
    if (array->seen == NULL) {
        PC_UNSEEN_BEGIN
        array->seen = (char *)malloc(array->bytes);
        memset(array->seen, 0xff, array->bytes);
        PC_UNSEEN_END
    }
    return array->seen;
}

/* The array that was declared at an offset and has the bytes at this place. */
PC_HIDDEN pc_shared_array *pc_find_shared(const void *place, size_t bytes, int line)
{
    pc_worker *worker = pc_self->worker;
    for (int k = 0; k < worker->array_count; k++) {
        pc_shared_array *array = &worker->arrays[k];
        const size_t distance = (size_t)((const char *)place - array->data);
        if (array->offset >= 0 && distance < array->bytes && bytes <= array->bytes - distance)
            return array;
    }
    pc_fail("uses %zu bytes at line %d that are not in one array of PC_SHARED_AT", bytes, line);
}

/* Its address in a GPU's shared memory. */
PC_HIDDEN i64 pc_shared_address(const pc_shared_array *array, const void *place)
{
    return PC_SHARED_BASE + array->offset + ((const char *)place - array->data);
}

static inline i64 pc_swizzle(i64 address) { return address ^ (address >> 7 & 7) << 4; }

PC_HIDDEN void pc_fence_async(void)
{
    pc_worker *worker = pc_self->worker;
    for (int k = 0; k < worker->array_count; k++) {
        pc_shared_array *array = &worker->arrays[k];
        if (array->offset >= 0)
            pc_move(pc_get_seen(array), array->data, array->bytes);
    }
}

/* ---- Barriers in shared memory ----------------------------------------------------------------- */

/* What a pc_mbarrier holds; `mark` tells one that was made from what was there before. */
struct pc_mbarrier_state {
    u64 expected : 12, pending : 12, phase : 1, mark : 7;
    i64 bytes : 32; /* announced and not yet there */
};
static_assert(sizeof(pc_mbarrier_state) == sizeof(pc_mbarrier), "in place");

PC_HIDDEN pc_mbarrier_state pc_get_mbarrier(const pc_mbarrier *barrier, int line)
{
    pc_mbarrier_state state;
    if ((uintptr_t)barrier % 8)
        pc_fail("uses a barrier in shared memory at line %d that is not aligned to 8 bytes", line);
    pc_move(&state, barrier, sizeof state);
    if (state.mark != 42)
        pc_fail("uses a barrier in shared memory at line %d that nobody has made", line);
    return state;
}

PC_HIDDEN void pc_mbarrier_init(pc_mbarrier *barrier, int arrivals, int line = __builtin_LINE())
{
    if (arrivals < 1 || arrivals > 4095)
        pc_fail("makes a barrier for %d arrivals at line %d", arrivals, line);
    pc_mbarrier_state state = {};
    state.expected = state.pending = (unsigned)arrivals & 4095;
    state.mark = 42;
    pc_move(barrier, &state, sizeof state);
}
PC_INLINE void pc_mbarrier_init_fence(void) {}

/* What a thread has under way. */
struct pc_hopper_state {
    u64 block; /* of which this is; what another has left is forgotten */
    const pc_mbarrier *awaited;
    struct pc_products *products;
    struct pc_store *stores;
    int store_count, store_room, stores_open;
    int *store_groups;
    int store_group_count, store_group_room;
};
PC_HIDDEN void pc_forget_products(struct pc_products *products);
PC_HIDDEN pc_hopper_state *pc_get_hopper(void)
{
    pc_hopper_state *state = pc_self->hopper;
    PC_UNSEEN_BEGIN
    if (state == NULL)
        state = pc_self->hopper = (pc_hopper_state *)calloc(1, sizeof(pc_hopper_state));
    if (state->block != pc_self->worker->blocks) {
        state->block = pc_self->worker->blocks;
        state->store_count = state->stores_open = state->store_group_count = 0;
        pc_forget_products(state->products);
    }
    PC_UNSEEN_END
    return state;
}

/* Stores the state, and begins the next phase if this one is complete. */
PC_HIDDEN void pc_put_mbarrier(pc_worker *worker, pc_mbarrier *barrier, pc_mbarrier_state state)
{
    if (state.pending == 0 && state.bytes == 0) {
        state.pending = state.expected;
        state.phase = !state.phase;
        pc_thread **link = &worker->awaiting;
        while (*link) {
            pc_thread *thread = *link;
            if (thread->hopper->awaited == barrier) {
                *link = thread->next;
                pc_make_ready(thread);
            } else
                link = &thread->next;
        }
    }
    pc_move(barrier, &state, sizeof state);
}

PC_HIDDEN void pc_mbarrier_expect(pc_mbarrier *barrier, int bytes, int line = __builtin_LINE())
{
    pc_mbarrier_state state = pc_get_mbarrier(barrier, line);
    if (state.pending == 0)
        pc_fail("arrives at line %d where all arrivals of the phase have been", line);
    PC_RELEASE((char *)barrier + state.phase);
    state.pending = (state.pending - 1) & 4095;
    state.bytes += bytes;
    pc_put_mbarrier(pc_self->worker, barrier, state);
}
PC_HIDDEN void pc_mbarrier_arrive(pc_mbarrier *barrier, int line = __builtin_LINE())
{
    pc_mbarrier_expect(barrier, 0, line);
}

PC_HIDDEN void pc_mbarrier_wait(pc_mbarrier *barrier, int parity, int line = __builtin_LINE())
{
    pc_thread *self = pc_self;
    while (pc_get_mbarrier(barrier, line).phase == (unsigned)parity) {
        pc_get_hopper()->awaited = barrier;
        self->line = line;
        self->next = self->worker->awaiting;
        self->worker->awaiting = self;
        pc_leave(self->worker, self->fiber);
    }
    PC_ACQUIRE((char *)barrier + parity);
}

/* ---- Copies of tiles --------------------------------------------------------------------------- */

struct pc_tensor_map {
    char *array;
    pc_tensor_shape shape;
    int element_bytes, swizzled;
};
#define PC_TENSOR_MAP const pc_tensor_map

/* Bytes of a row of a tile, and its rows, of all dimensions. */
PC_HIDDEN int pc_row_bytes(const pc_tensor_map *map) { return map->shape.tile[0] * map->element_bytes; }
PC_HIDDEN int pc_tile_rows(const pc_tensor_map *map)
{
    int rows = 1;
    for (int d = 1; d < map->shape.rank; d++)
        rows *= map->shape.tile[d];
    return rows;
}

PC_HIDDEN int pc_make_tensor_map(pc_tensor_map *map, int element_bytes, const void *array,
    const pc_tensor_shape &shape, int swizzle_bytes)
{
    *map = {(char *)array, shape, element_bytes, swizzle_bytes > 0};
    int refused = (uintptr_t)array % 16 || shape.rank < 2 || shape.rank > 5 || shape.steps[0] != 1
        || pc_row_bytes(map) % 16 || (swizzle_bytes != 0 && swizzle_bytes != 128)
        || (swizzle_bytes && pc_row_bytes(map) > swizzle_bytes);
    for (int d = 0; !refused && d < shape.rank; d++)
        refused = shape.extents[d] < 1 || shape.tile[d] < 1 || shape.tile[d] > 256
            || (d && shape.steps[d] * element_bytes % 16);
    if (refused)
        snprintf(pc_message, sizeof pc_message, "a tensor map of %d dimensions, %lld columns, by tiles of %d "
            "columns: rows and tiles are made of 16 bytes, tiles of at most 256 elements along each "
            "dimension, 128 bytes where they are swizzled", shape.rank, (long long)shape.extents[0],
            shape.tile[0]);
    return refused; /* cudaErrorInvalidValue */
}

/* A copy on its way. */
struct pc_load {
    pc_tensor_map map;
    int first[5]; /* the element of the array that the tile begins with */
    char *tile;
    pc_shared_array *array;
    pc_mbarrier *barrier;
};
static thread_local pc_load *pc_loads; /* `pending` of them */
static thread_local int pc_load_room;

/* Where byte b of row r of a tile lies, from the tile's beginning. */
PC_HIDDEN i64 pc_tile_place(const pc_tensor_map *map, const pc_shared_array *array, const char *tile, int r, int b)
{
    const i64 begin = pc_shared_address(array, tile);
    const i64 address = begin + (i64)r * pc_row_bytes(map) + b;
    return (map->swizzled ? pc_swizzle(address) : address) - begin;
}

/* The bytes of a tile's rows that are inside of the array: [first, last). */
PC_HIDDEN void pc_tile_row(const pc_tensor_map *map, i64 column, int *first, int *last)
{
    const i64 left = column < 0 ? -column : 0;
    const int width = map->shape.tile[0];
    const i64 right = map->shape.extents[0] - column < width ? map->shape.extents[0] - column : width;
    *first = (int)(left < width ? left : width) * map->element_bytes;
    *last = right > left ? (int)right * map->element_bytes : *first;
}

/* Where row r of a tile comes from in the array; NULL if it is outside. */
PC_HIDDEN const char *pc_find_row(const pc_tensor_map *map, const int *first, int r)
{
    i64 place = first[0];
    for (int d = 1; d < map->shape.rank; d++) {
        const i64 k = first[d] + r % map->shape.tile[d];
        if (k < 0 || k >= map->shape.extents[d])
            return NULL;
        place += k * map->shape.steps[d];
        r /= map->shape.tile[d];
    }
    return map->array + place * map->element_bytes;
}

PC_HIDDEN void pc_perform_load(const pc_load *load)
{
    const pc_tensor_map *map = &load->map;
    const int bytes = pc_row_bytes(map), rows = pc_tile_rows(map);
    char row[256 * 8];
    int first, last;
    pc_tile_row(map, load->first[0], &first, &last);
    for (int r = 0; r < rows; r++) {
        const char *source = pc_find_row(map, load->first, r);
        PC_UNSEEN_BEGIN
        memset(row, 0, (size_t)bytes);
        PC_UNSEEN_END
        if (source && first < last) {
            PC_NOTE_READ(source + first, last - first);
            pc_move(row + first, source + first, (size_t)(last - first));
        }
        for (int b = 0; b < bytes; b += 16) {
            char *place = load->tile + pc_tile_place(map, load->array, load->tile, r, b);
            PC_NOTE_WRITE(place, 16);
            pc_move(place, row + b, 16);
            pc_move(pc_get_seen(load->array) + (place - load->array->data), row + b, 16);
        }
    }
}

/* Performs one of the copies on their way, a random one if a seed is set. */
PC_HIDDEN void pc_perform_one(pc_worker *worker)
{
    const int k = worker->random ? (int)(pc_draw(&worker->random) % (u64)worker->pending) : 0;
    const pc_load load = pc_loads[k];
    worker->pending--;
    pc_move(&pc_loads[k], &pc_loads[k + 1], (size_t)(worker->pending - k) * sizeof(pc_load));
#ifdef PC_RACES
    void *here = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(worker->set->engine, __tsan_switch_to_fiber_no_sync);
    PC_ACQUIRE(load.tile);
#endif
    pc_perform_load(&load);
    pc_mbarrier_state state;
    pc_move(&state, load.barrier, sizeof state);
    PC_RELEASE((char *)load.barrier + state.phase);
#ifdef PC_RACES
    __tsan_switch_to_fiber(here, __tsan_switch_to_fiber_no_sync);
#endif
    state.bytes -= pc_row_bytes(&load.map) * pc_tile_rows(&load.map);
    pc_put_mbarrier(worker, load.barrier, state);
}

/* The array of a tile; the thread fails if it cannot be one. */
PC_HIDDEN pc_shared_array *pc_check_tile(const pc_tensor_map *map, const void *tile, int line)
{
    const size_t bytes = (size_t)pc_row_bytes(map) * (size_t)pc_tile_rows(map);
    pc_shared_array *array = pc_find_shared(tile, bytes, line);
    if (pc_shared_address(array, tile) % (map->swizzled ? 1024 : 128))
        pc_fail("copies a tile at line %d that is not aligned to %d bytes", line, map->swizzled ? 1024 : 128);
    return array;
}

PC_HIDDEN void pc_request_load(const pc_load &load)
{
    pc_worker *worker = pc_self->worker;
#ifdef PC_RACES
    if (worker->set->engine == NULL)
        worker->set->engine = __tsan_create_fiber(0);
#endif
    pc_make_room(&pc_loads, &pc_load_room, worker->pending + 1);
    pc_loads[worker->pending++] = load;
    worker->perform = pc_perform_one;
    PC_RELEASE(load.tile);
}
PC_INLINE void pc_tensor_load(void *tile, const pc_tensor_map *map, pc_mbarrier *barrier, int i, int j,
    int k = 0, int l = 0, int m = 0, int line = __builtin_LINE())
{
    pc_shared_array *array = pc_check_tile(map, tile, line);
    pc_get_mbarrier(barrier, line);
    memset(tile, 0xff, (size_t)(pc_row_bytes(map) * pc_tile_rows(map)));
    pc_request_load({*map, {i, j, k, l, m}, (char *)tile, array, barrier});
}

/* ---- Tiles back to global memory ---------------------------------------------------------------- */

struct pc_store {
    pc_tensor_map map;
    int column, row;
    const char *tile;
    pc_shared_array *array;
};

PC_HIDDEN void pc_tensor_store(const pc_tensor_map *map, int column, int row, const void *tile,
    int line = __builtin_LINE())
{
    pc_hopper_state *state = pc_get_hopper();
    pc_make_room(&state->stores, &state->store_room, state->store_count + 1);
    state->stores[state->store_count++] = {*map, column, row, (const char *)tile, pc_check_tile(map, tile, line)};
    state->stores_open++;
}
PC_HIDDEN void pc_tensor_store_commit(void)
{
    pc_hopper_state *state = pc_get_hopper();
    pc_make_room(&state->store_groups, &state->store_group_room, state->store_group_count + 1);
    state->store_groups[state->store_group_count++] = state->stores_open;
    state->stores_open = 0;
}

PC_HIDDEN void pc_perform_store(const pc_store *store)
{
    const pc_tensor_map *map = &store->map;
    const int begin[5] = {store->column, store->row}, rows = pc_tile_rows(map);
    int first, last;
    pc_tile_row(map, store->column, &first, &last);
    for (int r = 0; r < rows; r++) {
        char *target = (char *)pc_find_row(map, begin, r);
        for (int b = first; target && b < last; b += map->element_bytes) {
            const i64 place = store->tile - store->array->data + pc_tile_place(map, store->array, store->tile, r, b);
            PC_NOTE_READ(store->array->data + place, map->element_bytes);
            PC_NOTE_WRITE(target + b, map->element_bytes);
            pc_move(target + b, pc_get_seen(store->array) + place, (size_t)map->element_bytes);
        }
    }
}

/* Performs them at last; what is left of stores when a thread ends is never seen. */
PC_HIDDEN void pc_tensor_store_wait(int left)
{
    pc_hopper_state *state = pc_get_hopper();
    int due = 0;
    const int groups = state->store_group_count > left ? state->store_group_count - left : 0;
    for (int g = 0; g < groups; g++)
        due += state->store_groups[g];
    for (int k = 0; k < due; k++)
        pc_perform_store(&state->stores[k]);
    state->store_group_count -= groups;
    state->store_count -= due;
    pc_move(state->store_groups, state->store_groups + groups, (size_t)state->store_group_count * sizeof(int));
    pc_move(state->stores, state->stores + due, (size_t)state->store_count * sizeof(pc_store));
}

#include "polyc_emulator_wgmma.hpp"

#endif
