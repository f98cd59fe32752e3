"""A model as a library that computes in a prime field: as printed, and as lowered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyc.exact.compile_field import Texts, in_field
from polyc.exact.field import Field, encode, field_for
from polyc.exact.on_cpu import CpuFieldModel, build_on_cpu
from polyc.exact.on_cuda import CudaFieldModel, build_on_cuda
from polyc.exact.print_reference import declare_reference, print_reference
from polyc.options import Options
from polyc.pipeline import Compiled, run_pipeline
from polyc.scop.expr import walk
from polyc.scop.scop import Scop
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target
from polyc.trace import make_trace


@dataclass(frozen=True)
class Reference:
    """The statements as lowered, as C functions on arrays in the order of the scop."""

    scop: Scop
    constants: Mapping[str, np.ndarray]
    functions: Sequence[Any]
    ffi: Any


@dataclass(frozen=True)
class Built:
    """What is run, what it is compared with, and the choice of a run, which both go by."""

    model: CpuFieldModel | CudaFieldModel
    reference: Reference
    choose: Any
    field: Field
    compiled: Compiled


def build_exact(model: Any, target: Target | CudaTarget, options: Options) -> Built:
    """Compile a model for the exact run.

    Raises what `polyc.compile` raises for a model that is not compiled ahead, and BuildError
    without a C++ compiler.
    """
    options = replace(options, tune=0.0, dump=())
    compiled = run_pipeline(model, target, options, make_trace(options))
    lowered = compiled.lowered
    stored = {array.dtype for array in compiled.program.arrays.values()}
    field = field_for(dtypes_of(lowered) | stored)
    units = print_reference(lowered, [size.name for size in compiled.program.sizes])
    units[0] += _CHOICE
    reference = Texts(
        {f"reference_{k}.c": in_field(text, field, "polyc.h") for k, text in enumerate(units)},
        declare_reference(len(units)) + _DECLARE_CHOICE,
    )
    made: CpuFieldModel | CudaFieldModel
    if isinstance(target, CudaTarget):
        made = build_on_cuda(compiled, reference, field, target, options)
    else:
        made = build_on_cpu(compiled, reference, field, target, options)
    functions = [getattr(made.functions, f"pc_reference_{k}") for k in range(len(units))]
    constants = {n: encode(a.value, field) for n, a in lowered.arrays.items()
                 if a.value is not None}  # fmt: skip
    return Built(
        made,
        Reference(lowered, constants, functions, made.ffi),
        made.functions.pc_choose,
        field,
        compiled,
    )


def dtypes_of(scop: Scop) -> set[np.dtype]:
    """All element types that a scop stores or computes."""
    found = {array.dtype for array in scop.arrays.values()}
    return found.union(e.dtype for s in scop.statements for e in walk(s.value))


_CHOICE = """
struct pc_exact_choice pc_exact;
extern "C" void pc_choose(u64 zero, u64 salt) { pc_exact.zero = zero, pc_exact.salt = salt; }
"""

_DECLARE_CHOICE = "void pc_choose(uint64_t zero, uint64_t salt);"
