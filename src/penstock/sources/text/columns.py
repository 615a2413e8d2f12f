"""Turns spans of text into Arrow columns, and flags what does not fit; CSV and JSON have the same rules.

kernels.text.csv or kernels.text.json ──► Spans ──► column (kernels.text.parse, kernels.text.times) ──► pa.Array, flags
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels.text import parse
from penstock.kernels.text.index import PLAIN, QUOTED, WORD
from penstock.kernels.text.times import parse_times
from penstock.logical.query import Field
from penstock.logical.types import Kind
from penstock.sources.base import REASONS, UNREADABLE, arrow_field
from penstock.sources.flags import flagged, numbered_texts

Array = np.ndarray[Any, Any]
Span = tuple[Array, Array, Array, Array]  # data, first, stop, kind
# Columns a power of two apart would share the same few lines of the cache.
APART = 80
ANY = 1 << PLAIN | 1 << QUOTED


@dataclass(frozen=True)
class TimeFormat:
    """How times are written: ISO 8601, a number of 10^(shift − 6) seconds, or a pattern of strptime."""

    shift: int | None = None
    pattern: str | None = None


@dataclass(frozen=True)
class Rules:
    """Which kinds of span a type accepts, as bits, and how times are written."""

    times: TimeFormat
    number: int = ANY
    boolean: int = ANY
    text: int = ANY
    iso: int = ANY

    @classmethod
    def of_json(cls, times: TimeFormat) -> Rules:
        return cls(times, 1 << PLAIN, 1 << WORD, 1 << QUOTED, 1 << QUOTED)


class Spans:
    """Room for the spans of some columns and rows, used again and again."""

    def __init__(self, columns: int, rows: int) -> None:
        self.starts = np.empty(rows, np.int64)
        self.reason = np.empty(rows, np.uint8)
        self.first = np.empty((columns, rows + APART), np.int32)
        self.stop = np.empty((columns, rows + APART), np.int32)
        self.kind = np.zeros((columns, rows + APART), np.uint8)

    def column(self, slot: int, rows: int) -> tuple[Array, Array, Array]:
        return self.first[slot, :rows], self.stop[slot, :rows], self.kind[slot, :rows]


def batch(fields: list[Field], data: Array, spans: Spans, rows: int, rules: Rules) -> pa.RecordBatch:
    """The columns of the first `rows` records at hand, and flags as `sources.base` has them."""
    reason = spans.reason[:rows]
    lost = reason != 0 if reason.any() else None
    if lost is not None:
        spans.kind[:, :rows][:, lost] = 0
    columns = []
    for slot, field in enumerate(fields):
        values, flag = column(field, (data, *spans.column(slot, rows)), rules)
        columns.append((arrow_field(field), values, flag == parse.BAD))
    return flagged(columns, rows, lost, {} if lost is None else {UNREADABLE: numbered_texts(REASONS, reason)})


def column(field: Field, span: Span, rules: Rules) -> tuple[pa.Array, Array]:
    """(values, flag of each: see `kernels.text.parse`)."""
    match field.type.kind:
        case Kind.INTEGER:
            return _integers(span, rules.number, field.type.bits)
        case Kind.DOUBLE:
            return _doubles(span, rules.number)
        case Kind.BOOLEAN:
            return _booleans(span, rules.boolean)
        case Kind.TIMESTAMP:
            return _times(span, rules)
        case Kind.INET:
            return _text(span, rules.text, trim=True)
    return _text(span, rules.text, trim=False)


def _integers(span: Span, accept: int, bits: int) -> tuple[pa.Array, Array]:
    out, flag = np.empty(len(span[1]), np.int64), np.empty(len(span[1]), np.uint8)
    parse.parse_integers(*span, accept, -(1 << (bits - 1)), (1 << (bits - 1)) - 1, out, flag)
    return _array(out.astype(f"i{bits // 8}", copy=False), flag), flag


def _doubles(span: Span, accept: int) -> tuple[pa.Array, Array]:
    out, flag = np.empty(len(span[1]), np.float64), np.empty(len(span[1]), np.uint8)
    parse.parse_doubles(*span, accept, out, flag)
    hard = np.flatnonzero(flag == parse.HARD)
    if len(hard):
        text, _ = _text((span[0], span[1][hard], span[2][hard], span[3][hard]), accept, trim=True)
        out[hard] = pc.utf8_ltrim(text, characters="+").cast(pa.float64()).to_numpy()
        flag[hard] = parse.FINE
    return _array(out, flag), flag


def _booleans(span: Span, accept: int) -> tuple[pa.Array, Array]:
    out, flag = np.empty(len(span[1]), np.uint8), np.empty(len(span[1]), np.uint8)
    parse.parse_booleans(*span, accept, out, flag)
    return _array(out.view(np.bool_), flag), flag


def _times(span: Span, rules: Rules) -> tuple[pa.Array, Array]:
    times, kind = rules.times, pa.timestamp("us", tz="UTC")
    if times.pattern is not None:
        text, flag = _text(span, rules.iso, trim=True)
        parsed = pc.strptime(text, format=times.pattern, unit="us", error_is_null=True)
        flag[(flag == parse.FINE) & ~np.asarray(parsed.is_valid())] = parse.BAD
        return parsed.cast(kind), flag
    out, flag = np.empty(len(span[1]), np.int64), np.empty(len(span[1]), np.uint8)
    counted = times.shift is not None
    parse_times(*span, ANY if counted else rules.iso, not counted, times.shift or 0, out, flag)
    return _array(out, flag).view(kind), flag


def _text(span: Span, accept: int, trim: bool) -> tuple[pa.Array, Array]:
    rows = len(span[1])
    offsets, flag = np.empty(rows + 1, np.int32), np.empty(rows, np.uint8)
    parse.measure_text(*span, accept, trim, offsets, flag)
    out = np.empty(int(offsets[-1]), np.uint8)
    parse.copy_text(span[0], span[1], trim, offsets, out)
    valid = flag == parse.FINE
    mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(out), mask), flag


def _array(values: Array, flag: Array) -> pa.Array:
    missing = flag != parse.FINE
    return pa.array(values, mask=missing) if missing.any() else pa.array(values)
