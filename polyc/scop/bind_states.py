"""States: an output becomes the array of the input that it is in the next call.

    keys'[h, j]        = keys[h, j]   (j < past)        one array, as large as it may get;
    keys'[h, past + j] = k[h, j]                  ->    keys[h, past + j] = k[h, j]
    s[h] += q[j] * keys'[h, j]                          s[h] += q[j] * keys[h, j]

The copy of what was there is gone. This is right if no element is overwritten that somebody else
reads as it was before: each old element is read by the very instance that overwrites it, or stays.
Then order matters only where it did before, between a write of the state and those who read what
it wrote, and the proofs of kernels and of launches see to that as for any array.

Where that does not hold (a product reads all of h to make each element of h'), the state has two
arrays, and nothing changes here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import islpy as isl

from polyc.errors import UnsupportedOp
from polyc.graph.states import State
from polyc.poly.boxes import box
from polyc.poly.parameters import among_sizes
from polyc.scop.accesses import read_map, write_map
from polyc.scop.expr import Expr, Load, rebuild
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.uses import drop_dead

OUT = isl.dim_type.out


def bind_states(scop: Scop, states: Sequence[State]) -> tuple[Scop, tuple[State, ...]]:
    """The scop with states in place where that is right, and which of them are.

    Raises UnsupportedOp for a state that grows and cannot be kept in place.
    """
    bound: list[State] = []
    for state in states:
        moved = _bind(scop, state)
        if isinstance(moved, str):
            if state.axis is not None:
                name = scop.inputs[state.input]
                raise UnsupportedOp(
                    f"state {name!r} grows, but {moved}; return it with new rows behind the old "
                    "ones, and these as they were"
                )
            bound.append(state)
        else:
            scop = moved
            bound.append(replace(state, in_place=True))
    return scop, tuple(bound)


def _bind(scop: Scop, state: State) -> Scop | str:
    """The scop with the two arrays of a state made one, or why that cannot be."""
    old, new = scop.arrays[scop.inputs[state.input]], scop.arrays[scop.outputs[state.output]]
    copies = [s for s in scop.statements if _keeps(s, old, new)]
    rest = [s for s in scop.statements if s not in copies]
    writers = [s for s in rest if s.array == new.name]
    if any(s.step for s in (*copies, *writers)):
        return "it is written step by step"
    if any(s.branches for s in (*copies, *writers)):
        return "only some calls write it"
    if any(old.name == branch.condition for s in rest for branch in s.branches):
        return "it decides what a call executes"
    sets = (one for s in (*copies, *writers) for one in (s.domain, s.write))
    whole = among_sizes(box(old.name, new.shape), *sets)
    kept, written = _written(copies, whole), _written(writers, whole)
    if not whole.is_subset(kept.union(written)):
        return "not all of it is written"
    if not kept.is_disjoint(written):
        return "it is written twice"
    for writer in writers:
        goes = _into(write_map(writer), old.name).reverse()  # A -> W
        for reader in rest:
            for load in reader.loads:
                if load.array != old.name:
                    continue
                late = read_map(reader, load, old).apply_range(goes)  # R -> W
                if reader is writer:
                    late = late.subtract(isl.Map.identity(late.space))
                if not late.is_empty():
                    return f"{writer.name} overwrites what {reader.name} reads"
    one = Array(old.name, old.dtype, state.stored(old.shape), "state")
    arrays = {n: a for n, a in scop.arrays.items() if n != new.name}
    outputs = tuple(old.name if name == new.name else name for name in scop.outputs)
    indices = ", ".join(f"i{k}" for k in range(len(new.shape)))
    where = isl.PwMultiAff(f"{{ {new.name}[{indices}] -> {old.name}[{indices}] }}")
    statements = tuple(_renamed(s, new.name, where) for s in rest)
    together = replace(
        scop, statements=statements, arrays={**arrays, old.name: one}, outputs=outputs
    )
    return drop_dead(together)


def _keeps(s: Statement, old: Array, new: Array) -> bool:
    """Whether a statement copies elements of the old state to their own places in the new one."""
    load = s.value
    if s.array != new.name or s.reduction or not isinstance(load, Load) or load.dynamic:
        return False
    if load.array != old.name:
        return False
    goes = _into(write_map(s), old.name)
    return bool(goes.is_equal(read_map(s, load, old)))


def _written(statements: Iterable[Statement], whole: isl.Set) -> isl.Set:
    """# A: what of an array statements write, whatever they call it."""
    written = whole.subtract(whole)
    for s in statements:
        written = written.union(_into(write_map(s), whole.get_tuple_name()).range())
    return written


def _into(relation: isl.Map, name: str) -> isl.Map:
    """The relation into an array of another name."""
    return relation.set_tuple_name(OUT, name)


def _renamed(s: Statement, old: str, where: isl.PwMultiAff) -> Statement:
    """The statement with its accesses to array `old` sent where that lies now."""

    def leaf(e: Expr) -> Expr:
        if not isinstance(e, Load) or e.array != old:
            return e
        return replace(e, array=home, index=where.pullback_pw_multi_aff(e.index))

    home = where.get_tuple_name(OUT)
    value = rebuild(s.value, leaf)
    if s.array != old:
        return replace(s, value=value)
    return replace(s, array=home, write=where.pullback_pw_multi_aff(s.write), value=value)
