"""Channels of tensors as atoms: what has to stay, or go, together.

    y = Relu(Add(Conv_1(x), Conv_2(z)))

Channel 3 of both convolutions, of their sum and of y are one atom: it goes if all who read y can do
without channel 3, and then it goes everywhere. Atoms are joined as tensors are (union-find).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Channels:
    """The channels of a tensor, along one of its dimensions.

    atoms: int64, one a channel. known: which channels hold one number everywhere; values: these
    numbers, and anything where they are not known.
    """

    axis: int
    atoms: np.ndarray
    known: np.ndarray
    values: np.ndarray

    def moved(self, axis: int, repeats: int = 1) -> Channels:
        """The same along another dimension, each several times in a row."""
        parts = (np.repeat(v, repeats) for v in (self.atoms, self.known, self.values))
        return Channels(axis, *parts)

    def where(self, known: np.ndarray | bool, values: np.ndarray | float | None = None) -> Channels:
        """The same channels with other numbers, known there alone, and where these are finite."""
        values = self.values if values is None else values
        whole = np.broadcast_to(np.asarray(values, np.float64), self.atoms.shape)
        return Channels(self.axis, self.atoms, known & np.isfinite(whole), whole)


@dataclass
class Atoms:
    """All atoms that were made, which of them are one, and which must stay."""

    parents: list[int] = field(default_factory=list)
    needed: set[int] = field(default_factory=set)

    def make(self, axis: int, count: int) -> Channels:
        """New channels, of which nothing is known."""
        first = len(self.parents)
        self.parents += range(first, first + count)
        atoms = np.arange(first, first + count)
        return Channels(axis, atoms, np.zeros(count, bool), np.zeros(count))

    def need(self, atoms: np.ndarray) -> None:
        """These stay."""
        self.needed.update(map(self._root, atoms.tolist()))

    def join(self, left: np.ndarray, right: np.ndarray) -> None:
        """What is at the same place in both goes only with the other."""
        for one, other in zip(left.tolist(), right.tolist(), strict=True):
            a, b = self._root(one), self._root(other)
            if a != b:
                self.parents[b] = a
                if b in self.needed:
                    self.needed.add(a)

    def kept(self, atoms: np.ndarray) -> np.ndarray:
        """bool: which of these stay."""
        return np.array([self._root(atom) in self.needed for atom in atoms.tolist()], bool)

    def _root(self, atom: int) -> int:
        while self.parents[atom] != atom:
            self.parents[atom] = self.parents[self.parents[atom]]
            atom = self.parents[atom]
        return atom
