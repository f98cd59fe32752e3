"""isl's functions and trees as text for people: what dumps, reports and golden tests show.

{ S[i, j] -> [i - (i mod 20), j + 1] }   20*floor(i/20), j + 1

domain  S[i, j], T[i, j]
└ band  i, 16*floor(j/16)  permutable  1 coincident
  └ sequence
    ├ filter  S
    │ └ mark  vector
    └ filter  T
"""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl

from polyc.poly.affine import outputs

IN, DIV, SET, PARAM = isl.dim_type.in_, isl.dim_type.div, isl.dim_type.set, isl.dim_type.param


def show_function(function: isl.PwMultiAff) -> str:
    """The coordinates of a function in terms of its iterators:  i + 1, floor(j/2)."""
    return ", ".join(map(show_value, outputs(function)))


def show_value(function: isl.PwAff) -> str:
    """One coordinate; pieces are shown with their domains:  {i if …; j if …}."""
    pieces = function.get_pieces()
    if len(pieces) == 1:
        return show_aff(pieces[0][1])
    parts = [f"{show_aff(aff)} if {_condition(domain)}" for domain, aff in pieces]
    return "{" + "; ".join(sorted(parts)) + "}"


def show_aff(aff: isl.Aff) -> str:
    """A quasi-affine function, with floor(e/d) and e mod d:  7 - 2*(j mod 5)."""
    scale = aff.get_denominator_val()
    numerator = _sum(aff.scale_val(scale))
    if scale.is_one():
        return numerator
    return f"{_enclose(numerator)}/{scale}"


def _sum(aff: isl.Aff) -> str:
    """A function of integer coefficients as a sum of terms."""
    terms: list[tuple[int, str]] = []
    for c, div in _divisions(aff):
        # What remains of a division is  e mod d = e - d*floor(e/d).
        size = div.get_denominator_val()
        factor, odd = divmod(-c, _int(size))
        remainder = div.sub(div.floor()).scale_val(size)
        without = aff.sub(remainder.scale_val(factor))
        if not odd and _count(without) < _count(aff):
            terms.append((factor, f"({_enclose(show_aff(div.scale_val(size)))} mod {size})"))
            aff = without
    terms = [(c, f"floor({show_aff(div)})") for c, div in _divisions(aff)] + terms
    names = [(_int(aff.get_coefficient_val(IN, k)), _name(aff, k)) for k in range(aff.dim(IN))]
    for k in range(aff.dim(PARAM)):
        names.append((_int(aff.get_coefficient_val(PARAM, k)), str(aff.get_dim_name(PARAM, k))))
    text = ""
    for c, term in [*names, *terms]:
        if c:
            sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
            text += sign + (term if abs(c) == 1 else f"{abs(c)}*{term}")
    constant = _int(aff.get_constant_val())
    if not text:
        return str(constant)
    return text + (f" {'-' if constant < 0 else '+'} {abs(constant)}" if constant else "")


def _enclose(text: str) -> str:
    return f"({text})" if " " in text else text


def _divisions(aff: isl.Aff) -> list[tuple[int, isl.Aff]]:
    """(c, e/d) for each term  c*floor(e/d)."""
    factors = [_int(aff.get_coefficient_val(DIV, k)) for k in range(aff.dim(DIV))]
    return [(c, aff.get_div(k)) for k, c in enumerate(factors) if c]


def _count(aff: isl.Aff) -> int:
    """The number of terms of a function, its constant aside."""
    names = sum(not aff.get_coefficient_val(IN, k).is_zero() for k in range(aff.dim(IN)))
    return names + len(_divisions(aff))


def _name(aff: isl.Aff, position: int) -> str:
    return aff.get_dim_name(IN, position) or f"i{position}"


def _int(value: isl.Val) -> int:
    return int(value.to_python())


def _condition(domain: isl.Set) -> str:
    """The constraints of a set, in isl's words."""
    return str(domain.set_tuple_name(""))


