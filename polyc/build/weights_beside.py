"""The constants of a model, written by a thread of its own while the model is proven.

    program  ->  plan  ->  weights.bin               begin
                   |   ->  proof, driver, library    meanwhile
                   v
                 bundle                              finish

To copy them into place, to hash and to write them takes as long as the proof of a large network,
and neither needs the other: what is not proven is not kept.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from polyc.build.bundle import Weights, write_weights
from polyc.program.plan import Plan
from polyc.program.program import Program


class WeightsBeside:
    """Writes the constants of one program into a folder, which must last until this ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(1)
        self._plan: Plan | None = None
        self._result: Future[Weights | None] | None = None

    def begin(self, program: Program, plan: Plan) -> None:
        """Write the constants where the plan says; here, if the system has no thread to give."""
        self._plan = plan
        try:
            self._result = self._thread.submit(write_weights, self._folder, program, plan)
        except RuntimeError:
            self._result = Future()
            self._result.set_result(write_weights(self._folder, program, plan))

    @property
    def plan(self) -> Plan:
        """The plan that was begun with."""
        assert self._plan is not None, "nothing was begun"
        return self._plan

    def finish(self) -> Weights | None:
        """What was written; raises what writing it raised."""
        assert self._result is not None, "nothing was begun"
        return self._result.result()

    def __enter__(self) -> WeightsBeside:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._thread.shutdown()
