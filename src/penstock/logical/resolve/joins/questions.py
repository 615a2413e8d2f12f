"""What EXISTS and IN ask: of a stream, which is then read as one more, or of a table, which records look up themselves.

| subquery over | becomes |
| --- | --- |
| a stream, or results | an `Existence`: a test of rows at every instant |
| a table | a filter of records: whether they find a row |

`a.k NOT IN (SELECT b.k ...)` is true where the subquery gives nothing; else a NULL on either side makes it unknown. So
it is three times NOT EXISTS: with b.k = a.k, with b.k IS NULL, and with a.k IS NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from penstock.errors import QueryError
from penstock.lang.ast import span_of
from penstock.lang.text import AppText
from penstock.logical.expressions import Cast, Column, Comparison, Expression, IsNull, Lookup, Not, walk
from penstock.logical.query import Attribute, Existence, Side
from penstock.logical.render import render
from penstock.logical.resolve.joins.columns import JoinedColumns, JoinInput
from penstock.logical.resolve.joins.conditions import conjunction, conjuncts
from penstock.logical.resolve.joins.subqueries import Inner
from penstock.logical.resolve.joins.tables import TableJoins
from penstock.logical.resolve.scopes import TupleScope
from penstock.logical.resolve.select import resolve_where
from penstock.logical.rewrite import computed, inputs_read, own, rewritten
from penstock.logical.types import BIGINT, DOUBLE, Kind
from penstock.logical.values.placed import compared
from penstock.logical.values.scalars import resolve_scalar
from penstock.logical.window import Window


@dataclass(frozen=True)
class InnerColumns(JoinedColumns):
    """Names inside a subquery: those of its own input, then those of the query around it."""

    def find(self, node: exp.Column) -> Column | None:
        if node.args.get("table") is None:
            found = JoinedColumns.of(self.text, self.inputs[:1]).find(node)
            if found is not None:
                return found
        return super().find(node)


@dataclass(frozen=True)
class Question:
    """A subquery, resolved: the conditions that its records have, and of IN what must be equal."""

    inner: Inner
    conditions: tuple[Expression, ...]
    member: tuple[Expression, Expression] | None = None  # before IN, and what the subquery gives

    @property
    def negated(self) -> bool:
        return self.inner.asked.negated

    def variants(self) -> Iterable[tuple[Expression, ...]]:
        """The conditions of each EXISTS that it is; those of the last hold in all."""
        if self.member is None:
            return (self.conditions,)
        one, other = self.member
        equal = (*self.conditions, Comparison("=", one, other))
        if not self.negated:
            return (equal,)
        return equal, (*self.conditions, IsNull(other)), (*self.conditions, IsNull(one))


def resolve_question(inner: Inner, text: AppText, outer: JoinedColumns) -> Question:
    """Names and types of a subquery; all are called as the join calls them."""
    asked = inner.asked
    columns = InnerColumns.of(text, (inner.input, *outer.inputs))
    scope = TupleScope(columns, clause="the select list of a subquery")
    shown = [
        None if isinstance(item.expression, exp.Star) else resolve_scalar(item.expression, scope)
        for item in asked.select.items
        if not (isinstance(item.expression, exp.Column) and isinstance(item.expression.this, exp.Star))
    ]
    where = asked.select.where
    conditions = () if where is None else conjuncts(resolve_where(where, asked.select, columns))
    if asked.member is None:
        return Question(inner, conditions)
    one = resolve_scalar(asked.member, TupleScope(outer))
    (other,), (item,) = shown, asked.select.items
    assert other is not None
    if inputs_read(other) - {inner.input.alias}:
        fact = f"a subquery of IN gives a column of its own, not {render(other)}"
        raise text.error(item.span, fact, "say with EXISTS what must be true of both")
    equal = compared(asked.node, "=", (asked.member, one), (item.expression, other), scope)
    assert isinstance(equal, Comparison)
    return Question(inner, conditions, (equal.left, equal.right))


# -- streams


@dataclass(frozen=True)
class Parts:
    """The conditions of an EXISTS over a stream, by what they ask."""

    equals: tuple[tuple[Attribute, Attribute], ...]
    when: Expression | None
    where: Expression | None
    pairs: Expression | None


def split_parts(conditions: Iterable[Expression], inner: str, streams: Sequence[str]) -> Parts:
    """Equalities with one other input find rows; those of a table's row only by a plain column."""
    equals: list[tuple[Attribute, Attribute]] = []
    when, where, pairs = [], [], []
    for condition in conditions:
        read = inputs_read(condition)
        equal = _equal(condition, inner, streams)
        if inner not in read:
            when.append(condition)
        elif read == {inner}:
            where.append(condition)
        elif equal is not None:
            equals.append(equal)
        else:
            pairs.append(condition)
    return Parts(tuple(dict.fromkeys(equals)), conjunction(when), conjunction(where), conjunction(pairs))


def _is_equality(condition: Expression) -> bool:
    return isinstance(condition, Comparison) and condition.operator == "="


