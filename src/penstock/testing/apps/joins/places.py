"""What a side of a random query reads, and what may be said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.logical.types import TIMESTAMP, Kind
from penstock.testing.apps.joins.streams import DrawnStream
from penstock.testing.apps.joins.tables import DrawnTable, Tied
from penstock.testing.apps.joins.values import Drawn, Value, small_number
from penstock.testing.apps.randomness import Dice
from penstock.testing.oracle.joins import terms
from penstock.testing.oracle.joins.spec import JoinSpec, Side, Tie
from penstock.testing.oracle.joins.terms import Term


@dataclass(frozen=True)
class Source:
    """What a side can read: a stream, or the results of a query with the columns of keys."""

    name: str
    columns: tuple[Drawn, ...]
    results: bool = False


@dataclass(frozen=True)
class Place:
    """A side of a query with what may be said of it."""

    side: Side
    source: Source
    values: tuple[Value, ...]

    @property
    def alias(self) -> str:
        return self.side.alias

    def has(self, ties: Sequence[Tied]) -> bool:
        """Whether it has the columns that a table is tied to."""
        names = {one.column for one in self.values} | (set() if self.source.results else {"ts"})
        return all(tie.column in names for tie in ties)


def stream_source(stream: DrawnStream) -> Source:
    return Source(stream.spec.name, stream.columns)


def results_source(query: JoinSpec, keys: Sequence[Drawn]) -> Source:
    """Its keys have the names that they have in streams; the count is called n."""
    columns = [column for column in keys if any(output.name == column.name for output in query.outputs)]
    count = Drawn("n", terms.aggregate("count").type, (terms.number(1), terms.number(3)), True, True, True)
    return Source(query.name, (*columns, count), results=True)


def join_key(place: Place, name: str, computed: int | None) -> Term:
    """A key by its name, or what is computed of a whole number."""
    found = next(one for one in place.values if one.column == name)
    fine = computed is not None and found.kind is Kind.INTEGER
    return small_number(found, computed).term if fine and computed is not None else found.term


def ties_of(dice: Dice, place: Place, alias: str, table: DrawnTable, tied: Tied) -> list[Tie]:
    """What ties a table to a side."""
    columns = {column.name: column for column in table.columns}
    record = next((v.term for v in place.values if v.column == tied.column), None)
    if record is None:
        record = terms.column(place.alias, "ts", TIMESTAMP)
    lower = terms.column(alias, tied.lower, columns[tied.lower].type)
    if tied.upper is None:
        return [Tie("=", record, lower)]
    upper = terms.column(alias, tied.upper, columns[tied.upper].type)
    bounds = [Tie(">=", record, lower), Tie("<=" if tied.closed else "<", record, upper)]
    return bounds if table.spec.longest or dice.chance(0.92) else bounds[:1]
