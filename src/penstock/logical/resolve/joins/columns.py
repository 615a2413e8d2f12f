"""What a name means where FROM has several inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from penstock.errors import QueryError
from penstock.lang.ast import Item, WindowClause, Word, span_of
from penstock.lang.text import AppText, Span
from penstock.logical.expressions import Column, Expression
from penstock.logical.query import WEIGHT, side_column
from penstock.logical.resolve.scopes import Input, StreamColumns, column_node, suggestion, word_of
from penstock.logical.rewrite import unqualified


@dataclass(frozen=True)
class JoinInput:
    """One input of a join: what it reads, how it is called, its window, and the condition of its ON. `span` is where it
    is named, `joined` the comma or JOIN before it, `outer` its LEFT, RIGHT or FULL."""

    input: Input
    alias: str
    qualifiers: tuple[Word, ...]
    window: WindowClause | None
    span: Span
    joined: Span | None = None
    on: exp.Expr | None = None
    outer: str = ""

    @property
    def table(self) -> bool:
        return self.input.table is not None


@dataclass(frozen=True)
class JoinedColumns(StreamColumns):
    """The columns of all inputs; each is called by its input and its name."""

    inputs: tuple[JoinInput, ...] = ()

    @classmethod
    def of(cls, text: AppText, inputs: tuple[JoinInput, ...]) -> JoinedColumns:
        qualifiers = tuple(word for one in inputs for word in one.qualifiers)
        return cls(text, inputs[0].input, qualifiers, inputs)

    @property
    def times(self) -> frozenset[str]:
        return frozenset(side_column(one.alias, name) for one in self.inputs for name in one.input.times)

    @property
    def weight(self) -> Column:
        """Of the only stream: several promise no delay."""
        (alias,) = (one.alias for one in self.inputs if not one.table)
        return Column(side_column(alias, WEIGHT.name), WEIGHT.type)

    def starred(self, star: exp.Expr) -> list[Item]:
        """Inputs in the order of FROM; names that several have are told apart by the input."""
        if isinstance(star, exp.Column):
            self.check_qualifier(star)
        shown = [one for one in self.inputs if not isinstance(star, exp.Column) or self._named(star, one)]
        fields = [(one.alias, field.name) for one in shown for field in one.input.starred]
        often = Counter(name.casefold() for _, name in fields)
        return [
            Item(
                column_node(name, star, alias),
                Word(side_column(alias, name), span_of(star)) if often[name.casefold()] > 1 else None,
            )
            for alias, name in fields
        ]

    def shown(self, expression: Expression) -> Expression:
        return unqualified(expression)

    def find(self, node: exp.Column) -> Column | None:
        self.check_qualifier(node)
        found: list[tuple[str, Column]] = []
        for one in self.inputs:
            if node.args.get("table") is None or self._named(node, one):
                column = self._of(one).find(_bare(node))
                found += [] if column is None else [(one.alias, column)]
        if len(found) > 1:
            choices = " or ".join(side_column(alias, column.name) for alias, column in found)
            word = word_of(node)
            raise self.text.error(word.span, f"column '{word.text}' is ambiguous", f"say whose: {choices}")
        return next((Column(side_column(alias, column.name), column.type) for alias, column in found), None)

    def unknown(self, node: exp.Column, more: Iterable[str] = ()) -> QueryError:
        named = [one for one in self.inputs if node.args.get("table") is not None and self._named(node, one)]
        if named:
            return self._of(named[0]).unknown(_bare(node), more)
        word = word_of(node)
        for one in self.inputs:
            if any(word.same(name) for name, _ in one.input.stream.unread):
                return self._of(one).unknown(_bare(node), more)
        names = dict.fromkeys((*(f.name for one in self.inputs for f in one.input.stream.fields), *more))
        hint = suggestion(word.text, names, "the columns")
        return self.text.error(word.span, f"no input of the join has a column '{word.text}'", hint)

    def _of(self, one: JoinInput) -> StreamColumns:
        return StreamColumns(self.text, one.input, one.qualifiers)

    def _named(self, node: exp.Column, one: JoinInput) -> bool:
        """Whether a qualified name names this input: by its alias, where it has one."""
        table = node.args["table"]
        word = Word(table.name, span_of(table), bool(table.args.get("quoted")))
        return any(word.same(q.text) or (not q.quoted and q.same(word.text)) for q in one.qualifiers)


def _bare(node: exp.Column) -> exp.Column:
    """The name without its qualifier, in its place."""
    made = exp.Column(this=node.this.copy())
    made.meta.update(node.meta)
    return made
