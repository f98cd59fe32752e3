"""A compiled model before it is built: kernels, the order of their launches, and the arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from polyc.graph.states import State
from polyc.loopnest.prototype import Prototype
from polyc.memory.storage import Storage
from polyc.program.work import Work
from polyc.scop.scop import Kind
from polyc.types.branches import Branches, Demands
from polyc.types.found import found_in
from polyc.types.parameters import Parameter
from polyc.types.ranges import STEP, Step
from polyc.types.sizes import Extent, Size
from polyc.types.spec import TensorSpec


@dataclass(frozen=True)
class StoredArray:
    """An array of the program in its stored form; `value` is a constant's stored content.

    `holds` names the scop's array that it is, where that has another name: a constant that is read
    in two layouts is two arrays. `memory` names the array whose memory it is, under another shape.
    """

    name: str
    dtype: np.dtype
    kind: Kind
    storage: Storage
    value: np.ndarray | None = field(default=None, compare=False, repr=False)
    holds: str = ""
    memory: str = ""

    @property
    def source(self) -> str:
        """The scop's array that it is."""
        return self.holds or self.name

    @property
    def bytes(self) -> Extent:
        return self.storage.size * self.dtype.itemsize


@dataclass(frozen=True)
class Launch:
    """One call of a kernel: the arrays bound to its parameters, in order.

    `flops` and `bytes` are the scalar operations and the bytes of arrays touched; `origin` names
    the graph nodes computed; `copies` says what a launch moves that computes nothing. Those in a
    row with the same `step` are launched again for each of its steps. `branches`: the arrays, of
    one boolean, that say in a call whether it is made. `work`: what it takes, on a CPU. `runs`: how
    often it runs in a call of the sizes that kernels are chosen for. `sizes`: what sizes that the
    kernel speaks of are in the launch, where they have other names.
    """

    kernel: str
    arguments: tuple[str, ...]
    origin: tuple[str, ...] = ()
    flops: int = 0
    bytes: int = 0
    copies: str = ""
    step: Step | None = None
    branches: Branches = ()
    work: Work | None = None
    runs: int = 1
    sizes: Mapping[str, str] = field(default_factory=dict)

    @property
    def touched(self) -> tuple[str, ...]:
        """Its arrays, and those that decide whether it is made."""
        return (*self.arguments, *(branch.condition for branch in self.branches))

    def told(self, kernel: Prototype) -> tuple[str, ...]:
        """What it tells its kernel: sizes, and the number of the step that it is in."""
        step = self.step.name if self.step else ""
        steps = {name: step for name in kernel.sizes if step and name.startswith(STEP)}
        return tuple(steps.get(name, self.sizes.get(name, name)) for name in kernel.sizes)


@dataclass(frozen=True)
class Program:
    """Distinct kernels, their launches in execution order, and every array they touch.

    `inputs` and `outputs` pair the caller's view with the array that holds it, in the graph's
    order. `sizes` are those known only at run time: what a call is told, in this order, behind
    them what it finds, in the order of the last outputs, which hold them, and what follows from
    these. The input and the output of a state in place are one array. `demands`: what calls that
    take branches need of sizes, by the arrays that decide; the driver checks it.
    """

    name: str
    kernels: tuple[Prototype, ...]
    launches: tuple[Launch, ...]
    arrays: Mapping[str, StoredArray]
    inputs: tuple[tuple[TensorSpec, str], ...]
    outputs: tuple[tuple[TensorSpec, str], ...]
    sizes: tuple[Parameter, ...] = ()
    states: tuple[State, ...] = ()
    demands: Demands = field(default_factory=dict)

    def home(self, array: str) -> str:
        """The array whose memory an array is: itself, but for those that say another."""
        return self.arrays[array].memory or array

    @property
    def told(self) -> tuple[Parameter, ...]:
        """The sizes that a call is told."""
        return tuple(size for size in self.sizes if size.is_told)

    @property
    def found(self) -> dict[str, str]:
        """The sizes that a call finds, and the arrays that hold them."""
        sizes = [size.name for size in self.sizes if size.most is not None]
        arrays = [name for _, name in self.outputs[len(self.outputs) - len(sizes) :]]
        return dict(zip(sizes, arrays, strict=True))

    def awaited(self, launch: Launch, kernel: Prototype) -> frozenset[str]:
        """The sizes that must be found before a launch of a kernel is made."""
        step = [launch.step.steps] if launch.step else []
        return found_in([*map(Size.of, launch.told(kernel)), *step])

    @property
    def in_place(self) -> dict[int, int]:
        """Position of an output among inputs and outputs -> that of the input where it lies."""
        return {len(self.inputs) + s.output: s.input for s in self.states if s.in_place}
