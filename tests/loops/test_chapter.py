"""The chapter's examples run as they are printed, and print what is shown."""

from __future__ import annotations

from tests.readme.blocks import ROOT, read_blocks, shows
from tests.readme.run import run_block

README = ROOT / "polyc" / "loops" / "README.md"


def test_examples_print_what_is_shown(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    blocks = read_blocks(README)
    names: dict[str, object] = {}
    shown = 0
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if block.language != "python":
            continue
        run_block(block, "loops/README.md", names)
        printed = capsys.readouterr().out
        if after is not None and after.language == "":
            shown += 1
            assert shows(after.text, printed), printed
    assert shown == 7