def show_tree(schedule: isl.Schedule) -> str:
    """A schedule tree, one line a node, children below their parents."""
    return "\n".join(_show_node(schedule.get_root(), "", ""))


def _show_node(node: isl.ScheduleNode, first: str, rest: str) -> Iterator[str]:
    """The lines of a subtree; `first` stands before its own line, `rest` before those below."""
    yield first + _describe(node)
    below = [node.child(k) for k in range(node.n_children())]
    below = [child for child in below if child.get_type() != isl.schedule_node_type.leaf]
    for child in below:
        last = child is below[-1]
        yield from _show_node(
            child, rest + ("└ " if last else "├ "), rest + ("  " if last else "│ ")
        )


def _describe(node: isl.ScheduleNode) -> str:
    kind = isl.schedule_node_type
    match node.get_type():
        case kind.domain:
            return f"domain  {_show_domain(node.domain_get_domain())}"
        case kind.filter:
            return f"filter  {_show_filter(node)}"
        case kind.mark:
            return f"mark  {node.mark_get_id().get_name()}"
        case kind.band:
            return f"band  {_show_band(node)}"
        case kind.extension:
            return f"extension  {node.extension_get_extension()}"
        case other:
            return isl.schedule_node_type(other).name


def _show_domain(union: isl.UnionSet) -> str:
    """The statements of a union with their iterators:  S[i, j], T[i]."""
    shown = []
    for part in _sets(union):
        inside = [part.get_dim_name(SET, k) or f"i{k}" for k in range(part.dim(SET))]
        shown.append(f"{part.get_tuple_name()}[{', '.join(inside)}]")
    return ", ".join(sorted(shown))


def _show_filter(node: isl.ScheduleNode) -> str:
    """Statements of which all instances pass, and convex sets of those of which some do."""
    reaching = {s.get_tuple_name(): s for s in _sets(node.parent().get_domain())}
    shown = []
    for part in _sets(node.filter_get_filter()):
        name = part.get_tuple_name()
        if name not in reaching or reaching[name].is_subset(part):
            shown.append(name)
        else:
            some = part.gist(reaching[name]).drop_unused_params().get_basic_set_list()
            # As isl writes what it has read. Else a tree that is given back may show one set by
            # other inequalities: isl keeps floors in the order in which they came up.
            shown += [str(isl.BasicSet(str(some.get_at(k)))) for k in range(some.n_basic_set())]
    return ", ".join(sorted(shown))


def _sets(union: isl.UnionSet) -> list[isl.Set]:
    parts = union.get_set_list()
    return [parts.get_at(k) for k in range(parts.n_set())]


def _show_band(node: isl.ScheduleNode) -> str:
    """Members and properties; statements that are scheduled alike share one entry."""
    members = range(node.band_n_member())
    partial = node.band_get_partial_schedule()
    alike: dict[str, list[str]] = {}
    for domain in _sets(node.get_universe_domain()):
        only = partial.intersect_domain(isl.UnionSet.from_set(domain))
        functions = [only.get_union_pw_aff(k).get_pw_aff_list() for k in members]
        text = ", ".join(show_value(f.get_at(0)) if f.n_pw_aff() else "0" for f in functions)
        alike.setdefault(text, []).append(domain.get_tuple_name())
    entries = sorted((sorted(names), text) for text, names in alike.items())
    shown = [entries[0][1]] if len(entries) == 1 else [f"{', '.join(n)}: {t}" for n, t in entries]
    coincident = sum(bool(node.band_member_get_coincident(k)) for k in members)
    types = {node.band_member_get_ast_loop_type(k) for k in members}
    properties = [
        "permutable" if node.band_get_permutable() else "",
        "coincident"
        if coincident == len(members)
        else f"{coincident} coincident" * bool(coincident),
        "atomic" if types == {isl.ast_loop_type.atomic} else "",
        "unrolled" if types == {isl.ast_loop_type.unroll} else "",
    ]
    return "; ".join(shown) + "".join(f"  {p}" for p in properties if p)
