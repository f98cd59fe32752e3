"""From the text of a schedule tree to isl's: the functions of bands and the sets of filters.

band  S0: t; S1: t + 1     ->     [{ S0[t, i] -> [(t)]; S1[t, i] -> [(t + 1)] }]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

import islpy as isl

from polyc.names import show_text
from polyc.poly.parameters import parameters_of
from polyc.poly.tree import make_atomic, make_unrolled
from polyc.schedule.tree_text import TreeNode, TreeText, labelled, properties_of, refuse, split

SET = isl.dim_type.set

Read = TypeVar("Read", isl.PwAff, isl.Set)


def build_tree(given: TreeText, domains: Mapping[str, isl.Set]) -> isl.Schedule:
    """The tree over the instances of statements; IllegalSchedule for what does not fit these.

    domains: of all the statements of the kernel, by name.
    """
    counts = {name: domain.dim(SET) for name, domain in domains.items()}
    if {name: len(iterators) for name, iterators in given.iterators.items()} != counts:
        told = ", ".join(f"{name} with {count} iterators" for name, count in counts.items())
        refuse(given.root, f"the statements of this kernel are {told}")
    leaf = isl.Schedule.from_domain(_union(domains.values())).get_root().child(0)
    try:
        return _Builder(domains, given.iterators).chain(leaf, given.root).get_schedule()
    except isl.Error as error:  # filters that overlap, for one
        refuse(given.root, f"isl makes no tree of it ({str(error).splitlines()[0]})")


def _union(sets: Iterable[isl.Set]) -> isl.UnionSet:
    return reduce(isl.UnionSet.union, map(isl.UnionSet.from_set, sets))


@dataclass(frozen=True)
class _Builder:
    """Puts isl's nodes where a tree has leaves, from the outermost on."""

    domains: Mapping[str, isl.Set]
    iterators: Mapping[str, tuple[str, ...]]

    def chain(self, leaf: isl.ScheduleNode, node: TreeNode) -> isl.ScheduleNode:
        """What is below a node in place of a leaf; gives the node at that place."""
        if not node.below:
            return leaf
        first = node.below[0]
        if len(node.below) > 1:
            refuse(node.below[1], "only a sequence has several nodes below it")
        if first.kind == "band":
            made = leaf.insert_partial_schedule(self._members(first, leaf))
            made = _with_properties(made, first)
            return self.chain(made.child(0), first).parent()
        if first.kind == "mark":
            made = leaf.insert_mark(isl.Id(first.said))
            return self.chain(made.child(0), first).parent()
        if first.kind in ("sequence", "set"):
            return self._parts(leaf, first)
        refuse(first, "below a node stands a band, a mark, a sequence or a set of filters")

    def _parts(self, leaf: isl.ScheduleNode, node: TreeNode) -> isl.ScheduleNode:
        filters = isl.UnionSetList.alloc(isl.DEFAULT_CONTEXT, len(node.below))
        for part in node.below:
            if part.kind != "filter":
                refuse(part, f"below a {node.kind} stand filters")
            filters = filters.add(self._filter(part))
        if not node.below:
            refuse(node, "nothing stands below it")
        insert = leaf.insert_sequence if node.kind == "sequence" else leaf.insert_set
        made = insert(filters)
        for k, part in enumerate(node.below):
            made = self.chain(made.child(k).child(0), part).parent().parent()
        return made

    def _filter(self, node: TreeNode) -> isl.UnionSet:
        """S0, S1   ->   all of their instances;   [n] -> { S0[i] : i < n }   ->   what it says."""
        found = []
        for part in split(node.said, ","):
            text = part.strip()
            if text in self.domains:
                one = isl.Set.universe(self.domains[text].get_space())
            else:
                one = _read(isl.Set, text, node)
                known = self.domains.get(one.get_tuple_name() or "")
                if known is None or known.dim(SET) != one.dim(SET):
                    refuse(node, f"{show_text(repr(text), 80)} is no statement, and no set of one")
            found.append(one)
        return _union(found)

    def _members(self, node: TreeNode, leaf: isl.ScheduleNode) -> isl.MultiUnionPwAff:
        """The functions of a band:  S0: i, j; S1: i + 1, j."""
        bare = node.said[: len(node.said) - len(properties_of(node))]
        entries: dict[str, list[str]] = {}
        here = leaf.get_universe_domain().get_set_list()
        names = [here.get_at(k).get_tuple_name() for k in range(here.n_set())]
        for entry in split(bare, ";"):
            meant, said = labelled(entry)
            for name in meant or names:
                entries[name] = split(said, ",")
        missing = next((n for n in names if n not in entries), None)
        strange = next((n for n in entries if n not in names), None)
        if missing or strange:
            told = f"nothing of {missing}" if missing else f"something of {strange}, elsewhere"
            refuse(node, f"it says {told}; statements here are {', '.join(sorted(names))}")
        counts = {len(texts) for texts in entries.values()}
        if len(counts) != 1:
            refuse(node, "it has more members for one statement than for another")
        every = (
            [self._function(name, texts[k], node) for name, texts in entries.items()]
            for k in range(counts.pop())
        )
        members = (
            isl.MultiUnionPwAff.from_union_pw_aff(
                reduce(isl.UnionPwAff.union_add, map(isl.UnionPwAff.from_pw_aff, functions))
            )
            for functions in every
        )
        return reduce(isl.MultiUnionPwAff.flat_range_product, members)

    def _function(self, name: str, text: str, node: TreeNode) -> isl.PwAff:
        """2*t + i   ->   { S0[t, i] -> [(2*t + i)] };   {t if …; i if …} by its pieces."""
        domain = self.domains[name]
        text = text.strip()
        if not text.startswith("{"):
            function = self._affine(name, text, node)
        else:
            pieces = split(text[1:-1], ";")
            function = reduce(isl.PwAff.union_add, (self._piece(name, p, node) for p in pieces))
        if not domain.is_subset(function.domain()):
            refuse(node, f"{show_text(repr(text), 80)} has no value for some instances of {name}")
        return function

    def _piece(self, name: str, text: str, node: TreeNode) -> isl.PwAff:
        """A function where a condition holds:  i if { [i] : i <= 2 }."""
        value, _, condition = text.strip().partition(" if ")
        where = _read(isl.Set, condition, node)
        if where.dim(SET) != self.domains[name].dim(SET):
            refuse(node, f"{show_text(repr(condition), 80)} is no condition on {name}")
        return self._affine(name, value, node).intersect_domain(where.set_tuple_name(name))

    def _affine(self, name: str, text: str, node: TreeNode) -> isl.PwAff:
        sizes = ", ".join(parameters_of(self.domains[name]))
        inside = ", ".join(self.iterators[name])
        if any(c in text for c in "{}[]:;"):
            refuse(node, f"{show_text(repr(text), 80)} is no function of iterators and sizes")
        return _read(isl.PwAff, f"[{sizes}] -> {{ {name}[{inside}] -> [({text})] }}", node)


def _with_properties(band: isl.ScheduleNode, node: TreeNode) -> isl.ScheduleNode:
    """The band with what a text says behind its members.

    Only `atomic` and `unrolled` change the loops.
    """
    said = properties_of(node).split("  ")
    members = band.band_n_member()
    if "permutable" in said:
        band = band.band_set_permutable(1)
    for word in said:
        if word.strip().endswith("coincident"):
            head = word.split()[0]
            for k in range(min(int(head), members) if head.isdigit() else members):
                band = band.band_member_set_coincident(k, 1)
    if "unrolled" in said:
        return make_unrolled(band)
    return make_atomic(band) if "atomic" in said else band


def _read(kind: Callable[[str], Read], text: str, node: TreeNode) -> Read:
    try:
        return kind(text)
    except isl.Error:
        refuse(node, f"isl cannot read {show_text(repr(text), 120)}")
