"""Faults planted where no proof looks, behind it and in front of it: the exact run sees them.

Each is planted into one function of the compiler, as a mistake there would be. Models have odd
sizes, so that vectors, tiles and threads leave something over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from polyc import Graph, ops
from polyc.codegen import partial_results
from polyc.codegen import transpose as transpose_module
from polyc.codegen import vectorise as vectorise_module
from polyc.errors import BuildError
from polyc.exact.run import ExactReport
from polyc.loopnest import registers as registers_module
from polyc.loopnest.nodes import Block
from polyc.mapping.join_rows import Joined
from polyc.memory import storage
from polyc.printing import driver, print_c, print_expr, scope
from polyc.printing.print_expr import Printer
from polyc.program import driver_nest
from polyc.program.driver_nest import Call as Launched
from polyc.scop import split_reductions as splitting
from polyc.scop.expr import Call, Const
from polyc.scop.factors import lift_signs, zero_points
from polyc.scop.factors import scales as scales_module
from polyc.types.element_types import FLOAT32, UINT8
from tests.exact.runs import exactly
from tests.machines import BYTES
from tests.planted import check_planted

Plant = Callable[[pytest.MonkeyPatch], None]


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def matmul() -> Graph:
    x = ops.input("x", (29, 37))
    return Graph.of(y=ops.relu(x @ weights(37, 43) + weights(43)))


def softmax() -> Graph:
    return Graph.of(y=ops.softmax(ops.input("x", (5, 299)), axis=-1))


def lowest() -> Graph:
    return Graph.of(y=ops.reduce_min(ops.input("x", (5, 299)), axes=(1,)))


def tall_softmax() -> Graph:
    return Graph.of(y=ops.softmax(ops.input("x", (41, 3)), axis=0))


def transpose() -> Graph:
    x, z = ops.input("x", (37, 45)), ops.input("z", (45, 37))
    return Graph.of(y=ops.transpose(x) * z)


def chain() -> Graph:
    x = ops.input("x", (7, 19))
    return Graph.of(y=(x - 0.1) * x - ops.exp(x) / (x + 3.25))


def shared() -> Graph:
    """Loops that threads share, with two dimensions of their own."""
    x = ops.input("x", (60, 50, 1027))
    return Graph.of(y=ops.exp(ops.transpose(x, (1, 0, 2))))


def open_columns() -> Graph:
    x = ops.input("x", (5, "n"))
    return Graph.of(y=ops.exp(x) + x, z=ops.reduce_max(x, axes=(0,)))


def texts() -> Graph:
    """Rows of a batch of texts, which run as one."""
    x = ops.input("x", ("texts", "tokens", 24))
    return Graph.of(y=ops.relu(x @ weights(24, 48)))


def padded() -> Graph:
    x = ops.input("x", (1, 5, 7, 21))
    return Graph.of(y=ops.conv(x, weights(20, 5, 3, 3), weights(20), pads=(1, 1, 1, 1)))


def joined() -> Graph:
    x, z = ops.input("x", (3, 17)), ops.input("z", (3, 5))
    return Graph.of(y=ops.concat([ops.tanh(x), z, x * 2.0], axis=1))


def booleans() -> Graph:
    x, z = ops.input("x", (3, 50)), ops.input("z", (3, 50))
    return Graph.of(y=ops.leaky_relu(x - z, 0.1) + ops.abs(z))


def columns() -> Graph:
    """Products with few columns, whose sums run in several vectors."""
    x = ops.input("x", (3, 517))
    return Graph.of(y=x @ weights(517, 2))


def repeated() -> Graph:
    """Each element of a row two times, from vectors that are spread over lanes."""
    x = ops.input("x", (3, 37))
    twice = ops.expand(ops.unsqueeze(x, 2), (3, 37, 2))
    return Graph.of(y=ops.reshape(twice, (3, 74)) * 2.0)


def two_layers() -> Graph:
    x = ops.input("x", (9, 33))
    return Graph.of(y=ops.softmax(ops.softmax(x @ weights(33, 40)) @ weights(40, 21)))


def long_sum() -> Graph:
    return Graph.of(y=ops.reduce_sum(ops.input("x", (1 << 18,)), axes=(0,)))


def given_back() -> Graph:
    x = ops.input("x", (3, 5))
    return Graph.of(y=x, z=x + 1.0)


def restored_bytes() -> Graph:
    """Sums of bytes with a scale and a zero point, in a frame."""
    rng = np.random.default_rng(0)
    x = ops.dequantize_linear(ops.input("x", (1, 16, 7, 7), UINT8), np.float32(0.02), np.uint8(9))
    w = rng.integers(-128, 128, (36, 16, 3, 3)).astype(np.int8)
    scales = rng.uniform(0.001, 0.01, 36).astype(np.float32)
    sums = ops.conv(x, ops.dequantize_linear(w, scales, axis=0), weights(36), pads=(1, 1, 1, 1))
    return Graph.of(y=ops.quantize_linear(ops.relu(sums), np.float32(0.1), np.uint8(3)))


def signed_bytes() -> Graph:
    """A product of signed bytes that the model makes itself."""
    rng = np.random.default_rng(3)
    q = ops.quantize_linear(ops.input("x", (9, 16)), np.float32(0.1), np.int8(3))
    w = ops.dequantize_linear(rng.integers(-128, 128, (16, 20)).astype(np.int8), np.float32(0.01))
    return Graph.of(y=ops.dequantize_linear(q, np.float32(0.1), np.int8(3)) @ w)


MODELS = (
    matmul, softmax, lowest, tall_softmax, transpose, chain, shared, padded, joined, booleans,
    columns, repeated, two_layers, long_sum, given_back, open_columns, texts, restored_bytes,
    signed_bytes,
)  # fmt: skip


OF_BYTES = (restored_bytes, signed_bytes)


def run_for_bytes(build: Callable[[], Graph]) -> ExactReport:
    """The exact run where what the model multiplies has an instruction."""
    return exactly(build(), target=BYTES if build in OF_BYTES else "avx2")


@pytest.mark.thorough
@pytest.mark.parametrize("build", MODELS, ids=lambda m: m.__name__)
def test_models_agree(build):
    report = run_for_bytes(build)
    assert report.agrees, report
    assert report.elements > 0


@pytest.mark.thorough
@pytest.mark.parametrize("build", OF_BYTES, ids=lambda m: m.__name__)
def test_models_of_bytes_agree_where_shorts_are_multiplied(build):
    report = exactly(build())
    assert report.agrees, report
    assert report.elements > 0


FAULTS: list = []


def fault(*builds: Callable[[], Graph], refused: bool = False) -> Callable[[Plant], Plant]:
    """Register a fault, and the models that it must show in; or the C compiler refuses the text."""

    def register(plant: Plant) -> Plant:
        for build in builds:
            name = f"{plant.__name__}-{build.__name__}"
            FAULTS.append(pytest.param(plant, build, refused, id=name))
        return plant

    return register


# -- rewrites of sums -------------------------------------------------------------------------


@fault(restored_bytes)
def a_scale_is_forgotten(patch):
    right, one = scales_module._scaled, Const(1.0, FLOAT32)
    patch.setattr(scales_module, "_scaled", lambda s, x, both, a: right(s, x, (both[0], one), a))


@fault(restored_bytes)
def a_zero_point_is_forgotten(patch):
    right = scales_module.without_zero

    def wrong(whole):
        kept = right(whole)
        return kept.arguments[0] if isinstance(kept, Call) else kept

    patch.setattr(scales_module, "without_zero", wrong)


@fault(restored_bytes)
def what_a_zero_point_adds_up_to_is_not_taken_off(patch):
    patch.setattr(zero_points, "_corrected", lambda s, *rest: s.value)


@fault(signed_bytes)
def bytes_that_are_kept_higher_are_read_as_they_are(patch):
    right = lift_signs._less
    patch.setattr(lift_signs, "_less", lambda load, zero, dtype: right(load, zero - 128, dtype))


@fault(restored_bytes)
def around_an_image_there_is_no_zero_point(patch):
    right = zero_points._uncentred
    wrong = lambda s, zero: s if isinstance(s.value, Const) else right(s, zero)  # noqa: E731
    patch.setattr(zero_points, "_uncentred", wrong)


# -- passes behind the proof ------------------------------------------------------------------


@fault(matmul, chain, softmax)
def the_last_vector_is_dropped(patch):
    right = vectorise_module.cut_lanes

    def wrong(loop, *rest):
        return [*right(loop, *rest)][:-1] or [*right(loop, *rest)]

    patch.setattr(vectorise_module, "cut_lanes", wrong)


@fault(matmul)
def a_loop_is_unrolled_once_too_little(patch):
    right = vectorise_module.unroll

    def wrong(loop):
        made = right(loop)
        return Block(made.body[:-1]) if isinstance(made, Block) and len(made.body) > 1 else made

    patch.setattr(vectorise_module, "unroll", wrong)


@fault(matmul)
def a_loop_is_unrolled_once_too_often(patch):
    right = vectorise_module.unroll

    def wrong(loop):
        made = right(loop)
        return Block((*made.body, made.body[-1])) if isinstance(made, Block) else made

    patch.setattr(vectorise_module, "unroll", wrong)


@fault(softmax, columns)
def partial_results_are_not_combined(patch):
    right = partial_results._Run._combine
    patch.setattr(partial_results._Run, "_combine", lambda run, x: [*right(run, x)][-1:])


@fault(softmax)
def a_maximum_starts_at_zero(patch):
    right = partial_results.identity
    start = lambda reduction, dtype: 0 if reduction == "max" else right(reduction, dtype)  # noqa: E731
    patch.setattr(partial_results, "identity", start)
    patch.setattr(print_expr, "identity", start)


@fault(lowest)
def a_minimum_starts_at_zero(patch):
    right = partial_results.identity
    start = lambda reduction, dtype: 0 if reduction == "min" else right(reduction, dtype)  # noqa: E731
    patch.setattr(partial_results, "identity", start)
    patch.setattr(print_expr, "identity", start)


@fault(softmax, columns)
def a_sum_starts_at_one(patch):
    right = partial_results.identity
    start = lambda reduction, dtype: 1 if reduction == "add" else right(reduction, dtype)  # noqa: E731
    patch.setattr(partial_results, "identity", start)


@fault(transpose)
def a_tile_is_not_transposed(patch):
    patch.setattr(Printer, "transpose", lambda printer, node: ";")


@fault(transpose)
def rows_of_a_tile_are_taken_for_columns(patch):
    patch.setattr(transpose_module._Tile, "_column", transpose_module._Tile._row)


@fault(matmul, refused=True)
def registers_collide(patch):
    right = registers_module.Register.name
    wrong = lambda register, local: right(register, local).rpartition("_")[0]  # noqa: E731
    patch.setattr(registers_module.Register, "name", wrong)


@fault(repeated)
def lanes_pick_their_neighbour(patch):
    right = print_expr.find_picked

    def wrong(address, scope):
        found = right(address, scope)
        return found and replace(found, lanes=(*found.lanes[1:], 0))

    patch.setattr(print_expr, "find_picked", wrong)


# -- printers ---------------------------------------------------------------------------------


@fault(softmax, matmul)
def a_loop_runs_once_more(patch):
    right = print_c._loop_head
    patch.setattr(
        print_c, "_loop_head", lambda loop: right(replace(loop, upper=loop.upper + loop.step))
    )


@fault(matmul)
def a_loop_makes_larger_steps(patch):
    right = print_c._loop_head
    patch.setattr(print_c, "_loop_head", lambda loop: right(replace(loop, step=loop.step * 2)))


@fault(shared)
def threads_leave_out_an_iteration(patch):
    right = print_c._product
    patch.setattr(print_c, "_product", lambda loops: f"({right(loops)} - 1)")


@fault(shared)
def threads_confuse_two_loops(patch):
    right = print_c._perfect_nest

    def wrong(loop):
        loops = right(loop)
        if len(loops) < 2:
            return loops
        first, second, *rest = loops
        return [replace(first, var=second.var), replace(second, var=first.var), *rest]

    patch.setattr(print_c, "_perfect_nest", wrong)


@fault(open_columns)
def masks_have_a_lane_more(patch):
    right = scope.Scope.filled.func
    patch.setattr(scope.Scope, "filled", property(lambda s: right(s) + 1))


@fault(chain)
def a_difference_is_printed_as_a_sum(patch):
    patch.setattr(print_expr, "INFIX", {**print_expr.INFIX, "sub": "+"})


@fault(chain)
def literals_are_rounded(patch):
    right = print_expr.literal
    wrong = lambda value, dtype: right(round(value) if dtype.kind == "f" else value, dtype)  # noqa: E731
    patch.setattr(print_expr, "literal", wrong)


@fault(booleans)
def branches_are_swapped(patch):
    right = Printer.apply

    def wrong(printer, function, values, dtype, lanes):
        if function.startswith("select"):
            values = [*values[:-2], values[-1], values[-2]]
        return right(printer, function, values, dtype, lanes)

    patch.setattr(Printer, "apply", wrong)


@fault(booleans)
def a_comparison_includes_equality_of_order(patch):
    right = Printer.apply

    def wrong(printer, function, values, dtype, lanes):
        return right(printer, function.replace("_lt", "_gt"), values, dtype, lanes)

    patch.setattr(Printer, "apply", wrong)


@fault(chain)
def a_function_is_another(patch):
    right = Printer._name
    wrong = lambda printer, name, *rest: right(printer, "tanh" if name == "exp" else name, *rest)  # noqa: E731
    patch.setattr(Printer, "_name", wrong)


@fault(matmul, softmax)
def an_update_is_an_assignment(patch):
    right = Printer._update
    wrong = lambda printer, assign, *rest: right(printer, replace(assign, reduction=None), *rest)  # noqa: E731
    patch.setattr(Printer, "_update", wrong)


@fault(matmul)
def a_broadcast_reads_its_neighbour(patch):
    right = Printer._splat

    def wrong(printer, value, dtype, lanes):
        text = right(printer, value, dtype, lanes)
        return text.replace("]", " ^ 1]") if value.endswith("]") and lanes > 1 else text

    patch.setattr(Printer, "_splat", wrong)


# -- the driver, memory, constants ------------------------------------------------------------


@fault(two_layers)
def arguments_are_swapped(patch):
    right = driver.print_arguments

    def wrong(*arguments):
        printed = right(*arguments)
        return [printed[1], printed[0], *printed[2:]] if len(printed) > 1 else printed

    patch.setattr(driver, "print_arguments", wrong)


@fault(two_layers)
def a_launch_is_left_out(patch):
    right = driver._print_node

    def wrong(node, *rest):
        return iter(()) if isinstance(node, Launched) and not node.position else right(node, *rest)

    patch.setattr(driver, "_print_node", wrong)


@fault(two_layers)
def weights_lie_elsewhere(patch):
    right = driver_nest.find_places

    def wrong(program, plan):
        constants = {name: offset + 64 for name, offset in plan.constants.items()}
        return right(program, replace(plan, constants=constants))

    patch.setattr(driver_nest, "find_places", wrong)


@fault(matmul)
def constants_are_arranged_in_reverse(patch):
    from polyc.backends import bind

    right = storage.arrange
    patch.setattr(bind, "arrange", lambda value, stored: right(value[::-1], stored))


# -- rewrites before the proof ----------------------------------------------------------------


def statement_of(scop, changed, when):
    """A scop with `changed` statements in place of those for which `when` holds."""
    done = tuple(changed(s) if when(s) else s for s in scop.statements)
    return replace(scop, statements=done)


def rewrite(name: str, changed, when) -> Plant:
    """A pass of the pipeline whose result has such statements changed."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        from polyc import pipeline

        right = getattr(pipeline, name)
        patch.setattr(pipeline, name, lambda *a, **k: statement_of(right(*a, **k), changed, when))

    return plant


