"""Faults planted in the CUDA that is printed, behind the proof: the exact run sees them.

Each is planted into one function of the compiler, as a mistake there would be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from polyc import pipeline
from polyc.backends import bind
from polyc.backends import cuda as backend
from polyc.codegen.cuda import (
    driver,
    fold,
    hoist,
    print_kernel,
    tensor_copies,
    tensor_cores,
    warpgroups,
    widen,
)
from polyc.errors import RuntimeFailure
from polyc.loopnest.index import Compare, Logic, const, modulo
from polyc.loopnest.nodes import Barrier, Commit, Read, rewrite_nodes
from polyc.printing.scope import Scope
from polyc.program import driver_nest
from polyc.program.driver_nest import Call
from tests.cuda.test_warpgroups import SHAPES, force
from tests.exact.cuda_models import find_case
from tests.exact.runs import exactly
from tests.planted import check_planted

pytestmark = pytest.mark.cuda

Plant = Callable[[pytest.MonkeyPatch], None]

FAULTS: list = []


def fault(*names: str) -> Callable[[Plant], Plant]:
    """Register a fault, and the cases that it must show in."""

    def register(plant: Plant) -> Plant:
        FAULTS.extend(pytest.param(plant, n, id=f"{plant.__name__}-{n}") for n in names)
        return plant

    return register


def respell(module: Any, name: str, *pairs: tuple[str, str]) -> Plant:
    """A printer of lines, or of one, that spells something else."""
    right = getattr(module, name)

    def changed(line: str) -> str:
        for old, new in pairs:
            line = line.replace(old, new)
        return line

    def wrong(*arguments: Any) -> Any:
        made = right(*arguments)
        return changed(made) if isinstance(made, str) else iter([changed(line) for line in made])

    return lambda patch: patch.setattr(module, name, wrong)


# -- tensor cores and warpgroups ------------------------------------------------------------------


@fault("bf16", "tf32, words", "attention, f16")
def lanes_load_the_upper_rows_twice(patch):
    right = tensor_cores._Fragments.offset
    patch.setattr(
        tensor_cores._Fragments, "offset", lambda f, row, high, step: right(f, row, const(0), step)
    )


@fault("bf16", "tf32", "tf32, words")
def lanes_take_another_step_of_the_sum(patch):
    right = tensor_cores._Fragments.offset

    def wrong(f, row, high, step):
        return right(f, row, high, step + 1 if f.is_left else step)

    patch.setattr(tensor_cores._Fragments, "offset", wrong)


@fault("tf32, words", "f16")
def factors_are_loaded_as_transposed(patch):
    wrong = "pc_ldmatrix_x4(", "pc_ldmatrix_x4_plain("
    pairs = (wrong, ("_x4_transposed(", "_x4("), ("_x4_plain(", "_x4_transposed("))
    respell(tensor_cores._Fragments, "load", *pairs, ("4 * half", "half"))(patch)
    right = tensor_cores._Fragments._load_words

    def words(f):
        return iter([line.replace("pc_round_tf32(", "pc_round_tf32(-1 * ") for line in right(f)])

    patch.setattr(tensor_cores._Fragments, "_load_words", words)


@fault("bf16", "f16")
def fragments_are_multiplied_by_themselves(patch):
    respell(print_kernel, "print_product", (", &right[2 *", ", &left[2 *"))(patch)


@fault("warpgroups, ab")
def a_factor_is_taken_as_stored_along_the_sum(patch):
    respell(print_kernel, "print_group_product", ("k16_f16<1, 0>", "k16_f16<0, 0>"))(patch)


@fault("warpgroups, boxes", "convolution, warpgroups")
def sums_of_a_warpgroup_begin_anew(patch):
    respell(print_kernel, "print_group_product", (", 1);", ", 0);"))(patch)


@fault("warpgroups, boxes")
def the_next_steps_are_never_multiplied(patch):
    right = warpgroups.GroupProduct.count
    patch.setattr(
        warpgroups.GroupProduct,
        "count",
        lambda p, d: right(p, d) // 2 if d == "ks" else right(p, d),
    )


# -- copies and swizzles --------------------------------------------------------------------------


@fault("bf16", "warpgroups, copies", "transposes")
def the_first_access_forgets_the_swizzle(patch):
    right, met = Scope.show_offset, set()

    def wrong(scope, array, address):
        local = scope.locals.get(array)
        if local is not None and local.swizzle is not None and array not in met:
            met.add(array)
            other = replace(local, swizzle=None)
            scope = replace(scope, locals={**scope.locals, array: other})
        return right(scope, array, address)

    patch.setattr(Scope, "show_offset", wrong)


@fault("f16", "tf32, words")
def a_copy_takes_the_next_row(patch):
    right = print_kernel._show_copy
    text = lambda assign, scope: right(assign, scope).replace("], &", "], 64 + &")  # noqa: E731
    patch.setattr(print_kernel, "_show_copy", text)


@fault("products, copied ahead", "f16")
def a_copy_goes_to_the_next_place(patch):
    right = print_kernel._show_copy
    text = lambda assign, scope: right(assign, scope).replace("], &", " + 8], &")  # noqa: E731
    patch.setattr(print_kernel, "_show_copy", text)


@fault("convolution, bf16", "attention, f16")
def a_copy_stops_short(patch):
    respell(print_kernel, "_show_copy", (" ? 16 : 0", " ? 8 : 0"))(patch)


@fault("warpgroups, boxes", "warpgroups, batches")
def boxes_confuse_rows_and_columns(patch):
    right = print_kernel.match_box

    def wrong(nest):
        copy = right(nest)
        *outer, row, column = copy.place
        return replace(copy, place=(*outer, column, row))

    patch.setattr(print_kernel, "match_box", wrong)


@fault("warpgroups, batches")
def boxes_are_of_the_batch_before(patch):
    right = tensor_copies.TensorMap.print_make

    def wrong(tensor_map):
        return right(replace(tensor_map, shape=(*tensor_map.shape[:-3], 1, *tensor_map.shape[-2:])))

    patch.setattr(tensor_copies.TensorMap, "print_make", wrong)


@fault("warpgroups, boxes")
def a_box_reaches_into_the_next_row(patch):
    right = tensor_copies.TensorMap.print_make

    def wrong(tensor_map):
        *outer, columns = tensor_map.shape
        return right(replace(tensor_map, shape=(*outer, columns + 8)))

    patch.setattr(tensor_copies.TensorMap, "print_make", wrong)


# -- barriers and waits ---------------------------------------------------------------------------


def without(barriers: Callable[[Any], bool]) -> Plant:
    """Some of the nodes between phases are left out."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = backend._with_barriers

        def wrong(*arguments):
            kernel = right(*arguments)

            def visit(node):
                if not hasattr(node, "body") or not isinstance(node.body, tuple):
                    return node
                return replace(node, body=tuple(n for n in node.body if not barriers(n)))

            return replace(kernel, body=rewrite_nodes(kernel.body, visit))

        patch.setattr(backend, "_with_barriers", wrong)

    return plant


