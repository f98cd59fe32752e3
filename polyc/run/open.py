"""Opening compiled models: each by the class that runs what it was compiled for."""

from __future__ import annotations

from pathlib import Path

from polyc.build.bundle import Bundle, load_bundle
from polyc.run.model import CompiledModel


def open_model(bundle: Bundle) -> CompiledModel:
    """A model ready to run. BuildError when this machine cannot run it."""
    if bundle.manifest.platform == "cpu":
        from polyc.run.cpu_model import CpuModel

        return CpuModel(bundle)
    from polyc.run.cuda.model import CudaModel

    return CudaModel(bundle)


def load_model(path: Path, digest: str | None = None) -> CompiledModel:
    """Open a saved model. No compiler is needed.

    It is native code: open only what you trust. Raises InvalidModel for a folder that is damaged,
    or whose digest is another one, BuildError when this machine cannot run it.
    """
    return open_model(load_bundle(path, digest))
