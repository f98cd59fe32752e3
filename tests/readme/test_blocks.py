"""The rules by which a README is compared with what is printed."""

from __future__ import annotations

import pytest

from tests.readme.blocks import read_blocks, read_commands, shows, without_machine

TEXT = """\
int main(void)
{
    for (;;) {
        a += 1;
        b += 22;
        c += 3;
    }
}
"""


@pytest.mark.parametrize(
    "excerpt",
    [
        "int main(void)\n{\n",
        "a += 1;\nb += 22;\n",  # indented all alike
        "for (;;) {\n    a += …;\n    b += 2…;\n",
        "for (;;) {\n    a += 1;\n    …\n}\n",
        "for (;;) {\n…\n    c += 3;\n",
        "a += 1;\n…\nb += 22;\n",  # no lines are lines, too
    ],
)
def test_what_an_excerpt_shows(excerpt):
    assert shows(excerpt, TEXT)


@pytest.mark.parametrize(
    "excerpt",
    [
        "int main()\n",
        "a += 1\n",  # a line is all of it
        "a += 1;\nc += 3;\n",
        "a += 1;\n    b += 22;\n",
        "b += 3…;\n",
        "c += 3;\n…\na += 1;\n",
    ],
)
def test_what_an_excerpt_does_not_show(excerpt):
    assert not shows(excerpt, TEXT)


def test_blocks_and_commands(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(
        "# One\n`polyc run MODEL`, `model.run`\n```python\n# no heading\nx = 1\n```\n\n"
        "```\n`polyc no command`\n```\n## Two\n`POLYC_DUMP=c polyc explain MODEL`\n```sh\n```\n"
    )
    found = [(b.language, b.text, b.heading, b.line) for b in read_blocks(readme)]
    assert found == [
        ("python", "# no heading\nx = 1\n", "One", 3),
        ("", "`polyc no command`\n", "One", 8),
        ("sh", "\n", "Two", 13),
    ]
    assert read_commands(readme) == ["polyc run MODEL", "POLYC_DUMP=c polyc explain MODEL"]


def test_what_differs_from_machine_to_machine():
    one = "k  yes\n──\nk: split j 32 | split i' 13\ntarget: a\nkernels: 1\ncompiled in: 1 s"
    two = "k     yes\n─────\nk: split j 16 | split i' 6\ntarget: b\nkernels: 1\ncompiled in: 2 s"
    assert without_machine(one) == without_machine(two)
    assert without_machine(one) != without_machine(two.replace("kernels: 1", "kernels: 2"))
