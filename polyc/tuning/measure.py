"""Timing kernels: one at a time, alone, on random data, where it would find them in its model.

A kernel becomes a program of its own, with the copies that pack its operands, in the layouts that
it has in its model. Its arrays stay in place from run to run, as warm as a producer leaves them.
Constants do not: between two runs of a layer a model reads all its other weights, so as many copies
of the constants are gone through in turn as hold `spread` bytes.

Times are noisy and drift, so kernels are only ever compared with each other, turn by turn
(`compare`), and what counts is the median of the ratios within the turns.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polyc.build.cache import Cache
from polyc.build.load import open_library
from polyc.build.pages import allocate_pages
from polyc.build.toolchain import build_library
from polyc.codegen.driver import DRIVER_FILE, print_driver
from polyc.codegen.program import Program
from polyc.commands.feeds import random_array
from polyc.kernels import compile_clusters
from polyc.mapping.open_cluster import OpenCluster
from polyc.mapping.parameters import Parameters
from polyc.mapping.storing import store_cluster
from polyc.memory.plan import Plan, pack, plan_memory
from polyc.options import Options
from polyc.pipeline import bind_arrays
from polyc.scop.scop import Scop
from polyc.spec import TensorSpec
from polyc.target.machine import Target
from polyc.trace import Trace

MOST_COPIES = 16
"""Copies of a kernel's constants at most."""

RACE_SECONDS = 0.25
MOST_TURNS = 40
LEAST_TURNS = 7
"""A comparison takes about RACE_SECONDS, but its turns are so many."""

HOPELESS = 1.3
TRIAL_TURNS = 3
"""Who is slower by this factor after so many turns is out of a race."""

Run = Callable[[], float]
"""One run; the seconds that it took."""


@dataclass(frozen=True)
class Built:
    """A kernel that can be run: its schedule in one line, and the run."""

    schedule: str
    run: Run


@dataclass(frozen=True)
class Workbench:
    """Where kernels are built and run: for a target, on some threads, in a cache that may go.

    spread: bytes of constants to go through before the same ones are read again.
    """

    target: Target
    options: Options
    threads: int
    cache: Cache
    spread: int

    def build(self, one: OpenCluster, parameters: Parameters) -> Built:
        """The kernel of a cluster with these parameters; errors are those of compiling."""
        parts, arrays = store_cluster(one, parameters, self.target)
        scop = Scop("tuned", (), arrays, (), ())
        compiled = compile_clusters(parts, scop, self.target, self.options, Trace())
        stored, launches = bind_arrays(parts, compiled.launches, scop)
        kernels = tuple(k.kernel for k in compiled.kernels)
        program = Program("tuned", kernels, launches, stored, (), ())
        plan = _keep_apart(plan_memory(program), len(launches))
        sources = {f"{k.kernel.name}.c": k.source for k in compiled.kernels}
        sources[DRIVER_FILE] = print_driver(program, plan)
        library = build_library(sources, self.target, self.options, self.cache)
        ffi, functions = open_library(library, "tuned")
        weights = [ffi.from_buffer(w) for w in self._fill_weights(program, plan)]
        arena = ffi.from_buffer(_fill_arena(program, plan))
        seconds = ffi.new("double[]", len(launches))
        turns = itertools.cycle(weights)

        def run() -> float:
            functions.polyc_profile(ffi.NULL, next(turns), arena, self.threads, seconds)
            return sum(seconds)

        return Built(compiled.kernels[-1].schedule, run)

    def _fill_weights(self, program: Program, plan: Plan) -> list[np.ndarray]:
        """The constants as they lie in memory, several times over."""
        size = plan.weights_bytes
        copies = max(1, min(MOST_COPIES, -(-self.spread // max(size, 1)) if size else 1))
        memory = [allocate_pages(max(size, 1)) for _ in range(copies)]
        for name, offset in plan.constants.items():
            value = program.arrays[name].value
            assert value is not None
            flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
            for blob in memory:
                blob[offset : offset + flat.size] = flat
        return memory


def compare(runs: Sequence[Run], seconds: float = RACE_SECONDS) -> list[list[float]]:
    """The times of each in turns, forwards and backwards; the first one is never out.

    runs of 1 ms and 2 ms -> 40 times of each. Who is hopeless has fewer times than the others.
    """
    once = sum(run() for run in runs)
    turns = max(LEAST_TURNS, min(MOST_TURNS, int(seconds / max(once, 1e-9))))
    racing = list(range(len(runs)))
    times: list[list[float]] = [[] for _ in runs]
    for turn in range(turns):
        for k in racing if turn % 2 == 0 else reversed(racing):
            times[k].append(runs[k]())
        if turn + 1 == TRIAL_TURNS:
            limit = HOPELESS * statistics.median(times[0])
            racing = [k for k in racing if k == 0 or statistics.median(times[k]) <= limit]
    return times


def ratios(times: Sequence[float], base: Sequence[float]) -> list[float]:
    """Turn by turn, how long one took in terms of the other."""
    return [t / b for t, b in zip(times, base, strict=False)]


def _keep_apart(plan: Plan, launches: int) -> Plan:
    """The plan with all arrays alive all the time, since the program is run again and again."""
    slots = pack([replace(s, first=0, last=launches) for s in plan.slots])
    size = max((s.offset + s.bytes for s in slots), default=0)
    return replace(plan, slots=slots, arena_bytes=size)


def _fill_arena(program: Program, plan: Plan) -> np.ndarray:
    """Memory for the arrays, with random contents; integers are 0 or 1, so that they may index."""
    arena = allocate_pages(max(plan.arena_bytes, 1))
    generator = np.random.default_rng(0)
    offsets: Mapping[str, int] = plan.offsets
    for name, offset in offsets.items():
        array = program.arrays[name]
        value = random_array(TensorSpec(name, array.dtype, array.storage.shape), generator)
        flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        arena[offset : offset + flat.size] = flat
    return arena
