"""The text of a kernel in which names are left open, so that kernels equal up to them share it.

    relu(a) in one model, relu(b) in another    ->    void ${kernel}(const f32 *restrict ${a0}_, …)

What models call their arrays decides nothing about what a compiler makes of the text, but for the
name of the function. So a text is kept, and compiled, once for all names.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, replace

from polyc.files.digest import digest
from polyc.loopnest.nodes import Kernel
from polyc.names import RUNTIME_PREFIX
from polyc.printing.c_names import name_for_c
from polyc.printing.print_c import print_remarks, print_unit

_KERNEL = "kernel"


@dataclass(frozen=True)
class Template:
    """A translation unit with ${kernel} for the function's name and ${a7} for that of array 7."""

    text: str

    @property
    def symbol(self) -> str:
        """What the function is called in an object that all names share."""
        return f"{RUNTIME_PREFIX.lower()}kernel_{digest([self.text])[:32]}"

    def spell(self, kernel: str, arrays: Sequence[str], remarks: Sequence[str]) -> str:
        """The unit in the names of a model, below a comment."""
        names = {_KERNEL: kernel, **{_place(k): name for k, name in enumerate(arrays)}}
        return print_remarks(remarks) + string.Template(self.text).substitute(names)


def make_template(kernel: Kernel, arrays: Sequence[str]) -> Template:
    """The text of a kernel; `arrays` are those that it may name, in an order of their own."""
    marks = {name: f"${{{_place(k)}}}" for k, name in enumerate(arrays)}
    open_name = replace(kernel, name=f"${{{_KERNEL}}}")
    return Template(print_unit(name_for_c(open_name, marks)))


def _place(position: int) -> str:
    return f"a{position}"
