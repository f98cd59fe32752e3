"""Tensors whose channels are last, for operators of the standard, which has them first."""

from __future__ import annotations

from polyc.graph.compose import Composer


def channels_first(c: Composer, x: str, rank: int) -> str:
    """[batch, …, channels] -> [batch, channels, …]"""
    return c("Transpose", x, perm=(0, rank - 1, *range(1, rank - 1)))


def channels_last(c: Composer, y: str, rank: int) -> str:
    """[batch, channels, …] -> [batch, …, channels]"""
    return c("Transpose", y, perm=(0, *range(2, rank), 1))
