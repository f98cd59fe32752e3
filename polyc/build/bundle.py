"""A built model as a folder: what the whole-model cache holds and what `save` writes.

    model.so        the library            manifest.json   specs, sizes, report
    weights.bin     constants as stored    source/*        the C or CUDA text
    CHECKSUMS       of the files above

Reading one needs neither a compiler nor onnx nor islpy.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polyc.build.cache import is_intact, write_checksums
from polyc.build.toolchain import LIBRARY_FILE
from polyc.element_types import named
from polyc.errors import InvalidModel
from polyc.report.report import Report
from polyc.sizes import Extent, Size, SizeRange
from polyc.spec import TensorSpec
from polyc.states import State

if TYPE_CHECKING:
    from polyc.codegen.program import Program
    from polyc.memory.plan import Plan

FORMAT = 5
MANIFEST_FILE = "manifest.json"
WEIGHTS_FILE = "weights.bin"
SOURCE_FOLDER = "source"


@dataclass(frozen=True)
class Manifest:
    """What must be known to run a bundle, or to compile its sources again.

    `platform`: "cpu", "cuda" or "emulated"; `arena_bytes`: of what a call works in; `features`:
    what the CPU must have; `flags`: those of the compiler that say for what machine it is;
    `launches`: the kernel and the graph nodes of each launch; `fallible`: the positions of those
    that may meet an index out of range; `consulted`: the tuned parameters that were asked for, as
    they were found (`tuning.store.spell_choices`): with others this is another model. `sizes`:
    those that are known only at run time, as a call is told them; `shapes`: those of the outputs;
    `states`: what is kept across calls.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    arena_bytes: int
    weights_bytes: int
    threads: int
    features: tuple[str, ...]
    flags: tuple[str, ...]
    launches: tuple[tuple[str, tuple[str, ...]], ...]
    report: Report
    consulted: Mapping[str, str] = field(default_factory=dict)
    platform: str = "cpu"
    fallible: tuple[int, ...] = ()
    sizes: tuple[SizeRange, ...] = ()
    shapes: tuple[tuple[Extent, ...], ...] = ()
    states: tuple[State, ...] = ()

    @property
    def workspace_bytes(self) -> int:
        """What a call on a GPU works in: the arena, and an int for each launch."""
        return self.arena_bytes + 4 * len(self.launches)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "name": self.name,
            "inputs": [_spec_to_json(s) for s in self.inputs],
            "outputs": [_spec_to_json(s) for s in self.outputs],
            "arena_bytes": self.arena_bytes,
            "weights_bytes": self.weights_bytes,
            "threads": self.threads,
            "features": list(self.features),
            "flags": list(self.flags),
            "launches": [[kernel, list(origin)] for kernel, origin in self.launches],
            "report": self.report.to_json(),
            "consulted": dict(self.consulted),
            "platform": self.platform,
            "fallible": list(self.fallible),
            "sizes": [_size_to_json(s) for s in self.sizes],
            "shapes": [[_extent_to_json(d) for d in shape] for shape in self.shapes],
            "states": [[s.input, s.output, s.axis, s.capacity, s.in_place] for s in self.states],
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Manifest:
        return Manifest(
            data["name"],
            tuple(map(_spec_from_json, data["inputs"])),
            tuple(map(_spec_from_json, data["outputs"])),
            int(data["arena_bytes"]),
            int(data["weights_bytes"]),
            int(data["threads"]),
            tuple(data["features"]),
            tuple(data["flags"]),
            tuple((kernel, tuple(origin)) for kernel, origin in data["launches"]),
            Report.from_json(data["report"]),
            dict(data["consulted"]),
            str(data["platform"]),
            tuple(map(int, data["fallible"])),
            tuple(map(_size_from_json, data["sizes"])),
            tuple(tuple(map(_extent_from_json, shape)) for shape in data["shapes"]),
            tuple(State(*state) for state in data["states"]),
        )


def make_manifest(
    program: Program,
    plan: Plan,
    report: Report,
    consulted: Mapping[str, str],
    **machine: Any,
) -> Manifest:
    """The manifest of a planned program; `machine` are its fields that say where it runs."""
    names: dict[str, Extent] = {s.name: Size.of(s.shown) for s in program.sizes}

    def shown(extent: Extent) -> Extent:
        return extent.at(names) if isinstance(extent, Size) else extent

    shapes = [tuple(map(shown, program.arrays[n].storage.shape)) for _, n in program.outputs]
    sizes = [
        SizeRange(s.shown, s.lower, s.upper, s.hint, None if s.next is None else shown(s.next))
        for s in program.sizes
    ]
    return Manifest(
        name=program.name,
        inputs=tuple(spec for spec, _ in program.inputs),
        outputs=tuple(spec for spec, _ in program.outputs),
        sizes=tuple(sizes),
        shapes=tuple(shapes),
        states=program.states,
        arena_bytes=plan.arena_bytes,
        weights_bytes=plan.weights_bytes,
        launches=tuple((launch.kernel, launch.origin) for launch in program.launches),
        report=report,
        consulted=consulted,
        **machine,
    )


