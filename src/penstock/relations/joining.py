"""What a join stores of each of its streams, and which of its expressions are of which side.

A side is a relation like any other: grouped by the key of the join first, which decides the slot, then by all that the
query must tell apart of this stream; with the states of aggregates of its own columns (seed aggregation-join, Rule 1),
and always count(*). What is computed of several sides is computed of joined rows: its columns are grouped by.

    Query ──► wanted_of (groups, details: of joined rows) ──► side_relation of each stream ──► stored, shared
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from penstock.aggregates.base import State
from penstock.logical.expressions import (
    Column,
    Computed,
    Expression,
    IsNull,
    Logic,
    Lookup,
    Match,
    Not,
    RecordNumber,
    Sound,
    children,
    columns,
)
from penstock.logical.query import Attribute, Existence, Join, Query, Side, column_of, side_name
from penstock.logical.rewrite import computed, inputs_read, own
from penstock.logical.types import BIGINT, TIMESTAMP
from penstock.relations.relation import APPEND, EXACT, Choice, Relation, Wanted, attribute_text, named

_POSITION = computed(RecordNumber())
assert isinstance(_POSITION, Computed)
POSITION = _POSITION  # of a record in its stream


def side_of(expression: Expression, join: Join) -> str | None:
    """The stream that all of an expression is of; None: it is computed of joined rows."""
    found = inputs_read(expression)
    known = {side.alias for side in join.sides}
    return next(iter(found)) if len(found) == 1 and found <= known else None


def atoms(expression: Expression) -> Iterator[Attribute]:
    """The columns that an expression of several sides is computed of; what a record finds in a table is one."""
    found = isinstance(expression, Computed) and isinstance(expression.expression, Lookup)
    if isinstance(expression, Column | Computed) and (found or isinstance(expression, Column)):
        yield expression
    else:
        for child in children(expression):
            yield from atoms(child)


@dataclass(frozen=True)
class Needed:
    """What a join must know of one side, in the stream's own columns: attributes, arguments of states, states."""

    attributes: tuple[Attribute, ...]
    arguments: tuple[Column | Computed, ...]
    states: tuple[State, ...]


def needed(query: Query, side: Side, wanted: Wanted) -> Needed:
    """What a side is asked, besides its key."""
    join = query.join
    assert join is not None
    attributes: dict[Attribute, None] = {}
    arguments: dict[Column | Computed, None] = {}
    states: dict[State, None] = {}
    for relation in wanted.relations:
        for attribute in relation.attributes:
            attributes |= dict.fromkeys(_of_side(attribute, side, join))
        for argument in relation.arguments:
            if side_of(argument, join) == side.alias:
                mine = own(argument, side.alias)
                arguments[mine] = None
                states |= {State(s.kind, mine.name): None for s in relation.states if s.column == argument.name}
            elif side_of(argument, join) is None:
                attributes |= dict.fromkeys(_of_side(argument, side, join))
    if join.pairs is not None:
        attributes |= dict.fromkeys(_atoms_of(join.pairs, side))
    for link in join.links:
        attributes |= {own(one, side.alias): None for one in link if inputs_read(one) == {side.alias}}
    for test in join.tests:
        attributes |= dict.fromkeys(_tested(test, side))
    for table in join.tables:
        if table.owner == side.alias:
            attributes[class_attribute(table.match)] = None
    return Needed(tuple(attributes), tuple(arguments), tuple(states))


def _tested(test: Existence, side: Side) -> Iterator[Attribute]:
    """What EXISTS asks of a stream, of the inner one or of another."""
    for attribute in (one for pair in test.equals for one in pair):
        if inputs_read(attribute) == {side.alias}:
            yield own(attribute, side.alias)
    for condition in (test.when, test.where, test.pairs):
        if condition is not None:
            yield from _atoms_of(condition, side)


