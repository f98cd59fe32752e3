"""A built model as a folder: what the whole-model cache holds and what `save` writes.

    model.so        the library            manifest.json   specs, sizes, report
    weights.bin     constants as stored    source/*        the C or CUDA text
    CHECKSUMS       of the files above

Reading one needs neither a compiler nor onnx nor islpy. Each file is read once, and what was read
is what was compared with the checksums, what runs, and what is saved again: nothing that happens to
the folder later matters. Only weights in the cache that nobody has touched since they were compared
are not compared again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyc.build.manifest import FORMAT, Manifest
from polyc.errors import BuildError, InvalidModel, TooLarge
from polyc.files.folder import Folder
from polyc.files.place import place_folder
from polyc.files.regular import make_folders, parse_json, reason
from polyc.files.table import (
    TABLE_FILE,
    Damaged,
    Entry,
    Recall,
    Table,
    read_table,
)
from polyc.toolchain.c_compiler import LIBRARY_FILE
from polyc.toolchain.pages import allocate_pages

MANIFEST_FILE = "manifest.json"
WEIGHTS_FILE = "weights.bin"
SOURCE_FOLDER = "source"
HOLDS = "saved model"

_ATTEMPTS = 100
"""How often a folder is read anew that was replaced meanwhile."""


@dataclass(frozen=True)
class Bundle:
    """A built model in memory.

    files: the contents of all files but for the weights, by name; weights: bytes, in huge pages;
    digest: sha256 over everything, in hexadecimal digits.
    """

    manifest: Manifest
    files: Mapping[str, bytes]
    weights: np.ndarray
    digest: str

    @property
    def library(self) -> bytes:
        return self.files[LIBRARY_FILE]

    @property
    def sources(self) -> dict[str, str]:
        """File name -> text, sorted by name."""
        start = f"{SOURCE_FOLDER}/"
        named = sorted((n, t) for n, t in self.files.items() if n.startswith(start))
        return {name.removeprefix(start): text.decode("utf-8") for name, text in named}


def write_bundle(
    folder: Path, manifest: Manifest, library: Path, sources: Mapping[str, str]
) -> None:
    """Fill an existing folder, but for its weights and checksums."""
    shutil.copyfile(library, folder / LIBRARY_FILE)
    text = json.dumps(manifest.to_json(), indent=1)
    (folder / MANIFEST_FILE).write_text(text, encoding="utf-8")
    (folder / SOURCE_FOLDER).mkdir()
    for name, content in sources.items():
        (folder / SOURCE_FOLDER / name).write_text(content, encoding="utf-8")


@dataclass(frozen=True)
class Weights:
    """The constants of a bundle: in memory that nobody writes, and what its table says of them."""

    memory: np.ndarray
    entry: Entry


def load_bundle(path: Path, digest: str | None = None) -> Bundle:
    """A saved model; InvalidModel if it is damaged, or if its digest is another one."""
    try:
        return _read_current(path, digest)
    except OSError as error:
        raise InvalidModel(
            f"{path} is not a saved polyc model ({reason(error)}); give a folder that "
            "`CompiledModel.save` wrote"
        ) from error
    except Damaged as error:
        # A folder that polyc never wrote to is a mistake of another kind.
        if not all(os.path.isfile(path / name) for name in (TABLE_FILE, MANIFEST_FILE)):
            raise InvalidModel(
                f"{path} is not a saved polyc model: it has no {MANIFEST_FILE} with its "
                f"{TABLE_FILE}; give a folder that `CompiledModel.save` wrote"
            ) from error
        raise InvalidModel(
            f"saved model {path} is damaged, or of another version of polyc: {error}; save it again"
        ) from error


def _read_current(path: Path, digest: str | None) -> Bundle:
    """The bundle in a folder, which another process may replace while it is read."""
    for _ in range(_ATTEMPTS):
        with Folder(path, private=False) as folder:
            try:
                return read_bundle(folder, digest)
            except Damaged:
                if not folder.is_replaced:
                    raise
    raise Damaged(f"{path} is replaced again and again")


def read_bundle(
    folder: Folder,
    digest: str | None = None,
    written: Weights | None = None,
    recall: Recall | None = None,
) -> Bundle:
    """The bundle in a folder; Damaged if it is not as it was written.

    written: weights that need not be read, if they are those that the table lists; recall: what
    was hashed before, and is not again.
    Raises InvalidModel if its digest is not the one that is demanded, BuildError if there is too
    little memory for its weights.
    """
    table = read_table(folder)
    if digest is not None and digest != table.digest:
        raise InvalidModel(
            f"saved model {folder.path} has the digest {table.digest}, not {digest[:80]!r} as is "
            "demanded; it is another model, or was changed: get it again from whom you trust"
        )
    required = {LIBRARY_FILE, MANIFEST_FILE}
    sources = {name for name in table.files if name.startswith(f"{SOURCE_FOLDER}/")}
    files = {name: table.read(folder, name) for name in sorted(required | sources)}
    for name in sources:
        _check_text(folder, name, files[name])
    manifest = _parse_manifest(folder, files[MANIFEST_FILE])
    weights = _read_weights(folder, table, manifest, written, recall)
    return Bundle(manifest, files, weights, table.digest)


def save_bundle(bundle: Bundle, place: Path, patience: float) -> None:
    """Write a bundle to a folder that is missing, empty, or an older saved model, unchanged."""

    def fill(folder: Path) -> None:
        for name, content in bundle.files.items():
            make_folders((folder / name).parent)
            (folder / name).write_bytes(content)
        if bundle.weights.size:
            (folder / WEIGHTS_FILE).write_bytes(bundle.weights.data)

    remedy = "remove it, or choose another place to save to"
    place_folder(place, HOLDS, fill, patience, remedy)


def _parse_manifest(folder: Folder, text: bytes) -> Manifest:
    try:
        data = parse_json(text)
        if data["format"] != FORMAT:
            told = str(data["format"])[:20]
            raise Damaged(f"it has format {told}, and this polyc reads {FORMAT}")
        return Manifest.from_json(data)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise Damaged(f"{folder.path / MANIFEST_FILE} is malformed ({error})") from error


def _read_weights(
    folder: Folder,
    table: Table,
    manifest: Manifest,
    written: Weights | None,
    recall: Recall | None,
) -> np.ndarray:
    """The constants, in memory that nobody writes."""
    listed = table.files[WEIGHTS_FILE].size if WEIGHTS_FILE in table.files else 0
    if listed != manifest.weights_bytes:
        raise Damaged(
            f"{folder.path / WEIGHTS_FILE} holds {listed} bytes where the manifest says "
            f"{manifest.weights_bytes}"
        )
    if not listed:
        return allocate_pages(0)
    if written and written.entry == table.files[WEIGHTS_FILE]:
        return written.memory
    weights = allocate_weights(listed, f"saved model {folder.path}")
    table.read_into(folder, WEIGHTS_FILE, weights.data, recall)
    weights.flags.writeable = False
    return weights


def allocate_weights(size: int, of: str) -> np.ndarray:
    """Zeroes for constants; BuildError, which says whose, if there is too little memory."""
    try:
        return allocate_pages(size)
    except TooLarge as error:
        raise BuildError(
            f"{of} has {size} bytes of weights, more than there is memory; load it on a larger "
            "machine"
        ) from error


def _check_text(folder: Folder, name: str, content: bytes) -> None:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Damaged(f"{folder.path / name} is no UTF-8") from error
