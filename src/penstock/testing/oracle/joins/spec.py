"""What a join app is, said without the engine: streams, tables, and queries by their sides.

One `JoinSpec` is a query over one or more *sides*: a stream, or the results of another query, with a window; and over
tables.  Conditions stand sorted by what they are: equalities between streams, what ties a table to a stream, a table's
own, and all others.  `script` writes a spec as the text of an app, `expected` says what it must give.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.logical.types import Type
from penstock.testing.oracle.joins.terms import Term, Use, compare

RANGE, LANDMARK, ROWS = "range", "landmark", "rows"


@dataclass(frozen=True)
class FieldSpec:
    name: str
    type: Type


@dataclass(frozen=True)
class StreamSpec:
    """A declared stream; `delay` and `ahead` in microseconds, None without the clause."""

    name: str
    fields: tuple[FieldSpec, ...]
    time: str
    delay: int | None = None
    ahead: int | None = None


@dataclass(frozen=True)
class TableSpec:
    """`longest`: WITH (match = 'longest')."""

    name: str
    fields: tuple[FieldSpec, ...]
    data: pa.Table = field(compare=False)
    format: str = "parquet"
    longest: bool = False


@dataclass(frozen=True)
class WindowSpec:
    """A range in microseconds, a landmark, or the last so many rows."""

    kind: str
    size: int = 0


@dataclass(frozen=True)
class Side:
    """`source` is a declared stream, or a query."""

    alias: str
    source: str
    window: WindowSpec


@dataclass(frozen=True)
class Tie:
    """Of a table to a stream: `record` operator `row`, an equality or one bound of a range."""

    operator: str
    record: Term
    row: Term


@dataclass(frozen=True)
class TableSide:
    """A table in FROM. `outer`: LEFT JOIN. `own` conditions are of the table alone."""

    alias: str
    table: str
    ties: tuple[Tie, ...]
    own: tuple[Term, ...] = ()
    outer: bool = False

    @property
    def to(self) -> str:
        """The alias of the side that it is tied to."""
        (alias,) = {alias for tie in self.ties for alias in tie.record.sides}
        return alias


@dataclass(frozen=True)
class Ask:
    """EXISTS or, with a `member` (before IN, and what the subquery gives), IN: of a stream (`side`), or of a table by
    its name, which `alias` calls. `equalities` are between a term of the query and one of the subquery."""

    alias: str
    negated: bool
    side: Side | None = None
    table: str = ""
    member: tuple[Term, Term] | None = None
    equalities: tuple[tuple[Term, Term], ...] = ()
    conditions: tuple[Term, ...] = ()

    @property
    def tests(self) -> tuple[Term, ...]:
        """What is said in the WHERE of the subquery."""
        return (*(compare("=", *pair) for pair in self.equalities), *self.conditions)

    @property
    def to(self) -> str:
        """The alias of the only side that a table is asked for."""
        said = (*self.tests, *(self.member or ()))
        found = {alias for term in said for alias in term.sides} - {self.alias}
        assert len(found) < 2, f"a table is asked for by {sorted(found)}"
        return found.pop() if found else ""


@dataclass(frozen=True)
class KeySpec:
    """A grouping attribute; with a name, GROUP BY says `expression AS name`."""

    term: Term
    name: str | None = None


@dataclass(frozen=True)
class OutputSpec:
    """One column of the result; `said` is its text in the select list where that is not `text AS name`."""

    name: str
    term: Term
    said: str | None = None


@dataclass(frozen=True)
class OrderSpec:
    term: Term
    descending: bool = False


@dataclass(frozen=True)
class JoinSpec:
    """A query. `keys` is None where there is one row per pair: then the outputs are said of pairs.

    `equalities` are between terms of two sides; `conditions` are all other conjuncts.  `order` of pairs is by outputs.
    """

    name: str
    sides: tuple[Side, ...]
    slide: int
    outputs: tuple[OutputSpec, ...]
    keys: tuple[KeySpec, ...] | None = ()
    tables: tuple[TableSide, ...] = ()
    equalities: tuple[tuple[Term, Term], ...] = ()
    conditions: tuple[Term, ...] = ()
    having: Term | None = None
    order: tuple[OrderSpec, ...] = ()
    limit: int | None = None
    hidden: bool = False
    star: bool = False
    asks: tuple[Ask, ...] = ()

    @property
    def streams(self) -> tuple[Side, ...]:
        """All sides, also those that subqueries ask."""
        return (*self.sides, *(ask.side for ask in self.asks if ask.side is not None))

    @property
    def offset(self) -> int:
        """Instants are equal to this modulo the slide."""
        sizes = {side.window.size % self.slide for side in self.streams if side.window.kind == RANGE}
        if any(side.window.kind == LANDMARK for side in self.streams):
            sizes.add(0)
        if len(sizes) > 1:
            raise ValueError(f"ranges of '{self.name}' are {sorted(sizes)} modulo the slide")
        return sizes.pop() if sizes else 0

    @property
    def key_terms(self) -> tuple[Term, ...]:
        """What decides ties: the keys, or all outputs where there are none."""
        if self.keys is None:
            return tuple(dict.fromkeys(output.term for output in self.outputs))
        return tuple(key.term for key in self.keys)

    @property
    def group_level(self) -> tuple[Term, ...]:
        """Terms in which aggregates may stand."""
        terms = [output.term for output in self.outputs] if self.keys is not None else []
        terms += [entry.term for entry in self.order]
        return (*terms, self.having) if self.having is not None else tuple(terms)

    def own_conditions(self, alias: str) -> tuple[Term, ...]:
        """Conjuncts of one side; of a subquery's own, those that it says of itself."""
        said = next((ask.conditions for ask in self.asks if ask.alias == alias), self.conditions)
        return tuple(term for term in said if term.sides == {alias})

    def join_keys(self, alias: str) -> tuple[Term, ...]:
        """What a side is joined by, or found by: a NULL there filters the record. NOT EXISTS keeps those with one,
        and so does the subquery of NOT IN."""
        found = [term for pair in self.equalities for term in pair]
        for ask in (ask for ask in self.asks if ask.side is not None):
            found += [inner for _, inner in ask.equalities]
            if not ask.negated:
                found += [outer for outer, _ in ask.equalities]
                found += ask.member or ()
        return tuple(dict.fromkeys(term for term in found if term.sides == {alias}))

    @property
    def uses(self) -> frozenset[Use]:
        """Every column of any side, or table, that is read."""
        terms: list[Term] = [*self.key_terms, *self.conditions]
        terms += [term for pair in self.equalities for term in pair]
        for table in self.tables:
            terms += [*table.own, *(t for tie in table.ties for t in (tie.record, tie.row))]
        for ask in self.asks:
            terms += [*ask.tests, *(ask.member or ())]
        for aggregate in (one for term in self.group_level for one in term.aggregates):
            terms += [term for term in (aggregate.argument, aggregate.test) if term is not None]
        return frozenset(use for term in terms for use in term.uses)


