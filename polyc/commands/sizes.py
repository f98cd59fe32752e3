"""Sizes known only at run time and states, as the command line says them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from polyc.errors import InvalidModel
from polyc.types.call_sizes import Range


def parse_sizes(texts: Sequence[str] | None) -> dict[str, Any]:
    """["batch=1", "seq=1:512:128"] -> the arguments dims and hint of `polyc.compile`.

    NAME=NUMBER fixes a size; NAME=FIRST:LAST is a range, and a third number its hint; with an
    operator it is a sum of sizes, "total=past + seq".
    """
    dims: dict[str, Range] = {}
    hint: dict[str, int] = {}
    for text in texts or ():
        found = re.fullmatch(r"(.+)=(\d+)(?::(\d+)(?::(\d+))?)?", text)
        said = re.fullmatch(r"(.+)=([^:=]*[+*][^:=]*)", text)
        if found is None and said is not None:
            dims[said[1]] = said[2]
            continue
        if found is None:
            raise InvalidModel(
                f"--size {text!r} is no NAME=NUMBER, NAME=FIRST:LAST[:HINT] or NAME=SUM"
            )
        name, first, last, typical = found.groups()
        dims[name] = int(first) if last is None else (int(first), int(last))
        if typical is not None:
            hint[name] = int(typical)
    return {"dims": dims, "hint": hint}


def parse_states(texts: Sequence[str] | None) -> dict[str, str]:
    """["past=present"] -> the argument `state` of `polyc.compile`."""
    state = {}
    for text in texts or ():
        name, _, result = text.partition("=")
        if not name or not result:
            raise InvalidModel(f"--state {text!r} is not of the form INPUT=OUTPUT")
        state[name] = result
    return state
