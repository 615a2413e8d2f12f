"""SELECT: its clauses in any order SQL knows them, with windows, EVERY and LIMIT DELAY TO."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.lang.ast import (
    Clause,
    CommonTable,
    Derived,
    Duration,
    FromClause,
    Item,
    OrderTerm,
    Select,
    SelectQuery,
    SetOperation,
    WindowClause,
    Word,
)
from penstock.lang.expressions import ExpressionGrammar
from penstock.lang.foreign import window_elsewhere
from penstock.lang.text import Span

# Not taken as an alias without AS: they begin the next clause.
_CLAUSES = frozenset({"EVERY", "INNER", "LEFT", "RIGHT", "FULL", "CROSS"})
_CLAUSE_WORDS = ("WHERE", "GROUP", "HAVING", "EVERY", "ORDER", "LIMIT", "JOIN", "UNION", "AS")
_JOINS = (
    ("JOIN",),
    ("INNER", "JOIN"),
    ("CROSS", "JOIN"),
    ("LEFT", "JOIN"),
    ("LEFT", "OUTER", "JOIN"),
    ("RIGHT", "JOIN"),
    ("RIGHT", "OUTER", "JOIN"),
    ("FULL", "JOIN"),
    ("FULL", "OUTER", "JOIN"),
)


class SelectGrammar(ExpressionGrammar):
    """WITH, SELECT and set operations."""

    def select_query(self) -> SelectQuery:
        index = self._index
        common: tuple[CommonTable, ...] = ()
        with_span: Span | None = None
        if self.take("WITH"):
            with_span = self.since(index)
            common = self.listed(self._common_table)
        left: SelectQuery = self._operand()
        if isinstance(left, Select) and with_span:
            left = replace(left, common=common, with_span=with_span)
        while any(self.ahead(word) for word in ("UNION", "EXCEPT", "INTERSECT")):
            operator = self._curr.text.upper()
            span = self.here()
            self._advance()
            self.take("ALL") or self.take("DISTINCT")
            left = SetOperation(operator, span, left, self._operand())
        return left

    def _operand(self) -> SelectQuery:
        if not self._match(TokenType.L_PAREN):
            return self._select()
        with self.nested():
            inner = self.select_query()
        self.expect(")")
        return inner

    def _common_table(self) -> CommonTable:
        name = self.name("a name after WITH")
        self.expect("AS", "(")
        with self.nested():
            select = self.select_query()
        self.expect(")")
        return CommonTable(name, select)

    def _select(self) -> Select:
        span = self.expect("SELECT")
        distinct = self.since(self._index - 1) if self.take("DISTINCT") else None
        self.take("ALL")
        items = self.listed(self._select_item)
        self.expect("FROM")
        select = Select(span, items, self._sources(), distinct=distinct)
        while (clause := self._clause(select)) is not None:
            select = clause
        return select

    def _select_item(self) -> Item:
        if self._match(TokenType.STAR):
            return Item(self.node(exp.Star(), self._index - 1), None)
        return self._aliased()

    def _aliased(self) -> Item:
        expression = self.expression_()
        if self.take("AS"):
            return Item(expression, self.name("a name after AS"))
        return Item(expression, self.maybe_name(_CLAUSES))

    # -- FROM

    def _sources(self) -> tuple[FromClause | Derived, ...]:
        sources = [self._source()]
        while (joined := self._joined()) is not None:
            source = self._source()
            on = self.expression_() if self.take("ON") else None
            first = self.app_text.at(joined).split()[0].upper()
            outer = first if first in ("LEFT", "RIGHT", "FULL") else ""
            sources.append(replace(source, joined=joined, on=on, outer=outer))
        return tuple(sources)

    def _joined(self) -> Span | None:
        index = self._index
        if self._match(TokenType.COMMA) or any(self.take(*words) for words in _JOINS):
            return self.since(index)
        return None

    def _source(self) -> FromClause | Derived:
        index = self._index
        if self._match(TokenType.L_PAREN):
            with self.nested():
                select = self.select_query()
            self.expect(")")
            span = self.since(index)
            window, alias = self._window_and_alias()
            return Derived(select, alias, window, span)
        if self._curr.token_type is TokenType.L_BRACKET:
            hint = "the window stands after the stream: FROM stream [RANGE '5 minutes']"
            raise self.app_text.error(self.here(), "expected a stream, found '['", hint)
        file = self._curr.token_type is TokenType.STRING
        name = self.string("a file") if file else self.name("a stream, or a file in quotes")
        if not file and self._curr.token_type in (TokenType.DOT, TokenType.SLASH):
            self._advance()
            raise self.app_text.error(self.since(index), "a file stands in quotes", "write it like FROM 'trace.pcap'")
        if not file:
            self._refuse_foreign_window(name)
        window, alias = self._window_and_alias()
        return FromClause(name, alias, window, file=file)

    def _refuse_foreign_window(self, name: Word) -> None:
        """FROM TUMBLE(…), FROM TABLE(TUMBLE(…)), and FROM s WINDOW TUMBLING (…)."""
        rest = [token.text for token in self._tokens[self._index : self._index + 3]]
        called = rest[:1] == ["("]
        if called and rest[1:2] and rest[1].upper() in ("RANGE", "ROWS", "WINDOW"):
            hint = "a window stands in brackets: FROM stream [RANGE '5 minutes']"
            raise self.app_text.error(self.here(), "expected a window in brackets, found '('", hint)
        inner = rest[1] if called and name.same("table") and len(rest) > 1 else name.text
        kind = inner if called else rest[1] if len(rest) > 1 and rest[0].upper() == "WINDOW" else ""
        told = window_elsewhere(kind, self.app_text.at(Span(name.span.start, self._tokens[-1].end + 1)))
        if told is not None:
            raise self.app_text.error(name.span if called else self.here(), *told)

    def _window_and_alias(self) -> tuple[WindowClause | None, Word | None]:
        """The alias stands before or after the window, with or without AS."""
        window = self._window()
        alias = self.name("a name after AS") if self.take("AS") else self.maybe_name(_CLAUSES)
        return window or self._window(), alias

    def _window(self) -> WindowClause | None:
        index = self._index
        if not self._match(TokenType.L_BRACKET):
            return None
        window = self._window_size()
        if window.kind != "landmark" and self.take("SLIDE"):
            self.take("BY")
            if window.kind == "rows":
                window = replace(window, row_slide=self._row_count("a number of rows after SLIDE"))
                self.take("ROWS")
            else:
                window = replace(window, slide=self.duration())
        if not self._match(TokenType.R_BRACKET):
            complete = window.kind == "landmark" or window.slide or window.row_slide
            raise self.unexpected("']'" if complete else "SLIDE or ']'", near=("SLIDE",))
        return replace(window, span=self.since(index))

    def _window_size(self) -> WindowClause:
        here = self.here()
        if self.take("WINDOW"):
            if self.take("UNTIL", "NOW"):
                return WindowClause("landmark", None, None, here)
            return WindowClause("range", self.duration(), None, here)
        if self.take("RANGE"):
            self.take("BY")
            return WindowClause("range", self.duration(), None, here)
        if self.take("ROWS"):
            return WindowClause("rows", None, None, here, rows=self._row_count("a number of rows"))
        raise self.unexpected("RANGE, WINDOW or ROWS", near=("RANGE", "WINDOW", "ROWS"))

    def _row_count(self, what: str) -> Word:
        """A number as written, its minus sign included: `logical.resolve.windows` says what is wrong with it."""
        index = self._index
        self._match(TokenType.DASH)
        self.number(what)
        span = self.since(index)
        return Word(self.app_text.at(span), span)

    # -- after FROM

    def _clause(self, select: Select) -> Select | None:
        """The select with one more clause, or None where no clause begins."""
        here = self.here()
        if self.take("WHERE"):
            self._once(select.where, "WHERE", here)
            return replace(select, where=self.expression_())
        if self.take("GROUP"):
            self.expect("BY")
            self._once(select.group, "GROUP BY", here)
            return replace(select, group=self.listed(self._aliased))
        if self.take("HAVING"):
            self._once(select.having, "HAVING", here)
            return replace(select, having=self.expression_())
        if self.take("EVERY"):
            self._once(select.every, "EVERY", here)
            return replace(select, every=self.duration())
        if self.take("ORDER"):
            self.expect("BY")
            self._once(select.order, "ORDER BY", here)
            ordered = Span(here.start, self._prev.end + 1)
            return replace(select, order=self.listed(self._ordered), ordered=ordered)
        if self.take("LIMIT"):
            return self._limit(select, here)
        return None

    def _limit(self, select: Select, here: Span) -> Select:
        if self.take("DELAY"):
            self.expect("TO")
            self._once(select.delay, "LIMIT DELAY TO", here)
            span = here
            delay = self.duration()
            return replace(select, delay=Duration(delay.microseconds, span.to(delay.span)))
        self._once(select.limit, "LIMIT", here)
        return replace(select, limit=Clause(self.expression_(), here))

    def _once(self, present: object, name: str, here: Span) -> None:
        if present:
            raise self.app_text.error(here, f"a second {name}", "a query has each clause once")

    def _ordered(self) -> OrderTerm:
        expression = self.expression_()
        descending = self.take("DESC")
        if not descending:
            self.take("ASC")
        nulls = ""
        if self.take("NULLS"):
            if not (self.take("FIRST") or self.take("LAST")):
                raise self.unexpected("FIRST or LAST after NULLS")
            nulls = self._prev.text.upper()
        return OrderTerm(expression, descending, nulls)

    def clause_error(self) -> None:
        """Called where a select should have ended: whatever stands here is no clause."""
        if self._curr:
            raise self.unexpected("the next clause or ';'", near=_CLAUSE_WORDS)
