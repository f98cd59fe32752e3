"""The recipe: every stage of a compilation, called in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import onnx

from polyc.analysis.launches.access import LaunchAccess
from polyc.analysis.sizes import verify_sizes
from polyc.backends.bind import (
    Begin,
    Constant,
    Key,
    Placed,
    bind_arrays,
    find_constants,
    place_at_once,
)
from polyc.backends.kept import KeptKernels
from polyc.backends.kernels import CompiledKernels, Emit, compile_kernels, ignore
from polyc.backends.prove import prove_launches
from polyc.codegen.cuda.grid import DeviceText
from polyc.errors import NotFixed, leaving_to_calls, naming_defects
from polyc.graph.inference.fix_sizes import fix_graph
from polyc.graph.inference.parameters import find_parameters
from polyc.graph.ir import Graph
from polyc.graph.onnx_import import import_onnx
from polyc.graph.simplify import RewriteNote, simplify
from polyc.graph.states import State, find_states, states_refused
from polyc.graph.unroll_steps import unroll_steps
from polyc.graph.values import describe
from polyc.graph.widen import PRODUCTS, widen
from polyc.graph.zero_channels.drop import choose_rewrites
from polyc.mapping.cpu.fuse_tiles import fuse_tiles
from polyc.mapping.cpu.given import place_given
from polyc.mapping.cpu.storing import store_clusters
from polyc.mapping.cuda.fuse_rows import fuse_rows
from polyc.mapping.cuda.split_sums import find_parts
from polyc.mapping.cuda.storing import set_preludes_free, store_for_cuda
from polyc.mapping.open_cluster import OpenCluster
from polyc.mapping.share_literals import share_literals
from polyc.mapping.stored_kernel import StoredKernel
from polyc.mapping.tuned import Tuned
from polyc.memory.storage import row_major
from polyc.options import Options
from polyc.poly.context import isl_within
from polyc.program.program import Program, StoredArray
from polyc.report.report import NotFused
from polyc.schedule.cluster import Refusal, find_clusters
from polyc.scop.bind_states import bind_states
from polyc.scop.convert_constants import convert_constants
from polyc.scop.delinearise import delinearise
from polyc.scop.distribute import distribute
from polyc.scop.factors.exact_floats import sum_in_floats
from polyc.scop.factors.fill_groups import fill_groups
from polyc.scop.factors.lift_signs import lift_signs
from polyc.scop.factors.minimal_sums import filter_minimally
from polyc.scop.factors.narrow_factors import narrow_factors
from polyc.scop.factors.round_factors import round_factors
from polyc.scop.factors.scales import take_out_scales
from polyc.scop.factors.zero_points import move_zero_points
from polyc.scop.groups import spread_groups, sum_members
from polyc.scop.inline import inline_pointwise
from polyc.scop.lower import find_counts, lower_graph
from polyc.scop.merge_copies import merge_copies
from polyc.scop.remove_frames import remove_frames
from polyc.scop.scop import Scop
from polyc.scop.sparse.zeros import compress_zeros
from polyc.scop.split_reductions import Grain, split_reductions
from polyc.scop.trim_sums import trim_sums
from polyc.target.cuda import CudaTarget
from polyc.target.forms import Forms, choose_forms
from polyc.target.machine import Target
from polyc.trace import Trace
from polyc.types.call_sizes import known_sizes
from polyc.types.parameters import Parameter, show_sizes, with_extents
from polyc.types.ranges import assume
from polyc.types.spec import TensorSpec

Model = Graph | onnx.ModelProto | bytes | str | os.PathLike[str]

See = Callable[[Program, Sequence[LaunchAccess], Mapping[str, str]], None]
"""Takes launches, what each touches and `Compiled.symbols`, before they are proven."""


def look_away(
    program: Program, touched: Sequence[LaunchAccess], symbols: Mapping[str, str]
) -> None:
    """A `See` for those who take all at the end."""


@dataclass(frozen=True)
class KernelNote:
    """What is said of a kernel: how it is scheduled, and what was proven."""

    name: str
    schedule: str
    proof: str


@dataclass(frozen=True)
class Compiled:
    """A model as C text, before memory is planned and the compiler runs.

    `operators` says what each node that is left after the rewrites is; `not_fused` are fusions that
    were considered and refused; `proven` is what holds for all kernels, and for them together.
    `touched` is what each launch reads and writes, by which memory and barriers are planned, and
    `judged` the same as the proof has found it, by which the plan is judged. `gains` are what
    measured schedules save, by launch; `keys` those that they were looked up by; `schedules`: for
    each launch, the name of its kernel and its schedule. `sources` are C files by name; `devices`,
    by kernel, is the text for a GPU, and how it is launched. `lowered` is what the model means: the
    scop before any of its statements was rewritten; `symbols`: by kernel, what objects of it that
    are compiled once for all models call its function. `float_sums`: nodes that multiply restored
    bytes as floats, each with the reason.
    """

    program: Program
    sources: Mapping[str, str]
    devices: Mapping[str, DeviceText]
    rows: tuple[KernelNote, ...]
    rewrites: tuple[str, ...]
    operators: Mapping[str, str]
    not_fused: tuple[NotFused, ...]
    proven: tuple[str, ...]
    touched: tuple[LaunchAccess, ...]
    judged: tuple[LaunchAccess, ...]
    gains: tuple[float, ...]
    keys: tuple[str, ...]
    schedules: tuple[tuple[str, str], ...]
    lowered: Scop
    symbols: Mapping[str, str]
    float_sums: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ClusteredModel:
    """A model after step 5: what each kernel will compute, and how arrays are stored.

    `sizes` are those that are known only at run time; `states` are kept across calls; `lowered` is
    the scop after step 3, `stated` that after step 4: what all kernels together have to compute.
    """

    graph: Graph
    sizes: tuple[Parameter, ...]
    states: tuple[State, ...]
    rewrites: tuple[str, ...]
    lowered: Scop
    stated: Scop
    scop: Scop
    kernels: tuple[StoredKernel, ...]
    opened: tuple[OpenCluster, ...]
    refusals: tuple[Refusal, ...]
    float_sums: tuple[tuple[str, str], ...]


def run_pipeline(
    model: Model,
    target: Target | CudaTarget,
    options: Options,
    trace: Trace,
    tuned: Mapping[str, Tuned] | None = None,
    emit: Emit = ignore,
    kept: KeptKernels | None = None,
    begin: Begin = place_at_once,
    see: See = look_away,
) -> Compiled:
    """A model in, proven C out; `tuned` are schedules of clusters that measurements preferred.

    `emit` is given each kernel when it is printed, `begin` the constants, before the first kernel,
    and `see` the launches, before they are proven; `kept` are kernels that were compiled before.
    """
    with isl_within(trace.budget):
        with naming_defects("compiling the model"):
            front = cluster_model(model, target, options, trace, tuned)
        finds = leaving_to_calls(front.graph.found)
        with naming_defects(f"compiling {front.graph.name!r}"), assume(front.sizes), finds:
            return _compile_kernels(front, target, options, trace, emit, kept, begin, see)


def _compile_kernels(
    front: ClusteredModel,
    target: Target | CudaTarget,
    options: Options,
    trace: Trace,
    emit: Emit,
    kept: KeptKernels | None,
    begin: Begin,
    see: See,
) -> Compiled:
    """The last two stages of `run_pipeline`."""
    scop = front.scop

    # 6. kernels -> C: dependences, schedule, tiles, registers, loops, proof, C.
    #    Meanwhile constants are put in place.
    constants = find_constants(front.kernels, scop)
    placed = begin(tuple(constants.values()))
    compiled = compile_kernels(front.kernels, scop, target, options, trace, emit, kept)

    # 7. The kernels together: whatever a launch reads has been written by then.
    program = _program(front, compiled, constants, placed)
    symbols = {k.kernel.name: k.template.symbol for k in compiled.kernels if k.template}
    see(program, compiled.touched, symbols)
    with trace.step("verify"):
        proven = None
        if options.verify:
            verify_sizes(front.sizes)
            stated, arrays = front.stated, scop.arrays
            proven = prove_launches(program, stated, arrays, front.kernels, compiled, placed.wait)

    return Compiled(
        program,
        {k.file: k.source for k in compiled.kernels if not k.device},
        {k.kernel.name: k.device for k in compiled.kernels if k.device},
        tuple(
            KernelNote(k.kernel.name, k.schedule, k.proof.facts if k.proof else "")
            for k in compiled.kernels
        ),
        front.rewrites,
        {node.name: node.op for node in reversed(front.graph.nodes)},  # not its conversions
        _name_nodes(front.refusals, scop),
        proven.facts if proven else (),
        compiled.touched,
        proven.touched if proven else compiled.touched,
        tuple(one.gain for one in front.kernels),
        tuple(dict.fromkeys(one.key for one in front.opened)),
        tuple(zip((one.called for one in front.kernels), compiled.schedules, strict=True)),
        front.lowered,
        symbols,
        front.float_sums,
    )


def cluster_model(
    model: Model,
    target: Target | CudaTarget,
    options: Options,
    trace: Trace,
    tuned: Mapping[str, Tuned] | None = None,
) -> ClusteredModel:
    """The first five stages of `run_pipeline`."""
    budget, forms = trace.budget, choose_forms(target, options)

    # 1. ONNX -> Graph: typed nodes in the newest form of each operator.
    with trace.step("import"), assume(options.sizes):
        known = known_sizes(options.sizes)
        if isinstance(model, Graph):
            graph = fix_graph(model, known, budget)
        else:
            on_cpu = not isinstance(target, CudaTarget)
            graph = import_onnx(model, known, budget, on_cpu, options.values)
        states, grown = find_states(graph, options.states)
        with assume(grown):
            graph, sizes = find_parameters(graph)
        if states and isinstance(target, CudaTarget):
            raise states_refused("this one is for a GPU")
        with assume(sizes):
            graph = unroll_steps(graph, isinstance(target, CudaTarget), budget)
        if sizes and isinstance(target, CudaTarget):
            raise NotFixed(
                f"the sizes {', '.join(size.shown for size in sizes)} are known only at run time, "
                "but kernels for a GPU are generated for known ones",
                "give them in dims",
            )
        budget.check_nodes(len(graph.nodes), f"graph {graph.name!r}")

    # 2. Graph -> Graph: folding, batch norms, algebra, chains, channels; narrow types are widened.
    with trace.step("simplify"), assume(sizes):
        graph, notes = simplify(graph, options.opt_level, budget, choose_rewrites(options.sparse))
        graph = widen(graph, None if isinstance(target, CudaTarget) else PRODUCTS)
        trace.dump("graph", graph)
        sizes = with_extents(sizes, find_counts(graph, forms.streamed, forms.lanes, forms.direct))

    with assume(sizes), leaving_to_calls(graph.found):
        return _cluster_graph(graph, notes, sizes, states, forms, target, options, trace, tuned)


def _cluster_graph(
    graph: Graph,
    notes: Sequence[RewriteNote],
    sizes: tuple[Parameter, ...],
    states: tuple[State, ...],
    forms: Forms,
    target: Target | CudaTarget,
    options: Options,
    trace: Trace,
    tuned: Mapping[str, Tuned] | None,
) -> ClusteredModel:
    """Stages three to five."""
    on_gpu, budget = isinstance(target, CudaTarget), trace.budget

    # 3. Graph -> Scop: statements with integer-set domains; data movement becomes views.
    with trace.step("lower"):
        streamed, lanes, products = forms.streamed, forms.lanes, forms.integers
        lowered = lower_graph(graph, streamed, budget, lanes, not on_gpu, forms.direct)
        scaled = take_out_scales(lowered, products)
        rounded = round_factors(scaled.before, scaled.after, forms.floats, forms.rounds)
        lowered = rounded.before

    # 4. Scop -> Scop: what needs no loop of its own goes. First, factors of bytes or bfloat16 stay
    #    narrow where an instruction multiplies them. Then chains become one statement, which can
    #    move into the pieces of its input; copies vanish by moving their sources into targets;
    #    divisions go, and sums that nobody reads; sums are split, and states become one array each.
    with trace.step("fuse"):
        if isinstance(target, CudaTarget):
            scop = remove_frames(lowered)
        else:
            scop = fill_groups(lift_signs(rounded.after, products), products)
            scop = move_zero_points(scop, products)
            scop = filter_minimally(narrow_factors(scop, products), streamed, budget)
            scop = sum_in_floats(scop)
        scop = convert_constants(inline_pointwise(scop, on_gpu, budget))
        scop = trim_sums(delinearise(merge_copies(distribute(scop, budget), budget)))
        thinned = compress_zeros(scop, lanes)
        scop, find = thinned.scop, None
        if isinstance(target, CudaTarget):
            find = partial(find_parts, target=target, tf32=options.tf32)
        else:
            scop = spread_groups(sum_members(scop))
        scop = split_reductions(scop, Grain.of(target), find)
        scop, states = bind_states(scop, states)
        trace.dump("scop", scop)
    # 5. Scop -> clusters; then the layout of every array, in execution order; then kernels: what
    #    hands over more than a cache holds is joined, now that its tiles are known.
    with trace.step("cluster"):
        clusters, refusals = find_clusters(scop, target, budget)
        if isinstance(target, CudaTarget):
            clusters = set_preludes_free(clusters)
            given = place_given(options.schedules, clusters)
            stored = store_for_cuda(clusters, scop, target, given)
            kernels = fuse_rows(stored.clusters, scop.arrays, target, options.tf32)
        else:
            given = place_given(options.schedules, clusters)
            stored = store_clusters(clusters, scop, target, tuned, budget, given)
            kernels = fuse_tiles(stored.clusters, stored.scop.arrays, target)
        given.check_used([kernel.called for kernel in kernels])
        kernels, arrays = share_literals(kernels, stored.scop.arrays)
        home = {s.name: k for k, kernel in enumerate(kernels) for s in kernel.statements}
        refusals = tuple(r for r in refusals if home[r.producer] != home[r.consumer])

    return ClusteredModel(
        graph,
        sizes,
        states,
        tuple(map(str, (*notes, *scaled.notes, *thinned.notes, *rounded.notes))),
        lowered,
        scop,
        replace(stored.scop, arrays=arrays),
        kernels,
        stored.opened,
        refusals,
        tuple((note.origin, note.why_not) for note in scaled.notes if note.why_not),
    )


def _name_nodes(refusals: Sequence[Refusal], scop: Scop) -> tuple[NotFused, ...]:
    """Refusals in terms of the graph's nodes; of statements where both belong to one node."""
    origin = {s.name: s.origin[-1] for s in scop.statements}
    found = []
    for refusal in refusals:
        names = origin[refusal.producer], origin[refusal.consumer]
        if names[0] == names[1]:
            names = refusal.producer, refusal.consumer
        found.append(NotFused(*names, refusal.reason, refusal.bytes))
    return tuple(found)


def _program(
    front: ClusteredModel,
    compiled: CompiledKernels,
    constants: Mapping[Key, Constant],
    placed: Placed,
) -> Program:
    """The kernels, their launches, and every array as stored."""
    graph, scop = front.graph, front.scop
    arrays, launches = bind_arrays(front.kernels, compiled.launches, scop, constants, placed)
    for name in (*scop.inputs, *scop.outputs):
        if name not in arrays:
            array = scop.arrays[name]
            arrays[name] = StoredArray(name, array.dtype, array.kind, row_major(array))
    return Program(
        graph.name,
        tuple(k.kernel for k in compiled.kernels),
        launches,
        arrays,
        tuple(zip(_specs(front, graph.inputs), scop.inputs, strict=True)),
        tuple(zip(_specs(front, graph.outputs), scop.outputs, strict=True)),
        front.sizes,
        front.states,
        scop.demands,
    )


def _specs(front: ClusteredModel, names: Sequence[str]) -> list[TensorSpec]:
    """What the caller sees: sizes under the names that the model gives them."""
    shown = show_sizes(front.sizes)
    return [describe(front.graph, name, shown) for name in names]
