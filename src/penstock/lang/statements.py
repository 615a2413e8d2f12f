"""The grammar of statements: CREATE STREAM, CREATE TABLE, CREATE QUERY. What stands in a query is `selects`."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.lang.ast import (
    ColumnDefinition,
    CreateQuery,
    CreateStream,
    Overload,
    SelectQuery,
    Statement,
    Watermark,
    Word,
)
from penstock.lang.cursor import token_span
from penstock.lang.selects import SelectGrammar
from penstock.lang.text import Span

_KINDS = ("STREAM", "TABLE", "QUERY")
_STREAM_CLAUSES = ("FROM", "WITH", "WATERMARK", "TYPE", "ON")


class StatementGrammar(SelectGrammar):
    """One statement per run of tokens between semicolons."""

    def statement(self) -> Statement:
        if not self.take("CREATE"):
            if self.ahead("SELECT") or self.ahead("WITH"):
                hint = "write CREATE QUERY name AS before it; a SELECT alone is for penstock query"
                raise self.app_text.error(self.here(), f"an app's query needs a name, found {self.found()}", hint)
            if self.ahead("INSERT", "INTO"):
                hint = "write CREATE QUERY name INTO 'parquet:folder' AS SELECT ..."
                raise self.app_text.error(self.here(), "INSERT INTO is not how results are written here", hint)
            raise self.unexpected("CREATE STREAM, CREATE TABLE or CREATE QUERY", near=("CREATE",))
        if self.take("STREAM"):
            return self._create_stream(table=False)
        if self.take("TABLE"):
            return self._create_stream(table=True)
        if self.take("QUERY"):
            return self._create_query()
        raise self.unexpected("STREAM, TABLE or QUERY after CREATE", near=_KINDS)

    def named_select(self, name: str) -> CreateQuery:
        """A SELECT alone, which gets this name."""
        return CreateQuery(Word(name, self.here()), None, self.lone_select())

    def lone_select(self) -> SelectQuery:
        select = self.select_query()
        self.clause_error()
        return select

    def _create_query(self) -> CreateQuery:
        name = self._query_name()
        sink = self.string("the sink's address in quotes after INTO") if self.take("INTO") else None
        if not self.take("AS"):
            raise self.unexpected("AS" if sink else "INTO or AS", near=("AS", "INTO"))
        return CreateQuery(name, sink, self.lone_select())

    def _query_name(self) -> Word:
        """Query names may have dashes, as they are names of folders."""
        index = self._index
        word = self.name("a name for the query")
        while not word.quoted and self._is_connected() and self._match(TokenType.DASH):
            if not (self._is_connected() and self._match_set((TokenType.VAR, TokenType.NUMBER))):
                raise self.unexpected("more of the query's name after '-'")
        span = self.since(index)
        return word if word.quoted else Word(self.app_text.at(span), span)

    def _create_stream(self, table: bool) -> CreateStream:
        what = "table" if table else "stream"
        name = self.name(f"a name for the {what}")
        columns: tuple[ColumnDefinition, ...] | None = None
        if self._match(TokenType.L_PAREN):
            columns = self.listed(self._column)
            if not self._match(TokenType.R_PAREN):
                raise self.unexpected("',' or ')' after the column")
        clauses = _StreamClauses(self)
        while self._curr:
            clauses.parse_one()
        return CreateStream(
            name, table, columns, clauses.source, clauses.options or (), clauses.watermark, clauses.overload
        )

    def _column(self) -> ColumnDefinition:
        name = self.name("a column")
        type_name = self.name(f"the type of column '{name.text}'")
        if type_name.same("double"):
            self.take("PRECISION")
        parameters: tuple[Word, ...] = ()
        if self._match(TokenType.L_PAREN):
            parameters = self.listed(lambda: self.number("a length"))
            self.expect(")")
        return ColumnDefinition(name, type_name, tuple(p.text for p in parameters))


class _StreamClauses:
    """FROM, WITH, WATERMARK, TYPE and ON OVERLOAD, each at most once, in any order."""

    def __init__(self, cursor: StatementGrammar) -> None:
        self.cursor = cursor
        self.source: Word | None = None
        self.options: tuple[tuple[str, str], ...] | None = None
        self.watermark: Watermark | None = None
        self.overload: Overload | None = None

    def parse_one(self) -> None:
        cursor, here = self.cursor, self.cursor.here()
        if cursor.take("FROM"):
            self._once(self.source, "FROM", here)
            self.source = cursor.string("the source's address in quotes")
        elif cursor.take("WITH"):
            self._once(self.options, "WITH", here)
            self.options = self._options()
        elif cursor.take("WATERMARK"):
            self._once(self.watermark, "WATERMARK", here)
            self.watermark = self._watermark()
        elif cursor.take("TYPE"):
            cursor.expect("UNARCHIVED")
        elif cursor.take("ON"):
            self._once(self.overload, "ON OVERLOAD", here)
            cursor.expect("OVERLOAD", "KEEP")
            self.overload = self._summary(here)
        else:
            raise cursor.unexpected("FROM, WITH, WATERMARK, TYPE, ON OVERLOAD or ';'", near=_STREAM_CLAUSES)

    def _once(self, present: object, name: str, here: Span) -> None:
        if present is not None:
            raise self.cursor.app_text.error(here, f"a second {name}", "each clause may be given once")

    def _summary(self, here: Span) -> Overload:
        """What an overloaded stream keeps; which kinds there are is no matter of grammar."""
        kind = self.cursor.name("a kind of summary after KEEP")
        parameters: tuple[exp.Expr, ...] = ()
        if self.cursor.take("("):
            parameters = self.cursor.listed(lambda: self.cursor.expression_())
            self.cursor.expect(")")
        return Overload(kind, parameters, here.to(token_span(self.cursor._prev)))

    def _watermark(self) -> Watermark:
        column = self.cursor.name("the time column after WATERMARK")
        self.cursor.expect("DELAY")
        delay = self.cursor.duration()
        ahead = None
        if self.cursor.take("MAX"):
            self.cursor.expect("AHEAD")
            ahead = self.cursor.duration()
        return Watermark(column, delay, ahead)

    def _options(self) -> tuple[tuple[str, str], ...]:
        self.cursor.expect("(")
        pairs = self.cursor.listed(self._option)
        self.cursor.expect(")")
        seen: set[str] = set()
        for key, _ in pairs:
            if key.text in seen:
                raise self.cursor.app_text.error(key.span, f"option '{key.text}' is given twice")
            seen.add(key.text)
        return tuple((key.text, value) for key, value in pairs)

    def _option_name(self) -> Word:
        """Any word will do, reserved ones too: sources name their options as they like."""
        if self.cursor._match(TokenType.VAR):
            return Word(self.cursor._prev.text.lower(), token_span(self.cursor._prev))
        quoted = self.cursor._curr.token_type is TokenType.STRING
        return self.cursor.string("an option") if quoted else self.cursor.name("an option")

    def _option(self) -> tuple[Word, str]:
        cursor = self.cursor
        key = self._option_name()
        cursor.expect("=")
        sign = "-" if cursor._match(TokenType.DASH) else ""
        token = cursor._curr
        kinds = (TokenType.NUMBER,) if sign else (TokenType.NUMBER, TokenType.STRING, TokenType.VAR)
        if not cursor._match_set(kinds):
            raise cursor.unexpected(f"a value for option '{key.text}'")
        return key, sign + token.text
