"""The proof refuses what a defect in one stage of the compiler would lead to.

Each fault replaces one function while a small model is compiled, and the proof must say what is
wrong with what. No number is looked at. (Faults behind the proof are found by the exact run.)
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

from polyc import Graph, ops
from polyc.analysis.dependences import Dependences
from polyc.backends import cpu
from polyc.errors import IllegalSchedule
from polyc.loopnest.nodes import Assign, Block, If, Node, Read, rewrite_nodes
from polyc.memory.storage import permuted
from polyc.program.driver_nest import Address, Call, Repeat, Wait
from polyc.promote import keep
from polyc.scop.expr import Load, call, rebuild
from polyc.types.call_sizes import read_sizes
from polyc.types.sizes import Size
from tests.planted import Faults, Proven, after, prove
from tests.sampling import sampled

# -- models ---------------------------------------------------------------------------------------


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def layers() -> Graph:
    """Products with an epilogue: temporaries between, constants in panels, a kernel shared."""
    h = ops.input("x", (13, 24))
    for k in (40, 40, 40, 7):
        h = ops.relu(ops.matmul(h, weights(int(h.shape[1]), k)))
    return Graph.of(y=h)


def gather() -> Graph:
    return Graph.of(y=ops.gather(ops.input("x", (9, 5)), ops.input("k", (4,), "int64"), axis=0))


def pair() -> Graph:
    """Two functions of one form."""
    a, b, c, d = (ops.input(name, (70,)) for name in "abcd")
    return Graph.of(y=a + b, z=c * d)


def softmax() -> Graph:
    return Graph.of(y=ops.softmax(ops.input("x", (40, 299)), axis=-1))


def frames() -> Graph:
    """Windows over a signal with its own beginning before it: of few samples there is one."""
    x = ops.input("x", ("batch", 1, "n"))
    signal = ops.concat([ops.slice(x, [1], [4], axes=[2]), x], axis=2)
    return Graph.of(y=ops.conv(signal, weights(16, 1, 16), strides=(8,), pads=(6, 6)))


def packed() -> Graph:
    """A product whose right factor is packed."""
    left, right = ops.input("left", (80, 96)), ops.input("right", (64, 96))
    return Graph.of(y=ops.matmul(left, ops.transpose(right)))


def open_layers() -> Graph:
    h = ops.input("x", ("batch", 24))
    for k in (40, 9, 7):
        h = ops.relu(ops.matmul(h, weights(int(h.shape[1]), k)))
    return Graph.of(y=h)


def lstm() -> Graph:
    y, last, _ = ops.lstm(ops.input("x", (5, 2, 5)), weights(1, 24, 5), weights(1, 24, 6))
    return Graph.of(y=y, last=last)


def gru() -> Graph:
    x = ops.input("x", (7, 2, 5))
    y, _ = ops.gru(x, weights(2, 18, 5), weights(2, 18, 6), direction="bidirectional")
    return Graph.of(y=y)


def padded() -> Graph:
    """Frames, full and partial tiles in one kernel; a concatenation in place."""
    x = ops.input("x", (1, 8, 6, 6))
    s = ops.relu(ops.conv(x, weights(4, 8, 1, 1)))
    e = [ops.conv(s, weights(4, 4, n, n), pads=(n // 2,) * 4) for n in (1, 3)]
    return Graph.of(y=ops.relu(ops.concat(e, axis=1)))


def share() -> Graph:
    """A total, and what each element has of it, in one kernel."""
    x = ops.input("x", (90, 70))
    return Graph.of(y=x / ops.reduce_sum(x, axes=(0, 1), keepdims=True))


def tiles() -> Graph:
    """A convolution in tiles, of which a row of an image has as many as a call says."""
    x = ops.input("x", (2, 32, 6, "width"))
    return Graph.of(y=ops.conv(x, weights(32, 32, 3, 3), pads=(1,) * 4))


def few_tiles() -> Graph:
    """The same of narrow images, whose tiles are rows of one matrix for the whole batch."""
    narrow = ops.max_pool(ops.input("x", (2, 32, 6, "width")), (1, 8), strides=(1, 8))
    return Graph.of(y=ops.conv(narrow, weights(32, 32, 3, 3), pads=(1,) * 4))


def halved() -> Graph:
    """Rows that follow from an open height."""
    x = ops.input("x", ("batch", 3, "height", 8))
    return Graph.of(y=ops.relu(ops.max_pool(x, (2, 2), strides=(2, 2))))


def ends() -> Graph:
    """The last rows, and some columns: which sizes are the smaller ones makes five cases."""
    x = ops.input("x", ("batch", "height", "width"))
    return Graph.of(y=ops.slice(x, (-3, -7), (2**31 - 1, 5), axes=(1, 2)))


def texts() -> Graph:
    """Rows of a batch of texts, which run as one."""
    x = ops.input("x", ("texts", "tokens", 24))
    return Graph.of(y=ops.relu(ops.matmul(x, weights(24, 48))))


MODELS = [
    layers,
    gather,
    pair,
    softmax,
    packed,
    open_layers,
    lstm,
    gru,
    padded,
    share,
    tiles,
    few_tiles,
    halved,
    ends,
    texts,
]

# -- faults ---------------------------------------------------------------------------------------

FAULTS = Faults()
fault = FAULTS.note


# Inside a kernel.


@fault("polyc.backends.cpu:generate_nest", gather, "1 is added to an index that is data")
def gather_from_one_further(right):
    def visit(node: Node) -> Node:
        if not isinstance(node, Assign) or not isinstance(node.value, Read):
            return node
        element, ((d, _),) = node.value.element, node.value.dynamic
        index = (*element.index[:d], element.index[d] + 1, *element.index[d + 1 :])
        return replace(node, value=replace(node.value, element=replace(element, index=index)))

    return after(right, lambda nest: rewrite_nodes(nest, visit))


@fault(
    "polyc.scop.lower.movement.gather:wrap_index", gather, r"nothing keeps .*\(k\[i0\], 10\) of x"
)
def an_index_that_may_be_one_too_large(right):
    return lambda found, extent: right(found, extent + 1)


@fault("polyc.backends.cpu:generate_nest", softmax, r"against the order of the text, e\.g\. S_")
def blocks_the_other_way_round(right):
    def visit(node: Node) -> Node:
        return replace(node, body=node.body[::-1]) if isinstance(node, Block) else node

    return after(right, lambda nest: rewrite_nodes(nest, visit))


@fault("polyc.backends.cpu:unswitch", frames, "an instance outside of the domain of S_")
def a_condition_that_goes_out_of_a_loop_the_other_way_round(right):
    def visit(node: Node) -> Node:
        if not isinstance(node, If) or node.otherwise is None:
            return node
        return replace(node, then=node.otherwise, otherwise=node.then)

    return after(right, lambda nest: rewrite_nodes(nest, visit))


@fault("polyc.backends.cpu:unswitch", frames, "an instance is not executed")
def a_condition_that_goes_out_of_a_loop_without_its_other_side(right):
    def visit(node: Node) -> Node:
        return replace(node, otherwise=None) if isinstance(node, If) else node

    return after(right, lambda nest: rewrite_nodes(nest, visit))


@fault("polyc.backends.cpu:list_params", layers, "parameter x has type float64")
def parameters_of_another_type(right):
    double = np.dtype(np.float64)
    return after(right, lambda params: tuple(replace(p, dtype=double) for p in params))


@fault("polyc.promote.keep:keep_in_place", softmax, "S_.* reads another value than")
def a_row_that_is_read_backwards(right):
    def change(kept):
        part = kept.part
        *others, last = part.statements
        flip = isl.PwMultiAff(f"{{ {last.name}[i, j] -> {last.name}[i, 298 - j] }}")
        home = last.array

        def leaf(e):
            if not isinstance(e, Load) or e.array != home:
                return e
            return replace(e, index=e.index.pullback_pw_multi_aff(flip))

        moved = replace(last, value=rebuild(last.value, leaf))
        return replace(kept, part=replace(part, statements=(*others, moved)))

    return after(right, change)


@fault(
    "polyc.backends.cpu:by_own_sizes",
    halved,
    "what does not hold in every call, e.g. size_batch = 5",
)
def a_kernel_for_some_of_the_sizes(right):
    def change(found):
        own, known = found
        few = isl.Set("[size_batch] -> { : size_batch <= 4 }")
        return own, known.intersect(few)

    return after(right, change)


@fault(
    "polyc.backends.cpu:every_case",
    ends,
    "what does not hold in every call, e.g. .*size_height = [12]",
)
def a_case_that_is_left_out(right):
    return after(
        right, lambda known: known.intersect(isl.Set("[size_height] -> { : size_height >= 3 }"))
    )


@fault("polyc.scop.sizes:without_known", halved, "differs from S_MaxPool_0.* in its domain")
def own_sizes_that_forget_a_condition(right):
    return after(right, lambda s: s.drop_constraints_involving_dims(isl.dim_type.set, 2, 1))


@fault("polyc.backends.cpu:join_pieces", share, "joins what runs at the same time")
def all_pieces_of_a_kernel_at_once(right):
    def joined(kernel, scop, dependences):
        return replace(kernel, body=replace(kernel.body, concurrent=True))

    return joined


@fault("polyc.backends.cpu:share_out", share, r"S_\w+ is executed by every thread of a team")
def what_one_thread_should_do_done_by_all(right):
    def opened(node: Node) -> Node:
        return replace(node, team=True, locals=()) if isinstance(node, Block) else node

    return after(right, lambda kernel: replace(kernel, body=rewrite_nodes(kernel.body, opened)))


# The statements of all kernels together.


def _shared(cluster, kept):
    """The shared loops of a cluster, for some of its statements."""
    return tuple({s.name: loop[s.name] for s in kept} for loop in cluster.shared)


@fault("polyc.pipeline:find_clusters", layers, "statement S_MatMul_0 is in no launch")
def a_cluster_that_loses_its_update(right):
    def change(found):
        (first, *others), _ = found
        kept = tuple(s for s in first.statements if not s.reduction)
        return (replace(first, statements=kept, shared=_shared(first, kept)), *others), ()

    return after(right, change)


@fault("polyc.pipeline:find_clusters", layers, "S_MatMul_0.* is executed before")
def an_update_behind_its_reader(right):
    def change(found):
        (first, *others), _ = found
        parts = [
            replace(first, statements=(s,), shared=_shared(first, [s])) for s in first.statements
        ]
        start, update, end = parts
        return (start, end, update, *others), ()

    return after(right, change)


@fault("polyc.pipeline:find_clusters", layers, "S_MatMul_0_init is in .* as well")
def a_cluster_launched_twice(right):
    return after(right, lambda found: ((found[0][0], *found[0]), found[1]))


@fault("polyc.pipeline:find_clusters", layers, "S_MatMul_0 is not what the scop says")
def a_sum_that_is_a_product(right):
    def change(found):
        (first, *others), refusals = found
        wrong = [replace(s, reduction=s.reduction and "mul") for s in first.statements]
        return (replace(first, statements=tuple(wrong)), *others), refusals

    return after(right, change)


@fault("polyc.pipeline:fuse_tiles", lstm, "what is repeated in it does not stand together")
def a_loop_over_steps_in_two(right):
    def change(kernels):
        first = next(k for k in kernels if k.step)
        return (first, *(k for k in kernels if k is not first))

    return after(right, change)


@fault("polyc.mapping.cpu.laying:pack", packed, "right_packed|is not what the scop says")
def a_copy_of_other_rows(right):
    def change(found):
        cluster, (packing,) = found
        (copy,) = packing.copy.statements
        name, value = copy.name, copy.value
        flip = isl.PwMultiAff(f"{{ {name}[i, j] -> {name}[63 - i, j] }}")
        value = replace(value, index=value.index.pullback_pw_multi_aff(flip))
        moved = replace(packing.copy, statements=(replace(copy, value=value),))
        return cluster, (replace(packing, copy=moved),)

    return after(right, change)


@fault("polyc.mapping.cpu.laying:pack", packed, "is no statement of the scop, and no copy")
def a_copy_that_computes(right):
    def change(found):
        cluster, (packing,) = found
        (copy,) = packing.copy.statements
        wrong = replace(copy, value=call("neg", copy.value))
        return cluster, (replace(packing, copy=replace(packing.copy, statements=(wrong,))),)

    return after(right, change)


@fault("polyc.pipeline:fuse_tiles", packed, "is executed before S_right_packed")
def a_copy_behind_its_reader(right):
    return after(right, lambda kernels: kernels[::-1])


# Launches.


@fault(
    "polyc.mapping.stored_kernel:StoredKernel.sign",
    pair,
    "its statements are not those of the kernel: .* computes",
)
def a_kernel_shared_by_different_functions(right):
    return lambda one, arrays, *made: ("all", "alike")


@fault("polyc.pipeline:bind_arrays", pair, r"launch k\d\w+: parameter \w+ is given \w+, but stands")
def arguments_in_another_order(right):
    def change(found):
        arrays, (first, *others) = found
        a, b, *rest = first.arguments
        return arrays, (replace(first, arguments=(b, a, *rest)), *others)

    return after(right, change)


@fault("polyc.pipeline:bind_arrays", layers, r"parameter \w+ is given \w+, but stands for")
def another_layer_s_weights(right):
    def change(found):
        arrays, launches = found
        constants = {n: a.value.size for n, a in arrays.items() if a.value is not None}
        one, other = sorted(constants, key=constants.__getitem__)[-2:]
        turned = {one: other, other: one}
        return arrays, tuple(
            replace(x, arguments=tuple(turned.get(a, a) for a in x.arguments)) for x in launches
        )

    return after(right, change)


@fault("polyc.pipeline:bind_arrays", layers, r"array (\w+)_again: \1 changes, and is stored twice")
def a_temporary_in_two_places(right):
    def change(found):
        arrays, (*others, last) = found
        name = next(a for a in last.arguments if arrays[a].kind == "temporary")
        again = replace(arrays[name], name=f"{name}_again", holds=name)
        moved = tuple(again.name if a == name else a for a in last.arguments)
        return {**arrays, again.name: again}, (*others, replace(last, arguments=moved))

    return after(right, change)


@fault("polyc.pipeline:delinearise", layers, "it writes y, which is a input of the model")
def a_result_put_into_an_input(right):
    def change(scop):
        victim = next(n for n, a in scop.arrays.items() if a.kind == "output")
        arrays = {n: replace(a, kind="input") if n == victim else a for n, a in scop.arrays.items()}
        return replace(scop, arrays=arrays)

    return after(right, change)


@fault(
    "polyc.promote.keep:promote_to_locals", layers, r"launch k\d\w+: it writes \w+ without being"
)
def a_result_kept_inside_of_its_kernel(right):
    def wrong(tree, statements, private, arrays, storages, **named):
        written = {s.array for s in statements if arrays[s.array].kind == "output"}
        return right(tree, statements, private | written, arrays, storages, **named)

    return wrong


# How arrays are stored.


@fault("polyc.mapping.cpu.layout:permuted", layers, "array .* two elements are stored in one place")
def a_storage_that_is_not_one_to_one(right):
    def change(storage):
        last = storage.map.dim(isl.dim_type.out) - 1
        half = storage.map.get_aff(last).scale_down_val(isl.Val(2)).floor()
        return replace(storage, map=storage.map.set_aff(last, half))

    return after(right, change)


@fault(
    "polyc.mapping.cpu.layout:permuted", layers, "is stored outside of|leaves the bounds|has shape"
)
def a_storage_with_a_row_too_few(right):
    return after(right, lambda s: replace(s, shape=(s.shape[0] - 1, *s.shape[1:])))


@fault(
    "polyc.mapping.cpu.storing:row_major", layers, "array x: it is the caller's, but is stored by"
)
def an_input_taken_as_transposed(right):
    return lambda array: permuted(array, (1, 0)) if array.kind == "input" else right(array)


@fault(
    "polyc.mapping.cpu.storing:row_major", layers, "array y: it is the caller's, but is stored by"
)
def a_gap_between_rows_of_the_output(right):
    return lambda array: permuted(array, (0, 1), gap=array.kind == "output")


@fault("polyc.build.weights_beside:fill", layers, "array constant_0: elements .* they are stored")
def constants_arranged_wrongly(right):
    return lambda memory, value, storage: right(memory, np.roll(value, 1, axis=-1), storage)


# Memory.


@fault("polyc.program.plan:byte_size", layers, "has no room for its")
def slots_of_half_the_size(right):
    return after(right, lambda size: size // 2)


@fault("polyc.program.plan:pack", layers, "begins at no multiple of")
def slots_that_are_not_aligned(right):
    return after(right, lambda slots: tuple(replace(s, offset=s.offset + 4) for s in slots))


@fault("polyc.program.plan:pack", layers, "overlap in launch")
def slots_on_top_of_each_other(right):
    return after(right, lambda slots: tuple(replace(s, offset=0) for s in slots))


@fault("polyc.program.plan:find_lifetimes", layers, "is not live in launch")
def lifetimes_that_end_too_soon(right):
    return after(right, lambda spans: {n: (a, a) for n, (a, _) in spans.items()})


@fault("polyc.program.plan:find_lifetimes", gru, "is not live in launch")
def lifetimes_of_one_step(right):
    def forget(program):
        return replace(program, launches=[replace(one, step=None) for one in program.launches])

    return lambda program: right(forget(program))


@fault(
    "polyc.build.weights_beside:lay_out",
    layers,
    # Which is seen first depends on when weights are written, which others do meanwhile.
    "lies in constant_0, or at an odd place|elements are not where they are stored",
)
def weights_on_top_of_each_other(right):
    return after(right, lambda laid: replace(laid, offsets=dict.fromkeys(laid.offsets, 0)))


@fault("polyc.program.plan:_share_regions", open_layers, "region 1 has no room for")
def a_region_for_the_smallest_of_its_arrays(right):
    return after(right, lambda found: (found[0], ((Size.of("size_batch"),),) * len(found[1])))


# The driver.


@fault("polyc.threads.barriers:place_barriers", layers, "no barrier stands between them")
def no_barriers(right):
    return after(right, lambda barriers: frozenset())


@fault("polyc.program.driver_nest:make_driver", layers, "no barrier stands between them")
def a_barrier_that_is_not_printed(right):
    def change(nest):
        first = nest.index(Wait())
        return (*nest[:first], *nest[first + 1 :])

    return after(right, change)


@fault("polyc.program.driver_nest:make_driver", layers, r"launch \d is made where launch 0 is due")
def launches_in_another_order(right):
    return after(right, lambda nest: (nest[-1], *nest[:-1]))


@fault("polyc.program.driver_nest:make_driver", layers, r"launch \d is not made")
def a_launch_too_few(right):
    return after(right, lambda nest: nest[:-1])


def _readdressed(nest, change):
    return tuple(
        replace(n, arguments=change(n.arguments)) if isinstance(n, Call) else n for n in nest
    )


@fault("polyc.program.driver_nest:make_driver", layers, "launch 0 is not given the place of x")
def addresses_in_another_order(right):
    return after(right, lambda nest: _readdressed(nest, lambda a: (a[1], a[0], *a[2:])))


@fault("polyc.program.driver_nest:make_driver", layers, "launch 0 is not given the place of const")
def an_offset_that_is_wrong(right):
    def moved(address):
        further = address.number + 64
        return replace(address, number=further) if address.base == "weights" else address

    return after(right, lambda nest: _readdressed(nest, lambda a: tuple(map(moved, a))))


@fault("polyc.program.driver_nest:find_places", layers, "is not given the place of")
def a_temporary_in_an_input(right):
    def change(places):
        return {n: Address("io", 0) if p.base == "arena" else p for n, p in places.items()}

    return after(right, change)


@fault("polyc.program.driver_nest:make_driver", lstm, "is not in the loop over steps")
def a_step_too_few(right):
    def shorter(node):
        if not isinstance(node, Repeat):
            return node
        return replace(node, step=replace(node.step, steps=node.step.steps - 1))

    return after(right, lambda nest: tuple(map(shorter, nest)))


@fault("polyc.program.driver_nest:make_driver", lstm, "does not hold all launches")
def a_loop_over_steps_as_two(right):
    def cut(node):
        calls = [k for k, n in enumerate(getattr(node, "body", ())) if isinstance(n, Call)]
        if len(calls) < 2:
            return (node,)
        first, rest = node.body[: calls[0] + 1], node.body[calls[0] + 1 :]
        return replace(node, body=first), Wait(), replace(node, body=rest)

    return after(right, lambda nest: tuple(part for node in nest for part in cut(node)))


@fault("polyc.program.driver_nest:make_driver", lstm, "no barrier stands between them")
def no_barrier_from_step_to_step(right):
    def without(node):
        if not isinstance(node, Repeat):
            return node
        return replace(node, body=tuple(n for n in node.body if n != Wait()))

    return after(right, lambda nest: tuple(map(without, nest)))


@fault("polyc.scop.lower.windows.window:most_of", tiles, r"statement S_Conv_0: x_padded.* leaves")
def a_frame_that_ends_inside_the_last_tile(right):
    return lambda extent: right(extent) - isinstance(extent, Size)


@fault(
    "polyc.scop.lower.windows.winograd:Tiling.number",
    few_tiles,
    "it is the memory of y_inputs, which is",
)
def a_row_more_than_there_are_tiles(right):
    return property(after(right.fget, lambda number: number + 1))


@fault("polyc.program.driver_nest:make_driver", open_layers, r"calls k0\w+ with \['size_other'\]")
def another_size(right):
    def renamed(node):
        return replace(node, sizes=("size_other",)) if isinstance(node, Call) else node

    return after(right, lambda nest: tuple(map(renamed, nest)))


@fault("polyc.backends.cpu:share_out", layers, "it does not say who of a team of threads does what")
def nobody_says_what_threads_do(right):
    return lambda kernel: kernel


@fault("polyc.mapping.join_rows:find_even_rows", texts, "its rows are no single loop: ")
def texts_for_tokens(right):
    return after(right, lambda rows: rows and replace(rows, extents=rows.extents[::-1]))


@fault("polyc.mapping.join_rows:count_rows", texts, "does not go through all of its rows as one")
def the_rows_of_one_text_too_few(right):
    def fewer(s, rows):
        last = rows.where[s.name][-1]
        return right(s, rows).lower_bound_val(isl.dim_type.set, last, isl.Val(1))

    return fewer


@fault("polyc.mapping.join_rows:Joined.count", texts, "it does not multiply what its loops have")
def a_number_of_rows_that_is_printed_wrong(right):
    return property(after(right.fget, lambda count: count + 1))


@fault("polyc.mapping.join_rows:join_storage", texts, "lies elsewhere with its rows as one")
def rows_further_apart(right):
    return after(right, lambda s: replace(s, shape=(*s.shape[:-1], s.shape[-1] + 8)))


SELDOM = {
    parameters_of_another_type,
    a_copy_behind_its_reader,
    another_layer_s_weights,
    a_result_kept_inside_of_its_kernel,
    a_gap_between_rows_of_the_output,
    a_storage_with_a_row_too_few,
    slots_on_top_of_each_other,
    lifetimes_of_one_step,
    a_barrier_that_is_not_printed,
    launches_in_another_order,
    addresses_in_another_order,
    a_temporary_in_an_input,
    a_loop_over_steps_in_two,
    a_step_too_few,
    a_row_more_than_there_are_tiles,
    another_size,
}
"""Those that the proof refuses by what refuses others as well."""

# -- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_without_a_fault_all_is_proven(model, tmp_path):
    with pytest.raises(Proven):
        prove(model(), tmp_path)


@fault("polyc.types.parameters:bounds", halved, "was concluded")
def a_size_between_bounds_that_it_is_not_in(bounds):
    return lambda extent: (3, 3)


@pytest.mark.parametrize("planted", sampled(FAULTS, seldom=lambda f: f.wrong in SELDOM), ids=str)
def test_a_fault_is_refused(planted, tmp_path, monkeypatch):
    planted.plant(monkeypatch)
    with pytest.raises(IllegalSchedule, match=planted.said):
        prove(planted.model(), tmp_path)


ON_A_GPU = {
    a_cluster_that_loses_its_update,
    an_update_behind_its_reader,
    a_cluster_launched_twice,
    arguments_in_another_order,
    a_result_put_into_an_input,
    constants_arranged_wrongly,
    slots_of_half_the_size,
    slots_that_are_not_aligned,
    lifetimes_that_end_too_soon,
    weights_on_top_of_each_other,
    launches_in_another_order,
    a_launch_too_few,
    addresses_in_another_order,
    an_offset_that_is_wrong,
    a_temporary_in_an_input,
}


OFTEN_ON_A_GPU = {
    an_update_behind_its_reader,
    a_result_put_into_an_input,
    constants_arranged_wrongly,
    lifetimes_that_end_too_soon,
    an_offset_that_is_wrong,
}
"""One of each stage; what refuses the others is what refuses them for a CPU."""


@pytest.mark.cuda
@pytest.mark.parametrize("model", [layers, gather, pair, softmax, padded])
def test_without_a_fault_all_is_proven_for_a_gpu(model, tmp_path):
    with pytest.raises(Proven):
        prove(model(), tmp_path, "sm_80")


@pytest.mark.cuda
@pytest.mark.parametrize(
    "planted",
    sampled((f for f in FAULTS if f.wrong in ON_A_GPU), often=lambda f: f.wrong in OFTEN_ON_A_GPU),
    ids=str,
)
def test_a_fault_is_refused_for_a_gpu(planted, tmp_path, monkeypatch):
    planted.plant(monkeypatch)
    with pytest.raises(IllegalSchedule, match=planted.said):
        prove(planted.model(), tmp_path, "sm_80")


def test_a_schedule_made_from_no_dependences_is_refused(tmp_path, monkeypatch):
    """What the scheduler is told is not what the proof asks about."""
    nothing = isl.UnionMap("{ }")
    none = Dependences(nothing, nothing, nothing, frozenset(), nothing)
    monkeypatch.setattr(cpu, "compute_dependences", lambda scop: none)
    monkeypatch.setattr(cpu, "generate_nest", blocks_the_other_way_round(cpu.generate_nest))
    with pytest.raises(IllegalSchedule, match="against the order of the text"):
        prove(softmax(), tmp_path)


def test_a_state_that_stays_inside_of_its_kernel_is_refused(tmp_path, monkeypatch):
    """Who reads it in the next call, or in this one, would find what was there before."""
    past, given = ops.input("past", ("rows", 16)), ops.input("given", ("n", 16))
    rows = ops.concat([past, given], axis=0)
    graph = Graph.of(y=ops.softmax(given @ ops.transpose(rows)) @ rows, present=rows)
    choices = {
        "states": (("past", "present"),),
        "sizes": read_sizes({"rows": (0, 100), "n": (1, 100)}, {}),
    }
    with pytest.raises(Proven):
        prove(graph, tmp_path / "right", **choices)
    right = keep.promote_to_locals

    def wrong(tree, statements, private, arrays, storages, **named):
        states = {s.array for s in statements if arrays[s.array].kind == "state"}
        return right(tree, statements, private | states, arrays, storages, **named)

    monkeypatch.setattr(keep, "promote_to_locals", wrong)
    with pytest.raises(IllegalSchedule, match="without being given it, and others read that"):
        prove(graph, tmp_path / "wrong", **choices)
