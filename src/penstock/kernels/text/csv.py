"""Finds records of CSV and the spans of their fields; `kernels.text.index` says what a record is.

A field that starts with the quote ends at the next single quote; a doubled quote stands for itself. What follows the
closing quote up to the delimiter belongs to the field as it is. A quote elsewhere is a letter. With an `escape` the
byte after it is taken as it is, within quotes and without. Bytes given as −1 do not exist.

Fields with doubled quotes or escapes are rewritten in place, which only shortens them, and only when their record is
wholly there: nothing is read twice.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from penstock.kernels.jit import I32, I64, U8, kernel, part, ro, rw
from penstock.kernels.text.index import (
    AT,
    FIELDS,
    INCOMPLETE,
    LONG,
    NEWLINE,
    NOTHING,
    PLAIN,
    QUOTE,
    QUOTED,
    RETURN,
    UTF8,
    end_long_record,
    next_record,
    valid_utf8,
)

WINDOW = 1 << 14  # bytes whose marks are looked for at a time: they stay in the cache
REWRITE = 8  # added to a kind until the span is rewritten


@part
def find_marks(data, at, end, table, marks):
    """Places of the bytes that `table` marks; a loop without branches, which fields of a few bytes would mispredict."""
    count = uint64(0)
    for place in range(uint64(at), uint64(end)):
        marks[count] = place
        count += uint64(table[data[place]])
    return int64(count)


@part
def rewrite(data, first, stop, quote, escape):
    """Take quotes and escapes out of a field, in place; returns where it stops then."""
    at, to = first, first
    inside = at < stop and data[at] == quote
    if inside:
        at += 1
    while at < stop:
        c = data[at]
        if c == escape and at + 1 < stop:
            at += 1
            c = data[at]
        elif inside and c == quote:
            if at + 1 < stop and data[at + 1] == quote:
                at += 1
            else:
                inside = False
                at += 1
                continue
        data[to] = c
        to += 1
        at += 1
    return to


@part
def line_stop(data, first, at):
    """End of a record's last field: a carriage return before the newline is part of that."""
    return at - 1 if at > first and data[at - 1] == RETURN else at


@part
def put_span(slot, row, first_of, stop_of, closed, sort, first, stop, kind):
    """Note a field; True if it must be rewritten. `closed` is the place after a closing quote, else the first."""
    if sort == PLAIN and first_of == stop_of:
        sort = NOTHING
    elif sort == QUOTED and closed == stop_of:
        first_of, stop_of = first_of + 1, closed - 1
    elif sort == QUOTED:
        sort = QUOTED + REWRITE
    first[slot, row], stop[slot, row], kind[slot, row] = first_of, stop_of, sort
    return sort >= REWRITE


