"""Memory that calls work in: kept from one to the next, as the system clears what it gives.

That takes 0.1 ms a megabyte and more. A call has an arena of its own while it runs, so there are as
many as calls have run at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import _cffi_backend

from polyc.toolchain.pages import allocate_pages, touch_pages

view = _cffi_backend.FFI().from_buffer
"""A buffer as C takes it: that of the class that cffi gives modules it has compiled, which is the
same function, all of it in C."""


@dataclass(frozen=True)
class Arenas:
    """A pool of arenas; what is in them means nothing.

    list.append and list.pop are atomic, so it needs no lock.
    """

    free: list[Any] = field(default_factory=list)

    def prepare(self, size: int) -> None:
        """Have an arena of so many bytes, which the system has given; TooLarge if it has not."""
        self.free.append(view(touch_pages(size)))

    def take(self, size: int) -> Any:
        """An arena of so many bytes at least, as C takes it; TooLarge if there is no memory."""
        try:
            arena = self.free.pop()
        except IndexError:
            arena = None
        if arena is None or len(arena) < size:
            arena = view(allocate_pages(max(size, 1)))
        return arena

    def put_back(self, arena: Any) -> None:
        self.free.append(arena)
