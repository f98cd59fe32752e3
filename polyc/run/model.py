"""What compiled models have in common, whatever they run on; `run/open.py` reads one."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyc.build.bundle import Bundle, save_bundle
from polyc.errors import RuntimeFailure
from polyc.graph.states import State, states_refused
from polyc.names import show
from polyc.options import read_patience
from polyc.report.report import Report
from polyc.run.calls import Binder
from polyc.types.ranges import SizeRange
from polyc.types.spec import TensorSpec

if TYPE_CHECKING:
    from polyc.run.session import Session


class CompiledModel(ABC):
    """A model ready to run: arrays in, arrays out.

    Calls from several Python threads run side by side: each takes its own memory from a pool, and
    the GIL is released while compiled code runs.
    """

    states: tuple[State, ...] = ()
    found: tuple[SizeRange, ...] = ()
    """Sizes of outputs that a call finds, each with the most that there may be."""
    needed: tuple[str, ...] = ()
    """Inputs of which a call must bring values that mean something: shapes follow from them."""

    def __init__(self, bundle: Bundle) -> None:
        manifest = bundle.manifest
        self._bundle = bundle
        self._manifest = manifest
        self.name: str = manifest.name
        self.inputs: tuple[TensorSpec, ...] = manifest.inputs
        self.outputs: tuple[TensorSpec, ...] = manifest.outputs
        self.needed = tuple(spec.name for spec in self.inputs if spec.values)
        self.sizes: tuple[SizeRange, ...] = manifest.sizes
        self.found = manifest.found
        self._results = [s.name for s in self.outputs]
        # Where sizes are known only at run time, what depends on them is prepared by call.
        is_open = manifest.sizes or manifest.found
        self._binder = Binder(self.name, self.inputs, () if is_open else self.outputs)
        self.threads: int = 1

    @abstractmethod
    def __call__(self, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """Run the model on inputs in order, or by name.

        Returns the output, or a tuple in the graph's order if there are several. `out`, an array or
        a sequence of arrays, is written into and returned. Lists and scalars are converted; arrays
        must have the input's type. A long call on a CPU hears signals between its kernels: what a
        handler raises ends it, and leaves `out` and states undefined. Raises ShapeError for an
        array that does not fit, RuntimeFailure for an index out of range.
        """

    @abstractmethod
    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Run the model by name: {input: array} -> {output: array}."""

    def start(self, begin: Mapping[str, Any] | Session | None = None) -> Session:
        """A session: calls that follow one another, each with the states that the last one left.

        begin: values of states by the names of their inputs; those that are not given are zeros,
        and empty if they grow. Or a session of another model that keeps the same states, one
        compiled for other sizes: then both go on with the same memory.

        Raises ShapeError for values that do not fit, UnsupportedOp for a model for a GPU.
        """
        raise states_refused("this one is not")

    @abstractmethod
    def profile(self, feeds: Mapping[str, Any], repeats: int = 7) -> tuple[float, ...]:
        """Seconds of each launch, in order: the median of several runs after one to warm up."""

    def explain(self, feeds: Mapping[str, Any] | None = None) -> Report:
        """What was fused, how it is scheduled, what it costs; with times if `feeds` are given."""
        report = self._manifest.report
        return report if feeds is None else report.with_seconds(self.profile(feeds))

    @property
    def schedules(self) -> dict[str, str]:
        """How each kernel runs, by its name, as `polyc.compile(schedule=…)` takes it."""
        return {row.called: row.schedule for row in self.explain().kernels}

    @property
    def place(self) -> str:
        """Where it runs, in words: "2 threads", "GPU", "the emulator"."""
        platform = self._manifest.platform
        if platform == "cpu":
            return f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        return "GPU" if platform == "cuda" else "the emulator"

    @property
    def weights_bytes(self) -> int:
        """Bytes of constants that the model reads."""
        return self._manifest.weights_bytes

    @property
    def source(self) -> str:
        """The generated C, or CUDA: all files, each under a line that names it."""
        texts = self._bundle.sources.items()
        return "\n".join(f"/* ---- {name} ---- */\n\n{text}" for name, text in texts)

    @property
    def digest(self) -> str:
        """sha256 over all that `save` writes: what `polyc.load(path, digest=…)` can demand."""
        return self._bundle.digest

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder that `polyc.load` reads, here or on a like machine.

        A folder that an earlier call wrote is replaced, in one step, if nothing in it was changed
        or added. Raises InvalidModel for any other that is not empty, BuildError if it cannot be
        written.
        """
        save_bundle(self._bundle, Path(path), read_patience())

    def export(self, folder: str | os.PathLike[str]) -> None:
        """Write the model as text that `make` builds with nothing but a compiler.

        folder: src/*, runtime/*, model_NAME.h (the interface), weights.bin, an example, a
        Makefile. An earlier export is replaced as by `save`; raises what that raises.
        """
        from polyc.build.export import export_bundle

        export_bundle(self._bundle, Path(folder), read_patience())

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(str, s)) for s in (self.inputs, self.outputs))
        return f"CompiledModel({show(repr(self.name))}: {ins} -> {outs})"

    def _bad_index(self, launch: int) -> RuntimeFailure:
        kernel, origin = self._manifest.launches[launch]
        return RuntimeFailure(
            f"model {self.name!r}: an index is out of range in {', '.join(origin) or kernel}; "
            "check the index inputs against the sizes that they index"
        )
