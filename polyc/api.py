"""The public interface: `compile`, `load`, `CompiledModel`.

Imports stay light: a model that is already in the cache is loaded without onnx and without islpy.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from polyc.arguments import (
    check_feeds,
    check_options,
    check_schedules,
    check_seed,
    check_sizes,
    check_states,
    check_target,
)
from polyc.build.bundle import WEIGHTS_FILE, Bundle, Weights, read_bundle
from polyc.build.examined import KnownHashes, examine
from polyc.build.fingerprint import fingerprint
from polyc.errors import (
    InvalidModel,
    RuntimeFailure,
    UnsupportedOp,
)
from polyc.files.digest import digest
from polyc.files.folder import Folder
from polyc.files.model_file import ModelChanged, ModelFile
from polyc.files.table import Entry
from polyc.graph.states import read_states
from polyc.mapping.tuned import Tuned, spell_choices
from polyc.options import Options, options_from_environment
from polyc.run.model import CompiledModel
from polyc.run.open import load_model, open_model
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target
from polyc.target.resolve import resolve_target
from polyc.toolchain.cache import Cache, open_cache
from polyc.tuning.store import read_tuned, tuned_file
from polyc.types.call_sizes import Range, read_sizes

if TYPE_CHECKING:
    from polyc.exact.run import ExactReport
    from polyc.run.reference import NumericReport
    from polyc.run.torch_model import TorchModel

T = TypeVar("T")

_ATTEMPTS = 3
"""How often a model that changes while it is read is begun anew."""


def compile(
    model: Any,
    *,
    target: str | Target | CudaTarget = "auto",
    opt_level: int | None = None,
    threads: int | None = None,
    tune: float | None = None,
    dims: Mapping[str, Range] | None = None,
    hint: Mapping[str, int] | None = None,
    state: Mapping[str, str] | None = None,
    schedule: Mapping[str, str] | None = None,
    options: Options | None = None,
) -> CompiledModel:
    """Compile a model, or find it in the cache.

    model: a path, an onnx.ModelProto, its bytes, or a polyc.Graph; target: "cpu", "avx512", "avx2",
    "baseline" or a `Target`; "cuda", "cuda:sm_80" and the like, or a `CudaTarget`; "auto" is the
    GPU where there is one with its driver and nvcc, and else this CPU; opt_level: 0 to 3, by
    default that of the options (3); threads: how many a call uses, by default all that this process
    may use; tune: seconds to search for faster kernels first, by measuring, on a CPU; options: by
    default what the environment says.

    dims: what sizes that are known only at run time may be, by name: {"seq": (1, 2048)}, or a
    number to fix one: {"batch": 1}, or a sum of others: {"total": "past + seq"}; the rest are at
    least 1. hint: the size that kernels are chosen for: {"seq": 128}.

    state: inputs that are outputs of the call before, by name: {"past": "present"}. They are kept
    in memory of their own, by a session (`CompiledModel.start`): in place, or in two buffers that
    change places, without a copy. One that grows along a size has room for the last of its range.

    schedule: how kernels are to run, by name: {"conv1": "order o y x | split x 14 | …"}.
    Names and texts are those that `CompiledModel.schedules` has and `explain()` shows; what a text
    can say is in `polyc/schedule/text.py`. One that would compute something else is refused.
    Where a model is compiled in stages, each takes the schedules of its own kernels.

    Where shapes follow from values of inputs (a Reshape's target that is fed, how often a loop
    runs), these are sizes as well, each at least 1; and so is what a call finds (how many elements
    are not 0), from 0 to `CompiledModel.found`. Other values, and other models in which values
    decide shapes, or for whose open sizes no loops can be generated, are compiled at their first
    call, and anew for others (`polyc/run/specialise.py`).

    Raises InvalidModel, UnsupportedOp, ShapeError, IllegalSchedule, BuildError, and TypeError for
    an argument of a wrong type.
    """
    options = _choose_options(options, opt_level, threads, tune, dims, hint, state)
    check_schedules(schedule)
    if schedule:
        options = replace(options, schedules=tuple(sorted(schedule.items())))
    check_target(target)
    machine = resolve_target(target, options)
    return _compile_or_complete(model, machine, options)


def verify(
    model: Any,
    *,
    exact: bool = False,
    feeds: Mapping[str, Any] | None = None,
    target: str | Target = "auto",
    opt_level: int | None = None,
    threads: int | None = None,
    dims: Mapping[str, Range] | None = None,
    hint: Mapping[str, int] | None = None,
    state: Mapping[str, str] | None = None,
    seed: int = 0,
    options: Options | None = None,
) -> ExactReport | NumericReport:
    """Check that a model computes what it says; the result, printed, tells what was compared.

    By default every tensor of an ONNX model is compared with onnx's reference evaluator, within
    tolerances: each node on its own first, then the model as it is, fused.

    exact: run the printed C, or CUDA, in a prime field, in which addition and multiplication are
    exact and other functions are pseudo-random, and compare it, bit by bit, with the model's
    statements before any was moved, fused or vectorised: on random inputs, on one thread and on
    several (`threads`, by default 2), for several values of open sizes, and call after call where
    there are states (`polyc/exact/__init__.py`). Any model that `compile` takes will do. What is
    compiled for a GPU runs on the emulator, always.

    feeds: values of inputs by name; the others are random, so that inputs from which shapes follow
    must be among them. In an exact run floats are random elements in any case. The other arguments
    are those of `compile`.

    Raises RuntimeFailure, which names the tensor, if anything differs; BuildError without a C++
    compiler, for an exact run; else as `compile`.
    """
    options = _choose_options(options, opt_level, None, None, dims, hint, state)
    threads = None if threads is None else check_options(options, threads=threads).threads
    check_target(target)
    seed = check_seed(seed)
    known = {} if feeds is None else dict(check_feeds(feeds))
    machine = resolve_target(target, options)
    if not exact:
        from polyc.run.reference import verify_numbers

        chosen = replace(options, threads=threads or options.threads)
        return verify_numbers(
            model, lambda m: _compile_or_complete(m, machine, chosen), known, seed
        )
    from polyc.exact.run import run_exactly, run_stages

    options = replace(options, verify=False)  # `compile` proves; this is another witness
    if isinstance(machine, CudaTarget):
        options = replace(options, emulated=True)  # a GPU has no field
    teams = tuple(dict.fromkeys((1, threads or 2)))

    def check(part: Any, chosen: Options) -> ExactReport:
        return run_exactly(part, machine, chosen, threads=teams, seed=seed, feeds=known)

    try:
        report = check(model, options)
    except UnsupportedOp as unknown:
        from polyc.run.alternatives import stage_compiler, try_with_values

        staged = try_with_values(unknown, options, lambda chosen: check(model, chosen))
        if staged is None and not options.states:
            later = stage_compiler(options, lambda part, chosen: _compile(part, machine, chosen))
            staged = run_stages(
                model, unknown, options, known, check, later, isinstance(machine, Target)
            )
        if staged is None:
            raise
        report = staged
    if not report.agrees:
        raise RuntimeFailure(f"model {report.model!r}: {report}; please report this")
    return report


def _choose_options(
    options: Options | None,
    opt_level: int | None,
    threads: int | None,
    tune: float | None,
    dims: Mapping[str, Range] | None,
    hint: Mapping[str, int] | None,
    state: Mapping[str, str] | None,
) -> Options:
    """The options of a call: those given, or the environment's, with what its arguments say."""
    options = options_from_environment() if options is None else options
    options = check_options(options, opt_level=opt_level, threads=threads, tune=tune)
    check_sizes(dims, hint)
    check_states(state)
    if dims or hint:
        options = replace(options, sizes=read_sizes(dims, hint))
    if state:
        options = replace(options, states=read_states(state))
    return options


