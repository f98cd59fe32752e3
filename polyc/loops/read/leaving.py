"""`continue` and `break`, said by `if`: what follows goes where it is still executed.

    for i in range(n):                  left = False
        if x[i] < 0:                    for i in range(n), until left:
            continue                        if not x[i] < 0:
        y[i] = x[i]               ->            y[i] = x[i]
        if x[i] > 9:                            if x[i] > 9:
            break                                   left = True
        z[i] = x[i]                             else:
                                                    z[i] = x[i]

Behind an `if` of which both branches may go on, what follows asks whether they did.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

Leave = ast.Break | ast.Continue


def leaves_loop(body: list[ast.stmt]) -> bool:
    """Whether the body of a loop breaks off that loop."""
    return any(isinstance(one, ast.Break) for one in _leaves(body))


def without_leaves(body: list[ast.stmt], left: str, skipped: str) -> list[ast.stmt]:
    """The body of a loop with neither: by locals that say that it was left, or an iteration."""
    found = _Leaving(left, skipped).rewrite(body, asked=False)
    names = {n.id for one in found for n in ast.walk(one) if isinstance(n, ast.Name)}
    return [_assign(skipped, False, body[0]), *found] if skipped in names else found


@dataclass(frozen=True)
class _Leaving:
    """left, skipped: locals that are set where `break` and `continue` stand."""

    left: str
    skipped: str

    def rewrite(self, body: list[ast.stmt], *, asked: bool) -> list[ast.stmt]:
        """A body without leaves; asked: whether what follows asks if an iteration was left."""
        for k, statement in enumerate(body):
            if isinstance(statement, ast.Continue):
                return [*body[:k], *([_assign(self.skipped, True, statement)] if asked else [])]
            if isinstance(statement, ast.Break):
                return [*body[:k], _assign(self.left, True, statement)]
            if isinstance(statement, ast.If) and any(_leaves([statement])):
                return [*body[:k], *self._branch(statement, body[k + 1 :], asked=asked)]
        return body

    def _branch(self, at: ast.If, rest: list[ast.stmt], *, asked: bool) -> list[ast.stmt]:
        """An `if` that may leave, and what follows: in the one branch that goes on, or behind."""
        arms = [[*at.body], [*at.orelse]]
        staying = [arm for arm in arms if not _always_leaves(arm)]
        several = bool(rest) and len(staying) > 1
        if not several:
            for arm in staying:
                arm += rest
        then, otherwise = (self.rewrite(arm, asked=asked or several) for arm in arms)
        behind = []
        if several:
            kinds = {type(one) for one in _leaves([at])}
            names = [self.left] * (ast.Break in kinds) + [self.skipped] * (ast.Continue in kinds)
            behind = self.rewrite(rest, asked=asked)
            for name in names:
                stays = ast.UnaryOp(ast.Not(), ast.Name(name, ast.Load()))
                behind = [_at(ast.If(stays, behind, []), rest[0])] if behind else []
        return [*_choice(at, then, otherwise), *behind]


def _choice(at: ast.If, then: list[ast.stmt], otherwise: list[ast.stmt]) -> list[ast.stmt]:
    """An `if` with other branches; its condition turned around if nothing is left of the first."""
    if then:
        return [_at(ast.If(at.test, then, otherwise), at)]
    opposite = ast.copy_location(ast.UnaryOp(ast.Not(), at.test), at.test)
    return [_at(ast.If(opposite, otherwise, []), at)] if otherwise else []


def _assign(name: str, value: bool, at: ast.stmt) -> ast.stmt:
    return _at(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value)), at)


def _at(node: ast.stmt, other: ast.stmt) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(node, other))


def _always_leaves(body: list[ast.stmt]) -> bool:
    """Whether nothing behind a body is executed."""
    return any(
        isinstance(one, Leave)
        or (isinstance(one, ast.If) and _always_leaves(one.body) and _always_leaves(one.orelse))
        for one in body
    )


def _leaves(body: list[ast.stmt]) -> Iterator[Leave]:
    """What leaves an iteration of the loop that a body belongs to, not of those inside."""
    for statement in body:
        if isinstance(statement, Leave):
            yield statement
        elif isinstance(statement, ast.If):
            yield from _leaves([*statement.body, *statement.orelse])
