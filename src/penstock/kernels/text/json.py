"""Finds wanted values in lines of JSON, in one walk that also checks that each line is JSON (RFC 8259).

A column is a path `a.b.c`. Keys joined by dots match it, so that `{"a": {"b": 1}}` and `{"a.b": 1}` both have `a.b`
(logs are written either way). If a path occurs twice, the last one counts. Strings with escapes are rewritten in place
as UTF-8, which never lengthens them. `kernels.text.index` says what a line is, and where the walk stops.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint8, uint64

from penstock.kernels.jit import I32, I64, U8, kernel, part, ro, rw
from penstock.kernels.text.index import (
    AT,
    INCOMPLETE,
    JSON,
    LONG,
    NESTED,
    NEWLINE,
    NOTHING,
    OBJECT,
    PLAIN,
    QUOTED,
    RETURN,
    SPACE,
    TAB,
    UTF8,
    WORD,
    WRONG,
    end_long_record,
    newline_from,
    next_record,
    valid_utf8,
)

DEEPEST = 512  # levels of objects and arrays in one line
QUOTATION, BACKSLASH, COMMA, COLON, DOT, MINUS, PLUS, ZERO, NINE = 34, 92, 44, 58, 46, 45, 43, 48, 57
OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY = 123, 125, 91, 93
FAR = 1 << 40
VALUE, FIRST_VALUE, KEY, FIRST_KEY, AFTER = 0, 1, 2, 3, 4


@part
def past_spaces(data, at, end):
    while at < end and (data[at] == SPACE or data[at] == TAB or data[at] == RETURN or data[at] == NEWLINE):
        at += 1
    return at


@part
def hexadecimal(data, at, end):
    """Four hexadecimal digits as a number, or −1."""
    if at + 4 > end:
        return int64(-1)
    value = int64(0)
    for i in range(4):
        c = int64(data[at + i])
        if ZERO <= c <= NINE:
            value = value * 16 + c - ZERO
        elif 97 <= (c | 32) <= 102:
            value = value * 16 + (c | 32) - 87
        else:
            return int64(-1)
    return value


@part
def string_stop(data, at, end):
    """(closing quote of the string whose first letter is at `at`, or −1 if it is none, whether it has escapes)."""
    escaped = False
    while at < end:
        c = data[uint64(at)]
        if c == QUOTATION:
            return at, escaped
        if c < SPACE:
            break
        if c == BACKSLASH:
            escaped = True
            at += 1
            if at >= end:
                break
            c = data[at]
            if c == 117:  # u
                if hexadecimal(data, at + 1, end) < 0:
                    break
                at += 4
            elif not (c == QUOTATION or c == BACKSLASH or c == 47 or c == 98 or c == 102
                      or c == 110 or c == 114 or c == 116):  # fmt: skip
                break
        at += 1
    return -1, escaped


@part
def put_utf8(data, to, code):
    """Write one code point; returns the place after it."""
    if code < 0x80:
        data[to] = uint8(code)
        return to + 1
    if code < 0x800:
        data[to] = uint8(0xC0 | (code >> 6))
        data[to + 1] = uint8(0x80 | (code & 63))
        return to + 2
    if code < 0x10000:
        data[to] = uint8(0xE0 | (code >> 12))
        data[to + 1] = uint8(0x80 | ((code >> 6) & 63))
        data[to + 2] = uint8(0x80 | (code & 63))
        return to + 3
    data[to] = uint8(0xF0 | (code >> 18))
    data[to + 1] = uint8(0x80 | ((code >> 12) & 63))
    data[to + 2] = uint8(0x80 | ((code >> 6) & 63))
    data[to + 3] = uint8(0x80 | (code & 63))
    return to + 4


@part
def unescape(data, first, stop):
    """Rewrite a string that `string_stop` accepted; where it stops then, or −1 for half a surrogate pair."""
    at, to = first, first
    while at < stop:
        c = int64(data[at])
        at += 1
        if c != BACKSLASH:
            data[to] = uint8(c)
            to += 1
            continue
        c = int64(data[at])
        at += 1
        if c == 117:
            code = hexadecimal(data, at, stop)
            at += 4
            if 0xD800 <= code < 0xE000:
                low = int64(-1)
                if code < 0xDC00 and at + 6 <= stop and data[at] == BACKSLASH and data[at + 1] == 117:
                    low = hexadecimal(data, at + 2, stop)
                if not 0xDC00 <= low < 0xE000:
                    return int64(-1)
                at += 6
                code = 0x10000 + ((code - 0xD800) << int64(10)) + (low - 0xDC00)
            to = put_utf8(data, to, code)
            continue
        if c == 98:
            c = int64(8)
        elif c == 102:
            c = int64(12)
        elif c == 110:
            c = int64(10)
        elif c == 114:
            c = int64(13)
        elif c == 116:
            c = int64(9)
        data[to] = uint8(c)
        to += 1
    return int64(to)


@part
def past_digits(data, at, end):
    while at < end and ZERO <= data[at] <= NINE:
        at += 1
    return at


@part
def number_stop(data, at, end):
    """Place after a number, or −1."""
    if data[at] == MINUS:
        at += 1
    stop = past_digits(data, at, end)
    if stop == at or (data[at] == ZERO and stop > at + 1):
        return -1
    at = stop
    if at < end and data[at] == DOT:
        stop = past_digits(data, at + 1, end)
        if stop == at + 1:
            return -1
        at = stop
    if at < end and (data[at] | 32) == 101:
        at += 1
        if at < end and (data[at] == PLUS or data[at] == MINUS):
            at += 1
        stop = past_digits(data, at, end)
        if stop == at:
            return -1
        at = stop
    return at


@part
def word_stop(data, at, end):
    """Place after true, false or null, or −1."""
    if end - at >= 4 and data[at] == 116 and data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101:
        return at + 4
    if end - at >= 4 and data[at] == 110 and data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108:
        return at + 4
    if (end - at >= 5 and data[at] == 102 and data[at + 1] == 97 and data[at + 2] == 108
            and data[at + 3] == 115 and data[at + 4] == 101):  # fmt: skip
        return at + 5
    return -1


@part
def match_key(data, first, stop, paths, edges, level, matched, hits):
    """Compare a key with what is left of the paths: `hits` are those it ends, `matched` of the next level the rest."""
    found = False
    size = stop - first
    for number in range(edges.shape[0] - 1):
        column = uint64(number)
        hits[column] = 0
        if level + 1 < matched.shape[0]:
            matched[level + 1, column] = -1
        begin = matched[uint64(level), column]
        left = edges[column + uint64(1)] - begin
        if size > left or begin < 0 or (size < left and paths[uint64(begin + size)] != DOT):
            continue
        same = True
        for i in range(size):
            if data[uint64(first + i)] != paths[uint64(begin + i)]:
                same = False
                break
        if same and size == left:
            hits[column] = 1
            found = True
        elif same and level + 1 < matched.shape[0]:
            matched[level + 1, column] = begin + size + 1
    return found


@part
def assign(row, begin, end, sort, hits, first, stop, kind):
    for column in range(first.shape[0]):
        if hits[column]:
            first[column, row], stop[column, row], kind[column, row] = begin, end, sort


@part
def walk_line(data, at, end, row, paths, edges, matched, hits, nest, first, stop, kind):
    """Spans of one line; returns why it is unreadable, or 0."""
    depth, expect, hit = 0, VALUE, False
    nest[0] = 0
    at = past_spaces(data, at, end)
    answer = 0 if at < end and data[at] == OPEN_OBJECT else OBJECT
    while True:
        at = past_spaces(data, at, end)
        if at >= end:
            return answer if depth == 0 and expect == AFTER else JSON
        c = data[at]
        if expect == AFTER:
            if depth == 0:
                return JSON
            if c == COMMA:
                expect = KEY if nest[depth] == OPEN_OBJECT else VALUE
                at += 1
                continue
            if (c == CLOSE_OBJECT) != (nest[depth] == OPEN_OBJECT) or not (c == CLOSE_OBJECT or c == CLOSE_ARRAY):
                return JSON
            depth -= 1
            at += 1
            continue
        if c == QUOTATION:
            halt, escaped = string_stop(data, at + 1, end)
            if halt < 0:
                return JSON
            begin, after = at + 1, halt + 1
            wanted = hit if expect < KEY else depth <= matched.shape[0]
            if escaped and wanted:
                halt = unescape(data, begin, halt)
            at = after
            if expect >= KEY:
                hit = False
                if wanted:
                    # A key with half a surrogate pair is given a length that no path has.
                    known = halt if halt >= 0 else begin + FAR
                    hit = match_key(data, begin, known, paths, edges, depth - 1, matched, hits)
                at = past_spaces(data, at, end)
                if at >= end or data[at] != COLON:
                    return JSON
                at += 1
                expect = VALUE
                continue
            if hit:
                assign(row, begin, halt, QUOTED if halt >= 0 else WRONG, hits, first, stop, kind)
        elif (c == CLOSE_OBJECT and expect == FIRST_KEY) or (c == CLOSE_ARRAY and expect == FIRST_VALUE):
            depth -= 1
            at += 1
            expect = AFTER
            continue
        elif expect >= KEY:
            return JSON
        elif c == OPEN_OBJECT or c == OPEN_ARRAY:
            if depth + 1 >= DEEPEST:
                return JSON
            if hit:
                assign(row, at, at + 1, NESTED, hits, first, stop, kind)
            if depth < matched.shape[0] and (c == OPEN_ARRAY or nest[depth] == OPEN_ARRAY):
                for column in range(hits.shape[0]):  # no path leads into arrays
                    matched[depth, column] = -1
            depth += 1
            nest[depth] = c
            expect = FIRST_KEY if c == OPEN_OBJECT else FIRST_VALUE
            hit = False
            at += 1
            continue
        else:
            digits = c == MINUS or ZERO <= c <= NINE
            halt = number_stop(data, at, end) if digits else word_stop(data, at, end)
            if halt < 0:
                return JSON
            if hit:
                sort = PLAIN if digits else (NOTHING if c == 110 else WORD)
                assign(row, at, halt, sort, hits, first, stop, kind)
            at = halt
        hit = False
        expect = AFTER


@kernel(
    I64, rw(U8), I64, I64, I64, I64, I64, ro(U8), ro(I64), I64, rw(I64), rw(I64), rw(U8),
    rw(I32, 2), rw(I32, 2), rw(U8, 2),
    allocates=True,
)  # fmt: skip
def find_values(data, begin, end, final, limit, check, paths, edges, levels, state, starts, reason, first, stop, kind):
    """Spans of the next lines' values, at most as many as `starts` holds; returns how many lines.

    Column i has the path `paths[edges[i]:edges[i + 1]]`; `levels` is the greatest number of keys in one. Kinds must be
    NOTHING on entry.
    """
    matched, hits = np.empty((levels, edges.shape[0] - 1), np.int64), np.zeros(edges.shape[0] - 1, np.uint8)
    nest, comment = np.zeros(DEEPEST + 1, np.uint8), np.empty(0, np.uint8)
    at, rows = begin, 0
    state[AT] = begin
    while rows < starts.shape[0]:
        at = next_record(data, at, end, final, limit, 1, comment, state)
        if at == INCOMPLETE:
            return rows
        halt = newline_from(data, at, min(end, at + limit + 1))
        starts[rows] = at
        if halt - at > limit:
            at = end_long_record(data, at, end, limit, state)
            reason[rows] = LONG
        elif halt == end and not final:
            state[AT] = at
            return rows
        else:
            reason[rows] = UTF8
            if not check or valid_utf8(data, at, halt):
                for column in range(hits.shape[0]):
                    matched[0, column] = edges[column]
                reason[rows] = walk_line(data, at, halt, rows, paths, edges, matched, hits, nest, first, stop, kind)
            at = min(halt + 1, end)
        rows += 1
    state[AT] = at
    return rows
