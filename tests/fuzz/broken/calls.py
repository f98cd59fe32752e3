"""Wrong calls: arrays of other types, shapes and layouts, and arguments that are none."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import polyc
from polyc import Graph, Options, ops
from tests.fuzz.broken.bases import CONTROL
from tests.fuzz.broken.hostile import FLOATS, INTEGERS, Dice
from tests.staged import model_of

Called = Callable[..., Any]


@cache
def models(folder: Path) -> Mapping[str, Any]:
    """Compiled models of each kind, by what is special about them."""
    chosen = Options(cache_dir=folder, threads=1, progress=False)

    def make(graph: Any, **choices: Any) -> Any:
        return polyc.compile(graph, target="baseline", options=chosen, **choices)

    x, n = ops.input("x", (2, 3)), ops.input("x", ("add", 3))
    rows = ops.concat([ops.input("past", ("rows", 3)), ops.input("new", ("n", 3))], axis=0)
    at = ops.input("at", (4,), "int64")
    return {
        "fixed": make(Graph.of(y=x + 1.0, z=ops.transpose(x))),
        "empty": make(Graph.of(y=ops.input("x", (0, 3)) + 1.0)),
        "scalar": make(Graph.of(y=ops.input("x", ()) + 1.0)),
        "open": make(Graph.of(y=n + 1.0), dims={"add": (0, 9)}),
        "two sizes": make(Graph.of(y=ops.input("a", ("n", 3)) @ ops.transpose(n))),
        "indices": make(Graph.of(y=ops.gather(ops.input("x", (5, 3)), at))),
        "narrow": make(Graph.of(y=ops.input("x", (2, 3), "float16") + 1.0)),
        "flags": make(Graph.of(y=ops.logical_not(ops.input("x", (2, 3), "bool")))),
        "grows": make(Graph.of(y=rows * 2.0, present=rows), state={"past": "present"},
                      dims={"rows": (0, 9), "n": (1, 9)}),
        "stages": make(model_of(CONTROL["found"])),
        "reshaped": make(model_of(CONTROL["reshaped"])),
        "sequences": make(model_of(CONTROL["sequences"])),
        "steps": make(model_of(CONTROL["steps"])),
    }  # fmt: skip


def call_wrongly(dice: Dice, folder: Path) -> None:
    """One call with one to three arguments that are wrong; it may be right by chance."""
    if dice.one_in(4):
        compile_wrongly(dice, folder)
        return
    table = models(folder)
    model = table[dice.choose(sorted(table))]
    feeds = {spec.name: _fitting(spec, dice) for spec in model.inputs}
    for _ in range(1 + dice.below(3)):
        name = dice.choose([*feeds, "add", ""])
        feeds[name] = wrong_array(feeds.get(name), dice)
    if dice.one_in(6) and feeds:
        del feeds[dice.choose(list(feeds))]
    target = (
        model.start() if dice.one_in(5) and hasattr(model, "states") and model.states else model
    )
    out = {"out": _wrong_out(dice)} if dice.one_in(4) else {}
    match dice.below(7):
        case 0:
            target.run(wrong_value(dice))
        case 1:
            target(*list(feeds.values())[: dice.below(6)], **out)
        case 2:
            target(*[wrong_array(v, dice) for v in feeds.values()], **feeds, **out)
        case 3:
            target.profile(feeds, 1)
        case 4:
            model.start(dice.choose((feeds, wrong_value(dice))))
        case _:
            target(**{k: v for k, v in feeds.items() if k != "out"}, **out)


def compile_wrongly(dice: Dice, folder: Path) -> None:
    """A right graph with arguments of `compile` that are wrong."""
    x = ops.input("x", ("n", 3))
    choices: dict[str, Any] = {"options": Options(cache_dir=folder, threads=1, progress=False)}
    for _ in range(1 + dice.below(2)):
        name = dice.choose(("target", "opt_level", "threads", "dims", "hint", "state", "options"))
        choices[name] = wrong_value(dice)
        if name in ("dims", "hint", "state") and not dice.one_in(3):
            key = dice.choose(("n", "x", "y", "add", dice.name()))
            choices[name] = {
                key: dice.choose((wrong_value(dice), (dice.integer(), dice.integer())))
            }
    model = polyc.compile(Graph.of(y=x + 1.0), **choices)
    model(np.ones((2, 3), np.float32))


def _fitting(spec: Any, dice: Dice) -> np.ndarray:
    """An array that fits, but for sizes that are open, which may be any."""
    shape = [d if isinstance(d, int) else dice.below(5) for d in spec.shape]
    return np.asarray(dice.random.integers(0, 3, shape)).astype(spec.dtype)


def wrong_array(value: Any, dice: Dice) -> Any:
    """The array with another type, shape or layout; or something else."""
    if not isinstance(value, np.ndarray) or dice.one_in(4):
        return wrong_value(dice)
    dtype = dice.choose(
        ("f4", "f8", "f2", ">f4", "i1", "i8", "u8", "?", "c8", "O", "U3", "S2", "M8[s]")
    )
    changes: tuple[Callable[[], Any], ...] = (
        lambda: value.astype(dtype),
        lambda: value[None],
        lambda: value.T,
        lambda: value[..., ::-1] if value.ndim else value,
        lambda: np.broadcast_to(value, (2, *value.shape)),
        lambda: np.repeat(value, 3, 0) if value.ndim else value,
        lambda: value[:0] if value.ndim else value,
        lambda: value.tolist(),
        lambda: np.ma.masked_array(value),
        lambda: value.view(np.uint8) if value.ndim and value.flags.c_contiguous else value,
        lambda: np.full_like(value, dice.choose((0, 1, 100))),
        lambda: np.frombuffer(b"\0" + value.tobytes(), np.uint8)[1:],
        lambda: memoryview(value),
        lambda: value.item() if value.size == 1 else value.ravel(),
    )
    return dice.choose(changes)()


def _wrong_out(dice: Dice) -> Any:
    array = np.empty([dice.below(5) for _ in range(dice.below(4))], np.float32)
    return dice.choose((array, [array], [array, array], [], wrong_value(dice), [wrong_value(dice)]))


def wrong_value(dice: Dice) -> Any:
    """Anything."""
    return dice.choose((
        None, True, dice.integer(), dice.number(), dice.name(), b"x", [], (), {}, set(), object(),
        [1, [2, 3]], [dice.integer()], {"n": dice.integer()}, {"x": dice.name()}, {1: 2}, 1j,
        dice.choose(INTEGERS), dice.choose(FLOATS), np.float32(1), np.int64(-1), len, range(3),
        np.array(dice.integer(), object), np.zeros((0,)), np.array([math.nan]), Options(), [None],
        {"n": (1, dice.integer())}, {"x": "y"}, "cpu", "cuda:sm_90", (dice.integer(), None),
    ))  # fmt: skip
