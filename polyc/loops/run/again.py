"""Calls like the ones before them: of arrays of the same types and shapes, and the same sizes.

A loop in Python around a kernel, as over steps of time, gives it such arrays each time. To look at
each in Python takes longer than a small kernel runs, so that C does (`runtime/polyc_call.c`); it
declines those that are another type or shape, not in C's order, or read-only, and refuses ones that
share memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from polyc.loops.run.call import Call, Loaded, check_status
from polyc.run.quick import DECLINED, Quick, make_quick


@dataclass(frozen=True)
class Number:
    """A number as it was, and where it stands among the arguments.

    dtype: that of the memory in which C takes it; None if it is a size, which C was told.
    """

    position: int
    value: Any
    dtype: np.dtype | None

    def admits(self, value: Any) -> bool:
        """Whether a call may have this number as well."""
        is_alike = type(value) is type(self.value)
        return is_alike and (self.dtype is not None or value == self.value)


@dataclass(frozen=True)
class Repeat:
    """A call to be made again, with arrays of the same shapes.

    count, named: how many arguments there are, and the names of the last of them. pick: the arrays
    that polyc_run takes, of the arguments. told: the sizes, in C; dtypes: the types that C compares
    with, by their place in memory.
    """

    loaded: Loaded
    quick: Quick
    count: int
    named: tuple[str, ...]
    numbers: tuple[Number, ...]
    pick: Callable[[Sequence[Any]], tuple[Any, ...]]
    told: Any
    dtypes: tuple[np.dtype, ...]
    threads: int

    @staticmethod
    def of(
        call: Call, arguments: Sequence[Any], named: Mapping[str, Any], names: Sequence[str]
    ) -> Repeat | None:
        """The call that was made with these arguments; `names` are those of the kernel.

        None if C cannot look at the arguments.
        """
        order = {name: k for k, name in enumerate([*names[: len(arguments)], *named])}
        values, bound, library = [*arguments, *named.values()], call.bound, call.loaded.library
        taken = [*bound.held, *(name for name in bound.held if name in bound.written)]
        shapes = [(bound.held[name].dtype, bound.held[name].shape) for name in taken]
        null = library.ffi.NULL
        quick = make_quick(
            library.functions, library.ffi, null, call.told, call.arena_bytes, shapes
        )
        if quick is None:
            return None
        places = [order[name] for name in taken]
        return Repeat(
            call.loaded,
            quick,
            len(values),
            tuple(named),
            tuple(
                Number(k, values[k], bound.held[name].dtype if name in bound.held else None)
                for name, k in order.items()
                if not isinstance(values[k], np.ndarray)
            ),
            itemgetter(*places) if len(places) > 1 else lambda of: (of[places[0]],),
            call.told,
            tuple(dtype for dtype, _ in shapes),
            call.loaded.share(call.told),
        )

    def run(self, arguments: Sequence[Any], named: Mapping[str, Any], threads: int) -> bool:
        """Make the call with arguments like those; False, having done nothing, if they are not."""
        if len(arguments) + len(named) != self.count or tuple(named) != self.named:
            return False
        values = [*arguments, *named.values()]
        for number in self.numbers:
            value = values[number.position]
            if not number.admits(value):
                return False
            if number.dtype is not None:
                values[number.position] = np.array(value, number.dtype)
        status = self.quick(threads or self.threads, *self.pick(values))
        if status == DECLINED:
            return False
        check_status(self.loaded, status)
        return True
