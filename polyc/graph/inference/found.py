"""Values that become sizes: Found(value, most) is a size of which a call finds 0 to `most`.

    n = Found(total, 12);  y = Slice(x, 0, n)      y: float32[found_n, 3]

Equal values are one size, whatever nodes they come from: a mask that is asked for its true elements
twice says the same number both times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from polyc.graph.equal import ValueNumbers
from polyc.graph.ir import INTERNAL, Node, Tensor
from polyc.graph.shapes.checks import given, known_int, require
from polyc.names import fresh, identifier
from polyc.types.found import FOUND, find_range
from polyc.types.ranges import SizeRange
from polyc.types.sizes import Extent, Size, names_in


def is_found(node: Node) -> bool:
    """Found(value, most): the one element of an int64, as a size."""
    return node.op == "Found" and node.domain == INTERNAL


def most_of(node: Node, operands: Sequence[Tensor | None]) -> Tensor:
    """What a Found gives where no size can be found: as much as there may be; a Trim cuts it.

    Or a number that is given instead, which is waited for.
    """
    instead = given(operands[-1])
    most = known_int(instead, "what is computed for any number")
    return _with_element(Tensor(node.outputs[0], np.dtype(np.int64), (1,)), most)


class Found:
    """The sizes of a graph that a call finds.

    sizes: in order, and behind those of the last outputs one for each of `values`, the tensors that
    hold them.
    """

    def __init__(self) -> None:
        self.sizes: list[SizeRange] = []
        self.values: list[str] = []
        self._is_new = False
        self._numbers, self._numbered = ValueNumbers(), 0
        self._by_number: dict[int, Size] = {}

    def grew(self) -> bool:
        """Whether a size was entered since this was asked."""
        is_new, self._is_new = self._is_new, False
        return is_new

    def enter(
        self,
        node: Node,
        operands: Sequence[Tensor | None],
        nodes: Sequence[Node],
        table: Mapping[str, Tensor],
    ) -> Tensor:
        """What a Found gives, int64[1]; `nodes` are all that are typed so far."""
        value = given(operands[0])
        computed: Extent | None = node.get("most")  # of a size that is computed, and near that
        most = known_int(given(operands[1]), "most") if computed is None else computed
        require(value.dtype == np.int64, "type of a size", np.dtype(np.int64), value.dtype, "cast")
        require(value.size == 1, "elements of a size", 1, value.size, "find one number")
        result = Tensor(node.outputs[0], np.dtype(np.int64), (1,))
        if value.is_known:
            known = known_int(value, "a size")
            return _with_element(result, known)
        for one in nodes[self._numbered :]:
            self._numbers.enter(one, table)
        self._numbered = len(nodes)
        number = self._numbers.find(value.name, table)
        if number not in self._by_number:
            taken = {*names_in(d for t in table.values() for d in t.shape)}
            taken |= {size.name for size in self.sizes}
            whose = node.inputs[0].rpartition(".")[0] or node.inputs[0]
            name = fresh(FOUND + (identifier(whose) or "size"), taken)
            hint = computed if isinstance(computed, int) else None
            self.sizes.append(replace(find_range(name, most), hint=hint))
            self.values.append(value.name)
            self._by_number[number], self._is_new = Size.of(name), True
        return _with_element(result, self._by_number[number])


def _with_element(tensor: Tensor, element: int | Size) -> Tensor:
    entries = np.array([element], object)
    if isinstance(element, Size):
        return replace(tensor, entries=entries)
    return replace(tensor, value=entries.astype(np.int64))
