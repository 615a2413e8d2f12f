"""CSV files as a stream: `csv:FILE`, `csv:FOLDER` or `csv:GLOB`, also compressed, with any delimiter.

| option | default | |
| --- | --- | --- |
| `header` | `auto` | `true`: the first record names the columns; `false`: they go by position; `auto`: see `_header` |
| `delimiter` | `,` | one ASCII letter, or `tab`, `space` |
| `quote` | `"` | one ASCII letter, or `none`; doubled, it stands for itself |
| `escape` | `none` | one ASCII letter, such as `\\`: the next one is taken as it stands |
| `null` | `NULL, \\N` | texts that mean NULL, with commas between; an empty field without quotes always does |
| `comment` | none | lines that start with this are passed over |
| `timestamp_format` | `iso` | see `sources.text.options` |
| `longest_record` | 1 MiB | longer ones are unreadable: how far a quote that is never closed can reach |
| `cache` | a folder for temporary files | where compressed files are unpacked |

Without declared columns the first records of the first file decide (`sources.text.infer`). With declared columns a
file may have more, if its header names them. A value that does not fit is bad; a record with another number of fields
is unreadable, as is one that is not UTF-8 or ends inside quotes. "" in quotes is an empty text, and NULL as anything
else. Neighbours: `kernels.text.csv` finds the fields, `sources.text.columns` makes columns of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from penstock.errors import SourceError
from penstock.kernels.text.csv import drop_nulls, find_fields
from penstock.kernels.text.index import FIELDS, find_lines
from penstock.logical.query import Field
from penstock.logical.types import Kind
from penstock.sources.files import Address
from penstock.sources.options import Options
from penstock.sources.text.blocks import TextPiece
from penstock.sources.text.columns import Rules, Spans, TimeFormat
from penstock.sources.text.infer import SAMPLE, types_of
from penstock.sources.text.options import common_options, letter, one_of, texts
from penstock.sources.text.source import HEAD, TextLayout, TextSource, refuse_flags, without_mark
from penstock.sources.unpack import head, with_packed

Array = np.ndarray[Any, Any]
SUFFIXES = with_packed((".csv", ".tsv", ".txt", ".log"))
NULLS: tuple[str, ...] = ("NULL", "\\N")
MOST = 1 << 14  # fields of a header
NO_SLOTS, NO_SPANS = np.empty(0, np.int64), Spans(0, 0)


@dataclass(frozen=True)
class CsvPlan:
    """How a file's fields go to the columns asked: how many there are, and the column of each, or −1."""

    fields: int
    slots: Array
    text: tuple[bool, ...]


@dataclass(frozen=True)
class CsvFormat:
    """The options; bytes that are not used are −1."""

    header: str
    delimiter: int
    quote: int
    escape: int
    nulls: tuple[str, ...]
    comment: str
    times: TimeFormat
    longest: int
    scheme: str = "csv"

    @property
    def rules(self) -> Rules:
        return Rules(self.times)

    def starts(self, piece: TextPiece, starts: Array) -> int:
        data, begin, end = piece.data, piece.begin, piece.end
        unused = data[begin:end]
        if (self.quote >= 0 and (unused == self.quote).any()) or (self.escape >= 0 and (unused == self.escape).any()):
            empty, reason = NO_SPANS, np.empty(len(starts), np.uint8)
            return int(
                find_fields(
                    data, begin, end, piece.final, self.longest, False, 0, self.delimiter, self.quote, self.escape,
                    self._comment, NO_SLOTS, piece.state, starts, reason, empty.first, empty.stop, empty.kind,
                )
            )  # fmt: skip
        return int(find_lines(data, begin, end, piece.final, self.longest, False, self._comment, piece.state, starts))

    def spans(self, piece: TextPiece, spans: Spans, rows: int, plan: CsvPlan) -> int:
        count = find_fields(
            piece.data, piece.begin, piece.end, piece.final, self.longest, not piece.ascii, plan.fields,
            self.delimiter, self.quote, self.escape, self._comment, plan.slots, piece.state,
            spans.starts[:rows], spans.reason, spans.first, spans.stop, spans.kind,
        )  # fmt: skip
        nulls, edges = self._nulls
        for slot, text in enumerate(plan.text):
            drop_nulls(piece.data, *spans.column(slot, count), nulls, edges, not text)
        return int(count)

    def plan(self, columns: tuple[str, ...] | None, asked: list[Field]) -> CsvPlan:
        names = columns or ()
        slots = np.full(len(names), -1, np.int64)
        for slot, field in enumerate(asked):
            slots[names.index(field.name)] = slot
        return CsvPlan(len(names), slots, tuple(field.type.kind is Kind.STRING for field in asked))

    def layout(self, text: bytes, final: bool, name: str, declared: tuple[Field, ...]) -> TextLayout:
        first = self.first_record(text, final)
        names = tuple(field.name for field in declared)
        if first is None or not self._header(first, names, name):
            return TextLayout(names)
        for column in names:
            if first.count(column) != 1:
                times = "twice or more" if column in first else "not"
                raise SourceError(
                    f"column '{column}' is {times} in the header of '{name}'",
                    f"it names {', '.join(first)}; without a header say WITH (header = 'false')",
                )
        return TextLayout(tuple(first), 1)

    def first_record(self, text: bytes, final: bool) -> list[str] | None:
        """The fields of the first record as text."""
        piece, spans = TextPiece(np.frombuffer(bytearray(text), np.uint8), len(text), final), Spans(MOST, 1)
        spans.first.fill(-1)
        if not self.spans(piece, spans, 1, CsvPlan(0, np.arange(MOST), ())):
            return None
        count = int((spans.first[:, 0] >= 0).sum())
        edges = zip(spans.first[:count, 0], spans.stop[:count, 0], strict=True)
        return [bytes(piece.data[first:stop]).decode(errors="replace") for first, stop in edges]

    def _header(self, first: list[str], names: tuple[str, ...], name: str) -> bool:
        """Whether the first record is a header; `auto`: if it has the name of a declared column."""
        if self.header != "auto":
            return self.header == "true"
        return not names or any(field in names for field in first)

    @cached_property
    def _comment(self) -> Array:
        return np.frombuffer(self.comment.encode(), np.uint8)

    @cached_property
    def _nulls(self) -> tuple[Array, Array]:
        encoded = [text.encode() for text in self.nulls]
        return np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([0, *map(len, encoded)], dtype=np.int64)


