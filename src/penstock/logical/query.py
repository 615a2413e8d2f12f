"""Logical streams and queries: what was asked, immutable, with every name and type resolved.

`logical.resolve.app` builds these from text; `sharing` plans over them; nothing here knows an engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.logical.expressions import Aggregate, Column, Computed, Expression, Match, Prefix, columns
from penstock.logical.types import BIGINT, STRING, TIMESTAMP, Kind, Type
from penstock.logical.window import Window

KEPT = 4_096  # records of a window that are kept where KEEP does not say how many
RESULT_TIMES = ("window_start", "window_end", "ts")  # columns of results as a stream, besides the select list


@dataclass(frozen=True)
class Field:
    name: str
    type: Type


class SourceFields(tuple[Field, ...]):
    """The columns of a source that can be read. `unread` are the others, (name, type) each; `days` the names of those
    that have a date and no time of day."""

    unread: tuple[tuple[str, str], ...]
    days: frozenset[str]

    def __new__(
        cls, fields: Iterable[Field], unread: Iterable[tuple[str, str]] = (), days: Iterable[str] = ()
    ) -> SourceFields:
        made = super().__new__(cls, fields)
        made.unread, made.days = tuple(unread), frozenset(days)
        return made


@dataclass(frozen=True)
class Stream:
    """A declared stream, or a file that FROM names. `time` is empty where it has none, and no query a window;
    `delay` (microseconds) is None without a WATERMARK clause. `unread` are columns of the source whose types are not
    read, with those: only for messages. `keep`: how many records a window is estimated from at least, where a burst
    leaves some unread; None: the default."""

    name: str
    fields: tuple[Field, ...]
    source: str
    options: tuple[tuple[str, str], ...]
    time: str
    delay: int | None = None
    ahead: int | None = None
    unread: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    keep: int | None = None


Attribute = Column | Prefix | Computed

# How many records of a stream a record that is read stands for: one, unless a burst left its neighbours unread. No
# source has it; tasks give it to every record of streams whose delay is promised.
WEIGHT = Column("#weight", BIGINT)


def column_of(attribute: Attribute) -> str:
    """The name of the column, made or read, that an attribute is of."""
    return attribute.column.name if isinstance(attribute, Prefix) else attribute.name


@dataclass(frozen=True)
class Key:
    """One grouping attribute; `name` is how GROUP BY or the select list calls it."""

    name: str
    attribute: Attribute


@dataclass(frozen=True)
class Order:
    """One entry of ORDER BY. NULL is below every value, NaN above every number; `descending` turns that round."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True)
