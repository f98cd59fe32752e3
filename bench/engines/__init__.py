"""Who computes: polyc and its peers, each behind one function."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from polyc.target.machine import missing_features

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """A problem on disk, for engines in processes of their own.

    model: an ONNX file; feeds: a .npz file of inputs by name; results: shape and type of outputs;
    numpy, precision: as of a `Problem`.
    """

    name: str
    model: Path
    feeds: Path
    results: tuple[tuple[tuple[int, ...], np.dtype], ...] = ()
    numpy: Callable[..., object] | None = None
    precision: str = "float32"

    def inputs(self) -> dict[str, np.ndarray]:
        """By name, in the model's order."""
        with np.load(self.feeds) as archive:
            return {name: archive[name] for name in archive.files}

    def typed_inputs(self) -> dict[str, np.ndarray]:
        """The same, as what the model takes; a file of NumPy's has no 16-bit floats of others."""
        types = {i.name: i.type.tensor_type.elem_type for i in self.proto().graph.input}
        to_numpy = onnx.helper.tensor_dtype_to_np_dtype
        return {n: v.astype(to_numpy(types[n]), copy=False) for n, v in self.inputs().items()}

    def outputs(self) -> list[np.ndarray]:
        """Arrays to write into."""
        return [np.empty(shape, dtype) for shape, dtype in self.results]

    def proto(self) -> onnx.ModelProto:
        return onnx.load(self.model)


@dataclass(frozen=True)
class Session:
    """A model, ready to run on inputs that stay the same.

    run: once, into arrays that stay the same where the engine can; result: the first output of the
    last run; kernels: a row for each kernel of it, where the engine tells; calls: how many calls of
    the model `run` is.
    """

    run: Callable[[], object]
    result: Callable[[], np.ndarray]
    kernels: Callable[[], Sequence[Row]] = tuple
    calls: int = 1


@dataclass(frozen=True)
class Engine:
    """name: on the command line; label: in tables; package: what must be installed; features: what
    the CPU must have; environment: that of its process, which is set before the package is loaded.

    Its module has a function `opens`(task, threads) -> Session, which raises what it likes for a
    model that it cannot run.
    """

    name: str
    label: str
    package: str
    module: str
    features: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    opens: str = "open"

    def missing(self) -> str:
        """Why it cannot run here; empty if it can."""
        if importlib.util.find_spec(self.package) is None:
            return f"{self.package} is not installed"
        lacking = missing_features(self.features)
        return f"this CPU lacks {', '.join(lacking)}" if lacking else ""

    def open(self, task: Task, threads: int) -> Session:
        module = importlib.import_module(self.module)
        session: Session = getattr(module, self.opens)(task, threads)
        return session

    def variables(self, threads: int) -> dict[str, str]:
        """The environment of its process: threads, by all the names they go by, and its own."""
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        return {**{n: str(threads) for n in names}, **self.environment}


# Whole-array expressions allocate their values on every call. Memory that the process keeps spares
# them the system's zeroing of fresh pages, which would be most of the time for large arrays.
_KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}

ENGINES: Mapping[str, Engine] = {
    e.name: e
    for e in (
        Engine("polyc", "polyc", "polyc", "bench.engines.polyc_engine"),
        Engine("numpy", "NumPy", "numpy", "bench.engines.numpy_engine", environment=_KEEP_MEMORY),
        Engine(
            "numpy-avx512",
            "NumPy AVX-512",
            "numpy",
            "bench.engines.numpy_engine",
            features=("avx512f", "avx512bw", "avx512dq", "avx512vl"),
            # OpenBLAS takes its AVX2 kernels on some CPUs that have AVX-512.
            environment={**_KEEP_MEMORY, "OPENBLAS_CORETYPE": "SkylakeX"},
        ),
        Engine("onnxruntime", "ONNX Runtime", "onnxruntime", "bench.engines.onnxruntime_engine"),
        Engine("openvino", "OpenVINO", "openvino", "bench.engines.openvino_engine"),
        Engine("torch", "torch", "torch", "bench.engines.torch_engine", environment=_KEEP_MEMORY),
    )
}

AVX2_ENGINES: Mapping[str, Engine] = {
    e.name: e
    for e in (
        replace(ENGINES["polyc"], opens="open_avx2"),
        replace(ENGINES["numpy"], environment={**_KEEP_MEMORY, "OPENBLAS_CORETYPE": "Haswell"}),
        replace(ENGINES["openvino"], environment={"ONEDNN_MAX_CPU_ISA": "AVX2"}),
    )
}
"""Those that can be held to AVX2, on a CPU with more than that."""

_GPU_POLYC, _GPU_TORCH = "bench.gpu.polyc_engine", "bench.gpu.torch_engine"

GPU_ENGINES: Mapping[str, Engine] = {
    e.name: e
    for e in (
        Engine("polyc", "polyc", "polyc", _GPU_POLYC),
        Engine("polyc-graph", "polyc, graph", "polyc", _GPU_POLYC, opens="open_graph"),
        Engine("torch", "torch", "torch", _GPU_TORCH),
        Engine("torch-graph", "torch, graph", "torch", _GPU_TORCH, opens="open_graph"),
        Engine("cupy", "CuPy", "cupy", "bench.gpu.cupy_engine"),
        Engine("torch-compiled", "torch.compile", "torch", _GPU_TORCH, opens="open_compiled"),
    )
}
"""On a GPU; the matrix products of torch and CuPy are those of cuBLAS."""


def label_of(engine: str) -> str:
    """An engine's name in tables."""
    return {**GPU_ENGINES, **ENGINES}[engine].label
