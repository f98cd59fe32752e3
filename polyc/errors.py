"""The errors that polyc raises on purpose.

Each message names three things: the object (node, tensor, statement), the rule that it breaks, and
the way out. Anything else that escapes from polyc is a defect of polyc.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from contextlib import contextmanager
from typing import Any, NoReturn

from polyc.names import show_text


def refuse(name: str, value: object, expected: str) -> NoReturn:
    """The TypeError for an argument of a wrong type, of which there is no form of polyc's own."""
    kind = type(value).__name__
    raise TypeError(show_text(f"`{name}` is of type {kind}, but must be {expected}"))


class PolycError(Exception):
    """Base of every error that polyc raises on purpose.

    A message can be shown: whatever a model calls things, it holds no control characters, and is
    not longer than people read.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(show_text(message))


class InvalidModel(PolycError):
    """The model is malformed, inconsistent, or unsafe to read."""


class UnsupportedOp(PolycError):
    """The model is valid but uses something that polyc does not compile.

    cases: where a size alone decides, what is needed of sizes for each of two ways to go on: sizes
    that must not be negative (`graph/inference/cases.py`).
    """

    cases: tuple[tuple[Any, ...], ...] = ()


class UnsupportedLoop(UnsupportedOp):
    """A statement of a `@polyc.kernel` is outside of what such a kernel may say."""


class NeedsValues(UnsupportedOp):
    """What is computed depends on values of inputs, which only a call knows: `inputs` names them.

    `polyc.compile` catches it, and gives a model that is compiled when it is called.
    """

    def __init__(self, message: str, inputs: tuple[str, ...], cases: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.inputs = inputs
        self.cases = cases


class NotFixed(UnsupportedOp):
    """A size or a value that must be known when compiling but is known only at run time.

    tensor: the one whose value it is; empty for a size. needs: sizes that must not be negative, if
    the model is right only where they are not; then that may be assumed, and a call checks it.
    Where inputs have sizes that are known only
    at run time, `polyc.compile` catches it, and gives a model that is compiled for those of a call.
    """

    def __init__(
        self,
        statement: str,
        way_out: str,
        tensor: str = "",
        needs: tuple[Any, ...] = (),
        cases: tuple[Any, ...] = (),
    ) -> None:
        self.statement = statement
        self.way_out = way_out
        self.tensor = tensor
        self.needs = needs
        self.cases = cases
        super().__init__(f"{statement}; {way_out}")

    def saying(self, statement: str) -> NotFixed:
        """The same in other words."""
        return NotFixed(statement, self.way_out, self.tensor, self.needs, self.cases)


class ShapeError(PolycError):
    """Shapes or types do not fit: of a node's inputs, or of the arrays given to a call."""


class InvalidData(PolycError):
    """Samples that a model is measured with are missing, malformed, or not finite."""


class TooLarge(PolycError):
    """The model asks for more memory than it may take (`polyc/budget.py`)."""


class InternalError(PolycError):
    """polyc fails on a model that it should compile, or refuse with a reason: a defect of polyc."""


class IllegalSchedule(PolycError):
    """A schedule makes no sense, or loops break a dependence or a bound: then with a witness."""


class UnusedSchedule(IllegalSchedule):
    """Schedules are given for kernels, by `names`, that a model does not have."""

    def __init__(self, message: str, names: frozenset[str]) -> None:
        super().__init__(message)
        self.names = names


class BuildError(PolycError):
    """A compiler is missing, hangs, or refuses code, or a file of polyc's cannot be written."""


class InvalidOption(PolycError, ValueError):
    """An option, or an environment variable, has a value that means nothing."""


class TooLong(PolycError):
    """Compiling would take longer than the options allow, or the model has too many nodes."""


class RuntimeFailure(PolycError):
    """Compiled code reported a failure while running, e.g. an index out of range."""


@contextmanager
def leaving_to_calls(found: Sized) -> Iterator[None]:
    """Inside, what is not possible for sizes that a call finds is left to the call, if there are.

    found: those sizes, as they are when something turns out not to be possible. With one stage
    behind another what comes second is compiled for numbers.
    """
    try:
        yield
    except (NotFixed, TooLarge) as unknown:
        if not found:
            raise
        raise NeedsValues(f"for sizes that a call finds: {unknown}", ()) from unknown


@contextmanager
def naming_defects(what: str) -> Iterator[None]:
    """Inside, an exception that nobody foresaw becomes an InternalError that says what failed.

    The last resort for models that strangers wrote: a reason to refuse is better, and is added
    where such a model is known. Errors of files, and those raised on purpose, pass.
    """
    try:
        yield
    except (PolycError, OSError):
        raise
    except MemoryError as error:
        raise TooLarge(f"{what}: there is no memory left; use smaller sizes") from error
    except Exception as error:
        told = " ".join(f"{type(error).__name__}: {error}".split())[:400]
        raise InternalError(
            f"{what}: polyc fails ({told}); this is a defect of polyc: report it with the model"
        ) from error
