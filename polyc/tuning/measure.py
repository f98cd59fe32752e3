"""Timing kernels: one at a time, alone, on random data, where it would find them in its model.

A kernel becomes a program of its own, with the copies that pack its operands, in the layouts that
it has in its model. All kernels on a bench share memory, so that one finds the caches as another
does. What a cluster reads and writes stays in place from run to run, as warm as its producer leaves
it. Constants do not: between two runs of a layer a model reads all its other weights, so constants
move on through a pool of that many bytes.

Times are noisy and drift, so kernels are only ever compared with each other, turn by turn, and what
counts is the least time of each (`compare`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyc.analysis.launches.call import verify_call
from polyc.backends.bind import bind_arrays, find_constants, place_at_once
from polyc.backends.kernels import compile_kernels
from polyc.backends.prove import prove_launches
from polyc.build.load import open_library
from polyc.mapping.cpu.storing import store_cluster
from polyc.mapping.open_cluster import OpenCluster
from polyc.mapping.stored_kernel import StoredKernel
from polyc.options import Options
from polyc.printing.driver import DRIVER_FILE, print_driver
from polyc.program.driver_nest import make_driver
from polyc.program.plan import Plan, aligned, plan_memory
from polyc.program.program import Program
from polyc.run.feeds import random_array
from polyc.schedule.schedule import Schedule
from polyc.scop.scop import Array, Scop
from polyc.target.machine import Target
from polyc.toolchain.c_compiler import build_library
from polyc.toolchain.cache import Cache
from polyc.toolchain.pages import allocate_pages
from polyc.trace import Trace
from polyc.types.element_types import FLOAT32, FLOAT64
from polyc.types.spec import TensorSpec

RACE_SECONDS = 0.25
MOST_TURNS = 100
LEAST_TURNS = 7
"""A comparison takes about RACE_SECONDS, but its turns are so many."""

HOPELESS = 1.3
TRIAL_TURNS = 3
"""Who is slower by this factor after so many turns leaves the race."""

Run = Callable[[], float]
"""One run; the seconds that it took."""


@dataclass(frozen=True)
class Built:
    """A kernel that can be run: its schedule as text, and the run."""

    schedule: str
    run: Run


class Workbench:
    """Where kernels are built and run: for a target, on some threads, in a cache that may go.

    spread: bytes of constants that are read before the same ones are again.
    """

    def __init__(
        self, target: Target, options: Options, threads: int, cache: Cache, spread: int
    ) -> None:
        self.target = target
        self.options = options
        self.threads = threads
        self.cache = cache
        self.spread = spread
        self._arena = allocate_pages(1)
        self._pool = allocate_pages(1)
        self._next = 0  # bytes into the pool
        self._filled = ""  # the cluster whose arrays the arena holds

    def build(self, one: OpenCluster, schedule: Schedule) -> Built:
        """The kernel of a cluster with this schedule; errors are those of compiling.

        It is proven before it is run, as the program that it is, like a model.
        It may be run until a kernel of another cluster is built.
        """
        parts, arrays = store_cluster(one, schedule, self.target)
        kernels = [StoredKernel((part,)) for part in parts]
        scop = _stated(one, arrays)
        compiled = compile_kernels(kernels, scop, self.target, self.options, Trace())
        read = find_constants(kernels, scop)
        placed = place_at_once(read.values())
        stored, launches = bind_arrays(kernels, compiled.launches, scop, read, placed)
        loops = tuple(k.kernel for k in compiled.kernels)
        program = Program("tuned", loops, launches, stored, (), ())
        shared = [name for name in one.touched if name not in one.private]
        plan = _keep_in_place(plan_memory(program), shared)
        nest = make_driver(program, plan, range(1, len(launches)))
        if self.options.verify:
            stated = _stated(one, one.arrays)  # without copies
            proven = prove_launches(program, stated, scop.arrays, kernels, compiled)
            verify_call(program, plan, nest, proven.touched)
        sources = {k.file: k.source for k in compiled.kernels}
        sources[DRIVER_FILE] = print_driver(program, plan, nest)
        library = build_library(
            sources, self.target.flags, self.options, self.cache, self.target.cores
        )
        opened = open_library(library.read_bytes(), "tuned")
        ffi, functions = opened.ffi, opened.functions
        seconds = ffi.new("double[]", len(launches))
        self._fill_arena(one.key, program, plan)
        constants = self._place_constants(program, plan)

        def run() -> float:
            weights, arena = map(ffi.from_buffer, (constants(), self._arena))
            functions.polyc_profile(ffi.NULL, weights, arena, ffi.NULL, self.threads, seconds)
            return sum(seconds)

        return Built(compiled.kernels[-1].schedule, run)

    def _fill_arena(self, key: str, program: Program, plan: Plan) -> None:
        """Random contents for all arrays; integers are 0 or 1, so that they may index."""
        if plan.arena_bytes > self._arena.size:
            self._arena, self._filled = allocate_pages(plan.arena_bytes), ""
        if self._filled == key:
            return
        self._filled = key
        generator = np.random.default_rng(0)
        for name, offset in ((s.array, s.offset) for s in plan.slots):
            array = program.arrays[name]
            value = random_array(TensorSpec(name, array.dtype, array.storage.shape), generator)
            _write(self._arena, offset, value)

    def _place_constants(self, program: Program, plan: Plan) -> Callable[[], np.ndarray]:
        """What gives the constants for the next run.

        Those of floats only may be any numbers, so all kernels read them from the pool; others
        may index, so they are themselves.
        """
        size = plan.weights_bytes
        values = {n: program.arrays[n].value for n in plan.constants}
        if any(
            value is not None and value.dtype not in (FLOAT32, FLOAT64) for value in values.values()
        ):
            own = allocate_pages(size)
            for name, value in values.items():
                assert value is not None
                _write(own, plan.constants[name], value)
            return lambda: own
        if self._pool.size < self.spread + size + 1:
            self._pool = allocate_pages(self.spread + size + 1)
            numbers = np.random.default_rng(0).standard_normal(1 << 16, np.float32)
            _write(self._pool, 0, np.resize(numbers, self._pool.size // 4))

        def take() -> np.ndarray:
            start = self._next if self._next + size < self._pool.size else 0
            self._next = start + aligned(size) if self.spread else 0
            return self._pool[start:]

        return take


def _stated(one: OpenCluster, arrays: Mapping[str, Array]) -> Scop:
    """What a cluster computes, as a scop of its own: all that it does not keep is there before."""
    statements = (*one.cluster.prelude, *one.cluster.statements)
    written = {s.array for s in statements}
    outside = {
        name: replace(arrays[name], kind="state" if name in written else "input")
        for name in one.touched
        if name not in one.private and arrays[name].kind != "constant"
    }
    return Scop("tuned", statements, {**arrays, **outside}, (), ())


def _write(memory: np.ndarray, offset: int, value: np.ndarray) -> None:
    flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    memory[offset : offset + flat.size] = flat


def compare(runs: Sequence[Run], seconds: float = RACE_SECONDS) -> list[float]:
    """The least time of each, taken in turns, forwards and backwards.

    Whatever disturbs a run only adds to its time, so the least says most about the kernel. The
    first one is never out of the race.
    """
    once = sum(run() for run in runs)
    turns = max(LEAST_TURNS, min(MOST_TURNS, int(seconds / max(once, 1e-9))))
    racing = list(range(len(runs)))
    least = [float("inf")] * len(runs)
    for turn in range(turns):
        for k in racing if turn % 2 == 0 else reversed(racing):
            least[k] = min(least[k], runs[k]())
        if turn + 1 == TRIAL_TURNS:
            racing = [k for k in racing if k == 0 or least[k] <= HOPELESS * least[0]]
    return least


def _keep_in_place(plan: Plan, shared: Sequence[str]) -> Plan:
    """The plan with no two arrays in one place, first those that every candidate has alike."""
    place = {name: k for k, name in enumerate(shared)}
    ordered = sorted(plan.slots, key=lambda s: place.get(s.array, len(place)))
    slots, end = [], 0
    for slot in ordered:
        slots.append(replace(slot, offset=end))
        end += slot.bytes
    return replace(plan, slots=tuple(slots), arena_bytes=end)
