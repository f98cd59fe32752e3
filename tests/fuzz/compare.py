"""A random graph by polyc, and what it should give."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnxruntime
from onnx import ModelProto, NodeProto, numpy_helper
from onnx.reference import ReferenceEvaluator

import polyc
from polyc.errors import PolycError, RuntimeFailure
from polyc.options import Options
from tests.fuzz.evaluate import one_node_model
from tests.fuzz.generate import Case, reads
from tests.fuzz.values import Run, Value, is_float, tolerance

onnxruntime.set_default_logger_severity(4)

BAD = ("mismatch", "crash", "refused", "hang", "died")
"""Outcomes that are findings."""


@dataclass(frozen=True)
class Outcome:
    """What became of a graph.

    kind: "agrees"; "peer" where the result is ONNX Runtime's, or that of the reference in the
    model's own types, and not that of the reference in float64; or one of `BAD`: "mismatch",
    "crash" (an error that polyc does not raise on purpose), "refused" (one that it does).
    """

    kind: str
    detail: str = ""
    peers: tuple[str, ...] = ()


def check_exactly(case: Case) -> Outcome:
    """The exact run of a graph: its C in a prime field, against its statements, bit by bit.

    Integers are fed as in the first run: not all mean something to an operator. A graph that only a
    call completes is run stage by stage.
    """
    feeds = {k: v for k, v in case.feeds(0).items() if isinstance(v, np.ndarray)}
    try:
        polyc.verify(
            case.model, exact=True, feeds=feeds, target="cpu", options=Options(cache=False)
        )
    except RuntimeFailure as error:
        return Outcome("mismatch", str(error))
    except PolycError as error:
        return Outcome("refused", f"{type(error).__name__}: {error}")
    except Exception:
        return Outcome("crash", traceback.format_exc(limit=-6))
    return Outcome("agrees")


def check(case: Case, options: Options | None = None) -> Outcome:
    """Compile a graph, run it for each choice of its sizes, and compare."""
    options = options or Options(threads=2, minimal_filtering=not case.traits.special)
    try:
        model = polyc.compile(case.model, target="cpu", options=options)
        results = [model.run(_laid_out(case.feeds(r), r)) for r in range(case.runs)]
        again = model.run(case.feeds(0))
    except PolycError as error:
        return Outcome("refused", f"{type(error).__name__}: {error}")
    except Exception:
        return Outcome("crash", traceback.format_exc(limit=-6))
    peers: set[str] = set()
    for r, got in enumerate(results):
        for value in case.results:
            found = _compare(case, value, r, got[value.name])
            if found.kind not in ("agrees", "peer"):
                return found
            peers |= set(found.peers)
    for value in case.results:
        if difference(value.runs[0], value, np.asarray(again[value.name])):
            if not difference_between(results[0][value.name], again[value.name]):
                continue
            return Outcome("mismatch", f"{value.name} differs in a second call")
    return Outcome("peer" if peers else "agrees", peers=tuple(sorted(peers)))


def _laid_out(feeds: Mapping[str, np.ndarray], r: int) -> dict[str, np.ndarray]:
    """The same arrays; every third one lies in memory in another order, or with gaps."""
    laid = {}
    for i, (name, x) in enumerate(feeds.items()):
        if (i + r) % 3 == 1 and x.ndim > 1:
            x = np.asfortranarray(x)
        elif (i + r) % 3 == 2 and x.ndim:
            wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
            wide[..., ::2] = x
            x = wide[..., ::2]
        laid[name] = x
    return laid


def _compare(case: Case, value: Value, r: int, got: object) -> Outcome:
    """One output: as it should be, or else as one of the peers has it."""
    run = value.runs[r]
    y = np.asarray(got)
    problem = difference(run, value, y)
    if not problem:
        return Outcome("agrees")
    for peer, compute in (("onnxruntime", run_onnxruntime), ("reference", run_reference)):
        theirs = compute(case.model, case.feeds(r)).get(value.name)
        if theirs is None or theirs.shape != y.shape or theirs.dtype != y.dtype:
            continue
        limit = tolerance(run, value.dtype)
        if theirs.shape != run.shape:  # how well it is known was found out for the other shape
            limit = float(np.max(limit, initial=0))
        if not _differs(y, theirs, limit, value.dtype):
            return Outcome("peer", problem, (peer,))
    return Outcome("mismatch", f"{value.name}, run {r}: {problem}")


def difference(run: Run, value: Value, y: np.ndarray) -> str:
    """How a result differs from what it should be; empty if it does not."""
    if (y.shape, y.dtype) != (run.shape, value.dtype):
        return f"{y.dtype}{y.shape} for {value.dtype}{run.shape}"
    return _differs(y, run.shadows[0], tolerance(run, value.dtype), value.dtype)


def difference_between(a: object, b: object) -> bool:
    """Whether two results are not the same to the last bit."""
    return np.asarray(a).tobytes() != np.asarray(b).tobytes()


def _differs(y: np.ndarray, want: np.ndarray, limit: np.ndarray | float, dtype: np.dtype) -> str:
    if is_float(dtype):
        with np.errstate(all="ignore"):
            got = y.astype(np.float64)
            want = want.astype(dtype).astype(np.float64)
            close = np.abs(got - want) <= limit
            bad = ~(close | (got == want) | (np.isnan(got) & np.isnan(want)))
    else:
        got, bad = y, y != want
    if not bad.any():
        return ""
    i = tuple(int(k) for k in np.argwhere(bad)[0])
    at = limit[i] if np.ndim(limit) else limit
    first = f"{got[i]} for {want[i]} (may be off {at:.1e})"
    return f"{int(bad.sum())} of {bad.size} elements, first {i}: {first}"


def run_onnxruntime(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs by name; nodes that ONNX Runtime does not take are run by the reference."""
    names = [o.name for o in model.graph.output]
    whole = _infer(model, feeds)
    if whole is not None:
        return dict(zip(names, whole, strict=True))
    known = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer} | dict(feeds)
    for node in model.graph.node:
        alone = _alone(node, known, model.opset_import[0].version)
        given = {i.name: known[i.name] for i in alone.graph.input}
        results = _infer(alone, given) or _evaluate(alone, given)
        if results is None:
            break
        known.update(zip(filter(None, node.output), results, strict=True))
    return {n: known[n] for n in names if n in known}


def run_reference(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs by name, in the model's own types; none where the reference fails."""
    results = _evaluate(model, feeds)
    return (
        {}
        if results is None
        else dict(zip([o.name for o in model.graph.output], results, strict=True))
    )


def _alone(node: NodeProto, known: Mapping[str, np.ndarray], opset: int) -> ModelProto:
    """A model of one node."""
    values = [Value(n, known[n].dtype, ()) for n in sorted(reads(node)) if n in known]
    return one_node_model(node, values, opset)


def _infer(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray] | None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return session.run(None, dict(feeds))
    except Exception:  # its own limits are no finding
        return None


def _evaluate(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray] | None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, dict(feeds))]
        except Exception:  # its own limits are no finding
            return None
