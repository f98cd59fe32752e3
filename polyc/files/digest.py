"""Digests of texts and bytes: keys that do not collide."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def digest(parts: Iterable[str | bytes]) -> str:
    """sha256 of the parts, each preceded by its length: ("ab", "c") and ("a", "bc") differ."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()