def _compile_or_complete(
    model: Any, machine: Target | CudaTarget, options: Options
) -> CompiledModel:
    """The model, or another way to run it where it cannot be compiled as it is."""
    model = os.fspath(model) if isinstance(model, os.PathLike) else model
    try:
        return _compile(model, machine, options)
    except UnsupportedOp as unknown:
        from polyc.run.alternatives import find_alternative

        on_cpu = isinstance(machine, Target)
        found = find_alternative(
            model, unknown, options, on_cpu, lambda m, o: _compile(m, machine, o)
        )
        if found is None:
            raise
        return found


def _compile(model: Any, machine: Target | CudaTarget, options: Options) -> CompiledModel:
    """The model for one machine, from the cache if it is there."""
    tuned = _read_or_tune(model, machine, options)
    if options.dump:
        # Only a compilation that runs can be dumped.
        options = replace(options, cache=False)
    cache = open_cache(options)
    try:
        for attempt in range(_ATTEMPTS):
            source = model
            if isinstance(model, str):
                path = Path(model)
                source = ModelFile.examine(path) if attempt else examine(path, cache)
            with contextlib.suppress(ModelChanged):  # then the key would be that of another model
                return _fetch(source, machine, options, cache, tuned)
        raise InvalidModel(
            f"model file {model} is being written to; compile it when that has come to an end"
        )
    finally:
        cache.discard()


