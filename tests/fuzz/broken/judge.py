"""What becomes of a seed: success, a refusal, or a finding."""

from __future__ import annotations

import signal
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from onnx import ModelProto

import polyc
from polyc import Options
from polyc.budget import Budget
from polyc.errors import InternalError, NeedsValues, NotFixed, PolycError
from polyc.pipeline import run_pipeline
from polyc.run.feeds import random_feeds
from polyc.run.specialise import complete_in_call
from polyc.target.machine import Target
from polyc.trace import make_trace
from tests.fuzz.broken.bases import read_bases
from tests.fuzz.broken.calls import call_wrongly
from tests.fuzz.broken.files import compile_by_a_damaged_cache, load_damaged
from tests.fuzz.broken.hostile import Dice
from tests.fuzz.broken.octets import change_octets
from tests.fuzz.broken.structure import change_structure

DEEP = 4
"""Of so many models one goes through the C compiler, and is called."""

LARGEST_FEED = 1 << 22
"""Elements of an array that a call is given here."""

HERE = Path(__file__).parent

ARGUMENTS = "polyc/errors.py"
"""Where `refuse` is: the TypeErrors that name an argument come from there, and no others do."""


@dataclass(frozen=True)
class Verdict:
    """What became of a seed: "works", "refused", "type" or a finding; what, and where it arose."""

    kind: str
    outcome: str
    detail: str = ""
    place: str = ""

    @property
    def is_finding(self) -> bool:
        return self.outcome not in ("works", "refused", "type")


def make_model(seed: int, bases: Path | None = None) -> tuple[str, bytes] | None:
    """(name, message) of the broken model of a seed; None if the seed is of another kind."""
    dice = Dice(seed)
    if _kind(dice) not in ("structure", "octets"):
        return None
    models = read_bases(bases)
    (name, data), (_, other) = dice.choose(models), dice.choose(models)
    change = change_octets if _kind(Dice(seed)) == "octets" else change_structure
    return name, change(data, other, dice)


def kind_of(seed: int) -> str:
    """What the case of a seed is: a model broken in its structure or octets, calls, or files."""
    return _kind(Dice(seed))


def _kind(dice: Dice) -> str:
    chosen = dice.below(40)
    if chosen < 26:
        return "structure"
    if chosen < 33:
        return "octets"
    return "calls" if chosen < 38 else "saved" if chosen < 39 else "cache"


class TooSlow(BaseException):
    """A case has had all of its time."""


def _stop(number: int, frame: object) -> NoReturn:
    raise TooSlow


def judge(seed: int, folder: Path, bases: Path | None = None, patience: float = 60) -> Verdict:
    """Run the case of a seed in this process; what it writes goes into the folder.

    patience: seconds of this process's own time that it may take.
    """
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, patience)
    try:
        return _judge(seed, folder, bases)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _judge(seed: int, folder: Path, bases: Path | None) -> Verdict:
    dice = Dice(seed)
    kind = _kind(dice)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if kind in ("structure", "octets"):
                _, data = make_model(seed, bases)  # type: ignore[misc]
                run_model(data, seed, folder)
            else:
                run = {"calls": call_wrongly, "saved": load_damaged}
                run.get(kind, compile_by_a_damaged_cache)(dice, folder / kind)
    except InternalError as error:  # what nobody foresaw, in polyc's own words
        cause = error.__cause__ or error
        return Verdict(kind, type(cause).__name__, str(cause)[:300], _place(cause))
    except PolycError as error:
        return Verdict(kind, "refused", type(error).__name__)
    except BaseException as error:
        place = _place(error)
        checked = place.startswith(ARGUMENTS)
        if kind == "calls" and isinstance(error, TypeError) and checked:
            return Verdict(kind, "type")
        if place.startswith("tests/"):
            return Verdict(kind, "generator", repr(error)[:200], place)
        return Verdict(kind, type(error).__name__, str(error)[:300], place)
    return Verdict(kind, "works")


def run_model(data: bytes, seed: int, folder: Path) -> None:
    """Compile a model, some all the way, and call what comes of it."""
    options = Options(cache_dir=folder / "cache", threads=1, progress=False)
    try:
        source: bytes | ModelProto = ModelProto.FromString(data) if seed % 2 else data
    except Exception:  # bytes that are no message are polyc's to refuse
        source = data
    if seed % DEEP == 0:
        model = polyc.compile(source, target="baseline", options=options)
        if all(_elements(spec.shape) <= LARGEST_FEED for spec in model.inputs):
            model.run(random_feeds(model.inputs, seed, model.sizes))
        return
    try:
        run_pipeline(source, Target.named("baseline"), options, make_trace(options))
    except (NeedsValues, NotFixed) as unknown:
        budget = Budget.of(options.memory_limit)
        if complete_in_call(source, unknown, (), _refuse, budget, True) is None:
            raise


def _refuse(graph: object, sizes: object) -> NoReturn:
    raise AssertionError("the model is not called, so that nothing is compiled")


def _elements(shape: tuple[int | str, ...]) -> int:
    total = 1
    for dim in shape:
        total *= dim if isinstance(dim, int) else 128
    return total


def _place(error: BaseException) -> str:
    """The innermost line of polyc, or of these tests, that an error went through.

    The polyc that runs may be an installed one, elsewhere than these tests.
    """
    ours = ("polyc", Path(polyc.__file__).parent), ("tests", HERE.parent.parent)
    frames = [
        (name, Path(f.filename).relative_to(home), f.lineno)
        for f in traceback.extract_tb(error.__traceback__)
        for name, home in ours
        if Path(f.filename).is_relative_to(home)
    ]
    own = [frame for frame in frames if frame[0] == "polyc"] or frames
    if not own:
        return "?"
    name, file, line = own[-1]
    return f"{name}/{file}:{line}"
