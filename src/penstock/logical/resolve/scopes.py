"""What names mean: the columns of a stream for records; keys, aggregates and aliases once records are grouped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from sqlglot import exp

from penstock.errors import QueryError
from penstock.lang.ast import Item, Word, span_of
from penstock.lang.text import AppText
from penstock.logical.expressions import Bucket, Column, Computed, Expression, Prefix, WindowEnd
from penstock.logical.query import WEIGHT, Attribute, Field, Query, Stream, Table, results_stream
from penstock.logical.types import NOT_READ, Kind
from penstock.logical.values import constants
from penstock.logical.values.aggregates import is_aggregate, resolve_aggregate
from penstock.logical.values.attributes import attribute_name, attribute_of
from penstock.logical.values.scalars import resolve_scalar


def word_of(node: exp.Column) -> Word:
    """The last part of a name."""
    return Word(node.name, span_of(node), bool(node.this.args.get("quoted")))


def unwrap(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def suggestion(name: str, known: Iterable[str], what: str) -> str:
    """A did-you-mean, or the list where nothing is near and the list is short enough to help."""
    names = list(known)
    folded = {candidate.casefold(): candidate for candidate in names}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{folded[near[0]]}'?"
    return f"{what} are {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}" if names else ""


@dataclass(frozen=True)
class Input:
    """What a query reads: a declared stream, a file, a table, or the results of a query; `name` is how the text calls
    it. Of a table, `stream` has only its columns.

    What is `bounded` has an end that is known to come: it may be read without a window.
    """

    stream: Stream
    name: str
    results: bool = False
    bounded: bool = False
    file: bool = False
    table: Table | None = None

    @property
    def what(self) -> str:
        kind = "query" if self.results else "file" if self.file else "stream" if self.table is None else "table"
        return f"{kind} '{self.name}'"

    @property
    def times(self) -> frozenset[str]:
        """Columns that are the stream's time: results have theirs under two names."""
        if not self.stream.time:
            return frozenset()
        last = self.stream.fields[-1].name
        both = self.results and last == "ts"
        return frozenset((self.stream.time, last) if both else (self.stream.time,))

    @property
    def starred(self) -> tuple[Field, ...]:
        """What `*` stands for: all columns; of results the select list, as every result has its own times."""
        fields = self.stream.fields
        if not self.results or not self.stream.time:
            return fields
        return fields[: [field.name for field in fields].index("window_start")]


def results_input(query: Query, name: str, bounded: bool) -> Input:
    """The results of a query, as another one reads them. Those of a query without a window have an end, and all have
    where everything that is read is `bounded`."""
    return Input(results_stream(query), name, results=True, bounded=bounded or query.window.whole)


def table_input(table: Table) -> Input:
    """A table, as a join reads it."""
    return Input(Stream(table.name, table.fields, table.source, (), ""), table.name, table=table)


@dataclass(frozen=True)
class StreamColumns:
    """The columns of the stream in FROM, and the names it may be called by."""

    text: AppText
    input: Input
    qualifiers: tuple[Word, ...]

    @property
    def stream(self) -> Stream:
        return self.input.stream

    @property
    def times(self) -> frozenset[str]:
        """Columns that are the stream's time."""
        return self.input.times

    @property
    def weight(self) -> Column:
        """How many records of the stream one stands for."""
        return WEIGHT

    def starred(self, star: exp.Expr) -> list[Item]:
        """The columns that `*` or `P.*` stands for, in its place."""
        if isinstance(star, exp.Column):
            self.check_qualifier(star)
        return [Item(column_node(field.name, star), None) for field in self.input.starred]

    def shown(self, expression: Expression) -> Expression:
        """What names the column of an unnamed result."""
        return expression

    def find(self, node: exp.Column) -> Column | None:
        """The column, None where there is none of that name; a wrong qualifier is an error."""
        self.check_qualifier(node)
        word = word_of(node)
        found = [f for f in self.stream.fields if word.same(f.name)]
        exact = [f for f in found if f.name == word.text]
        if len(found) > 1 and len(exact) != 1:
            spellings = " or ".join(f'"{f.name}"' for f in found)
            raise self.text.error(
                word.span, f"column '{word.text}' is ambiguous", f"quote the one you mean: {spellings}"
            )
        if not found:
            return None
        chosen = exact[0] if exact else found[0]
        return Column(chosen.name, chosen.type)

    def check_qualifier(self, node: exp.Column) -> None:
        table = node.args.get("table")
        if table is None:
            return
        word = Word(table.name, span_of(table), bool(table.args.get("quoted")))
        if not any(word.same(q.text) or (q.quoted is False and q.same(word.text)) for q in self.qualifiers):
            names = [q.text for q in self.qualifiers]
            hint = suggestion(word.text, names, "the names in FROM")
            raise self.text.error(word.span, f"'{word.text}' is not a stream of this query", hint)

    def column(self, node: exp.Column) -> Column:
        """The column, or an error; the placeholder of `P.*` only has its qualifier checked."""
        if isinstance(node.this, exp.Star):
            self.check_qualifier(node)
            return Column("*", Bucket().type)
        found = self.find(node)
        if found is None:
            raise self.unknown(node)
        return found

    def unknown(self, node: exp.Column, more: Iterable[str] = ()) -> QueryError:
        word = word_of(node)
        for name, kind in self.stream.unread:
            if word.same(name):
                return self.text.error(word.span, f"column '{name}' is {kind}, which penstock does not read", NOT_READ)
        names = dict.fromkeys((*(f.name for f in self.stream.fields), *more))
        hint = suggestion(word.text, names, "the columns")
        if not word.quoted and is_aggregate(word.text):
            hint = f"did you mean {word.text.lower()}({'*' if word.same('count') else 'x'})?"
        if word.quoted and not hint.startswith("did"):
            hint = f"a text stands in single quotes: '{word.text}'; {hint}"
        return self.text.error(word.span, f"unknown column '{word.text}' of {self.input.what}", hint)

    def prefix(self, node: exp.Expr) -> Prefix | None:
        """`src/24` on an INET column; None for any other expression."""
        if not isinstance(node, exp.Div) or not isinstance(column_node := unwrap(node.this), exp.Column):
            return None
        column = self.find(column_node)
        if column is None or column.type.kind is not Kind.INET:
            return None
        return Prefix(column, self._prefix_length(unwrap(node.expression)))

    def _prefix_length(self, node: exp.Expr) -> int:
        length = constants.whole(node.name) if isinstance(node, exp.Literal) and not node.is_string else None
        if length is None:
            fact = "the length of a prefix must be a whole number"
            raise self.text.error(span_of(node), fact, "write it like src/24")
        if length > constants.IPV6_BITS:
            raise self.text.error(span_of(node), f"an address has no {length} bits", "IPv4 has 32, IPv6 has 128")
        return length


