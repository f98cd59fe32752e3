"""Putting a folder of files at a place: all of it at once, and over nothing but its own kind.

    PLACE is missing or empty                         -> it appears
    PLACE holds what an earlier call wrote, unchanged -> it is exchanged for the new one
    PLACE holds anything else                         -> InvalidModel, which names it

What an earlier call wrote is what its table lists (`files/table.py`). The new folder is made beside
the place and takes its name in one step, so a reader finds the old one or the new one.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from polyc.errors import InvalidModel
from polyc.files.folder import Folder
from polyc.files.regular import make_folders, writing
from polyc.files.table import TABLE_FILE, Damaged, Table, read_table, write_table
from polyc.files.waiting import locked

_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
_FROM_HERE = -100  # AT_FDCWD


def place_folder(
    place: Path, holds: str, fill: Callable[[Path], None], patience: float, remedy: str
) -> None:
    """Make a folder by `fill`, and put it at a place, where an older one of its kind may be.

    holds: the kind; patience: seconds to wait for another process that does the same; remedy: what
    to do about files there that are not polyc's. Raises InvalidModel for these, BuildError where
    nothing can be written.
    """
    with writing(place, f"the {holds}"):
        place = Path(os.path.realpath(place))
        make_folders(place.parent)
        with (
            locked(place.parent, patience),
            tempfile.TemporaryDirectory(prefix=".polyc-", dir=place.parent) as draft,
        ):
            new, old = Path(draft) / "new", Path(draft) / "old"
            new.mkdir()
            fill(new)
            write_table(new, holds)
            if not _is_free(place):
                _check_listed(place, holds, remedy)
                _exchange(new, place, old)
                _remove_listed(old, place, holds, remedy)
            else:
                new.rename(place)


def _is_free(place: Path) -> bool:
    if not os.path.lexists(place):
        return True
    return os.path.isdir(place) and not any(place.iterdir())


def _check_listed(place: Path, holds: str, remedy: str) -> Table:
    """The table of a folder in which everything is as an earlier call wrote it."""
    where = f"{place} exists, and is no {holds} that polyc wrote"
    if not os.path.isdir(place):
        raise InvalidModel(f"{where}: it is a file; {remedy}")
    with Folder(place, private=False) as folder:
        try:
            table = read_table(folder)
            if table.holds != holds:
                raise Damaged(f"it holds a {table.holds[:20]!r}")
        except Damaged as error:
            raise InvalidModel(
                f"{where} ({error}), so nothing in it is deleted; {remedy}"
            ) from None
        for name in _list_files(place):
            if name not in table.files and name != TABLE_FILE:
                raise InvalidModel(
                    f"{place} holds {name!r}, which polyc did not write there, so it is not "
                    f"replaced; {remedy}"
                )
        try:
            table.compare(folder)
        except Damaged as error:
            raise InvalidModel(
                f"{place} is not as polyc wrote it ({error}), so it is not replaced; {remedy}"
            ) from None
    return table


def _list_files(place: Path) -> Iterator[str]:
    """Every file, link and empty folder below a place, by its name from there."""
    for folder, inner, files in os.walk(place):
        below = Path(folder).relative_to(place)
        links = [name for name in inner if os.path.islink(Path(folder) / name)]
        yield from ((below / name).as_posix() for name in [*files, *links])
        if not inner and not files and Path(folder) != place:
            yield below.as_posix()


def _exchange(new: Path, place: Path, old: Path) -> None:
    """Let `new` be at the place, and what was there at `old`; in one step where Linux can."""
    with contextlib.suppress(AttributeError, OSError):
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        if rename(_FROM_HERE, os.fsencode(new), _FROM_HERE, os.fsencode(place), _EXCHANGE) == 0:
            new.rename(old)
            return
    place.rename(old)
    new.rename(place)


def _remove_listed(old: Path, place: Path, holds: str, remedy: str) -> None:
    """Remove what was replaced; put it back if somebody has added to it meanwhile."""
    try:
        table = _check_listed(old, holds, remedy)
    except InvalidModel:
        _exchange(old, place, old.with_name("again"))
        raise
    for name in (*table.files, TABLE_FILE):
        (old / name).unlink()