@fault("products by threads", "bf16", "attention", "transposes", "warpgroups, copies")
def barriers_are_dropped(patch):
    without(lambda node: isinstance(node, Barrier))(patch)


@fault("products, copied ahead", "f16")
def groups_of_copies_are_not_closed(patch):
    without(lambda node: isinstance(node, Commit))(patch)


@fault("f16", "warpgroups, copies")
def a_wait_is_for_a_group_too_few(patch):
    right = backend.wait_for_copies
    patch.setattr(
        backend,
        "wait_for_copies",
        lambda body, ahead: right(body, {name: n + 1 for name, n in ahead.items()}),
    )


@fault("warpgroups, boxes")
def a_wait_is_for_the_other_phase(patch):
    right = print_kernel.print_wait
    wait = lambda group: right(replace(group, number=group.number + 2 * group.places - 1))  # noqa: E731
    patch.setattr(print_kernel, "print_wait", wait)


@fault("warpgroups, copies")
def warpgroups_do_not_see_what_threads_wrote(patch):
    right = print_kernel._print
    respelled = lambda *a: (line for line in right(*a) if "pc_fence_async" not in line)  # noqa: E731
    patch.setattr(print_kernel, "_print", respelled)


# -- loops over blocks and threads ----------------------------------------------------------------


@fault("products by threads", "attention", "four bits")
def a_loop_runs_once_more(patch):
    respell(print_kernel, "_print_loop", (" < ", " <= "))(patch)


@fault("attention", "bf16", "pooling")
def a_loop_leaves_out_an_iteration(patch):
    right = print_kernel._print_loop
    patch.setattr(
        print_kernel,
        "_print_loop",
        lambda loop, *rest: right(replace(loop, lower=loop.lower + loop.step), *rest),
    )


@fault("products by threads", "pointwise", "pooling", "layer norm", "transposes")
def borders_have_one_more(patch):
    right = print_kernel.show_condition

    def further(condition):
        if isinstance(condition, Logic):
            return Logic(condition.operator, tuple(map(further, condition.arguments)))
        return Compare(condition.operator, condition.left + 1)

    patch.setattr(print_kernel, "show_condition", lambda condition: right(further(condition)))


