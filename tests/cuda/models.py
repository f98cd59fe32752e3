"""Models for a GPU as one text, whose polyc_run takes every array as a buffer: for sanitizers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyc.codegen.cuda.driver import print_unit
from polyc.graph.ir import Graph
from polyc.options import Options
from polyc.pipeline import Compiled, run_pipeline
from polyc.target.cuda import CudaTarget
from polyc.trace import Trace
from polyc.types.element_types import scalar_type


@dataclass(frozen=True)
class Model:
    """A compiled model, and the text that runs it: buffers are all its arrays, in order."""

    compiled: Compiled

    @property
    def text(self) -> str:
        program = self.compiled.program
        position = {name: k for k, name in enumerate(program.arrays)}
        kernels = {k.name: k for k in program.kernels}
        lines = [
            print_unit(program.kernels, self.compiled.devices),
            'extern "C" int polyc_run(void **buffers, void *workspace, void *stream)',
            "{",
            "    int error = 0, *status = (int *)workspace;",
        ]
        for launch in program.launches:
            arguments = [
                f"({'' if p.writes else 'const '}{scalar_type(p.dtype)} *)buffers[{position[a]}]"
                for p, a in zip(kernels[launch.kernel].params, launch.arguments, strict=True)
            ]
            inside = ", ".join([*arguments, "status", "stream"])
            lines.append(f"    if (!error) error = launch_{launch.kernel}({inside});")
        return "\n".join([*lines, "    return error;", "}", ""])

    def buffers(self, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Every array, temporaries poisoned."""
        program = self.compiled.program
        given = {name: f for (_, name), f in zip(program.inputs, feeds, strict=True)}
        found = []
        for name, array in program.arrays.items():
            if array.value is not None:
                found.append(np.asarray(array.value, array.dtype))
            elif name in given:
                found.append(np.asarray(given[name], array.dtype))
            else:
                poison = np.nan if array.dtype.kind == "f" else 77
                found.append(np.full(array.storage.shape, poison, array.dtype))
        return found


def compile_model(graph: Graph | str, arch: str = "sm_80", **choices: Any) -> Model:
    """A model for an architecture, compiled with these options."""
    return Model(run_pipeline(graph, CudaTarget.named(arch), Options(**choices), Trace()))
