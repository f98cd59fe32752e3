"""A scop that is one cluster, taken through the stages from its schedule to its loops."""

from __future__ import annotations

from collections.abc import Mapping as Table
from dataclasses import dataclass, replace

import islpy as isl
import numpy as np

from polyc.analysis.dependences import compute_dependences
from polyc.analysis.proof import Proof
from polyc.analysis.verify import verify_kernel
from polyc.codegen.generate import generate_nest
from polyc.codegen.peel import peel
from polyc.codegen.vectorise import vectorise
from polyc.loopnest.nodes import Block, Kernel
from polyc.loopnest.prototype import Param
from polyc.loopnest.registers import find_registers
from polyc.mapping.cpu.laying import choose_schedule
from polyc.mapping.cpu.storing import store_cluster, store_clusters
from polyc.mapping.open_cluster import OpenCluster
from polyc.mapping.stored_cluster import StoredCluster
from polyc.memory.storage import arrange
from polyc.promote.keep import keep_arrays
from polyc.promote.local_arrays import LocalArray
from polyc.schedule.cluster import find_clusters
from polyc.schedule.initial import initial_tree
from polyc.schedule.legality import check_legal
from polyc.schedule.loops import lower_tree
from polyc.schedule.schedule import Schedule
from polyc.scop.scop import Scop
from polyc.target.machine import Target
from tests.loopnest.execute import execute
from tests.sampling import thorough
from tests.scop.interpreter import interpret

TARGETS = [Target.named(isa) for isa in ("avx512", "avx2", "baseline")]
AVX512, AVX2, _ = TARGETS
SAMPLED = [thorough(AVX512), *TARGETS[1:]]
"""All but the largest tiles, which take longest to make and to interpret."""


@dataclass(frozen=True)
class Stages:
    """What each stage made of a scop, which is the one with its rows in place."""

    of: Scop
    target: Target
    stored: StoredCluster
    schedule: Schedule
    tree: isl.Schedule
    promoted: Table[str, LocalArray]
    nest: Block

    @property
    def kernel(self) -> Kernel:
        written = {s.array for s in self.of.statements}
        storages = self.stored.storages
        params = tuple(
            Param(a, self.of.arrays[a].dtype, storages[a].shape, a in written)
            for a in self.stored.arrays
            if a in self.of.arrays and a not in self.promoted
        )
        return Kernel("k", params, self.nest)

    @property
    def final(self) -> Block:
        """The loops as they are printed: unrolled and cut into vectors."""
        return find_registers(vectorise(self.nest, self.target.vectors))

    def prove(self) -> Proof:
        parameters = {p.name: p.name for p in self.kernel.params}
        return verify_kernel(self.kernel, self.of, self.stored.storages, parameters)

    def run(self, block: Block, feeds: Table[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Execute loops on logical arrays; the outputs, which are stored row-major."""
        arrays = {}
        for param in self.kernel.params:
            array = self.of.arrays[param.name]
            if array.name in feeds:
                arrays[array.name] = arrange(feeds[array.name], self.stored.storages[array.name])
            else:
                arrays[array.name] = np.zeros(param.shape, array.dtype)
        execute(block, arrays)
        return {name: arrays[name] for name in self.of.outputs}


def open_cluster(of: Scop, target: Target = AVX512) -> OpenCluster:
    """The one cluster of a scop, before anything is decided about it."""
    (cluster,), _ = find_clusters(of, target)
    (opened,) = store_clusters([cluster], of, target).opened
    return opened


def compile_stages(of: Scop, target: Target = AVX512, schedule: Schedule | None = None) -> Stages:
    """All stages; the schedule is the cost model's unless one is given."""
    opened = open_cluster(of, target)
    chosen = schedule or choose_schedule(opened, target)
    (stored,), _ = store_cluster(opened, chosen, target)
    dependences = compute_dependences(of)
    loops = chosen.apply(initial_tree([stored.cluster]))
    tree = lower_tree(loops, {s.name: s.domain for s in of.statements})
    check_legal(tree, dependences, "k")
    private, storages = stored.private.intersection(of.arrays), stored.storages
    places = keep_arrays(chosen, loops, tree, of, dependences, private, storages, target)
    statements = {s.name: s for s in places.part.statements}
    nest = peel(generate_nest(tree, statements, stored.storages, places.local))
    return Stages(places.part, target, stored, places.schedule, tree, places.local, nest)


def filled(of: Scop) -> Scop:
    """The scop with small integers in its constants, of which every sum is exact."""
    rng = np.random.default_rng(1)
    arrays = {
        n: replace(a, value=rng.integers(-3, 4, a.shape).astype(a.dtype))
        if a.kind == "constant"
        else a
        for n, a in of.arrays.items()
    }
    return replace(of, arrays=arrays)


def check(
    of: Scop, target: Target = AVX512, rtol: float = 0.0, schedule: Schedule | None = None
) -> Stages:
    """Compile; assert that the loops are proven and compute what the statements say."""
    of = filled(of)
    stages = compile_stages(of, target, schedule)
    assert stages.prove().statements == len(of.statements)
    rng = np.random.default_rng(2)
    feeds = {n: rng.integers(-3, 4, of.arrays[n].shape).astype("f4") for n in of.inputs}
    constants = {n: a.value for n, a in of.arrays.items() if a.kind == "constant"}
    expected = interpret(of, feeds)
    for block in (stages.nest, stages.final):
        results = stages.run(block, {**feeds, **constants})
        for name, value in expected.items():
            np.testing.assert_allclose(
                results[name], value, rtol=rtol, atol=0, err_msg=str(stages.schedule)
            )
    return stages
