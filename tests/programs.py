"""Small programs with kernels written by hand, to test what comes after code generation."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyc.analysis.launches.access import LaunchAccess
from polyc.backends.bind import Constant
from polyc.codegen.cuda.grid import DeviceText
from polyc.loopnest.nodes import Block, Kernel
from polyc.loopnest.prototype import Param
from polyc.memory.storage import row_major
from polyc.options import Options
from polyc.poly.boxes import box
from polyc.program.program import Launch, Program, StoredArray
from polyc.report.report import KernelRow, NotFused
from polyc.scop.scop import Array, Kind
from polyc.trace import Trace
from polyc.types.spec import TensorSpec

F32 = np.dtype(np.float32)

SCALE_C = """
#include "polyc.h"
void scale(
    const f32 *restrict x, const f32 *restrict w, f32 *restrict y, pc_thread *pc_self, int *status)
{
    (void)status;
    PC_SHARE(6)
        y[pc_n] = x[pc_n] * w[0];
}
"""

GATHER_C = """
#include "polyc.h"
void gather(
    const f32 *restrict x, const i64 *restrict k, f32 *restrict y, pc_thread *pc_self, int *status)
{
    PC_SHARE(1) {
        if (k[0] < 0 || k[0] >= 6)
            *status = 1;
        else
            y[0] = x[k[0]];
    }
}
"""


@dataclass(frozen=True)
class FakeCompiled:
    """What the pipeline hands over."""

    program: Program
    sources: Mapping[str, str]
    rows: tuple[KernelRow, ...]
    devices: Mapping[str, DeviceText] = field(default_factory=dict)
    rewrites: tuple[str, ...] = ()
    operators: Mapping[str, str] = field(default_factory=dict)
    not_fused: tuple[NotFused, ...] = ()
    proven: tuple[str, ...] = ()
    keys: tuple[str, ...] = ("one", "two")
    symbols: Mapping[str, str] = field(default_factory=dict)
    float_sums: tuple[tuple[str, str], ...] = ()

    @property
    def touched(self) -> tuple[LaunchAccess, ...]:
        return whole_arrays(self.program)

    judged = touched

    @property
    def schedules(self) -> tuple[tuple[str, str], ...]:
        told = {row.name: row.schedule for row in self.rows}
        return tuple((one.origin[-1], told[one.kernel]) for one in self.program.launches)

    @property
    def gains(self) -> tuple[float, ...]:
        return (0.0,) * len(self.program.launches)


def whole_arrays(program: Program) -> tuple[LaunchAccess, ...]:
    """What launches touch, as far as their arguments tell: all of every array."""
    kernels = {k.name: k for k in program.kernels}
    touched = []
    for launch in program.launches:
        boxes = {a: box(a, program.arrays[a].storage.shape) for a in launch.arguments}
        params = kernels[launch.kernel].params
        writes = {a for a, p in zip(launch.arguments, params, strict=True) if p.writes}
        touched.append(
            LaunchAccess(
                launch.kernel,
                {a: b for a, b in boxes.items() if a not in writes},
                {a: b for a, b in boxes.items() if a in writes},
            )
        )
    return tuple(touched)


def stored(
    name: str,
    shape: tuple[int, ...],
    kind: Kind,
    dtype: np.dtype = F32,
    value: np.ndarray | None = None,
) -> StoredArray:
    return StoredArray(name, dtype, kind, row_major(Array(name, dtype, shape, kind)), value)


def param(name: str, shape: tuple[int, ...], writes: bool, dtype: np.dtype = F32) -> Param:
    return Param(name, dtype, shape, writes)


def scale_program(factors: tuple[float, ...] = (2.0, 3.0), name: str = "scales") -> Program:
    """y = x * f0 * f1 * … by one launch of `scale` a factor; temporaries t1, t2, … between."""
    kernel = Kernel(
        "scale",
        (param("x", (6,), False), param("w", (1,), False), param("y", (6,), True)),
        Block(()),
    )
    last = len(factors)
    links = ["x", *(f"t{k}" for k in range(1, last)), "y"]
    arrays = [stored("x", (2, 3), "input"), stored("y", (2, 3), "output")]
    arrays += [stored(n, (2, 3), "temporary") for n in links[1:-1]]
    arrays += [
        stored(f"w{k}", (1,), "constant", value=np.array([f], np.float32))
        for k, f in enumerate(factors)
    ]
    launches = tuple(
        Launch("scale", (links[k], f"w{k}", links[k + 1]), (f"mul_{k}",), 6, 52)
        for k in range(last)
    )
    spec = TensorSpec("x", F32, (2, 3)), TensorSpec("y", F32, (2, 3))
    return Program(
        name,
        (kernel,),
        launches,
        {a.name: a for a in arrays},
        ((spec[0], "x"),),
        ((spec[1], "y"),),
    )


HOSTILE = ["*/ int x; /*", "a\nb", 'q"\\', "é/*\r"]
"""Names of nodes that would end a comment, or a line."""


def assert_inside_comments(print_driver: Callable[[Program], str], name: str) -> None:
    """What nodes and models are called stays inside of its comment."""
    program = scale_program((1.0,), name=name)
    launches = (replace(program.launches[0], origin=(name,)),)
    text = print_driver(replace(program, launches=launches))
    plain = print_driver(scale_program((1.0,), name="m"))
    assert text.count("*/") == plain.count("*/")
    assert len(text.splitlines()) == len(plain.splitlines())
    assert text.isascii()


def gather_program() -> Program:
    """y = x[k] for x of six elements; also returns x, and a constant c."""
    i64 = np.dtype(np.int64)
    kernel = Kernel(
        "gather",
        (param("x", (6,), False), param("k", (1,), False, i64), param("y", (1,), True)),
        Block(()),
    )
    arrays = [
        stored("x", (6,), "input"),
        stored("k", (), "input", i64),
        stored("y", (), "output"),
        stored("c", (2, 0), "constant", value=np.zeros((2, 0), np.float32)),
        stored("d", (2,), "constant", value=np.array([5, 7], np.float32)),
    ]
    inputs = (TensorSpec("x", F32, (6,)), "x"), (TensorSpec("k", i64, ()), "k")
    outputs = (
        (TensorSpec("y", F32, ()), "y"),
        (TensorSpec("same", F32, (6,)), "x"),
        (TensorSpec("empty", F32, (2, 0)), "c"),
        (TensorSpec("fixed", F32, (2,)), "d"),
    )
    launch = Launch("gather", ("x", "k", "y"), ("Gather_1",), 0, 16)
    return Program(
        "gather*/model", (kernel,), (launch,), {a.name: a for a in arrays}, inputs, outputs
    )


def compiled(program: Program, *texts: str | DeviceText) -> FakeCompiled:
    """What the pipeline makes of a program, whose kernels have these texts."""
    pairs = list(zip(program.kernels, texts, strict=True))
    sources = {f"{k.name}.c": t for k, t in pairs if isinstance(t, str)}
    devices = {k.name: t for k, t in pairs if isinstance(t, DeviceText)}
    rows = tuple(KernelRow(k.name, (), "parallel i", None, None, "proven") for k in program.kernels)
    operators = {node: "Mul" for launch in program.launches for node in launch.origin}
    return FakeCompiled(program, sources, rows, devices, operators=operators)


def constants_of(program: Program) -> list[Constant]:
    """The constants of a program, whose stored contents are in the order of their indices."""
    arrays = (a for a in program.arrays.values() if a.value is not None)
    return [Constant(a.name, a.value, a.storage) for a in arrays]


def install_pipeline(monkeypatch: pytest.MonkeyPatch, result: FakeCompiled) -> Any:
    """Make `polyc.compile` take its program from here; `calls` counts how often it asks."""
    module: Any = types.ModuleType("polyc.pipeline")
    module.calls = 0
    module.result = result

    def run_pipeline(
        model: object,
        target: object,
        options: object,
        trace: Trace,
        tuned: object = None,
        emit: Callable[[Any], None] = lambda kernel: None,
        kept: object = None,
        begin: Callable[[Any], object] = lambda constants: None,
        see: Callable[[Any, Any, Any], None] = lambda program, touched, symbols: None,
    ) -> FakeCompiled:
        module.calls += 1
        with trace.step("lower"):
            trace.dump("graph", "the graph")
        for name, text in module.result.sources.items():
            emit(types.SimpleNamespace(file=name, source=text, template=None))
        for kernel in module.result.program.kernels:
            if device := module.result.devices.get(kernel.name):
                emit(types.SimpleNamespace(kernel=kernel, device=device))
        begin(constants_of(module.result.program))
        see(module.result.program, module.result.touched, module.result.symbols)
        return module.result

    module.run_pipeline = run_pipeline
    monkeypatch.setitem(sys.modules, "polyc.pipeline", module)
    return module


def options(folder: Path, **choices: object) -> Options:
    return Options(threads=2, cache_dir=folder / "cache", progress=False, **choices)  # type: ignore[arg-type]