def open_csv(path: str, options: Mapping[str, str], declared: tuple[Field, ...] | None = None) -> TextSource:
    """Open a file, a folder (its *.csv, *.tsv, *.txt and *.log files, also compressed) or a glob."""
    address = Address.of("csv", path, SUFFIXES)
    given = Options("csv", options)
    header = given.take("header", one_of("auto", "true", "false"), "auto")
    delimiter = given.take("delimiter", letter, ord(","))
    quote, escape = given.take("quote", letter, ord('"')), given.take("escape", letter, -1)
    nulls = given.take("null", texts, NULLS)
    comment = given.take("comment", str, "")
    times, longest, cache = common_options(given)
    given.require_all_taken()
    used = [byte for byte in (delimiter, quote, escape) if byte >= 0]
    if delimiter < 0 or len(set(used)) < len(used):
        raise SourceError("delimiter, quote and escape of a csv: source must differ", "change one of them")
    form = CsvFormat(header, delimiter, quote, escape, nulls, comment, times, longest)
    paths = address.required(bool(declared))
    fields = declared or _inferred(form, paths)
    refuse_flags(fields, f"'{path}'")
    if declared and paths:
        _check_first(form, paths[0], declared)
    return TextSource(address, fields, cache, tuple(paths), form=form)


def _inferred(form: CsvFormat, paths: list[str]) -> tuple[Field, ...]:
    """Columns of the first file that has a record."""
    for path in paths:
        text, final = head(path, HEAD)
        first = form.first_record(without_mark(text, path), final)
        if first:
            return _columns(form, without_mark(text, path), final, first, path)
    raise SourceError(f"'{paths[0]}' has no record to tell the columns from", "declare the stream's columns")


def _columns(form: CsvFormat, text: bytes, final: bool, first: list[str], path: str) -> tuple[Field, ...]:
    named = form.header != "false"
    names = first if named else [f"column{number + 1}" for number in range(len(first))]
    for name in names:
        if not name or names.count(name) > 1:
            what = f"column '{name}' occurs twice in" if name else "a column has no name in"
            raise SourceError(f"{what} the header of '{path}'", "declare the columns, with header = 'false' if need be")
    return types_of(form, tuple(names), text, final, int(named))


def _check_first(form: CsvFormat, path: str, declared: tuple[Field, ...]) -> None:
    """Notice at once that nothing would fit: no record of the first ones has as many fields as there are columns."""
    start, final = head(path, HEAD)
    text = without_mark(start, path)
    layout = form.layout(text, final, path, declared)
    piece, spans = TextPiece(np.frombuffer(bytearray(text), np.uint8), len(text), final), Spans(0, SAMPLE)
    rows = form.spans(piece, spans, SAMPLE, form.plan(layout.columns, []))
    if rows > layout.skip and (spans.reason[layout.skip : rows] == FIELDS).all():
        first = form.first_record(text, final) or []
        fields = f"{len(first)} field{'' if len(first) == 1 else 's'}"
        raise SourceError(
            f"the first record of '{path}' has {fields}, not {len(layout.columns or ())}",
            f"declare all columns, in their order; '{chr(form.delimiter)}' is taken for the delimiter",
        )
