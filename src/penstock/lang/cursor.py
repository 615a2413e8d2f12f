"""A strict cursor over sqlglot's tokens: the base of the grammar in this package.

sqlglot's own grammar accepts many dialects at once and forgives a lot; an app must be refused at the word that
is wrong, so the grammar here is ours, on sqlglot's lexis, cursor and nodes. Words are compared by their text:
the dialect makes no word a keyword, so columns may be called time, range, length or stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TypeVar

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import QueryError
from penstock.lang.ast import Duration, Word
from penstock.lang.durations import parse_duration
from penstock.lang.text import AppText, Span

# Never a bare name: they would make a clause look like a column or an alias.
_RESERVED = """
SELECT FROM WHERE GROUP HAVING ORDER LIMIT BY AND OR NOT IN IS LIKE BETWEEN AS ON JOIN UNION EXCEPT INTERSECT
WITH CASE NULL TRUE FALSE DISTINCT CREATE INTO EXISTS
"""
RESERVED = frozenset(_RESERVED.split())
MISSING_END = "end the statement before it with ';'"
OTHER_SIGNS = {
    "&": "write AND", "|": "write OR, or || to join texts", "!": "write NOT", "`": 'names are quoted like "this"',
    **dict.fromkeys("‘’‚“”„«»", "a text stands in straight quotes: 'this'"),
}  # fmt: skip
# Parser, resolver and evaluation recurse over nesting and over trees of operators: both stay far from Python's limit.
DEEPEST_NESTING = 40
DEEPEST_TREE = 100

T = TypeVar("T")
N = TypeVar("N", bound=exp.Expr)


def token_span(token: Token) -> Span:
    return Span(token.start, token.end + 1)


def _depth_under(node: exp.Expr, child: exp.Expr) -> int:
    depth: int = child.meta.get("depth", 1)
    # Chains of AND or OR become one n-ary node, however long.
    return depth - 1 if isinstance(node, exp.Connector) and type(child) is type(node) else depth


class Cursor(Parser):
    """Matching, expecting, and the sentences for what was not found."""

    app_text: AppText
    _depth: int = 0

    def start(self, text: AppText, tokens: list[Token]) -> None:
        self.reset()
        self.app_text = text
        self.sql = text.expanded
        self._tokens = tokens
        self._tokens_size = len(tokens)
        self._index = -1
        self._depth = 0
        self._advance()

    # -- where we are

    def here(self) -> Span:
        if self._curr:
            return token_span(self._curr)
        end = self._tokens[-1].end + 1 if self._tokens else 0
        return Span(end, end + 1)

    def since(self, index: int) -> Span:
        """From the token at `index` to the last one taken."""
        return Span(self._tokens[index].start, self._prev.end + 1)

    def node(self, node: N, index: int) -> N:
        """Give a node the place of the tokens taken since `index`."""
        first, last = self._tokens[index], self._prev
        depth = 1 + max((_depth_under(node, child) for child in node.iter_expressions()), default=0)
        if depth > DEEPEST_TREE:
            raise self.app_text.error(token_span(last), "the expression has too many operators in a row")
        node.meta["depth"] = depth
        return node.update_positions(line=first.line, col=first.col, start=first.start, end=last.end)

    @contextmanager
    def nested(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > DEEPEST_NESTING:
            hint = f"at most {DEEPEST_NESTING} levels can be nested"
            raise self.app_text.error(self.here(), "nested too deeply", hint)
        yield
        self._depth -= 1

    # -- taking tokens

    def ahead(self, *words: str) -> bool:
        return self._match_text_seq(*words, advance=False)

    def take(self, *words: str) -> bool:
        return self._match_text_seq(*words)

    def expect(self, *words: str) -> Span:
        index = self._index
        for word in words:
            if not self._match_text_seq(word):
                raise self.unexpected(word if word.isalpha() else f"'{word}'", near=(word,))
        return self.since(index)

    def listed(self, parse: Callable[[], T]) -> tuple[T, ...]:
        items = [parse()]
        while self._match(TokenType.COMMA):
            items.append(parse())
        return tuple(items)

    def name(self, what: str) -> Word:
        """A bare or quoted name."""
        word = self.maybe_name()
        if word is None:
            raise self.reserved(what) if self.at_reserved() else self.unexpected(what)
        return word

    def at_reserved(self) -> bool:
        return self._curr.token_type is TokenType.VAR and self._curr.text.upper() in RESERVED

    def maybe_name(self, excluded: frozenset[str] = frozenset()) -> Word | None:
        token = self._curr
        if token.token_type is TokenType.IDENTIFIER:
            if not token.text:
                raise self.app_text.error(token_span(token), "an empty name")
            self._advance()
            return Word(token.text, token_span(token), quoted=True)
        upper = token.text.upper()
        if token.token_type is TokenType.VAR and upper not in RESERVED and upper not in excluded:
            self._advance()
            return Word(token.text, token_span(token))
        return None

    def string(self, what: str) -> Word:
        token = self._curr
        if not self._match(TokenType.STRING):
            if token.token_type is TokenType.IDENTIFIER:
                hint = f"write it in single quotes: '{token.text}'"
                raise self.app_text.error(token_span(token), f"expected {what}, found {self.found()}", hint)
            raise self.unexpected(what)
        return Word(token.text, token_span(token), quoted=True)

    def number(self, what: str) -> Word:
        token = self._curr
        if not self._match(TokenType.NUMBER):
            raise self.unexpected(what)
        return Word(token.text, token_span(token))

    def duration(self) -> Duration:
        """'5 minutes', 5 MINUTES, INTERVAL '5' MINUTE, INTERVAL '5 minutes'."""
        index = self._index
        self.take("INTERVAL")
        if self._match(TokenType.STRING):
            text = self._prev.text
            if text.strip().replace(".", "", 1).lstrip("+-").isdigit() and self._curr.token_type is TokenType.VAR:
                text = f"{text} {self.name('a unit of time').text}"
        else:
            sign = "-" if self._match(TokenType.DASH) else ""
            number = self.number("a duration like '5 minutes'").text
            text = f"{sign}{number} {self.name('a unit of time').text}"
        span = self.since(index)
        try:
            return Duration(parse_duration(text), span)
        except ValueError as problem:
            raise self.app_text.error(span, str(problem), "write it like '5 minutes' or '500 ms'") from None

    # -- errors

    def found(self) -> str:
        return f"'{self.app_text.at(token_span(self._curr))}'" if self._curr else "the end of the statement"

    def _begins_clause(self) -> bool:
        by = bool(self._next) and self._next.text.upper() == "BY"
        return self._curr.text.upper() in ("FROM", "WHERE", "HAVING") or by

    def reserved(self, expected: str, listed: bool = False) -> QueryError:
        """A word of the language stands where a name could, or an expression of a list."""
        here, word = self.here(), self.app_text.at(self.here())
        if word.upper() == "CREATE" and self._index:
            return self.app_text.error(here, f"expected {expected}, found '{word}'", MISSING_END)
        if listed and self._prev.token_type is TokenType.COMMA and self._begins_clause():
            return self.app_text.error(here, f"expected {expected}, found '{word}'", "take out the comma before it")
        hint = f'as a name it must be quoted: "{word}"'
        return self.app_text.error(here, f"expected {expected}, found the reserved word '{word}'", hint)

    def unexpected(self, expected: str, near: tuple[str, ...] = ()) -> QueryError:
        """`near` are words that may have been misspelt, here or in the word before, which then went for an alias."""
        for token in (self._curr, self._prev):
            if token.token_type is not TokenType.VAR or token.text.upper() in near:
                continue
            if meant := get_close_matches(token.text.upper(), near, n=1, cutoff=0.75):
                fact = f"expected {expected}, found '{self.app_text.at(token_span(token))}'"
                return self.app_text.error(token_span(token), fact, f"did you mean {meant[0]}?")
        return self.app_text.error(self.here(), f"expected {expected}, found {self.found()}", self._advice(expected))

    def _advice(self, expected: str) -> str:
        """What to do about a word that stands here by a usual mistake."""
        word = self._curr.text if self._curr else ""
        if word.upper() == "CREATE" and self._index:
            return MISSING_END
        if word == "[" and self._index:
            return "a window stands right behind the stream: FROM flows [RANGE '1 minute'] WHERE ... GROUP BY ..."
        if expected == "a unit of time":
            return "write it like '10 seconds'"
        if expected == "BY":
            return f"write {self._prev.text.upper()} BY"
        return OTHER_SIGNS.get(word[:1], "")
