"""What callers may say, checked: choices and names of layers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, get_args

from polyc.compression.layers import Layers
from polyc.errors import InvalidOption


def check_choice(name: str, value: object, choices: Any) -> None:
    """InvalidOption unless a value is one of those that a Literal lists."""
    known = get_args(choices)
    if value not in known:
        raise InvalidOption(f"{name} is {value!r}; it must be one of {', '.join(known)}")


def check_names(keep: Collection[str], layers: Layers) -> None:
    """InvalidOption if `keep` names what is no layer."""
    unknown = sorted(set(keep) - layers.by_name.keys() - layers.others.keys())
    if unknown:
        raise InvalidOption(
            f"keep names {', '.join(map(repr, unknown))}; the layers that could become smaller are "
            f"{', '.join(map(repr, layers.by_name))}"
        )
