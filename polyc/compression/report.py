"""What compressing did, layer by layer: a value, a text, and a property of the written model."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import ml_dtypes
import numpy as np
import onnx

from polyc.errors import InvalidModel
from polyc.files.typed_json import decode
from polyc.graph.ir import Graph
from polyc.names import show, show_text

FOUR_BITS = (np.dtype(ml_dtypes.uint4), np.dtype(ml_dtypes.int4))
"""Types of which NumPy stores a number in a byte, and ONNX two."""

EXAMPLES = 3
"""Notes of one kind that the text shows."""

KEY = "polyc.compression"
"""Where a model has its report, among the properties that ONNX lets tools add."""


@dataclass(frozen=True)
class LayerRow:
    """One layer that multiplies.

    stored: "int8" if its factors are bytes, "uint4" if its weights have 4 bits, "pruned"
    if weights or channels are gone, else "float32".
    own: decibels of what it gives over what its own bytes change of that, from inputs of floats; of
    weights of 4 bits over what rounding changes. snr: decibels at its end in the network of bytes,
    where the error of all layers before has come together; None where nothing changes, or nothing
    was measured. share: of the time that the float network is predicted to
    take; None if that depends on sizes that only a call knows. why: what was decided, and the
    reason, in words.
    """

    name: str
    operator: str
    stored: str
    own: float | None = None
    snr: float | None = None
    share: float | None = None
    why: str = ""


@dataclass(frozen=True)
class CompressionReport:
    """What became of a model: its layers in order, and its outputs' decibels, by name.

    samples: how many ranges were found with; compared: how many of them layers were compared on.
    weights: bytes of constants before and after. notes: what was done, a sentence each.
    """

    model: str
    layers: tuple[LayerRow, ...]
    outputs: tuple[tuple[str, float | None], ...] = ()
    samples: int = 0
    compared: int = 0
    weights: tuple[int, int] = (0, 0)
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(model: onnx.ModelProto) -> CompressionReport:
        """The report that a model was left with; InvalidModel if there is none."""
        for entry in model.metadata_props:
            if entry.key == KEY:
                try:
                    return decode(CompressionReport, json.loads(entry.value), "the report")
                except ValueError as error:
                    raise InvalidModel(f"the model's report is damaged: {error}") from error
        raise InvalidModel("the model has no report: `polyc.quantise` and its like leave one")

    def attach(self, model: onnx.ModelProto) -> None:
        """Leave the report in a model."""
        entry = model.metadata_props.add()
        entry.key, entry.value = KEY, json.dumps(asdict(self), allow_nan=False)

    @property
    def kept(self) -> tuple[LayerRow, ...]:
        """The layers that stay as they are."""
        return tuple(row for row in self.layers if row.stored == "float32")

    def __str__(self) -> str:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for head in ("layer", "operator", "stored", "own dB", "dB", "% time", "why"):
            right = head in ("own dB", "dB", "% time")
            table.add_column(head, justify="right" if right else "left", overflow="fold")
        for row in self.layers:
            numbers = (_number(row.own), _number(row.snr), _number(row.share, 100))
            cells = (show(row.name), row.operator, row.stored, *numbers, row.why)
            table.add_row(*(Text(show_text(cell)) for cell in cells))
        text = io.StringIO()
        console = Console(file=text, width=120, color_system=None, highlight=False)
        console.print(Text(show(self.model)), table, sep="\n")
        for fact in self._facts():
            console.print(Text(show_text(fact)), soft_wrap=True)
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

    def _facts(self) -> Iterable[str]:
        yield ""
        for name, snr in self.outputs:
            yield f"output {show(name)}: {_number(snr)} dB"
        quantised = len(self.layers) - len(self.kept)
        before, after = self.weights
        yield f"layers: {quantised} of {len(self.layers)} are smaller"
        yield f"weights: {before:,} -> {after:,} bytes"
        if self.samples:
            yield f"samples: {self.samples}; layers compared on {self.compared}"
        kinds: dict[str, list[str]] = {}
        for note in self.notes:
            kinds.setdefault(note.partition(":")[0], []).append(note)
        for kind, notes in kinds.items():
            yield from notes[:EXAMPLES]
            if len(notes) > EXAMPLES:
                yield f"{kind}: … and {len(notes) - EXAMPLES} more"


def count_weights(graph: Graph) -> int:
    """Bytes of a graph's constants, two numbers of 4 bits to a byte."""
    constants = [t.value for t in graph.tensors.values() if t.value is not None]
    return sum((v.nbytes + 1) // 2 if v.dtype in FOUR_BITS else v.nbytes for v in constants)


def _number(value: float | None, times: float = 1.0) -> str:
    return "-" if value is None else f"{value * times:.1f}"
