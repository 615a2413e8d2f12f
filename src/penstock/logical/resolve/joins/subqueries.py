"""EXISTS and IN with a subquery, as they stand in WHERE: found, taken out, and checked for what they may say.

    WHERE a.x > 1 AND NOT EXISTS (SELECT 1 FROM b [...] WHERE b.k = a.k)
          └─ rest ─┘  └─ Asked ──────────────────────────────────────┘

They may only stand beside other conditions that must all be true. `questions` says what they ask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.lang.ast import Select, SelectQuery, SetOperation, span_of
from penstock.lang.text import AppText, Span
from penstock.logical.resolve.joins.columns import JoinInput
from penstock.logical.values.aggregates import uses_aggregates

_OF_ITS_OWN = "write that query first, WITH name AS (SELECT ...), and ask for its results"


@dataclass(frozen=True)
class Asked:
    """A subquery that WHERE asks; `member` stands before IN, and EXISTS has none."""

    node: exp.Expr
    query: SelectQuery
    negated: bool
    member: exp.Expr | None = None

    @property
    def word(self) -> str:
        return "EXISTS" if self.member is None else "IN"

    @property
    def select(self) -> Select:
        assert isinstance(self.query, Select)  # checked
        return self.query


@dataclass(frozen=True)
class Inner:
    """The same with its stream or table."""

    asked: Asked
    input: JoinInput


def split_where(where: exp.Expr | None) -> tuple[exp.Expr | None, tuple[Asked, ...]]:
    """What WHERE asks of records themselves, and the subqueries that it asks."""
    parts = [] if where is None else _conjuncts(where)
    found = [_asked(part) for part in parts]
    asked = tuple(one for one in found if one is not None)
    if not asked:
        return where, ()
    return _together([part for part, one in zip(parts, found, strict=True) if one is None]), asked


def _conjuncts(where: exp.Expr) -> list[exp.Expr]:
    """Conditions that must all be true, from left to right."""
    found, waiting = [], [where]
    while waiting:
        node = waiting.pop()
        bare = node
        while isinstance(bare, exp.Paren):
            bare = bare.this
        if isinstance(bare, exp.And):
            waiting += [bare.expression, bare.this]
        else:
            found.append(node)
    return found


def _together(parts: Sequence[exp.Expr]) -> exp.Expr | None:
    """One condition again."""
    whole: exp.Expr | None = None
    for part in parts:
        if whole is None:
            whole = part
            continue
        made = exp.And(this=whole, expression=part)
        made.meta.update(start=whole.meta["start"], end=part.meta["end"])
        whole = made
    return whole


def _asked(node: exp.Expr) -> Asked | None:
    bare, negated = node, False
    while isinstance(bare, exp.Paren | exp.Not):
        negated ^= isinstance(bare, exp.Not)
        bare = bare.this
    if isinstance(bare, exp.Exists):
        return Asked(node, bare.this.meta["select"], negated)
    if isinstance(bare, exp.In) and bare.args.get("query"):
        return Asked(node, bare.args["query"].meta["select"], negated, bare.this)
    return None


# -- what a subquery may say


def check_subquery(text: AppText, asked: Asked) -> None:
    """A subquery reads one stream or table, and says which of its records it means."""
    query = asked.query
    if isinstance(query, SetOperation):
        raise text.error(query.span, f"{query.operator} is not executable yet")
    if len(query.sources) > 1:
        second = query.sources[1]
        fact = f"a subquery of {asked.word} reads one stream or table"
        raise text.error(second.joined or span_of(asked.node), fact, _OF_ITS_OWN)
    inside = None if query.where is None else query.where.find(exp.Subquery)
    if inside is not None:
        fact = f"a subquery in a subquery of {asked.word} is not executable"
        raise text.error(span_of(inside), fact, "ask both in one WHERE, or " + _OF_ITS_OWN)
    _check_clauses(text, asked, query)
    if asked.member is not None and (len(query.items) > 1 or query.items[0].expression.find(exp.Star)):
        place = query.items[1 if len(query.items) > 1 else 0].span
        raise text.error(place, "a subquery of IN gives one column", "write it like a.k IN (SELECT b.k FROM b ...)")


def _check_clauses(text: AppText, asked: Asked, query: Select) -> None:
    aggregated = [item for item in query.items if uses_aggregates([item.expression])]
    grouped: tuple[tuple[str, Span | None], ...] = (
        ("GROUP BY", query.group[0].span if query.group else None),
        ("HAVING", span_of(query.having) if query.having is not None else None),
        ("an aggregate", aggregated[0].span if aggregated else None),
    )
    for what, span in grouped:
        if span is not None:
            raise text.error(span, f"{what} in a subquery of {asked.word} is not executable", _OF_ITS_OWN)
    ended: tuple[tuple[str, Span | None, str], ...] = (
        ("ORDER BY", query.ordered, "leave it out: order changes nothing here"),
        ("LIMIT", query.limit.span if query.limit else None, "leave it out: one record is enough"),
        ("LIMIT DELAY TO", query.delay.span if query.delay else None, "leave it out"),
        ("EVERY", query.every.span if query.every else None, "say EVERY in the query around it: both go together"),
    )
    for what, span, hint in ended:
        if span is not None:
            raise text.error(span, f"{what} in a subquery of {asked.word} is not executable", hint)