@dataclass(frozen=True)
class AppSpec:
    """`queries` stand after those whose results they read."""

    streams: tuple[StreamSpec, ...]
    queries: tuple[JoinSpec, ...]
    tables: tuple[TableSpec, ...] = ()

    def stream(self, name: str) -> StreamSpec | None:
        """None: it is a query."""
        return next((stream for stream in self.streams if stream.name == name), None)

    def query(self, name: str) -> JoinSpec:
        return next(query for query in self.queries if query.name == name)

    def table(self, name: str) -> TableSpec:
        return next(table for table in self.tables if table.name == name)

    def roots(self, query: JoinSpec) -> frozenset[str]:
        """The declared streams that a query reads in the end."""
        found: frozenset[str] = frozenset()
        for side in query.streams:
            found |= {side.source} if self.stream(side.source) else self.roots(self.query(side.source))
        return found


@dataclass(frozen=True)
class RunLog:
    """What a run logged: rows of every stream in each batch, and the batch in which each stream ended."""

    rows: Mapping[str, tuple[int, ...]]
    ended: Mapping[str, int]

    @property
    def batches(self) -> int:
        return max((len(rows) for rows in self.rows.values()), default=0)


def at_once(rows: Mapping[str, int]) -> RunLog:
    """Everything in one batch: nothing is late."""
    return RunLog({name: (count,) for name, count in rows.items()}, dict.fromkeys(rows, 0))
