"""A model as a folder of text that `make` builds without Python.

NAME.h         the interface      src/*, runtime/*       the code
weights.bin    the constants      Makefile               lib/NAME.so, example, for C also lib/NAME.a
example.c      runs the model once on zeros

A model for a CPU needs nothing but a C compiler, libc and libm; one for a GPU nvcc.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from polyc.build import export_c, export_cuda
from polyc.build.bundle import SOURCE_FOLDER, WEIGHTS_FILE, Manifest
from polyc.build.export_names import identifier
from polyc.build.runtime_files import read_cuda_runtime, read_runtime
from polyc.errors import InvalidModel

EXAMPLE_FILE = "example.c"
MAKEFILE = "Makefile"


def export_bundle(bundle: Path, manifest: Manifest, folder: Path) -> None:
    """Write the sources of a bundle to a folder; an earlier export there is replaced."""
    name = identifier(manifest.name)
    if folder.exists() and not _is_replaceable(folder):
        raise InvalidModel(
            f"{folder} exists and is not an exported model; choose another folder to export to"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".polyc-", dir=folder.parent) as draft:
        new = Path(draft) / "new"
        shutil.copytree(bundle / SOURCE_FOLDER, new / "src")
        on_cpu = manifest.platform == "cpu"
        printer = export_c if on_cpu else export_cuda
        headers = read_runtime() if on_cpu else read_cuda_runtime()
        texts = {f"runtime/{header}": text for header, text in headers.items()}
        texts[f"{name}.h"] = printer.print_interface(manifest)
        texts[EXAMPLE_FILE] = printer.print_example(manifest)
        texts[MAKEFILE] = printer.print_makefile(manifest)
        (new / "runtime").mkdir()
        for file, text in texts.items():
            (new / file).write_text(text, encoding="utf-8")
        if manifest.weights_bytes:
            shutil.copyfile(bundle / WEIGHTS_FILE, new / WEIGHTS_FILE)
        if folder.exists():
            folder.rename(Path(draft) / "old")
        new.rename(folder)


def _is_replaceable(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    return not any(folder.iterdir()) or all(
        (folder / part).exists() for part in (MAKEFILE, EXAMPLE_FILE, "src", "runtime")
    )
