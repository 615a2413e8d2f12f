"""Guesses the types of columns that are not declared, from the first records of a file.

A column gets the first of BIGINT, DOUBLE, BOOLEAN, TIMESTAMP that all its values in the sample fit, else STRING. A
column without values is STRING. Where times are numbers (`timestamp_format = 'epoch'`), a column of numbers called ts,
time or timestamp is a TIMESTAMP.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.text import parse
from penstock.kernels.text.index import NOTHING
from penstock.logical.query import Field
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP, Type
from penstock.sources.text.blocks import RecordFormat, TextPiece
from penstock.sources.text.columns import Span, Spans, column

SAMPLE = 1000
CLOCKS = ("ts", "time", "timestamp")


def types_of(form: RecordFormat, names: tuple[str, ...], text: bytes, final: bool, skip: int) -> tuple[Field, ...]:
    """Fields of the columns of a file that starts with this text; its first `skip` records are no data."""
    piece = TextPiece(np.frombuffer(bytearray(text), np.uint8), len(text), final)
    guess = [Field(name, BIGINT) for name in names]
    spans = Spans(len(names), SAMPLE + skip)
    rows = form.spans(piece, spans, SAMPLE + skip, form.plan(names, guess))
    spans.kind[:, :rows][:, spans.reason[:rows] != 0] = NOTHING
    found = []
    for slot, name in enumerate(names):
        first, stop, kind = (part[skip:] for part in spans.column(slot, rows))
        found.append(Field(name, _type_of(name, form, (piece.data, first, stop, kind))))
    return tuple(found)


def _type_of(name: str, form: RecordFormat, span: Span) -> Type:
    if not span[3].any():
        return STRING
    clock = form.rules.times.shift is not None and name.casefold() in CLOCKS
    order = (TIMESTAMP, BIGINT, DOUBLE, BOOLEAN) if clock else (BIGINT, DOUBLE, BOOLEAN, TIMESTAMP)
    for kind in order:
        _, flag = column(Field(name, kind), span, form.rules)
        if not (flag == parse.BAD).any():
            return kind
    return STRING
