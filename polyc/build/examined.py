"""What is known of a model's file from the last time that it was hashed.

A model of hundreds of megabytes takes longer to hash than to load. A file that nobody has touched
since, by device, number, size and both of its times, has the hash that it had; the time of the
last change of its state cannot be set at will. External data is held to the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from polyc.errors import InvalidModel
from polyc.files.digest import digest
from polyc.files.folder import Folder
from polyc.files.model_file import TICK, External, ModelChanged, ModelFile, identify_other
from polyc.files.regular import Identity, identify, opened, parse_json
from polyc.files.table import Damaged, read_table
from polyc.files.typed_json import decode
from polyc.toolchain.cache import Cache

KIND = "examined"
FILE = "examined.json"
LARGE = 16 << 20
"""Bytes from which on a model is not hashed twice."""


@dataclass(frozen=True)
class Examined:
    """What is kept: the sha256 of a model, and its external data by location."""

    sha256: str
    others: Mapping[str, External]


def examine(path: Path, cache: Cache) -> ModelFile:
    """`ModelFile.examine`, from the cache if the file is the one that was examined before."""
    with opened(path, "model file") as stream:
        identity = identify(stream)
    if identity.size < LARGE or cache.temporary or _is_fresh(identity):
        return ModelFile.examine(path)
    key = digest([str(path.absolute()), *map(str, asdict(identity).values())])

    def make(folder: Path) -> None:
        found = ModelFile.examine(path)
        with opened(path, "model file") as stream:
            if identify(stream) != identity:
                raise ModelChanged(path)
        text = json.dumps(asdict(Examined(found.sha256, found.others)))
        (folder / FILE).write_text(text, encoding="utf-8")

    known = cache.fetch_and_read(KIND, key, make, _read)
    source = ModelFile(path, known.sha256, known.others)
    return source if _has_others(source) else ModelFile.examine(path)


def _is_fresh(identity: Identity) -> bool:
    """Whether a change could still come that bears the same time as the last one."""
    return time.time_ns() - identity.changed < TICK


def _has_others(source: ModelFile) -> bool:
    """Whether the external data is what it was."""
    try:
        now = [identify_other(name, source.path.parent) for name in source.others]
    except InvalidModel:
        return False
    return now == [one.identity for one in source.others.values()]


def _read(folder: Folder) -> Examined:
    try:
        return decode(Examined, parse_json(read_table(folder).read(folder, FILE)))
    except ValueError as error:
        raise Damaged(f"{folder.path / FILE} is malformed ({error})") from error
