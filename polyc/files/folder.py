"""A folder held open: what is read through it is what was looked at, wherever its path leads."""

from __future__ import annotations

import os
import stat
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import Self

from polyc.errors import BuildError
from polyc.files.regular import open_regular

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0


class NotTrusted(BuildError):
    """Code lies where somebody else may have put it."""


class Folder:
    """An open folder, to be used in a `with`.

    private: all that is found in it must belong to this user, or to root, and nobody else may be
    able to write it; NotTrusted otherwise. Links inside are not followed.
    """

    def __init__(self, path: Path, private: bool, within: int | None = None) -> None:
        """OSError if there is no such folder; `within`: the descriptor of the one above it."""
        self.path = path
        self._private = private
        name = path.name if within is not None else path
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        try:
            self.descriptor = os.open(
                name, flags | (0 if within is None else os.O_NOFOLLOW), dir_fd=within
            )
        except ValueError as error:
            raise OSError(f"{error} in its name") from error
        if private:
            try:
                _check_owner(path, os.fstat(self.descriptor))
            except NotTrusted:
                self.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self.descriptor)

    @property
    def is_replaced(self) -> bool:
        """Whether its path leads to another folder by now, or to none."""
        mine = os.fstat(self.descriptor)
        try:
            return not os.path.samestat(mine, os.stat(self.path))
        except OSError:
            return True

    def enter(self, name: str) -> Folder:
        """A folder inside; OSError if there is none, or if it is a link."""
        return Folder(self.path / name, self._private, self.descriptor)

    def open(self, name: str) -> FileIO:
        """A regular file below the folder: "source/k0.c"; OSError if there is none."""
        first, *rest = PurePosixPath(name).parts
        if rest:
            with self.enter(first) as inner:
                return inner.open("/".join(rest))
        stream = open_regular(first, follow=False, folder=self.descriptor)
        if self._private:
            try:
                _check_owner(self.path / name, os.fstat(stream.fileno()))
            except NotTrusted:
                stream.close()
                raise
        return stream


def _check_owner(path: Path, found: os.stat_result) -> None:
    """NotTrusted unless all that could have written there is this user, or root."""
    if found.st_uid not in (os.geteuid(), _ROOT):
        raise NotTrusted(
            f"{path} holds code that is run, but belongs to the user {found.st_uid}; remove it, or "
            "set POLYC_CACHE_DIR to a folder of your own"
        )
    if found.st_mode & _OTHERS_MAY_WRITE:
        raise NotTrusted(
            f"{path} holds code that is run, but other users may write it (mode "
            f"{stat.S_IMODE(found.st_mode):o}); if they have not, say: chmod -R go-w {path}, or "
            "set POLYC_CACHE_DIR to a folder of your own"
        )
