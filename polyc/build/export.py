"""A model as a folder of text that `make` builds without Python.

NAME.h         the interface      src/*, runtime/*       the code
weights.bin    the constants      Makefile               lib/NAME.so, example, for C also lib/NAME.a
example.c      runs the model once on zeros              CHECKSUMS   of these files

NAME is "model_" and the model's own. A model for a CPU needs nothing but a C compiler, libc and
libm; one for a GPU nvcc.
"""

from __future__ import annotations

from pathlib import Path

from polyc.build import export_c, export_cuda
from polyc.build.bundle import WEIGHTS_FILE, Bundle
from polyc.build.export_names import file_name
from polyc.files.place import place_folder
from polyc.files.regular import make_folders
from polyc.toolchain.runtime_files import (
    TEAM_FILE,
    read_cuda_runtime,
    read_runtime,
    read_team,
)

EXAMPLE_FILE = "example.c"
MAKEFILE = "Makefile"
HOLDS = "exported model"


def export_bundle(bundle: Bundle, folder: Path, patience: float) -> None:
    """Write the sources of a bundle to a folder, over an earlier export that is unchanged."""
    manifest = bundle.manifest
    on_cpu = manifest.platform == "cpu"
    printer = export_c if on_cpu else export_cuda
    runtime = {**read_runtime(), TEAM_FILE: read_team()} if on_cpu else read_cuda_runtime()
    texts = {f"src/{name}": text for name, text in bundle.sources.items()}
    texts |= {f"runtime/{name}": text for name, text in runtime.items()}
    texts[f"{file_name(manifest.name)}.h"] = printer.print_interface(manifest)
    texts[EXAMPLE_FILE] = printer.print_example(manifest)
    texts[MAKEFILE] = printer.print_makefile(manifest)

    def fill(new: Path) -> None:
        for file, text in texts.items():
            make_folders((new / file).parent)
            (new / file).write_text(text, encoding="utf-8")
        if bundle.weights.size:
            (new / WEIGHTS_FILE).write_bytes(bundle.weights.data)

    remedy = "say `make clean` there if `make` made it, remove it, or choose another folder"
    place_folder(folder, HOLDS, fill, patience, remedy)
