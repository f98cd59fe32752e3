"""Tuning a model: its kernels by the time that they take, searched, and what is found kept."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from polyc.errors import BuildError, UnsupportedOp
from polyc.mapping.cpu.laying import choose_schedule
from polyc.mapping.tuned import Tuned
from polyc.options import Options
from polyc.pipeline import ClusteredModel, cluster_model
from polyc.run.feeds import random_feeds
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target, missing_features
from polyc.toolchain.cache import open_cache
from polyc.trace import Trace, make_trace
from polyc.tuning.measure import Workbench
from polyc.tuning.search import Finding, Search, Task
from polyc.tuning.store import add_tuned, read_tuned, tuned_file

if TYPE_CHECKING:
    from polyc.run.model import CompiledModel


@dataclass(frozen=True)
class Tuning:
    """What a search found: the last finding of each kernel that it touched.

    known: everything that is known now, by cluster; kernels: how many the model has; finished: of
    how many of them everything was tried; before: the model without what was found.
    """

    findings: tuple[Finding, ...]
    known: Mapping[str, Tuned]
    kernels: int
    finished: int
    before: CompiledModel

    @property
    def better(self) -> list[Finding]:
        """Kernels that became faster, those that save most first."""
        found = [f for f in self.findings if f.saved > 0]
        return sorted(found, key=lambda f: -f.saved)


def tune(
    model: Any,
    target: Target | CudaTarget,
    options: Options,
    compile: Callable[..., CompiledModel],
) -> Tuning:
    """Search for `options.tune` seconds; results go into the cache folder as they are found.

    Before, the model is compiled with what is known, by `compile`, which is `polyc.compile`, and
    profiled on random inputs. Raises what compiling raises, BuildError if this machine cannot run
    what is compiled for the target, and UnsupportedOp for a GPU and for sizes that are known only
    at run time.
    """
    if isinstance(target, CudaTarget):
        raise UnsupportedOp(f"kernels for {target} cannot be tuned yet; tune with target='cpu'")
    missing = missing_features(target.features)
    if missing:
        raise BuildError(
            f"tuning for {target.name} {target.isa} measures on a CPU with {', '.join(missing)}, "
            "which this one lacks; tune on such a machine"
        )
    plain = replace(options, tune=0.0, dump=(), use_tuned=True)
    file = tuned_file(target, options)
    known = read_tuned(file) if options.cache else {}
    compiled = compile(model, target=target, options=plain)
    if compiled.sizes:
        names = ", ".join(size.name for size in compiled.sizes)
        raise UnsupportedOp(f"tuning measures kernels: give a number for {names} in dims")
    if compiled.found:
        names = ", ".join(size.name for size in compiled.found)
        raise UnsupportedOp(
            f"tuning measures kernels, for sizes that are known, but a call finds {names}; tune a "
            "model of what stands in front of that"
        )
    seconds = compiled.profile(random_feeds(compiled.inputs, 0))
    front = cluster_model(model, target, plain, Trace(), known)
    tasks = _list_tasks(front, seconds, known, target)
    cache = open_cache(replace(options, cache=False))
    threads = options.threads or target.cores
    spread = _spread(compiled.weights_bytes, target)
    bench = Workbench(target, plain, threads, cache, spread)
    found: dict[str, Finding] = {}
    title = f"{target}; {threads} threads"
    try:
        with _bar(make_trace(options).progress, options.tune) as tell:
            for finding in Search(bench, target, tell=tell).run(tasks, options.tune):
                key = finding.task.cluster.key
                found[key] = finding
                if options.cache:
                    add_tuned(file, {key: finding.tuned}, title)
    finally:
        cache.discard()
    known = {**known, **{key: f.tuned for key, f in found.items()}}
    keys = {one.key for one in front.opened}
    finished = sum(key in known and known[key].finished for key in keys)
    return Tuning(tuple(found.values()), known, len(keys), finished, compiled)


def _list_tasks(
    front: ClusteredModel, seconds: Sequence[float], known: Mapping[str, Tuned], target: Target
) -> list[Task]:
    """The distinct clusters that are not finished, with the time of their launches.

    The copies that pack operands come before the cluster that they belong to. Clusters that share
    a kernel share its time.
    """
    total: dict[str, float] = {}
    waiting = 0.0
    for kernel, spent in zip(front.kernels, seconds, strict=True):
        waiting += spent
        keys = [one.key for one in kernel.parts if one.key]
        for key in keys:
            total[key] = total.get(key, 0.0) + waiting / len(keys)
        waiting = 0.0 if keys else waiting
    clusters = {one.key: one for one in front.opened}
    return [
        Task(one, choose_schedule(one, target), known.get(key), total[key])
        for key, one in clusters.items()
        if not (key in known and known[key].finished)
    ]


def _spread(weights_bytes: int, target: Target) -> int:
    """Bytes of constants that go by before a layer's are read again: none if all stay in L2."""
    return 0 if weights_bytes <= target.l2 // 2 else min(weights_bytes, 2 * target.l3)


@contextlib.contextmanager
def _bar(shown: bool, budget: float) -> Iterator[Callable[[str], None]]:
    """A progress bar over the budget; gives what to call with the name of a kernel."""
    if not shown:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    start = time.perf_counter()
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("tuning", total=budget)
        yield lambda name: progress.update(
            task, completed=time.perf_counter() - start, description=f"tuning {name}"
        )
