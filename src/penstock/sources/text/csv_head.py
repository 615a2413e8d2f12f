"""What the first lines of CSV files say: their columns, or why there are none to be told.

    first lines ──► inferred        columns and types, where none are declared
                ──► matched         which field of the header is which declared column
                ──► check_declared  notice at once that nothing would fit

Each refusal shows what was found. `sources.text.csv` opens the files.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import SourceError, TextPlace
from penstock.kernels.text import parse
from penstock.kernels.text.index import FIELDS, PLAIN
from penstock.logical.query import Field
from penstock.logical.types import DOUBLE, STRING, TIMESTAMP, Kind, Type
from penstock.sources.base import REASONS
from penstock.sources.text.blocks import TextPiece
from penstock.sources.text.columns import Rules, Spans, TimeFormat, column
from penstock.sources.text.infer import SAMPLE, types_of
from penstock.sources.text.source import HEAD, refuse_returns, without_mark
from penstock.sources.unpack import head

if TYPE_CHECKING:
    from penstock.sources.text.csv import CsvFormat

DECLARE = "declare its columns with their types, in an app: CREATE STREAM s (ts TIMESTAMP, src INET, ...) FROM ..."
OTHERS = {";": ";", "\t": "tab", "|": "|"}  # delimiters that are taken for text, and how the option calls them
LOOKED = 5  # lines that must agree about another delimiter


@dataclass(frozen=True)
class Head:
    """The first bytes of a file, and whether that is all of it; `cells` are the fields of its first record, and where
    they stand."""

    path: str
    text: bytes
    final: bool
    cells: tuple[tuple[str, int, int], ...]

    @property
    def names(self) -> list[str]:
        return [text.strip() for text, _, _ in self.cells]

    def error(self, fact: str, hint: str, cells: slice = slice(None)) -> SourceError:
        """Points at fields of the first record."""
        pointed = self.cells[cells]
        first, stop = pointed[0][1], pointed[-1][2]
        begin = self.text.rfind(b"\n", 0, first) + 1
        end = self.text.find(b"\n", begin)
        line = self.text[begin : end if end >= 0 else None].decode(errors="replace").rstrip("\r")
        place = len(self.text[begin:first].decode(errors="replace"))
        width = len(self.text[first:stop].decode(errors="replace"))
        return SourceError(fact, hint, line=line, place=TextPlace(self.line_of(begin), place + 1, width))

    def line_of(self, at: int) -> int:
        return self.text.count(b"\n", 0, at) + 1


def look(form: CsvFormat, path: str) -> Head:
    text, final = head(path, HEAD)
    text = without_mark(text, path)
    refuse_returns(text, path, form.quote)
    return Head(path, text, final, form.first_cells(text, final))


# -- columns that are not declared


def inferred(form: CsvFormat, paths: list[str]) -> tuple[Field, ...]:
    """Columns of the first file that has a record besides its header."""
    named = int(form.header != "false")
    header = None
    for found in (look(form, path) for path in paths):
        if found.cells and (_records(form, found) > named or not found.final):
            return _columns(form, found, named)
        header = header or (found if found.cells else None)
    if header is None:
        there = "it has only blank lines and comments" if look(form, paths[0]).text else "it is empty"
        raise SourceError(f"'{paths[0]}' has no record to tell the columns from: {there}", DECLARE)
    only = ", ".join(header.names)
    raise SourceError(f"'{header.path}' has a header and no record to tell the types from: {only}", DECLARE)


def _records(form: CsvFormat, found: Head) -> int:
    """Records of a file, up to two."""
    piece = TextPiece(np.frombuffer(bytearray(found.text), np.uint8), len(found.text), found.final)
    return form.starts(piece, np.empty(2, np.int64))


def _columns(form: CsvFormat, found: Head, named: int) -> tuple[Field, ...]:
    _refuse_other_delimiter(form, found)
    if form.header == "auto":
        _refuse_data(found)
    names = found.names if named else [f"column{number + 1}" for number in range(len(found.cells))]
    for at, name in enumerate(names):
        if not name or names.count(name) > 1:
            what = f"column '{name}' occurs twice in" if name else "a column has no name in"
            hint = "declare the columns, with header = 'false' if need be"
            raise found.error(f"{what} the header of '{found.path}'", hint, slice(at, at + 1))
    _require_readable(form, found, tuple(names), named)
    return types_of(form, tuple(names), found.text, found.final, named)


def _refuse_other_delimiter(form: CsvFormat, found: Head) -> None:
    """One field in which all lines have the same number of what may be another delimiter."""
    lines = found.text.decode(errors="replace").split("\n")[:LOOKED]
    counted = [line for line in lines if line.strip()]
    if len(found.cells) > 1:
        return
    for letter, told in OTHERS.items():
        if letter != chr(form.delimiter) and len({line.count(letter) for line in counted}) == 1 and letter in lines[0]:
            raise found.error(
                f"the first record of '{found.path}' has one field, as '{chr(form.delimiter)}' is the delimiter",
                f"say WITH (delimiter = '{told}')",
            )


def _refuse_data(found: Head) -> None:
    """A time in the first record, or numbers alone: no header has that."""
    times = [_fits(text, TIMESTAMP) for text in found.names]
    if any(times) or all(_fits(text, DOUBLE) for text in found.names):
        raise found.error(
            f"the first record of '{found.path}' is no header: it has values, not names",
            f"{DECLARE}; or say WITH (header = 'true') if these are names",
        )


def _fits(text: str, kind: Type) -> bool:
    data = np.frombuffer(bytearray(text.encode()), np.uint8)
    edges = np.zeros(1, np.int32), np.full(1, len(data), np.int32), np.full(1, PLAIN, np.uint8)
    return bool(text) and bool(column(Field("", kind), (data, *edges), Rules(TimeFormat()))[1][0] == parse.FINE)


def _require_readable(form: CsvFormat, found: Head, names: tuple[str, ...], skip: int) -> None:
    """Some record of the first ones can be read."""
    reason, starts = _reasons(form, found, names)
    if len(reason) <= skip or not reason[skip:].all():
        return
    why, at = int(reason[skip]), int(starts[skip])
    line = found.line_of(at)
    if why == FIELDS:
        fields = len(form.first_cells(found.text[at:], found.final))
        given = "its header names" if skip else "the first record has"
        fact = f"line {line} of '{found.path}' has {_fields(fields)}, {given} {len(names)}, and so on"
        raise SourceError(fact, f"give every record as many fields; {_delimiter(form)}")
    raise SourceError(
        f"no record of '{found.path}' can be read: {REASONS[why]} in line {line}, and so on",
        f"see whether it is CSV in UTF-8; {_delimiter(form)}",
    )


def _reasons(form: CsvFormat, found: Head, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    piece = TextPiece(np.frombuffer(bytearray(found.text), np.uint8), len(found.text), found.final)
    spans = Spans(0, SAMPLE)
    rows = form.spans(piece, spans, SAMPLE, form.plan(names, []))
    return spans.reason[:rows], spans.starts[:rows]


def _delimiter(form: CsvFormat) -> str:
    told = OTHERS.get(chr(form.delimiter), chr(form.delimiter))
    return f"'{told}' is taken for the delimiter, which WITH (delimiter = ...) changes"


def _fields(count: int) -> str:
    return f"{count} field{'' if count == 1 else 's'}"


# -- columns that are declared


def matched(found: Head, declared: tuple[str, ...]) -> tuple[str, ...]:
    """The header with the declared columns' own spelling: case, and blanks around a name, do not matter."""
    names, folded = found.names, [name.casefold() for name in found.names]
    for wanted in declared:
        places = [at for at, name in enumerate(names) if name == wanted]
        places = places or [at for at, name in enumerate(folded) if name == wanted.casefold()]
        if len(places) != 1:
            raise _unmatched(found, wanted, places)
        names[places[0]] = wanted
    return tuple(names)