@kernel(
    I64, rw(U8), I64, I64, I64, I64, I64, I64, I64, I64, I64, ro(U8), ro(I64), rw(I64),
    rw(I64), rw(U8), rw(I32, 2), rw(I32, 2), rw(U8, 2),
    allocates=True,
)  # fmt: skip
def find_fields(
    data, begin, end, final, limit, check, fields, delimiter, quote, escape, comment, slots, state,
    starts, reason, first, stop, kind,
):  # fmt: skip
    """Spans of the fields of the next records, at most as many as `starts` holds; returns how many records.

    Field i goes to row `slots[i]` of `first`, `stop` and `kind` if that is not negative. With `fields` 0 any number
    of fields will do. `check` asks for UTF-8. One long loop, since all its parts move the same places and marks.
    """
    table, marks = np.zeros(256, np.uint8), np.empty(WINDOW + 1, np.int32)
    for byte in (delimiter, NEWLINE, quote, escape):
        if byte >= 0:
            table[byte] = 1
    mark, count, marked = 0, 0, begin  # the next mark, how many there are, how far they were looked for
    at, rows = begin, 0
    state[AT] = begin
    while rows < starts.shape[0]:
        at = next_record(data, at, end, final, limit, 0, comment, state)
        if at == INCOMPLETE:
            return rows
        record, bound = at, min(end, at + limit + 1)
        field, first_of, closed, ended = 0, at, at, False
        inside, sort, rewrites = False, PLAIN, False  # inside quotes
        if data[at] == quote:
            inside, sort, at = True, QUOTED, at + 1
        while True:
            if mark == count:
                marked = max(marked, at)
                if marked >= bound:
                    break
                count = find_marks(data, marked, min(marked + WINDOW, end), table, marks)
                mark, marked = 0, min(marked + WINDOW, end)
                continue
            place = int64(marks[uint64(mark)])
            if place >= bound:
                break
            mark += 1
            if place < at:
                continue
            c = data[uint64(place)]
            if inside:
                if c == quote and place + 1 < bound and data[uint64(place + 1)] == quote:
                    sort, at = QUOTED + REWRITE, place + 2
                elif c == quote:
                    inside, closed = False, place + 1
                elif c == escape:
                    sort, at = QUOTED + REWRITE, place + 2
                continue
            if c == delimiter or c == NEWLINE:
                if field < slots.shape[0] and slots[uint64(field)] >= 0:
                    slot = uint64(slots[uint64(field)])
                    stop_of = line_stop(data, closed, place) if c == NEWLINE else place
                    rewrites |= put_span(slot, rows, first_of, stop_of, closed, sort, first, stop, kind)
                field += 1
                at = first_of = closed = place + 1
                sort = PLAIN
                if c == NEWLINE:
                    ended = True
                    break
                if at < bound and data[uint64(at)] == quote:
                    inside, sort, at = True, QUOTED, at + 1
            elif c == escape:
                sort, at = sort | REWRITE, place + 2
        starts[rows], reason[rows] = record, 0
        if not ended:
            if bound - record > limit:
                at = end_long_record(data, record, end, limit, state)
                reason[rows] = LONG
                rows += 1
                continue
            if not final:
                state[AT] = record
                return rows
            at = end
            if field < slots.shape[0] and slots[field] >= 0:
                stop_of = line_stop(data, closed, end)
                rewrites |= put_span(slots[field], rows, first_of, stop_of, closed, sort, first, stop, kind)
            field += 1
        if check and not valid_utf8(data, record, at):
            reason[rows] = UTF8
        elif inside:
            reason[rows] = QUOTE
        elif fields and field != fields:
            reason[rows] = FIELDS
        elif rewrites:
            for slot in range(first.shape[0]):
                if kind[slot, rows] >= REWRITE:
                    stop[slot, rows] = rewrite(data, first[slot, rows], stop[slot, rows], quote, escape)
                    kind[slot, rows] -= REWRITE
        rows += 1
    state[AT] = at
    return rows


@kernel(I64, ro(U8), rw(I32), rw(I32), rw(U8), ro(U8), ro(I64), I64)
def drop_nulls(data, first, stop, kind, nulls, edges, quoted):
    """Make NOTHING of unquoted fields that are one of the texts `nulls`, and with `quoted` of "" in quotes."""
    lengths = 0  # bit n: there is a text of n bytes (of n and more for the last bit)
    for text in range(edges.shape[0] - 1):
        lengths |= 1 << min(edges[text + 1] - edges[text], 62)
    for row in range(first.shape[0]):
        size = int64(stop[row]) - int64(first[row])
        if kind[row] == QUOTED and quoted and size == 0:
            kind[row] = NOTHING
        if kind[row] != PLAIN or not (lengths >> min(size, 62)) & 1:
            continue
        for text in range(edges.shape[0] - 1):
            if edges[text + 1] - edges[text] != size:
                continue
            same = True
            for i in range(size):
                if data[first[row] + i] != nulls[edges[text] + i]:
                    same = False
                    break
            if same:
                kind[row] = NOTHING
    return 0