@fault("attention", "warpgroups, batches")
def blocks_confuse_their_numbers(patch):
    right = print_kernel.number_blocks

    def wrong(loops):
        names = [loop.var for loop in reversed(loops)]
        return iter([(n, text) for n, (_, text) in zip(names, right(loops), strict=True)])

    patch.setattr(print_kernel, "number_blocks", wrong)


@fault("softmax of long rows", "layer norm")
def a_warp_combines_half_of_its_lanes(patch):
    respell(print_kernel, "_print_combine", ("apart = 16", "apart = 8"))(patch)


@fault("softmax of long rows")
def a_block_forgets_a_warp(patch):
    respell(print_kernel, "_print_combine", ("warp = 1;", "warp = 2;"))(patch)


@fault("pointwise", "bf16", "layer norm")
def one_block_is_not_launched(patch):
    right = driver._launcher

    def wrong(kernel, device):
        grids = (replace(g, blocks=(max(g.blocks[0] - 1, 1), *g.blocks[1:])) for g in device.grids)
        return right(kernel, replace(device, grids=tuple(grids)))

    patch.setattr(driver, "_launcher", wrong)


# -- wide accesses, registers, addresses ----------------------------------------------------------


@fault("products by threads", "convolution")
def lanes_of_a_wide_load_change_places(patch):
    right = hoist._Loads.replaced

    def wrong(loads, expr):
        made = right(loads, expr)
        if not isinstance(expr, Read) or made == expr:
            return made
        lane = const(3) - made.element.index[-1]
        return replace(made, element=replace(made.element, index=(lane,)))

    patch.setattr(hoist._Loads, "replaced", wrong)


@fault("attention", "f16")
def a_wide_access_is_of_the_elements_behind(patch):
    right = widen._Lanes.neighbours

    def wrong(lanes, element, dtype):
        made = right(lanes, element, dtype)
        if made is None:
            return None
        return replace(made, index=(*made.index[:-1], made.index[-1] + lanes.lanes))

    patch.setattr(widen._Lanes, "neighbours", wrong)


@fault("depthwise convolution", "concatenation", "pooling")
def a_digit_of_an_address_is_lost(patch):
    right = fold._reduced

    def wrong(index, divisor):
        made = right(index, divisor)
        return made if made.is_constant else modulo(made, max(divisor - 1, 1))

    patch.setattr(fold, "_reduced", wrong)


# -- launches, constants, passes before the proof -------------------------------------------------


@fault("attention, f16", "sums over blocks", "depthwise convolution")
def arguments_are_swapped(patch):
    right = driver.print_arguments

    def wrong(*arguments):
        printed = right(*arguments)
        return [printed[1], printed[0], *printed[2:]] if len(printed) > 1 else printed

    patch.setattr(driver, "print_arguments", wrong)


@fault("sums over blocks", "depthwise convolution")
def a_launch_is_left_out(patch):
    right = driver._print_node

    def wrong(node, *rest):
        return iter(()) if isinstance(node, Call) and not node.position else right(node, *rest)

    patch.setattr(driver, "_print_node", wrong)


@fault("products by threads", "depthwise convolution")
def constants_lie_elsewhere(patch):
    right = driver_nest.find_places

    def wrong(program, plan):
        constants = {name: offset + 64 for name, offset in plan.constants.items()}
        return right(program, replace(plan, constants=constants))

    patch.setattr(driver_nest, "find_places", wrong)


@fault("sums over blocks")
def a_split_sum_forgets_a_part(patch):
    right = pipeline.split_reductions

    def wrong(scop, grain, find_parts):
        made = right(scop, grain, find_parts)
        last = [s for s in made.statements if s.reduction == "add"][-1]
        short = replace(last, domain=last.domain.subtract(last.domain.lexmax()))
        return replace(made, statements=tuple(short if s is last else s for s in made.statements))

    patch.setattr(pipeline, "split_reductions", wrong)


@fault("products by threads", "bf16")
def constants_are_arranged_in_reverse(patch):
    right = bind.arrange
    patch.setattr(bind, "arrange", lambda value, stored: right(value[::-1], stored))


@pytest.mark.parametrize("plant", dict.fromkeys(f.values[0] for f in FAULTS))
def test_a_fault_can_be_planted(plant, monkeypatch):
    check_planted(plant, monkeypatch)


@pytest.mark.thorough
@pytest.mark.parametrize(("plant", "name"), FAULTS)
def test_a_planted_fault_is_seen(plant: Plant, name: str, monkeypatch):
    """Or the emulator refuses what it does, such as a race."""
    case = find_case(name)
    if case.by_warpgroups:
        force(monkeypatch, SHAPES[-1])
    plant(monkeypatch)
    try:
        agrees = exactly(
            case.build(), target=f"cuda:{case.arch}", choices=dict(case.choices)
        ).agrees
    except RuntimeFailure:
        agrees = False
    assert not agrees