def _unmatched(found: Head, wanted: str, places: list[int]) -> SourceError:
    fact = f"column '{wanted}' is {'twice or more' if places else 'not'} in the header of '{found.path}'"
    no_header = "if this is no header, say WITH (header = 'false')"
    if places:
        return found.error(fact, f"give one of them another name; {no_header}", slice(places[1], places[1] + 1))
    folded = {name.casefold(): at for at, name in enumerate(found.names)}
    near = get_close_matches(wanted.casefold(), folded, n=1, cutoff=0.6)
    if near:
        at = folded[near[0]]
        return found.error(fact, f"did you mean '{found.names[at]}'? {no_header}", slice(at, at + 1))
    return found.error(fact, f"declare columns that it names: {', '.join(found.names)}; {no_header}")


def check_declared(form: CsvFormat, found: Head, columns: tuple[str, ...], skip: int, asked: tuple[Field, ...]) -> None:
    """Refuse a file whose first records all have another number of fields, or whose header has other names."""
    reason, starts = _reasons(form, found, columns)
    if len(reason) > skip and (reason[skip:] == FIELDS).all():
        at = int(starts[skip])
        fields = len(form.first_cells(found.text[at:], found.final))
        hint = "the header must name all fields" if skip else "declare all columns, in their order"
        fact = f"line {found.line_of(at)} of '{found.path}' has {_fields(fields)}, not {len(columns)}"
        raise SourceError(fact, f"{hint}; {_delimiter(form)}")
    if not skip and form.header == "auto" and _other_names(form, found, columns, asked):
        raise found.error(
            f"the first line of '{found.path}' looks like a header, but names no declared column",
            "declare the columns as it names them, or take it out; with WITH (header = 'false') it counts as malformed",
        )


def _other_names(form: CsvFormat, found: Head, columns: tuple[str, ...], asked: tuple[Field, ...]) -> bool:
    """Whether nothing of the first record fits its column's type, and all of the second does."""
    typed = [field for field in asked if field.type != STRING and field.type.kind is not Kind.INET]
    piece = TextPiece(np.frombuffer(bytearray(found.text), np.uint8), len(found.text), found.final)
    spans = Spans(len(typed), 2)
    rows = form.spans(piece, spans, 2, form.plan(columns, typed))
    if rows < 2 or not typed or spans.reason[:2].any():
        return False
    flags = [column(field, (piece.data, *spans.column(slot, 2)), form.rules)[1] for slot, field in enumerate(typed)]
    return all(flag[0] == parse.BAD and flag[1] == parse.FINE for flag in flags)