@cache
def _swapped(function: str):
    def change(s):
        first, *rest = s.value.arguments
        return replace(s, value=replace(s.value, arguments=(*rest, first)))

    return change, lambda s: isinstance(s.value, Call) and s.value.function == function


@fault(chain)
def inlining_swaps_operands(patch):
    rewrite("inline_pointwise", *_swapped("sub"))(patch)


@fault(joined)
def copies_are_merged_to_the_wrong_place(patch):
    def is_first(s):
        return s.array == "y" and isinstance(s.value, Call) and s.value.function == "tanh"

    def moved(s):
        columns = s.write.get_pw_aff(1).neg().add_constant_val(16)
        return replace(s, write=s.write.set_pw_aff(1, columns))

    rewrite("merge_copies", moved, is_first)(patch)


@fault(texts)
def rows_of_all_texts_but_one(patch):
    """The size that the printed kernel computes itself, of those it is given."""
    right = Joined.count.fget
    patch.setattr(Joined, "count", property(lambda of: right(of) - of.rows.extents[-1]))


@fault(long_sum)
def a_split_sum_forgets_a_part(patch):
    from polyc import pipeline

    right = splitting.split_reductions

    def wrong(scop, grain, find_parts):
        made = right(scop, grain, find_parts)
        sums = [s for s in made.statements if s.reduction]
        assert len(sums) == 2, "the sum of parts is a sum of its own"
        short = sums[-1].domain.subtract(sums[-1].domain.lexmax())
        return statement_of(made, lambda s: replace(s, domain=short), lambda s: s is sums[-1])

    patch.setattr(pipeline, "split_reductions", wrong)


@pytest.mark.parametrize("plant", dict.fromkeys(f.values[0] for f in FAULTS))
def test_a_fault_can_be_planted(plant, monkeypatch):
    check_planted(plant, monkeypatch)


@pytest.mark.thorough
@pytest.mark.parametrize(("plant", "build", "refused"), FAULTS)
def test_a_planted_fault_is_seen(plant, build, refused, monkeypatch):
    plant(monkeypatch)
    if refused:
        with pytest.raises(BuildError, match="of the exact run was refused"):
            run_for_bytes(build)
        return
    assert not run_for_bytes(build).agrees
