"""Graph rewriting: the straight list of rewrites, and `simplify`, which applies them.

Each rewrite is a pure function `Graph -> Rewritten` in a module of its own, which documents its
rules as before -> after. Inputs and outputs of the graph keep their names, types and order.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyc.budget import UNLIMITED, Budget
from polyc.graph.ir import Graph
from polyc.graph.simplify.algebra import simplify_algebra
from polyc.graph.simplify.batch_norm_folding import fold_batch_norms
from polyc.graph.simplify.block_weights import keep_block_weights
from polyc.graph.simplify.bytes_moved import move_bytes
from polyc.graph.simplify.common_subexpressions import merge_common_subexpressions
from polyc.graph.simplify.constant_folding import fold_constants
from polyc.graph.simplify.dead_code import remove_dead_code
from polyc.graph.simplify.gemm import normalize_gemms
from polyc.graph.simplify.identities import drop_identities
from polyc.graph.simplify.idle_taps import drop_idle_taps
from polyc.graph.simplify.matrix_chains import reorder_matrix_chains
from polyc.graph.simplify.merged_dimensions import keep_apart
from polyc.graph.simplify.pads import merge_pads
from polyc.graph.simplify.positions import read_in_place
from polyc.graph.simplify.rewriting import Rewrite, RewriteNote, Rewritten
from polyc.graph.simplify.row_products import separate_rows
from polyc.graph.simplify.scores import simplify_scores
from polyc.graph.simplify.separate_pools import separate_pools

__all__ = ["MAX_ROUNDS", "REWRITES", "Rewrite", "RewriteNote", "Rewritten", "simplify"]

MAX_ROUNDS = 16
"""A bound on the rounds, so that time stays linear; a walk settles long chains by itself, and real
models need two or three rounds."""

REWRITES: tuple[tuple[int, Rewrite], ...] = (
    # Dead readers would hide that a tensor is read once.
    (1, remove_dead_code),
    # Before what is constant is computed: weights that are multiplied as they are stored.
    (2, keep_block_weights),
    # Everything below looks at constants.
    (1, fold_constants),
    # Casts, reshapes and copies that do nothing would stand between partners.
    (1, drop_identities),
    (1, merge_common_subexpressions),
    # Bytes between two that restore and quantise them alike.
    (1, move_bytes),
    # A Reshape that goes with its reader is one less to be said.
    (1, read_in_place),
    # Pads before batch norms: both end in the Conv between them.
    (2, merge_pads),
    # With all of a window's pads known.
    (2, drop_idle_taps),
    # Gemm in plain form first, so that a batch norm meets constants only.
    (2, normalize_gemms),
    # Gemm in plain form is a product of rows.
    (1, separate_rows),
    # Rows of a product are whole by now.
    (2, keep_apart),
    # Before algebra, which would take apart an affine map that folds as a whole.
    (2, fold_batch_norms),
    (2, simplify_algebra),
    (2, simplify_scores),
    # Behind the pads of a pool.
    (2, separate_pools),
    # Last: scales and transpositions are out of the chains by now.
    (3, reorder_matrix_chains),
)
"""Each rewrite with the level from which on it is applied, in order."""


def simplify(
    graph: Graph,
    level: int = 3,
    budget: Budget = UNLIMITED,
    rewrites: Sequence[tuple[int, Rewrite]] = REWRITES,
) -> tuple[Graph, tuple[RewriteNote, ...]]:
    """Apply the rewrites, in rounds, until none finds anything to do; and say what was done.

    level 0: none; 1: those that keep every bit; 2: also algebra (special values stay, a result may
    round differently) and folding into weights; 3: also the order of matrix products. `rewrites`:
    each with its level, in order.
    """
    notes: list[RewriteNote] = []
    for _ in range(MAX_ROUNDS):
        found: list[RewriteNote] = []
        for needed, rewrite in budget.over(rewrites, "simplify"):
            if level >= needed:
                rewritten = rewrite(graph)
                graph = rewritten.graph
                found += rewritten.notes
        notes += found
        if not found:
            break
    return graph, tuple(notes)
