"""The entry to the language: app text to statements, or a `QueryError` at the word that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from penstock.lang.ast import SelectQuery, Statement
from penstock.lang.dialect import Penstock
from penstock.lang.statements import StatementGrammar
from penstock.lang.text import AppText, Span, read_text


@dataclass(frozen=True)
class ParsedApp:
    text: AppText
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class ParsedSelect:
    text: AppText
    select: SelectQuery


def parse_app(text: str, file: str, variables: Mapping[str, str] | None = None) -> ParsedApp:
    """All statements of an app file, in the order written."""
    app_text = read_text(text, file, variables or {})
    grammar = _grammar()
    statements: list[Statement] = []
    for tokens in _runs(_tokens(app_text)):
        grammar.start(app_text, tokens)
        statements.append(grammar.statement())
    if not statements:
        raise app_text.error(Span(0, 0), "the app is empty", "it needs a CREATE STREAM and a CREATE QUERY")
    return ParsedApp(app_text, tuple(statements))


def parse_queries(text: str, file: str) -> ParsedApp:
    """Statements as in an app file, among them SELECTs without CREATE QUERY: `query`, or `query1`, `query2` …"""
    app_text = read_text(text, file, {})
    grammar, runs = _grammar(), _runs(_tokens(app_text))
    bare = sum(run[0].text.upper() != "CREATE" for run in runs)
    names = iter(["query"] if bare == 1 else [f"query{number}" for number in range(1, bare + 1)])
    statements: list[Statement] = []
    for tokens in runs:
        grammar.start(app_text, tokens)
        created = tokens[0].text.upper() == "CREATE"
        statements.append(grammar.statement() if created else grammar.named_select(next(names)))
    if not statements:
        raise app_text.error(Span(0, 0), "the query is empty", "write a SELECT")
    return ParsedApp(app_text, tuple(statements))


def parse_select(text: str, file: str) -> ParsedSelect:
    """One SELECT without CREATE QUERY, as Python gives it; a closing semicolon is fine."""
    app_text = read_text(text, file, {})
    runs = _runs(_tokens(app_text))
    if not runs:
        raise app_text.error(Span(0, 0), "the query is empty", "write a SELECT")
    if len(runs) > 1:
        first = runs[1][0]
        raise app_text.error(Span(first.start, first.end + 1), "a second statement", "a query is one SELECT")
    grammar = _grammar()
    grammar.start(app_text, runs[0])
    return ParsedSelect(app_text, grammar.lone_select())


def _grammar() -> StatementGrammar:
    return StatementGrammar(dialect=Penstock)


def _tokens(app_text: AppText) -> list[Token]:
    try:
        return Penstock().tokenize(app_text.expanded)
    except TokenError:
        # text.py has refused what is known to get here; this guards against the rest of the lexis.
        raise app_text.error(Span(0, 0), "the text cannot be read as SQL") from None


def _runs(tokens: list[Token]) -> list[list[Token]]:
    """Tokens between semicolons, empty statements left out."""
    runs: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            runs.append([])
        else:
            runs[-1].append(token)
    return [run for run in runs if run]