def write_bundle(
    folder: Path, manifest: Manifest, library: Path, sources: Mapping[str, str]
) -> None:
    """Fill an existing folder, but for its weights and checksums."""
    shutil.copyfile(library, folder / LIBRARY_FILE)
    text = json.dumps(manifest.to_json(), indent=1)
    (folder / MANIFEST_FILE).write_text(text, encoding="utf-8")
    (folder / SOURCE_FOLDER).mkdir()
    for name, content in sources.items():
        (folder / SOURCE_FOLDER / name).write_text(content, encoding="utf-8")


def write_weights(folder: Path, program: Program, plan: Plan) -> None:
    """The constants of a bundle, if it has any: each at its offset, with zeros in between."""
    if not plan.weights_bytes:
        return
    with (folder / WEIGHTS_FILE).open("wb") as stream:
        for name, offset in plan.constants.items():
            value = program.arrays[name].value
            assert value is not None, f"{name} is planned as a constant but has no value"
            stored = np.ascontiguousarray(value, program.arrays[name].dtype)
            if stored.nbytes != program.arrays[name].bytes:
                raise ValueError(
                    f"constant {name} has {stored.nbytes} bytes, its storage "
                    f"{program.arrays[name].bytes}"
                )
            stream.seek(offset)
            stream.write(stored.reshape(-1).view(np.uint8).data)
        stream.truncate(plan.weights_bytes)


def read_bundle(folder: Path, checked: bool = False) -> Manifest:
    """The manifest of an intact bundle; InvalidModel otherwise.

    `checked`: the caller has just compared the checksums.
    """
    if not (folder / MANIFEST_FILE).is_file():
        raise InvalidModel(
            f"{folder} is not a saved polyc model: it has no {MANIFEST_FILE}; give a folder that "
            "`CompiledModel.save` wrote"
        )
    if not checked and not is_intact(folder):
        raise InvalidModel(f"saved model {folder} is damaged: its checksums differ; save it again")
    try:
        data = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise InvalidModel(
                f"saved model {folder} has format {data['format']}, this polyc reads {FORMAT}; "
                "compile the model again"
            )
        return Manifest.from_json(data)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise InvalidModel(
            f"saved model {folder} has a malformed {MANIFEST_FILE} ({error}); save it again"
        ) from error


def read_source(folder: Path) -> str:
    """All C text of a bundle, each file under a line that names it."""
    files = sorted((folder / SOURCE_FOLDER).iterdir())
    return "\n".join(f"/* ---- {f.name} ---- */\n\n{f.read_text(encoding='utf-8')}" for f in files)


def copy_bundle(folder: Path, destination: Path) -> None:
    """Copy a bundle; an older bundle at the destination is replaced, anything else is kept."""
    if destination.exists():
        replaceable = destination.is_dir() and (
            (destination / MANIFEST_FILE).is_file() or not any(destination.iterdir())
        )
        if not replaceable:
            raise InvalidModel(
                f"{destination} exists and is not a saved model; choose another place to save to"
            )
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".polyc-", dir=destination.parent) as draft:
        copy = Path(draft) / "new"
        shutil.copytree(folder, copy)
        write_checksums(copy)
        if destination.exists():
            destination.rename(Path(draft) / "old")
        copy.rename(destination)


def _size_to_json(size: SizeRange) -> list[Any]:
    after = None if size.next is None else _extent_to_json(size.next)
    return [size.name, size.lower, size.upper, size.hint, after]


def _size_from_json(data: list[Any]) -> SizeRange:
    name, lower, upper, hint, after = data
    return SizeRange(name, lower, upper, hint, None if after is None else _extent_from_json(after))


def _extent_to_json(extent: Extent) -> Any:
    return [[list(names), n] for names, n in extent.terms] if isinstance(extent, Size) else extent


def _extent_from_json(data: Any) -> Extent:
    return data if isinstance(data, int) else Size(tuple((tuple(names), n) for names, n in data))


def _spec_to_json(spec: TensorSpec) -> list[Any]:
    return [spec.name, spec.dtype.name, list(spec.shape)]


def _spec_from_json(data: list[Any]) -> TensorSpec:
    return TensorSpec(data[0], named(data[1]), tuple(data[2]))
