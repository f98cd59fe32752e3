"""Graphs compiled for the machine that the READMEs show: two cores with AVX-512.

They are built, which every gcc can do, and read, but not run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from polyc import Graph
from polyc.build.bundle import read_bundle
from polyc.build.make_model import make_model
from polyc.options import STAGES
from polyc.target.machine import Target
from polyc.toolchain.cache import open_cache
from tests.programs import options
from tests.readme.blocks import ROOT, read_blocks


@dataclass(frozen=True)
class Shown:
    """What the compiler writes: the report, the C of the model, and the dumps of each stage."""

    report: str
    source: str
    dumps: dict[str, str]


@pytest.fixture(scope="session")
def show(tmp_path_factory) -> Callable[[Graph], Shown]:
    def compile_for_reading(graph: Graph) -> Shown:
        folder = tmp_path_factory.mktemp("shown")
        dump = folder / "dump"
        chosen = replace(options(folder), dump=STAGES, dump_dir=dump)
        target, cache = replace(Target.named("avx512"), cores=2), open_cache(chosen)

        def make(place: Path) -> None:
            make_model(graph, target, chosen, cache, place, {})

        bundle = cache.fetch_and_read("models", "shown", make, read_bundle)
        source = "\n".join(bundle.sources.values())
        dumps = {s: "".join(f.read_text() for f in sorted(dump.glob(f"?-{s}*"))) for s in STAGES}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", "160")  # of the terminal that README shows
            report = str(bundle.manifest.report)
        return Shown(report, source, dumps)

    return compile_for_reading


@pytest.fixture(scope="session")
def example(show) -> Shown:
    """The first example of README."""
    code = next(b.text for b in read_blocks(ROOT / "README.md") if b.language == "python")
    names: dict[str, Graph] = {}
    exec(code.partition("\nmodel = ")[0], names)
    return show(names["graph"])