def _fetch(
    source: Any,
    machine: Target | CudaTarget,
    options: Options,
    cache: Cache,
    tuned: Mapping[str, Tuned],
) -> CompiledModel:
    def fetch(key: str) -> Bundle:
        made: list[Weights | None] = []

        def make(folder: Path) -> Mapping[str, Entry]:
            from polyc.build.make_model import make_model

            weights = make_model(source, machine, options, cache, folder, tuned)
            made.append(weights)
            return {WEIGHTS_FILE: weights.entry} if weights else {}

        def read(folder: Folder) -> Bundle:
            return read_bundle(folder, written=made[0] if made else None, recall=KnownHashes(cache))

        return cache.fetch_and_read("models", key, make, read)

    key = fingerprint(source, machine, options)
    bundle = fetch(key)
    consulted = bundle.manifest.consulted
    answers = spell_choices(consulted, tuned)
    if answers != consulted:  # something was tuned since
        key = digest([key, *(x for answer in answers.items() for x in answer)])
        bundle = fetch(key)
    return open_model(bundle)


def from_torch(
    module: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    **choices: Any,
) -> TorchModel:
    """Compile a torch.nn.Module for arguments like these; for inference.

    args, kwargs: examples, whose sizes are fixed but for those that `dynamic_shapes` names, as
    torch.export takes it: ({0: torch.export.Dim("batch")},); kernels are chosen for those of the
    examples. choices: those of `compile`. The result is called as the module is, with tensors.

    Raises ImportError without the extra `polyc[torch]`, UnsupportedOp for a module that PyTorch
    cannot export (it says why), else as `compile`.
    """
    try:
        from polyc.run.torch_model import TorchModel, export_module
    except ImportError as missing:
        raise ImportError(f"{missing}; install PyTorch by: pip install 'polyc[torch]'") from missing

    exported = export_module(module, args, kwargs, dynamic_shapes)
    dims = {**exported.dims, **(choices.pop("dims", None) or {})}
    hint = {**exported.hint, **(choices.pop("hint", None) or {})}
    fixed = {name for name, size in dims.items() if isinstance(size, int)}
    hint = {name: size for name, size in hint.items() if name not in fixed and size > 0}
    model = compile(exported.model, dims=dims, hint=hint, **choices)
    return TorchModel(model, exported.results)


def load(path: str | os.PathLike[str], *, digest: str | None = None) -> CompiledModel:
    """A model that `CompiledModel.save` wrote; no compiler is needed.

    digest: what `CompiledModel.digest` was when the model was saved. The folder holds native code:
    load only what you trust. Its checksums show damage; that nobody has put another model in its
    place only a digest shows, which came to you on another way than the folder.

    Raises InvalidModel for a damaged folder, or one with another digest, BuildError on a CPU that
    lacks an instruction set that the model was compiled for. A model for a GPU loads anywhere, and
    needs the GPU and its driver when it is called.
    """
    return load_model(Path(path), digest)


def _read_or_tune(model: Any, target: Target | CudaTarget, options: Options) -> Mapping[str, Tuned]:
    """Tuned schedules by cluster, as the options want them."""
    known: Mapping[str, Tuned] = {}
    if options.tune > 0:
        from polyc.tuning.tune import tune

        known = tune(model, target, options, compile).known
    elif options.cache and isinstance(target, Target):
        known = read_tuned(tuned_file(target, options))
    return known if options.use_tuned else {}
