"""An app's text: variables filled in, and a way back from offsets to the places the user wrote.

Everything after this module works on offsets into the expanded text; only `AppText.place` knows lines.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from penstock.errors import QueryError, TextPlace

# What may not be cut by a ${variable} or hide one: comments are skipped, strings are looked into.
_LEXEMES = re.compile(
    r"""(?P<comment>--[^\r\n]*|/\*(?s:.*?)\*/)
      | (?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
      | (?P<open>'|"|/\*)
      | (?P<variable>\$\{[^}]*\}?)""",
    re.VERBOSE,
)
_VARIABLE = re.compile(r"\$\{[^}]*\}?")
_VARIABLE_NAME = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.-]*)\}")
_NOT_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f\ufffd\ud800-\udfff]")
_OPEN = {"'": "text constant", '"': "quoted name", "/*": "comment"}


@dataclass(frozen=True)
class Span:
    """Offsets [start, end) into the expanded text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        return Span(self.start, max(self.end, other.end))


@dataclass(frozen=True)
class _Filled:
    """One variable: where its value stands in the expanded text, and its `${name}` in the original."""

    start: int
    end: int
    written: Span


@dataclass(frozen=True)
class AppText:
    """`original` is what errors show; `expanded` is what is parsed."""

    original: str
    file: str
    expanded: str
    filled: tuple[_Filled, ...] = ()

    @cached_property
    def _line_starts(self) -> list[int]:
        # splitlines, because QueryError shows lines by it: a form feed ends a line for both.
        starts = [0]
        for line in self.original.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts[:-1] or [0]

    def _written(self, span: Span) -> Span:
        """The span in the original text; a span that touches a filled variable covers its `${name}`."""
        shift = 0
        start: int | None = None
        for filled in self.filled:
            if start is None and span.start < filled.end:
                start = span.start + shift if span.start < filled.start else filled.written.start
            if span.end <= filled.start:
                break
            if span.end <= filled.end:
                return Span(filled.written.start if start is None else start, filled.written.end)
            shift = filled.written.end - filled.end
        return Span(span.start + shift if start is None else start, span.end + shift)

    def place(self, span: Span) -> TextPlace:
        written = self._written(span)
        line = bisect_right(self._line_starts, written.start)
        return TextPlace(line, written.start - self._line_starts[line - 1] + 1, max(1, written.end - written.start))

    def error(self, span: Span, fact: str, hint: str = "") -> QueryError:
        return QueryError(fact, hint, text=self.original, file=self.file, place=self.place(span))

    def at(self, span: Span) -> str:
        return self.expanded[span.start : span.end]


def read_text(text: str, file: str, variables: Mapping[str, str]) -> AppText:
    """Fill in the variables and refuse what no tokenizer can read: binary data, unfinished strings."""
    plain = AppText(text, file, text)
    if bad := _NOT_TEXT.search(text):
        place = plain.place(Span(bad.start(), bad.end()))
        fact = f"not a text file: character U+{ord(bad.group()):04X} in line {place.line}, column {place.column}"
        # Without the text: showing the line would send its control characters to the terminal.
        raise QueryError(fact, file=file, place=place)
    expanded = _fill(plain, variables)
    for lexeme in _LEXEMES.finditer(expanded.expanded):
        if opener := lexeme.group("open"):
            span = Span(lexeme.start(), lexeme.end())
            closer = {"/*": "*/"}.get(opener, opener)
            raise expanded.error(span, f"unfinished {_OPEN[opener]}", f"close it with {closer}")
    return expanded


def variables_of(text: str) -> frozenset[str]:
    """Names of the variables that an app's text has.

    >>> sorted(variables_of("FROM 'csv:${folder}/${name}.csv' -- not ${this}"))
    ['folder', 'name']
    """
    written = (_VARIABLE_NAME.fullmatch(text, span.start, span.end) for span, _ in _variables(text))
    return frozenset(name.group(1) for name in written if name is not None)


def _fill(plain: AppText, variables: Mapping[str, str]) -> AppText:
    # A byte order mark is no part of the text, but must keep its offset.
    source = plain.original.replace("\ufeff", " ")
    parts: list[str] = []
    filled: list[_Filled] = []
    copied = length = 0
    for span, quote in _variables(source):
        value = _value(plain, span, variables)
        if quote:
            value = value.replace(quote, quote * 2)
        kept = source[copied : span.start]
        length += len(kept)
        filled.append(_Filled(length, length + len(value), span))
        length += len(value)
        parts += [kept, value]
        copied = span.end
    parts.append(source[copied:])
    return AppText(plain.original, plain.file, "".join(parts), tuple(filled))


def _variables(source: str) -> list[tuple[Span, str]]:
    """Each ${name} outside comments, with the quote of the string it stands in, or ''."""
    found: list[tuple[Span, str]] = []
    for lexeme in _LEXEMES.finditer(source):
        if lexeme.group("variable"):
            found.append((Span(lexeme.start(), lexeme.end()), ""))
        elif lexeme.group("string"):
            for inner in _VARIABLE.finditer(source, lexeme.start(), lexeme.end()):
                found.append((Span(inner.start(), inner.end()), source[lexeme.start()]))
    return found


def _value(plain: AppText, span: Span, variables: Mapping[str, str]) -> str:
    written = plain.at(span)
    name = _VARIABLE_NAME.fullmatch(written)
    if name is None:
        raise plain.error(span, f"'{written}' is not a variable", "write ${name}")
    if name.group(1) not in variables:
        raise plain.error(span, f"variable '{name.group(1)}' is not set", f"give it with --set {name.group(1)}=...")
    value = variables[name.group(1)]
    if bad := _NOT_TEXT.search(value):
        raise plain.error(span, f"the value of '{name.group(1)}' has the character U+{ord(bad.group()):04X}")
    return value
