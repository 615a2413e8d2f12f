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

Without declared columns the first records of the first file decide (`sources.text.csv_head`). With declared columns a
file may have more, if its header names them; case does not matter there. A value that does not fit is bad; a record
with another number of fields is unreadable, as is one that is not UTF-8 or ends inside quotes. "" in quotes is an empty
text, and NULL as anything else. Neighbours: `kernels.text.csv` finds the fields, `sources.text.columns` makes columns
of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from penstock.errors import SourceError
from penstock.kernels.text.csv import drop_nulls, find_fields
from penstock.kernels.text.index import find_lines
from penstock.logical.query import Field
from penstock.logical.types import Kind
from penstock.sources.files import Address
from penstock.sources.options import Options
from penstock.sources.text.blocks import TextPiece
from penstock.sources.text.columns import Rules, Spans, TimeFormat
from penstock.sources.text.csv_head import Head, check_declared, inferred, look, matched
from penstock.sources.text.options import common_options, letter, one_of, texts
from penstock.sources.text.source import TextLayout, TextSource, refuse_flags
from penstock.sources.unpack import with_packed

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
        found, names = Head(name, text, final, self.first_cells(text, final)), tuple(field.name for field in declared)
        if not found.cells or not self._header(found.names, names):
            return TextLayout(names)
        return TextLayout(matched(found, names), 1)

    def first_cells(self, text: bytes, final: bool) -> tuple[tuple[str, int, int], ...]:
        """The fields of the first record: text, and where it stands."""
        piece, spans = TextPiece(np.frombuffer(bytearray(text), np.uint8), len(text), final), Spans(MOST, 1)
        spans.first.fill(-1)
        if not self.spans(piece, spans, 1, CsvPlan(0, np.arange(MOST), ())):
            return ()
        count = int((spans.first[:, 0] >= 0).sum())
        edges = zip(spans.first[:count, 0].tolist(), spans.stop[:count, 0].tolist(), strict=True)
        return tuple((bytes(piece.data[first:stop]).decode(errors="replace"), first, stop) for first, stop in edges)

    def _header(self, first: list[str], names: tuple[str, ...]) -> bool:
        """Whether the first record is a header; `auto`: if it has the name of a declared column."""
        if self.header != "auto":
            return self.header == "true"
        folded = {name.casefold() for name in names}
        return not names or any(field.casefold() in folded for field in first)

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
    fields = declared or inferred(form, paths)
    refuse_flags(fields, f"'{path}'")
    if declared and paths:
        found = look(form, paths[0])
        layout = form.layout(found.text, found.final, found.path, declared)
        check_declared(form, found, layout.columns or (), layout.skip, declared)
    return TextSource(address, fields, cache, tuple(paths), form=form)
