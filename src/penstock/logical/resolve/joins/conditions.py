"""WHERE and ON of a join, split: what is asked of one input alone, what two have in common, and the rest.

| condition | becomes |
| --- | --- |
| of one stream | a filter of its records |
| of one table | a filter of its rows |
| an equality, or a range, of a stream and a table | how records find rows (`tables`) |
| an equality of two streams | a key, or a link of some streams |
| anything else | judged on each combination of rows |
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from penstock.logical.expressions import Cast, Comparison, Expression, Logic
from penstock.logical.rewrite import inputs_read
from penstock.logical.types import DOUBLE, Kind

TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def conjuncts(condition: Expression | None) -> tuple[Expression, ...]:
    """The conditions that must all be true."""
    if condition is None:
        return ()
    if isinstance(condition, Logic) and condition.operator == "AND":
        return tuple(part for operand in condition.operands for part in conjuncts(operand))
    return (condition,)


def conjunction(parts: Iterable[Expression]) -> Expression | None:
    """One condition that says all of them."""
    each = tuple(dict.fromkeys(parts))
    return None if not each else each[0] if len(each) == 1 else Logic("AND", each)


def between(condition: Expression, one: str) -> Comparison | None:
    """A comparison of something of one input with something of exactly one other; the former stands on the right."""
    if not isinstance(condition, Comparison) or condition.operator not in TURNED:
        return None
    left, right = inputs_read(condition.left), inputs_read(condition.right)
    if left == {one} and len(right) == 1 and right != left:
        return Comparison(TURNED[condition.operator], condition.right, condition.left)
    return condition if right == {one} and len(left) == 1 and left != right else None


Class = dict[tuple[str, Expression], None]  # what is equal: expressions, each of a stream


@dataclass(frozen=True)
class JoinKeys:
    """For each stream what it is joined by, in the same order, and the conditions that these say; `reached` are the
    streams that equalities connect with the first. Where only some streams have something equal, `links` are all that
    is; keys are then what all have in common, else what the first two are joined by, of streams that have all of it."""

    keys: tuple[tuple[Expression, ...], ...]
    said: frozenset[Expression]
    filters: tuple[tuple[str, Expression], ...]  # by stream: what must be equal in one record
    reached: frozenset[str]
    links: tuple[tuple[tuple[str, Expression], ...], ...] = ()

    def linked(self, stream: str) -> tuple[Expression, ...]:
        """What a stream has in links."""
        return tuple(of for link in self.links for one, of in link if one == stream)


def join_keys(streams: Sequence[str], conditions: Iterable[Expression]) -> JoinKeys:
    """Equalities of streams, put together where they have an expression in common: a = b AND b = c is one key."""
    classes: list[Class] = []
    members: list[list[Expression]] = []
    for condition in conditions:
        sides = _equal_sides(condition, streams)
        if sides is None:
            continue
        met = [number for number, one in enumerate(classes) if one.keys() & set(sides)]
        together, said = dict.fromkeys(sides), [condition]
        for number in reversed(met):
            together = {**classes.pop(number), **together}
            said = [*members.pop(number), *said]
        classes.append(together)
        members.append(said)
    common = [number for number, one in enumerate(classes) if {stream for stream, _ in one} == set(streams)]
    reached = _reached(streams, classes)
    if len(common) < len(classes) and reached == set(streams):
        return _linked_keys(streams, classes, [part for each in members for part in each])
    keys, filters = [], []
    for stream in streams:
        mine = []
        for number in common:
            first, *others = (of for side, of in classes[number] if side == stream)
            mine.append(_unified(first, classes[number]))
            filters += [(stream, Comparison("=", first, other)) for other in others]
        keys.append(tuple(mine))
    said_by = frozenset(condition for number in common for condition in members[number])
    return JoinKeys(tuple(keys), said_by, tuple(filters), reached)


def _linked_keys(streams: Sequence[str], classes: Sequence[Class], said: Iterable[Expression]) -> JoinKeys:
    """Of streams that equalities connect, not all of them by each."""
    links: list[dict[str, Expression]] = []
    filters = []
    for one in classes:
        link: dict[str, Expression] = {}
        for stream, of in one:
            if stream in link:
                filters.append((stream, Comparison("=", link[stream], of)))
            link.setdefault(stream, of)
        links.append({stream: _unified(of, one) for stream, of in link.items()})
    first, second, *_ = join_order(streams, links)
    common = [link for link in links if len(link) == len(streams)]
    between = common or [link for link in links if first in link and second in link]
    keys = [tuple(link.get(stream) for link in between) for stream in streams]
    whole = tuple(tuple(of for of in key if of is not None) if None not in key else () for key in keys)
    reached = frozenset(streams)
    return JoinKeys(whole, frozenset(said), tuple(filters), reached, tuple(tuple(link.items()) for link in links))


def join_order(streams: Sequence[str], links: Iterable[Collection[str]]) -> list[str]:
    """Streams in the order in which they are joined: each has something equal with one before it."""
    known, order = list(links), [streams[0]]
    while len(order) < len(streams):
        near = {stream for link in known for stream in link if any(one in link for one in order)}
        order.append(next(stream for stream in streams if stream in near and stream not in order))
    return order


def _equal_sides(condition: Expression, streams: Sequence[str]) -> tuple[tuple[str, Expression], ...] | None:
    """The two sides of an equality of two streams."""
    if not isinstance(condition, Comparison) or condition.operator != "=":
        return None
    found = []
    for part in (condition.left, condition.right):
        of = inputs_read(part)
        if len(of) != 1 or not of <= set(streams):
            return None
        found.append((next(iter(of)), part))
    return tuple(found) if found[0][0] != found[1][0] else None


def _reached(streams: Sequence[str], classes: Iterable[Iterable[tuple[str, Expression]]]) -> frozenset[str]:
    """The streams that equalities connect with the first."""
    reached = {streams[0]}
    linked = [{stream for stream, _ in one} for one in classes]
    for _ in streams:
        for one in linked:
            if one & reached:
                reached |= one
    return frozenset(reached)


def _unified(expression: Expression, others: Iterable[tuple[str, Expression]]) -> Expression:
    """In the type that all sides of a key have in common."""
    real = any(of.type.kind is Kind.DOUBLE for _, of in others)
    return Cast(expression, DOUBLE) if real and expression.type.kind is Kind.INTEGER else expression