def column_node(name: str, place: exp.Expr, table: str | None = None) -> exp.Column:
    """A column as if it were written in some place."""
    qualifier = None if table is None else exp.Identifier(this=table, quoted=True)
    node = exp.Column(this=exp.Identifier(this=name, quoted=True), table=qualifier)
    node.meta.update(place.meta)
    if qualifier is not None:
        qualifier.meta.update(place.meta)
    return node


@dataclass(frozen=True)
class TupleScope:
    """WHERE, GROUP BY, and arguments of aggregates: the stream's columns, no aggregates."""

    columns: StreamColumns
    aliases: frozenset[str] = frozenset()  # of the select list, only to explain why they are unknown here
    clause: str = "WHERE"

    @property
    def text(self) -> AppText:
        return self.columns.text

    def known(self, node: exp.Expr) -> Expression | None:
        return self.columns.prefix(node)

    def name(self, node: exp.Column) -> Expression:
        if isinstance(node.this, exp.Star):
            self.columns.check_qualifier(node)
            if self.clause != "an aggregate":
                raise self.text.error(span_of(node), "'*' can only stand in count(*)")
            return self.columns.column(node)
        if self.columns.find(node) is None and node.name.casefold() in self.aliases:
            fact = f"'{node.name}' names a result and cannot be used in {self.clause}"
            raise self.text.error(span_of(node), fact, "filter results with HAVING" if self.clause == "WHERE" else "")
        return self.columns.column(node)

    def aggregate(self, node: exp.Anonymous, condition: exp.Expr | None) -> Expression:
        if self.clause == "an aggregate":
            raise self.text.error(span_of(node), "an aggregate inside an aggregate", "use a query on a query's results")
        fact = f"the aggregate {node.name.lower()} cannot be used in {self.clause}"
        raise self.text.error(span_of(node), fact, "filter groups with HAVING" if self.clause == "WHERE" else "")


@dataclass(frozen=True)
class GroupScope:
    """The select list, HAVING and ORDER BY: keys by name or expression, the time bucket, aggregates, aliases."""

    columns: StreamColumns
    keys: frozenset[Attribute]
    named: Mapping[str, Expression]  # GROUP BY ... AS name, case-folded
    bucket: Callable[[exp.Expr], Bucket | None]
    grouped: bool = True
    aliases: Mapping[str, Expression] = field(default_factory=dict)

    @property
    def text(self) -> AppText:
        return self.columns.text

    @property
    def tuples(self) -> TupleScope:
        return TupleScope(self.columns, clause="an aggregate")

    def known(self, node: exp.Expr) -> Expression | None:
        computed = self._computed(node)
        if computed is not None:
            return computed
        bucket = self.bucket(node)
        if bucket is not None:
            return bucket
        prefix = self.columns.prefix(node)
        if prefix is not None and prefix not in self.keys:
            written = attribute_name(prefix)
            raise self.text.error(span_of(node), f"the prefix {written} is not grouped", f"add {written} to GROUP BY")
        return prefix

    def _computed(self, node: exp.Expr) -> Computed | None:
        """The key that an expression is, however it is written."""
        if isinstance(node, exp.Column | exp.Literal) or not any(isinstance(key, Computed) for key in self.keys):
            return None
        try:
            attribute = attribute_of(resolve_scalar(node, self.tuples))
        except QueryError:  # it is none of records; what is wrong with it will be said later
            return None
        return attribute if isinstance(attribute, Computed) and attribute in self.keys else None

    def name(self, node: exp.Column) -> Expression:
        folded = node.name.casefold()
        plain = node.args.get("table") is None
        if plain and folded in self.named:
            return self.named[folded]
        column = self.columns.find(node)
        if column is not None and column in self.keys:
            return column
        if plain and folded in self.aliases:
            return self.aliases[folded]
        if column is None:
            raise self.columns.unknown(node, [*self.named, *self.aliases])
        if not self.grouped and column.name in self.columns.times:
            return WindowEnd()  # seed data-triage, Sec. 9.1: `select count(*), ts from ...`
        fact = f"column '{column.name}' is neither grouped nor aggregated"
        raise self.text.error(span_of(node), fact, f"add it to GROUP BY, or use an aggregate like max({column.name})")

    def aggregate(self, node: exp.Anonymous, condition: exp.Expr | None) -> Expression:
        return resolve_aggregate(node, condition, self.tuples, resolve_scalar)

    def with_aliases(self, aliases: Mapping[str, Expression]) -> GroupScope:
        return replace(self, aliases=aliases)
