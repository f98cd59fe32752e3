"""The proof of all kernels of a model together: their launches compute what the model states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from polyc.analysis.launches.partition import Part
from polyc.analysis.launches.verify import Launched, verify_launches
from polyc.analysis.proof import add_up, counted
from polyc.backends.kernels import CompiledKernels
from polyc.mapping.stored_kernel import StoredKernel
from polyc.program.program import Program
from polyc.scop.scop import Array, Scop


def prove_launches(
    program: Program,
    stated: Scop,
    arrays: Mapping[str, Array],
    stored: Sequence[StoredKernel],
    compiled: CompiledKernels,
    await_constants: Callable[[], None] = lambda: None,
) -> Launched:
    """What was proven of the kernels one by one and of their launches, and what these touch.

    `stated` is what all of them have to compute; `arrays` has those of packed copies as well;
    `await_constants` returns when constants are in place.
    """
    launches = zip(program.launches, stored, strict=True)
    parts = [
        Part(launch.kernel, one.statements, one.step, one.branches) for launch, one in launches
    ]
    launched = verify_launches(program, stated, arrays, parts, compiled.judged, await_constants)
    total = add_up((k.proof for k in compiled.kernels if k.proof), "all kernels")
    kernels = f"{counted(len(compiled.kernels), 'kernel')}: {total.facts}"
    return replace(launched, facts=(kernels, *launched.facts))