class OutputColumn:
    """One column of the result."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Table:
    """A table that queries join with: read once, and known by the digest of its content. `longest`: of the rows whose
    range holds a value, those with the shortest range belong to it. With `refresh` it is read again while an app runs,
    at most once in so many microseconds, and known by its name and columns (`refreshed_identity`)."""

    name: str
    fields: tuple[Field, ...]
    source: str
    options: tuple[tuple[str, str], ...]
    digest: str
    longest: bool = False
    refresh: int | None = None


@dataclass(frozen=True)
class Side:
    """A stream of a join: its window, the conditions on its records alone, and the `key` that it is joined by, in the
    same order on all sides. Expressions are of the stream's own columns; those of the query name the side first
    (`side_column`). Where EXISTS or IN ask, rows are found in the same pass by their key, and what must not be NULL may
    be more or less than that (`present`)."""

    alias: str
    stream: str
    window: Window
    where: Expression | None
    key: tuple[Attribute, ...]
    time: str  # the stream's time column; empty where it has none
    reads: frozenset[str] = frozenset()  # columns of ON of LEFT JOINs, whatever is asked of their tables
    present: tuple[Attribute, ...] | None = None  # None: the key

    @property
    def solid(self) -> tuple[Attribute, ...]:
        """What a record must have a value of: NULL equals nothing."""
        return self.key if self.present is None else self.present


@dataclass(frozen=True)
class TableSide:
    """A table of a join that has several rows for some records of the stream `owner`, whose columns `match` names.
    `outer` (LEFT JOIN): records without a row stay, with NULLs."""

    alias: str
    owner: str
    match: Match
    outer: bool = False


@dataclass(frozen=True)
class Existence:
    """EXISTS or, `negated`, NOT EXISTS: whether the stream `inner` has a record for a combination of the others. IN is
    one; NOT IN is three.

    `equals` are what must be equal, of the others and of the inner stream; `when` is asked of the others alone, `where`
    of the inner stream alone, `pairs` of both. All are called as the join calls them.
    """

    inner: str
    negated: bool
    equals: tuple[tuple[Attribute, Attribute], ...] = ()
    when: Expression | None = None
    where: Expression | None = None
    pairs: Expression | None = None

    @property
    def asked(self) -> tuple[Expression, ...]:
        """All that is asked of the other streams, or of them and the inner one."""
        others = tuple(part for part in (self.when, self.pairs) if part is not None)
        return (*(of for of, _ in self.equals), *others)


@dataclass(frozen=True)
class Join:
    """What a join reads: streams, tables, and the condition that is judged on each combination of their rows. `inner`
    are streams that only `tests` ask: nothing of them is in the result. Where not all streams have the same equal,
    `links` are what some of them have, an attribute of each: these connect all. Keys then say what passes go by."""

    sides: tuple[Side, ...]
    tables: tuple[TableSide, ...] = ()
    pairs: Expression | None = None
    inner: tuple[Side, ...] = ()
    tests: tuple[Existence, ...] = ()
    links: tuple[tuple[Attribute, ...], ...] = ()

    @property
    def streams(self) -> tuple[Side, ...]:
        """All that is read of streams; those of FROM come first."""
        return (*self.sides, *self.inner)


def side_name(query: str, alias: str) -> str:
    """How accounts and plans call a side of a join; no query and no alias has a colon or a dot in its name."""
    return f"{query}:{alias}"


def side_column(alias: str, column: str) -> str:
    """How the expressions of a join call a column of a side."""
    return f"{alias}.{column}"


@dataclass(frozen=True)
class Query:
    """`aggregates` are the distinct ones that select list, HAVING and ORDER BY need, in order of appearance.

    `stream` names a declared stream, or the query whose results this one reads (see `results_stream`).
    `order` and `limit` act per window; ties go by the keys, ascending. A query without aggregates and GROUP BY
    gives one row per record (`per_tuple`): it groups by its select list, and every group is repeated count(*) times.
    A `hidden` query stands inside another one (WITH, a subquery in FROM) and has no sink. A `join` reads several
    streams, or tables whose rows multiply; it has no `stream` and no `where` of its own, and `window` numbers its
    results: window k ends where that of the longest side does. `promise` (LIMIT DELAY TO, microseconds): results are
    there so long after the window's end, estimated where a burst leaves no time to read all records.
    """

    name: str
    stream: str
    window: Window
    where: Expression | None
    keys: tuple[Key, ...]
    select: tuple[OutputColumn, ...]
    having: Expression | None
    aggregates: tuple[Aggregate, ...]
    sink: str | None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    per_tuple: bool = False
    hidden: bool = False
    join: Join | None = None
    reads: frozenset[str] = frozenset()  # as of a `Side`
    promise: int | None = None

    @property
    def weight(self) -> Column | None:
        """What its records stand for, where a burst may leave some unread: a column of the stream, as it calls it."""
        if self.promise is None:
            return None
        return WEIGHT if self.join is None else Column(side_column(self.join.sides[0].alias, WEIGHT.name), BIGINT)

    @property
    def weighed(self) -> bool:
        """Whether its groups are estimated: told apart by what their records stand for until they are finished."""
        return self.promise is not None and not self.per_tuple

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """What it groups by; two keys may be the same attribute under two names."""
        return tuple(dict.fromkeys(key.attribute for key in self.keys))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The streams, and queries, that it reads itself."""
        return (self.stream,) if self.join is None else tuple(dict.fromkeys(side.stream for side in self.join.streams))

    def windows_on(self, stream: str) -> tuple[Window, ...]:
        """Its windows on a stream; a join may have several."""
        if self.join is None:
            return (self.window,)
        return tuple(side.window for side in self.join.streams if side.stream == stream)

    @property
    def columns(self) -> frozenset[str]:
        """Stream columns this query reads, besides the time column."""
        used = columns(self.where) | self.reads
        for key in self.keys:
            used |= columns(key.attribute)
        for aggregate in self.aggregates:
            used |= columns(aggregate)
        return used


@dataclass(frozen=True)
class QuerySet:
    """An app: the declared streams and tables that its queries read, and the queries, each after those whose results it
    reads."""

    streams: tuple[Stream, ...]
    queries: tuple[Query, ...]
    tables: tuple[Table, ...] = ()

    def stream(self, name: str) -> Stream:
        """A declared stream, or the results of a query as a stream."""
        for stream in self.streams:
            if stream.name == name:
                return stream
        return results_stream(self.query(name))

    def query(self, name: str) -> Query:
        return next(query for query in self.queries if query.name == name)

    def readers(self, name: str) -> tuple[Query, ...]:
        """The queries that read a stream, or a query's results, themselves."""
        return tuple(query for query in self.queries if name in query.inputs)

    def roots(self, query: Query) -> tuple[Stream, ...]:
        """The declared streams that a query reads in the end."""
        declared = {stream.name: stream for stream in self.streams}
        found: dict[str, Stream] = {}
        for name in query.inputs:
            below = (declared[name],) if name in declared else self.roots(self.query(name))
            found |= {stream.name: stream for stream in below}
        return tuple(found.values())

    @property
    def levels(self) -> tuple[tuple[Query, ...], ...]:
        """Queries on streams, then queries on their results, and so on."""
        places: dict[str, int] = {}
        for query in self.queries:
            places[query.name] = 1 + max(places.get(name, 0) for name in query.inputs)
        return tuple(
            tuple(query for query in self.queries if places[query.name] == level)
            for level in sorted(set(places.values()))
        )


def results_stream(query: Query) -> Stream:
    """A query's results as a stream: ts is the end of the window, if there is one. Prefixes are text there."""
    typed = ((output.name, output.expression.type) for output in query.select)
    fields = [Field(name, STRING if kind.kind is Kind.PREFIX else kind) for name, kind in typed]
    if query.window.whole:
        return Stream(query.name, tuple(fields), f"query:{query.name}", (), "")
    taken = {field.name.casefold() for field in fields}
    added = [name for name in RESULT_TIMES if name not in taken]
    times = (Field(name, TIMESTAMP) for name in added)
    return Stream(query.name, (*fields, *times), f"query:{query.name}", (), "window_end")
