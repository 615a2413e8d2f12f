"""What the parser hands over: frozen statements whose scalar expressions are sqlglot nodes.

Every part carries the `Span` of its words. Of a sqlglot node `span_of` gives it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from penstock.lang.text import Span


def span_of(node: exp.Expr) -> Span:
    return Span(node.meta["start"], node.meta["end"] + 1)


@dataclass(frozen=True)
class Word:
    """A name or the text of a constant, as written, without its quotes."""

    text: str
    span: Span
    quoted: bool = False

    def same(self, name: str) -> bool:
        """Names match without regard to case unless quoted."""
        return self.text == name if self.quoted else self.text.casefold() == name.casefold()


@dataclass(frozen=True)
class Duration:
    microseconds: int
    span: Span


@dataclass(frozen=True)
class WindowClause:
    """`[RANGE size SLIDE slide]`; landmark and row windows are known by `kind`.

    Windows of rows have their numbers in `rows` and `row_slide`, as written.
    """

    kind: str  # range, landmark, rows
    size: Duration | None
    slide: Duration | None
    span: Span
    rows: Word | None = None
    row_slide: Word | None = None


@dataclass(frozen=True)
class Item:
    """One entry of a select list or of GROUP BY."""

    expression: exp.Expr
    alias: Word | None

    @property
    def span(self) -> Span:
        return span_of(self.expression)


@dataclass(frozen=True)
class FromClause:
    """A stream or table in FROM; `joined` is the comma or JOIN that brought it in, `outer` its LEFT, RIGHT or FULL. A
    `file` is named by its address."""

    name: Word
    alias: Word | None
    window: WindowClause | None
    joined: Span | None = None
    on: exp.Expr | None = None
    outer: str = ""
    file: bool = False


@dataclass(frozen=True)
class Derived:
    """A subquery in FROM."""

    select: SelectQuery
    alias: Word | None
    window: WindowClause | None
    span: Span
    joined: Span | None = None
    on: exp.Expr | None = None
    outer: str = ""


@dataclass(frozen=True)
class CommonTable:
    name: Word
    select: SelectQuery


@dataclass(frozen=True)
class OrderTerm:
    """One entry of ORDER BY; `nulls` is FIRST or LAST where that is written."""

    expression: exp.Expr
    descending: bool
    nulls: str = ""


@dataclass(frozen=True)
class Clause:
    """A clause with one expression, and where its keywords stand."""

    expression: exp.Expr
    span: Span


@dataclass(frozen=True)
class Select:
    span: Span  # of the word SELECT
    items: tuple[Item, ...]
    sources: tuple[FromClause | Derived, ...]
    where: exp.Expr | None = None
    group: tuple[Item, ...] = ()
    having: exp.Expr | None = None
    every: Duration | None = None
    distinct: Span | None = None
    ordered: Span | None = None
    order: tuple[OrderTerm, ...] = ()
    limit: Clause | None = None
    delay: Duration | None = None  # LIMIT DELAY TO
    common: tuple[CommonTable, ...] = ()
    with_span: Span | None = None


@dataclass(frozen=True)
class SetOperation:
    """UNION, EXCEPT or INTERSECT of two selects."""

    operator: str
    span: Span
    left: SelectQuery
    right: SelectQuery


SelectQuery = Select | SetOperation


@dataclass(frozen=True)
class ColumnDefinition:
    name: Word
    type_name: Word
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Watermark:
    column: Word
    delay: Duration
    ahead: Duration | None


@dataclass(frozen=True)
class Overload:
    """ON OVERLOAD KEEP: a kind of summary with its parameters, as written."""

    kind: Word
    parameters: tuple[exp.Expr, ...]
    span: Span


@dataclass(frozen=True)
class CreateStream:
    """CREATE STREAM or, with `table`, CREATE TABLE; `columns` is None where the source knows the schema."""

    name: Word
    table: bool
    columns: tuple[ColumnDefinition, ...] | None
    source: Word | None
    options: tuple[tuple[str, str], ...]
    watermark: Watermark | None
    overload: Overload | None


@dataclass(frozen=True)
class CreateQuery:
    name: Word
    sink: Word | None
    select: SelectQuery


Statement = CreateStream | CreateQuery
