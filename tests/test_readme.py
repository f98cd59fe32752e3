"""The README's example does what the README says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

README = Path(__file__).parent.parent / "README.md"


def test_the_example_prints_what_is_shown(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("POLYC_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "160")  # of the terminal that the README shows
    text = README.read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code is not None
    names: dict[str, object] = {}
    exec(code[1], names)
    printed = capsys.readouterr().out
    shown = text.split("prints\n\n```\n")[1].partition("```")[0]
    # Times and what depends on the machine differ; what was compiled and proven does not.
    for start in ("kernels:", "memory:", "proven: 1 launch", "proven: arena", "proven: driver"):
        (expected,) = (line for line in shown.splitlines() if line.startswith(start))
        assert expected in printed.splitlines()
    assert "MatMul MatMul_0, Add Add_1, Relu Relu_2" in printed
    np.testing.assert_array_equal(names["y"], np.full((100, 64), 257, np.float32))
    _, _, sizes = text.partition("## Sizes known only at run time")
    code = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", sizes, re.DOTALL)
    assert code is not None
    exec(code[1], names)
    assert capsys.readouterr().out == code[2]
