"""What names mean: the columns of a stream in WHERE; keys, aggregates and aliases once tuples are grouped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from sqlglot import exp

from penstock.errors import QueryError
from penstock.lang.ast import Word, span_of
from penstock.lang.text import AppText
from penstock.logical import constants
from penstock.logical.aggregates import check_call, is_aggregate, resolve_aggregate
from penstock.logical.expressions import Bucket, Column, Expression, Prefix
from penstock.logical.query import Stream
from penstock.logical.scalars import not_yet
from penstock.logical.types import Kind


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
class StreamColumns:
    """The columns of the stream in FROM, and the names it may be called by."""

    text: AppText
    stream: Stream
    qualifiers: tuple[Word, ...]

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
        names = [*(f.name for f in self.stream.fields), *more]
        hint = suggestion(word.text, names, "the columns")
        return self.text.error(word.span, f"unknown column '{word.text}' of stream '{self.stream.name}'", hint)

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
        if length > 128:
            raise self.text.error(span_of(node), f"an address has no {length} bits", "IPv4 has 32, IPv6 has 128")
        if length > 32:
            raise self.text.error(span_of(node), "IPv6 prefixes longer than 32 are not executable yet")
        return length


@dataclass(frozen=True)
class TupleScope:
    """WHERE: the stream's columns, no aggregates."""

    columns: StreamColumns
    aliases: frozenset[str]  # of the select list, only to explain why they are unknown here

    @property
    def text(self) -> AppText:
        return self.columns.text

    def known(self, node: exp.Expr) -> Expression | None:
        if self.columns.prefix(node) is not None:
            raise not_yet(self.text, node, "a prefix in WHERE")
        return None

    def name(self, node: exp.Column) -> Expression:
        if self.columns.find(node) is None and node.name.casefold() in self.aliases:
            fact = f"'{node.name}' names a result and cannot be used in WHERE"
            raise self.text.error(span_of(node), fact, "filter results with HAVING")
        return self.columns.column(node)

    def call(self, node: exp.Anonymous) -> Expression:
        if is_aggregate(node.name):
            fact = f"the aggregate {node.name.lower()} cannot be used in WHERE"
            raise self.text.error(span_of(node), fact, "filter groups with HAVING")
        check_call(node, self.text)
        raise not_yet(self.text, node, f"the function '{node.name}'")


@dataclass(frozen=True)
class GroupScope:
    """The select list and HAVING: keys by column or name, the time bucket, aggregates, and in HAVING aliases."""

    columns: StreamColumns
    keys: frozenset[Column | Prefix]
    named: Mapping[str, Expression]  # GROUP BY ... AS name, case-folded
    bucket: Callable[[exp.Expr], Bucket | None]
    aliases: Mapping[str, Expression] = field(default_factory=dict)

    @property
    def text(self) -> AppText:
        return self.columns.text

    def known(self, node: exp.Expr) -> Expression | None:
        bucket = self.bucket(node)
        if bucket is not None:
            return bucket
        prefix = self.columns.prefix(node)
        if prefix is not None and prefix not in self.keys:
            written = f"{prefix.column.name}/{prefix.length}"
            raise self.text.error(span_of(node), f"the prefix {written} is not grouped", f"add {written} to GROUP BY")
        return prefix

    def name(self, node: exp.Column) -> Expression:
        if isinstance(node.this, exp.Star):
            raise not_yet(self.text, node, "SELECT *", "name the columns")
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
        fact = f"column '{column.name}' is neither grouped nor aggregated"
        other = "" if column.type.kind is Kind.INET else f", or use an aggregate like max({column.name})"
        raise self.text.error(span_of(node), fact, f"add it to GROUP BY{other}")

    def call(self, node: exp.Anonymous) -> Expression:
        return resolve_aggregate(node, self.text, self.columns.column)
