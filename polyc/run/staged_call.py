"""What there is in one call of a model in stages: arrays by name, and structures of arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from polyc.graph.containers import Structure
from polyc.graph.onnx.nodes import TEXT
from polyc.graph.stage import Late
from polyc.run.model import CompiledModel

LISTS = (list, tuple)


@dataclass(slots=True)
class Call:
    """What is there in one call: arrays by name, and the structure of what is no tensor.

    models, evaluated: what has run so far.
    """

    values: dict[str, Any] = field(default_factory=dict)
    structures: dict[str, Structure] = field(default_factory=dict)
    models: list[tuple[CompiledModel, dict[str, Any]]] = field(default_factory=list)
    evaluated: list[Late] = field(default_factory=list)

    def put(self, name: str, value: Any) -> None:
        """Enter a value; the elements of a list get names of their own."""
        if isinstance(value, np.ndarray):
            self.values[name] = value.astype(TEXT) if value.dtype.char == "U" else value
        elif value is None:
            self.structures[name] = None
        elif isinstance(value, LISTS):
            self.structures[name] = elements = _name_elements(name, len(value))
            for element, part in zip(elements, value, strict=True):
                self.put(element, part)
        else:
            self.values[name] = value

    def has(self, name: str) -> bool:
        return name in self.values or name in self.structures

    def note(self, step: Call, seen: set[int]) -> None:
        """What has run in a step of a loop, each model once; `seen` are those of earlier steps."""
        fresh = [run for run in step.models if id(run[0]) not in seen]
        seen.update(id(model) for model, _ in fresh)
        self.models += fresh
        self.evaluated += [late for late in step.evaluated if late not in self.evaluated]

    def get(self, name: str) -> Any:
        """The value under a name, put together again; None for the empty name."""
        if name in self.values:
            return self.values[name]
        elements = self.structures[name] if name else None
        return None if elements is None else [self.get(e) for e in elements]


@lru_cache
def _name_elements(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}.{k}" for k in range(count))
