"""Compiled kernels on disk: one that is equal up to names is scheduled, proven and printed once.

    ResNet-50: k7_Conv_19        →  cache: kernels/<key>  →      ResNet-101: k12_Conv_32

The key says all that decides about a kernel: its signature (`backends/kernels.py`), and what a
`KeptKernels` was made for, which is polyc itself, the target and the options. What is kept has
positions for names, and no loops: these were proven, and are printed. What a launch of a kernel is
given, and when, is proven of each model anew.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import islpy as isl

from polyc.analysis.launches.verify import Judged
from polyc.analysis.proof import Proof
from polyc.backends.common import Boundary, CompiledKernel, comment_on, kernel_scop
from polyc.files.digest import digest
from polyc.files.folder import Folder
from polyc.files.regular import parse_json
from polyc.files.table import Damaged, read_table
from polyc.files.typed_json import decode
from polyc.loopnest.prototype import Param, Prototype
from polyc.mapping.stored_kernel import StoredKernel
from polyc.printing.template import Template
from polyc.program.work import Work
from polyc.schedule.canonical import from_positions
from polyc.schedule.schedule import Schedule
from polyc.scop.scop import Scop
from polyc.toolchain.cache import Cache
from polyc.types.ranges import assumed_ranges

KIND = "kernels"
FILE = "kernel.json"

Elements = Mapping[str, str]
"""By parameter, the elements that are touched, as isl writes sets."""


@dataclass(frozen=True)
class Kept:
    """What is kept of a kernel; `schedule`, `bound` and the text have positions for names.

    parameters: the arrays that it is given; written: whether it writes them; inside: whether they
    are room for values of its own; sizes: those that it is told.
    """

    text: str
    schedule: str
    parameters: tuple[int, ...]
    written: tuple[bool, ...]
    inside: tuple[bool, ...]
    sizes: tuple[str, ...]
    reads: Elements
    writes: Elements
    proof: Proof | None
    flops: int
    bytes: int
    work: Work | None


@dataclass(frozen=True)
class KeptKernels:
    """The kernels in a cache that were made in one way: `common` is all else that decides."""

    cache: Cache
    common: str

    def key(self, stored: StoredKernel, signature: Hashable) -> str:
        """That of a kernel; empty for one that is not kept.

        So it is in a loop over steps, whose number has another name in each model, and with a
        schedule that was given, whose author wants to hear about it. What is assumed of sizes
        decides as well, and is the same for a whole model.
        """
        if stored.given or stored.step:
            return ""
        tools = isl.isl_version(), isl.version.VERSION_TEXT
        return digest([self.common, *tools, repr(assumed_ranges()), repr(signature)])

    def find(self, key: str, name: str, stored: StoredKernel, scop: Scop) -> CompiledKernel | None:
        """The kernel under a key, in the names of `stored`; None if there is none."""
        kept = self.cache.read(KIND, key, _read)
        if kept is None:
            return None
        found = _restore(kept, name, stored, scop)
        return replace(found, proof=replace(found.proof, earlier=1) if found.proof else None)

    def keep(self, key: str, compiled: CompiledKernel) -> None:
        """Write a kernel, unless somebody else just has."""
        content = pack(compiled)

        def make(folder: Path) -> None:
            (folder / FILE).write_bytes(content)

        self.cache.fetch_and_read(KIND, key, make, _read)


def pack(compiled: CompiledKernel) -> bytes:
    """A kernel without names, as it is kept, and as it goes from one process to another."""
    return json.dumps(dataclasses.asdict(_describe(compiled))).encode()


def unpack(content: bytes, name: str, stored: StoredKernel, scop: Scop) -> CompiledKernel:
    """The kernel in the names of `stored`; ValueError if it is none."""
    return _restore(_parse(content), name, stored, scop)


def _describe(compiled: CompiledKernel) -> Kept:
    """What is kept of a kernel."""
    assert compiled.template is not None, "kernels for a GPU are not kept"
    boundary = compiled.boundary
    reads, writes = (
        {str(k): str(elements.reset_tuple_id()) for k, elements in accesses.items()}
        for accesses in (boundary.reads, boundary.writes)
    )
    return Kept(
        compiled.template.text,
        str(compiled.directives),
        boundary.bound,
        tuple(p.writes for p in compiled.kernel.params),
        tuple(p.inside for p in compiled.kernel.params),
        compiled.kernel.sizes,
        reads,
        writes,
        replace(compiled.proof, kernel="") if compiled.proof else None,
        compiled.flops,
        compiled.bytes,
        compiled.work,
    )


def _parse(content: bytes) -> Kept:
    """What was packed; ValueError if it was not."""
    return decode(Kept, parse_json(content))


def _read(folder: Folder) -> Kept:
    """What an entry holds; Damaged if it is not as it was written."""
    try:
        return _parse(read_table(folder).read(folder, FILE))
    except ValueError as error:
        raise Damaged(f"{folder.path / FILE} is malformed ({error})") from error


def _restore(kept: Kept, name: str, stored: StoredKernel, scop: Scop) -> CompiledKernel:
    """The kernel in the names of a model."""
    part = kernel_scop(name, stored, scop)
    arrays = [stored.arrays[k] for k in kept.parameters]
    params = tuple(
        Param(a, part.arrays[a].dtype, stored.storages[a].shape, writes, inside)
        for a, writes, inside in zip(arrays, kept.written, kept.inside, strict=True)
    )
    directives = Schedule.parse(kept.schedule)
    schedule = str(from_positions(directives, stored.named, stored.scheduled))
    template = Template(kept.text)
    prototype = Prototype(name, params, sizes=kept.sizes)

    def parse(accesses: Elements) -> dict[int, isl.Set]:
        return {
            int(k): isl.Set(text).set_tuple_name(arrays[int(k)]) for k, text in accesses.items()
        }

    return CompiledKernel(
        prototype,
        template.spell(name, stored.arrays, comment_on(stored, schedule)),
        schedule,
        replace(kept.proof, kernel=name) if kept.proof else None,
        kept.flops,
        kept.bytes,
        Boundary(kept.parameters, parse(kept.reads), parse(kept.writes)),
        Judged(prototype, part, part, stored.storages, assumed_ranges()),
        directives,
        template=template,
        work=kept.work,
    )
