"""What is known of large files from the last time that they were hashed.

Hundreds of megabytes take longer to hash than to load. A file that nobody has touched since, by
device, number, size and both of its times, has the hash that it had; the time of the last change
of its state cannot be set at will. So it is for models, for their external data, and for the
weights of models that are in the cache.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from polyc.errors import BuildError, InvalidModel
from polyc.files.digest import digest
from polyc.files.folder import Folder
from polyc.files.model_file import External, ModelChanged, ModelFile, identify_other
from polyc.files.regular import Identity, identify, is_settled, opened, parse_json
from polyc.files.table import Damaged, read_table
from polyc.files.typed_json import decode
from polyc.toolchain.cache import Cache

KIND = "examined"
FILE = "examined.json"
LARGE = 16 << 20
"""Bytes from which on a file is not hashed twice."""


@dataclass(frozen=True)
class Examined:
    """What is kept: the sha256 of a file, and if it is a model, its external data by location."""

    sha256: str
    others: Mapping[str, External]


def examine(path: Path, cache: Cache) -> ModelFile:
    """`ModelFile.examine`, from the cache if the file is the one that was examined before."""
    with opened(path, "model file") as stream:
        identity = identify(stream)
    if identity.size < LARGE or cache.temporary or not is_settled(identity):
        return ModelFile.examine(path)

    def make(folder: Path) -> None:
        found = ModelFile.examine(path)
        with opened(path, "model file") as stream:
            if identify(stream) != identity:
                raise ModelChanged(path)
        _write(folder, Examined(found.sha256, found.others))

    known = cache.fetch_and_read(KIND, _key(path, identity), make, _read)
    source = ModelFile(path, known.sha256, known.others)
    return source if _has_others(source) else ModelFile.examine(path)


@dataclass(frozen=True)
class KnownHashes:
    """The sha256 of large files that were read before, in a cache: a `Recall`."""

    cache: Cache

    def find(self, path: Path, identity: Identity) -> str | None:
        """That of a file, if it is the one that was read before."""
        if identity.size < LARGE or self.cache.temporary:
            return None
        known = self.cache.read(KIND, _key(path, identity), _read)
        return known.sha256 if known else None

    def keep(self, path: Path, identity: Identity, sha256: str) -> None:
        """Remember that of a file that had this identity before it was read, and after."""
        if identity.size < LARGE or self.cache.temporary:
            return
        with contextlib.suppress(BuildError):  # then it is hashed the next time as well
            self.cache.fetch(
                KIND, _key(path, identity), lambda folder: _write(folder, Examined(sha256, {}))
            )


def _key(path: Path, identity: Identity) -> str:
    return digest([str(path.absolute()), *map(str, asdict(identity).values())])


def _has_others(source: ModelFile) -> bool:
    """Whether the external data is what it was."""
    try:
        now = [identify_other(name, source.path.parent) for name in source.others]
    except InvalidModel:
        return False
    return now == [one.identity for one in source.others.values()]


def _write(folder: Path, found: Examined) -> None:
    (folder / FILE).write_text(json.dumps(asdict(found)), encoding="utf-8")


def _read(folder: Folder) -> Examined:
    try:
        return decode(Examined, parse_json(read_table(folder).read(folder, FILE)))
    except ValueError as error:
        raise Damaged(f"{folder.path / FILE} is malformed ({error})") from error