def _equal(condition: Expression, inner: str, streams: Sequence[str]) -> tuple[Attribute, Attribute] | None:
    if not isinstance(condition, Comparison) or not _is_equality(condition):
        return None
    one, other = condition.left, condition.right
    if inputs_read(one) == {inner}:
        one, other = other, one
    if inputs_read(other) != {inner} or len(inputs_read(one)) != 1:
        return None
    real = Kind.DOUBLE in (one.type.kind, other.type.kind)
    alike = [Cast(part, DOUBLE) if real and part.type.kind is Kind.INTEGER else part for part in (one, other)]
    if not inputs_read(one) <= set(streams) and not isinstance(alike[0], Column):
        return None
    return computed(alike[0]), computed(alike[1])


@dataclass
class Questions:
    """What all subqueries of a query ask. `filters` are of records, by stream; `own` by inner stream what is asked of
    its records alone, `common` what all tests of it have equal."""

    text: AppText
    joins: TableJoins
    tests: list[Existence] = field(default_factory=list)
    filters: list[tuple[str, Expression]] = field(default_factory=list)
    own: dict[str, tuple[Expression, ...]] = field(default_factory=dict)
    common: dict[str, tuple[tuple[Attribute, Attribute], ...]] = field(default_factory=dict)

    def ask(self, question: Question) -> None:
        one = question.inner.input
        if one.table:
            self._ask_table(question)
            return
        change, alias = self.joins.change, one.alias
        own = tuple(part for part in question.conditions if inputs_read(part) == {alias})
        self.own[alias] = own
        for conditions in question.variants():
            asked = (rewritten(part, change) for part in conditions if part not in own)
            parts = split_parts(asked, alias, self.joins.streams)
            if parts.pairs is not None and not parts.equals and not any(map(_is_equality, conjuncts(parts.pairs))):
                raise self._apart(question)
            test = Existence(alias, question.negated, parts.equals, parts.when, parts.where, parts.pairs)
            self.tests.append(test)
            self.common[alias] = parts.equals

    def _ask_table(self, question: Question) -> None:
        """Records that find a row, or do not."""
        one = question.inner.input
        variants = [tuple(rewritten(part, self.joins.change) for part in parts) for parts in question.variants()]
        owner = self.joins.asking(one, variants[0])
        for asked in variants:
            match = self.joins.question(one, owner, asked, self._wrong(question))
            missing = IsNull(computed(Lookup(match, None, BIGINT)))
            self.filters.append((owner, missing if question.negated else Not(missing)))

    def _apart(self, question: Question) -> QueryError:
        asked, alias = question.inner.asked, question.inner.input.alias
        fact = f"no equality joins the subquery of {asked.word} with the query around it"
        hint = f"compare a column of each: {alias}.column = {self.joins.streams[0]}.column"
        return self.text.error(span_of(asked.node), fact, hint)

    def _wrong(self, question: Question) -> Callable[[JoinInput, Expression | str], QueryError]:
        asked = question.inner.asked

        def wrong(one: JoinInput, what: Expression | str) -> QueryError:
            if isinstance(what, str):
                hint = "mend the table, or ask for it otherwise"
                return self.text.error(one.span, f"table '{one.input.name}': {what}", hint)
            fact = f"{asked.word} of a table cannot ask {render(what)}"
            hint = "compare the table with one stream, by equalities or by a range that holds a value"
            return self.text.error(span_of(asked.node), fact, hint)

        return wrong

    # -- sides

    def present(self, alias: str) -> tuple[Attribute, ...]:
        """What EXISTS, and IN, ask a stream to have a value of. What a record finds in a table is asked later: whether
        it counts does not depend on how many rows tables have."""
        found = (of for test in self.tests if not test.negated for of, _ in test.equals)
        mine = dict.fromkeys(of for of in found if inputs_read(of) == {alias})
        return tuple(of for of in mine if not any(isinstance(part, Lookup) for part in walk(of)))

    def first_key(self, alias: str) -> tuple[Attribute, ...]:
        """What rows of the only stream may be found by, all in one pass."""
        for pairs in self.common.values():
            key: dict[Attribute, Attribute] = {}
            for of, inner in pairs:
                if inputs_read(of) == {alias} and of not in key and inner not in key.values():
                    key[of] = inner
            if key:
                return tuple(key)
        return ()

    def inner_key(self, alias: str, keys: Iterable[Sequence[Attribute]]) -> tuple[Attribute, ...]:
        """What an inner stream has in the place of a key of the others; nothing: it is not found by any of them."""
        known = dict(self.common[alias])
        for key in keys:
            if key and all(of in known for of in key) and len({known[of] for of in key}) == len(key):
                return tuple(known[of] for of in key)
        return ()


def inner_side(questions: Questions, one: JoinInput, window: Window, keys: Iterable[Sequence[Attribute]]) -> Side:
    """A stream that EXISTS asks; `keys` are those of the others."""
    alias, stream = one.alias, one.input.stream
    where = conjunction(own(part, alias) for part in questions.own[alias])
    key = own_attributes(questions.inner_key(alias, keys), alias)
    present = own_attributes(dict.fromkeys(of for _, of in questions.common[alias]), alias)
    return Side(alias, stream.name, window, where, key, stream.time, present=present)


def own_attributes(attributes: Iterable[Attribute], alias: str) -> tuple[Attribute, ...]:
    """In the stream's own columns."""
    return tuple(own(attribute, alias) for attribute in attributes)
