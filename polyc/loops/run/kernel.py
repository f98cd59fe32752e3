"""`@polyc.kernel`: a Python function of loops over NumPy arrays, compiled to C.

@polyc.kernel
def smooth(x, y):
    for i in range(1, len(x) - 1):
        y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3

smooth(x, y)          # y is changed in place, as Python would
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from polyc.errors import IllegalSchedule, ShapeError
from polyc.loops.read.parse import parse
from polyc.loops.read.sizes import Signature
from polyc.loops.read.syntax import Function
from polyc.loops.read.types import Argument, argument_of, check_dtype
from polyc.loops.run.again import Repeat
from polyc.loops.run.call import Caller, CallKind, Loaded
from polyc.loops.run.call_cuda import CudaCaller, LoadedForCuda
from polyc.loops.run.stored import Order, Stored, fetch
from polyc.options import Options, options_from_environment
from polyc.schedule.schedule import Schedule
from polyc.schedule.tree_text import TreeText, read_schedule
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target
from polyc.target.resolve import resolve_target
from polyc.toolchain.cache import Cache

if TYPE_CHECKING:
    from polyc.loops.run.compile_cuda import Front

Choices: TypeAlias = "tuple[Target | CudaTarget | str, Options, Schedule | TreeText | None]"
"""What a kernel is compiled for, how, and by whose schedule."""

Key: TypeAlias = "tuple[Choices, tuple[Argument, ...]]"
Kind: TypeAlias = "tuple[type, np.dtype | None, int]"
AnyCaller: TypeAlias = "Caller | CudaCaller"


@dataclass
class LoopKernel:
    """A function of loops, compiled for the types of its arguments: ahead, or at the first call.

    It is compiled once for arguments of the same types and ranks, whatever their sizes are; for a
    GPU once for each sizes.
    """

    python: Callable[..., Any]
    threads: int = 0
    options: Options = field(default_factory=options_from_environment)
    schedule: Schedule | TreeText | None = None
    target: str | Target | CudaTarget = "cpu"
    _callers: dict[Key, AnyCaller] = field(default_factory=dict)
    _known: dict[tuple[Kind, ...], AnyCaller] = field(default_factory=dict, init=False)
    _known_for: Choices | None = field(default=None, init=False)
    _last: AnyCaller | None = None  # that was called, or compiled, last
    _before: CallKind | None = field(default=None, init=False)  # that of the last call
    _again: Repeat | None = field(default=None, init=False)  # of two calls that were alike

    def __post_init__(self) -> None:
        functools.update_wrapper(self, self.python)

    @functools.cached_property
    def function(self) -> Function:
        """What the text says; UnsupportedLoop where it leaves the subset."""
        return parse(self.python)

    def compile(self, **types: Argument) -> LoopKernel:
        """Compile for arguments of these types, those that are left out as they are annotated.

        f.compile(A=polyc.f64["n", "n"], steps=polyc.i64); f(A, 100)
        """
        given = {**self._annotated(), **types}
        for name, type_ in given.items():
            if name not in self.function.arguments:
                raise ShapeError(f"kernel {self._name} has no argument {name!r}")
            if not isinstance(type_, Argument):
                raise TypeError(
                    f"argument {name!r} of kernel {self._name} has type {type_!r}; write "
                    'polyc.f64["n"] or polyc.i64'
                )
        missing = [n for n in self.function.arguments if n not in given]
        if missing:
            raise ShapeError(
                f"kernel {self._name}: the type of {missing[0]!r} is not known; give it, as in "
                f'{missing[0]}=polyc.f64["n"]'
            )
        caller = self._prepare({name: given[name] for name in self.function.arguments})
        if isinstance(caller, CudaCaller):
            caller.begin()
        return self

    def __call__(self, *arguments: Any, **named: Any) -> None:
        """Run the kernel on arrays, which it changes in place, and numbers.

        On a GPU arrays are copied there, and back if they are written; the call waits.
        """
        self._forget_others()
        again = self._again
        if again is not None and again.run(arguments, named, self.threads):
            return
        values = self._bind(arguments, named)
        call = self._find(values)(values, self.threads)
        before, self._again = self._before, None
        self._before = None if call is None else call.kind
        if call is not None and self._before is not None and self._before == before:
            self._again = Repeat.of(call, arguments, named, self.function.arguments)

    def explain(self) -> str:
        """What was made of it: statements, order, what is parallel, what was proven."""
        return self._stored().explained

    @property
    def tree(self) -> str:
        """The schedule tree of the kernel that was called, or compiled, last.

        For a CPU it can be given back, as it is or edited: `polyc.kernel(schedule=f.tree)(…)`.
        """
        return self._stored().schedule

    @property
    def source(self) -> str:
        """The C or CUDA of the kernel that was called, or compiled, last."""
        return self._stored().source

    def export(self, folder: str | os.PathLike[str]) -> None:
        """Write what was called, or compiled, last as C that `make` builds, for any sizes.

        folder: src/*, runtime/*, model_NAME.h (the interface), an example, a Makefile, as
        `CompiledModel.export` writes them; of a kernel for a GPU for the sizes of the last call.
        """
        from polyc.build.export import export_bundle

        stored = self._stored()
        if isinstance(self._last, Caller):
            stored = _fetch_for_all(self._order(self._last.signature))
        export_bundle(stored.bundle, Path(folder), self.options.patience)

    @property
    def _name(self) -> str:
        return repr(self.function.name)

    @property
    def _choices(self) -> Choices:
        return self.target, self.options, self.schedule

    def _stored(self) -> Stored:
        """What was made for the last call, or compiled last."""
        if self._last is None:
            if not self._annotated() and self.function.arguments:
                raise ShapeError(
                    f"kernel {self._name} has not been compiled; call it, or compile it for types"
                )
            self.compile()
        assert self._last is not None
        if self._last.stored is None:
            raise ShapeError(
                f"kernel {self._name} is for a GPU, and nothing was compiled yet: sizes are not "
                "known, or ask for no work; call it, or compile it for types whose sizes are "
                "numbers, as in polyc.f64[40, 30]"
            )
        return self._last.stored

    def _annotated(self) -> dict[str, Argument]:
        found = inspect.get_annotations(self.python, eval_str=True)
        return {name: a for name, a in found.items() if isinstance(a, Argument)}

    def _bind(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        names = self.function.arguments
        if len(arguments) + len(named) != len(names) or len(arguments) > len(names):
            raise ShapeError(
                f"kernel {self._name} takes {len(names)} arguments ({', '.join(names)}), not "
                f"{len(arguments) + len(named)}"
            )
        values = dict(zip(names, arguments, strict=False))
        for name, value in named.items():
            if name not in names or name in values:
                raise ShapeError(
                    f"kernel {self._name} has no argument {name!r} left; it takes "
                    f"{', '.join(names)}"
                )
            values[name] = value
        return {name: values[name] for name in names}

    def _find(self, values: Mapping[str, Any]) -> AnyCaller:
        """What is compiled for arguments like these."""
        kinds = tuple(map(_kind, values.values()))
        known = self._known.get(kinds)
        if known is None:
            known = self._known[kinds] = self._choose(values)
        self._last = known
        return known

    def _forget_others(self) -> None:
        """Forget what was chosen before a choice was another: told by identity, for each call."""
        known = self._known_for
        if known is None or not (
            known[0] is self.target and known[1] is self.options and known[2] is self.schedule
        ):
            self._known.clear()
            self._known_for, self._again = self._choices, None

    def _choose(self, values: Mapping[str, Any]) -> AnyCaller:
        """What is compiled for these arguments; else it is compiled now, unless it was declared."""
        annotated = self._annotated()
        mine = [c for (choices, _), c in self._callers.items() if choices == self._choices]
        for caller in mine:
            if all(_fits(a, values[n]) for n, a in caller.signature.arguments.items()):
                return caller
        if mine and annotated:
            return mine[0]  # which says what does not fit
        return self._prepare({n: annotated.get(n) or argument_of(n, v) for n, v in values.items()})

    def _prepare(self, types: Mapping[str, Argument]) -> AnyCaller:
        key = self._choices, tuple(types.values())
        if key not in self._callers:
            self._check_ranks(types)
            self._callers[key] = self._make_caller(Signature(types))
        self._last, self._again = self._callers[key], None
        return self._last

    def _make_caller(self, signature: Signature) -> AnyCaller:
        order = self._order(signature)
        if isinstance(order.target, Target):
            usual = _fetch_for_cpu(order, usual=True)
            return Caller(signature, usual, lambda: _fetch_for_cpu(order, usual=False))
        if isinstance(self.schedule, TreeText):
            raise IllegalSchedule(
                f"kernel {self._name}: a tree is for a CPU; for a GPU give directives, such as "
                "'block i | thread j'"
            )
        load = _CudaLoader(order)
        caller = CudaCaller(signature, self.function.written, load, load.begin)
        if not signature.sizes:
            caller.prepare(())
        return caller

    def _order(self, signature: Signature) -> Order:
        target = resolve_target(self.target, self.options)
        return Order(self.function, signature, target, self.options, self.schedule)

    def _check_ranks(self, types: Mapping[str, Argument]) -> None:
        for name, type_ in types.items():
            check_dtype(name, type_.dtype)
            if name in self.function.arrays and type_.dims is None:
                raise ShapeError(
                    f"kernel {self._name} takes elements of {name!r}, which is a number; give an "
                    "array"
                )


def _fetch_for_cpu(order: Order, *, usual: bool) -> Loaded:
    """A kernel from the cache, or compiled, and in memory: for the usual sizes or for all."""

    def make(folder: Path, cache: Cache) -> None:
        from polyc.loops.run.make import make_for_cpu

        make_for_cpu(order, usual, folder, cache)

    return Loaded.open(fetch(order, ("usual" if usual else "general",), make))


def _fetch_for_all(order: Order) -> Stored:
    """The same for all sizes at once."""

    def make(folder: Path, cache: Cache) -> None:
        from polyc.loops.run.make import make_for_all

        make_for_all(order, folder, cache)

    return fetch(order, ("all",), make)


@dataclass(frozen=True)
class _CudaLoader:
    """Loads a kernel for a GPU and some sizes, from the cache or compiled.

    front: what is found once for all sizes, if anything has to be compiled.
    """

    order: Order

    @functools.cached_property
    def front(self) -> Front:
        from polyc.loops.run.compile_cuda import begin

        order = self.order
        given = order.given
        assert not isinstance(given, TreeText), "a tree is for a CPU"
        return begin(order.function, order.signature, order.options, given)

    def begin(self) -> None:
        """Find what is found once; UnsupportedLoop for what is outside of the subset."""
        _ = self.front

    def __call__(self, sizes: tuple[int, ...]) -> LoadedForCuda | None:
        """None if nothing is to be done; ShapeError for sizes that leave an array."""

        def make(folder: Path, cache: Cache) -> None:
            from polyc.loops.run.compile_cuda import compile_for_cuda
            from polyc.loops.run.make import make_for_cuda

            compiled = compile_for_cuda(self.front, sizes, self.order.options)
            if compiled is None:
                raise _NoWorkError
            make_for_cuda(self.order, compiled, folder, cache)

        try:
            stored = fetch(self.order, ("sizes", *map(str, sizes)), make)
        except _NoWorkError:
            return None
        return LoadedForCuda.open(stored)


class _NoWorkError(Exception):
    """With some sizes a kernel has nothing to do."""


def _kind(value: Any) -> Kind:
    """What decides for which types a kernel has to be compiled."""
    if isinstance(value, np.ndarray):
        return np.ndarray, value.dtype, value.ndim
    return type(value), None, 0


def _fits(argument: Argument, value: Any) -> bool:
    """Whether a value is of the type and the rank of an argument."""
    try:
        given = argument_of("", value)
    except ShapeError:
        return False
    if argument.dims is None or given.dims is None:
        return argument == given
    return argument.dtype == given.dtype and len(argument.dims) == len(given.dims)


@overload
def kernel(function: Callable[..., Any]) -> LoopKernel: ...


@overload
def kernel(
    *,
    threads: int = 0,
    options: Options | None = None,
    schedule: str | None = None,
    target: str | Target | CudaTarget = "cpu",
) -> Callable[[Callable[..., Any]], LoopKernel]: ...


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    threads: int = 0,
    options: Options | None = None,
    schedule: str | None = None,
    target: str | Target | CudaTarget = "cpu",
) -> LoopKernel | Callable[[Callable[..., Any]], LoopKernel]:
    """Make a kernel of a function of loops over arrays: see `polyc/loops/README.md`.

    threads: how many share a call; 0 for all that this process may use, or one, if others would
    wait for more than they save.
    schedule: in place of what isl decides: directives, or a tree as `explain()` shows it.
    target: as `polyc.compile` takes it, a CPU or "cuda".
    """
    given = None if schedule is None else read_schedule(schedule)

    def make(text: Callable[..., Any]) -> LoopKernel:
        return LoopKernel(text, threads, options or options_from_environment(), given, target)

    return make if function is None else make(function)