def class_attribute(match: Match) -> Computed:
    """The class of rows of a table that a record belongs to."""
    made = computed(Lookup(match, None, BIGINT))
    assert isinstance(made, Computed)
    return made


def _of_side(attribute: Attribute, side: Side, join: Join) -> Iterator[Attribute]:
    """What a side must be grouped by, so that joined rows have an attribute."""
    if side_of(attribute, join) == side.alias:
        yield own(attribute, side.alias)
    elif side_of(attribute, join) is None:
        yield from _atoms_of(attribute, side)


def _atoms_of(expression: Expression, side: Side) -> Iterator[Attribute]:
    return (own(atom, side.alias) for atom in atoms(expression) if inputs_read(atom) == {side.alias})


def side_relation(query: Query, side: Side, wanted: Wanted, since: int = 0, table: str = EXACT) -> Relation:
    """What is stored of a side, if nothing is shared; `since` is the version of the app that brought the query."""
    plain = grouped_side(query, side, wanted, since, table)
    return _counted_relation(query, side, plain) if side.window.counted else plain


def grouped_side(query: Query, side: Side, wanted: Wanted, since: int = 0, table: str = EXACT) -> Relation:
    """The groups of a side."""
    asked, window = needed(query, side, wanted), side.window
    rest = sorted((a for a in asked.attributes if a not in side.key), key=attribute_text)
    attributes = (*side.key, *rest)
    read = [*attributes, *asked.arguments, *([] if side.where is None else [side.where])]
    gap = (window.slide, window.length) if window.gaps else None
    return named(
        Relation(
            "",
            side.stream,
            attributes,
            window.panes,
            Choice(side.where, side.reads.union(*map(columns, read)), gap),
            tuple(sorted(asked.arguments, key=lambda argument: argument.name)),
            tuple(sorted(asked.states)),
            since if window.landmark else None,
            table=table,
            slots=len(side.key) or None,
        )
    )


def _counted_relation(query: Query, side: Side, plain: Relation) -> Relation:
    """Of a side that is the last records: a row for each record with a usable time, whether it passes or not, with its
    place in the order. Only this side reads it: what is late differs."""
    attributes = (*plain.attributes, Column(side.time, TIMESTAMP), POSITION, passed_attribute(side, plain))
    return named(
        replace(
            plain,
            attributes=tuple(dict.fromkeys(attributes)),
            choice=Choice(),
            booked=False,
            table=APPEND,
            of=side_name(query.name, side.alias),
        )
    )


def passed_attribute(side: Side, relation: Relation) -> Computed:
    """Whether a record passes the conditions of its side: the last records are counted before them."""
    tests: list[Expression] = [Sound(tuple(sorted(relation.choice.columns)))]
    where = side_choice(side, relation).where
    made = computed(Logic("AND", (*tests, *([] if where is None else [where]))))
    assert isinstance(made, Computed)
    return made


def side_choice(side: Side, relation: Relation) -> Choice:
    """The records that a side takes: NULL equals nothing. Other queries may take those from the same relation."""
    tests: list[Expression] = [Not(IsNull(attribute)) for attribute in side.solid]
    parts = tuple(tests if side.where is None else [side.where, *tests])
    if not parts:
        return relation.choice
    return replace(relation.choice, where=parts[0] if len(parts) == 1 else Logic("AND", parts))


def placing_key(side: Side, join: Join) -> tuple[Attribute, ...]:
    """What decides the pass that a row is joined in: its key. Where some stream has an address and a prefix of it
    there, which share components, the hashes of two streams would differ: then the first attribute alone."""
    keys = [one.key for one in join.streams]
    shared = any(len({column_of(attribute) for attribute in key}) < len(key) for key in keys)
    return side.key[:1] if shared else side.key


def key_relation(relation: Relation, key: Iterable[Attribute]) -> Relation:
    """The groups of a side by the key of the join alone: rows are placed by it."""
    return named(replace(relation, attributes=tuple(key), arguments=(), states=(), slots=None))
