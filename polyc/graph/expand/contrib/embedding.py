"""EmbedLayerNormalization of com.microsoft, the first layer of BERT: a sum of embeddings.

y[b, n]  =  normalise(words[id[b, n]] + places[n] + kinds[segment[b, n]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from polyc.graph.compose import Composer
from polyc.graph.ir import Body, Node, Tensor

Operands = Sequence[Tensor | None]

WORDS, PLACES, KINDS = range(3)


def expand_embedding(node: Node, inputs: Operands) -> Body:
    """(ids, segments, tables of words, places and kinds, gamma, beta, mask, positions)

    Outputs are y[batch, n, hidden], the number of ones in each row of the mask, and the sum.
    """
    c = Composer()
    names = (*node.inputs, "", "")
    ids, segments, *tables, gamma, beta, mask, positions = names[:9]

    def look_up(table: int, rows: str) -> str:
        return c("Gather", tables[table], rows)

    rows = ids, segments, positions
    return c.body(node.inputs, embed(c, node, rows, mask, look_up, (gamma, beta)))


def embed(
    c: Composer,
    node: Node,
    rows: tuple[str, str, str],
    mask: str,
    look_up: Callable[[int, str], str],
    gamma_and_beta: tuple[str, str],
) -> tuple[str, str, str]:
    """y, the number of ones in each row of the mask, and the sum; look_up(table, rows) -> numbers

    rows: which ones of words, of kinds and of places; the latter two may be "".
    """
    ids, segments, positions = rows
    where = positions or c("Unsqueeze", c.count_up(c.extent(ids, 1)), c.integers(0))
    total = c("Add", look_up(WORDS, ids), look_up(PLACES, where))
    if segments:
        total = c("Add", total, look_up(KINDS, segments))
    epsilon = node.get("epsilon", 1e-12)
    y = c("LayerNormalization", total, *gamma_and_beta, axis=-1, epsilon=epsilon)
    if mask:
        lengths = c("ReduceSum", mask, c.integers(1), keepdims=0)
    else:
        lengths = c("Expand", c.constant(np.int32(0)), c.extent(ids, 0))
    return y, lengths, total
