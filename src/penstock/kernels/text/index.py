"""Finds the records of a text that are lines, and holds what the kernels share that look into records.

    index         lines of JSON, and of CSV as long as no quote is met: the quick way to count and skip
    csv           records of CSV and the spans of their fields
    json          the spans of values in lines of JSON
    parse, times  spans to numbers, times and text

All of them walk a buffer `data[begin:end]`, a piece of a file, and stop before a record that is not wholly there;
`final` says that the file ends at `end`. Where they stopped is `state[AT]`. A record ends at a newline; blank lines,
and lines that start with `comment`, are not records. A record of more than `limit` bytes ends at the first newline
after them, whatever quotes say: a quote that is never closed must not swallow the file. `state[SKIP]` is set while
such a record, or a comment, is passed over.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.jit import I64, U8, kernel, part, ro, rw

Array = np.ndarray
AT, SKIP = 0, 1
NEWLINE, RETURN, TAB, SPACE = 10, 13, 9, 32
INCOMPLETE = -1
# Kinds of spans. CSV has PLAIN and QUOTED, JSON all: numbers are PLAIN, strings QUOTED, true and false WORDs.
NOTHING, PLAIN, QUOTED, WORD, NESTED, WRONG = 0, 1, 2, 3, 4, 5
# Why a record is unreadable: places in `sources.base.REASONS`.
FIELDS, QUOTE, JSON, OBJECT, UTF8, LONG = 1, 2, 3, 4, 5, 6


@part
def newline_from(data, at, end):
    """Place of the next newline, or `end`."""
    while at < end and data[at] != NEWLINE:
        at += 1
    return at


@part
def starts_with(data, at, end, text):
    if text.shape[0] == 0 or end - at < text.shape[0]:
        return False
    for i in range(text.shape[0]):
        if data[at + i] != text[i]:
            return False
    return True


@part
def blank_until(data, at, end, limit, spaces):
    """The first byte from `at` that belongs to a record: after empty lines, and with `spaces` those of white space.

    A carriage return at the end of what is there may be half a newline: it is left, as is white space in a line
    whose end is not there. More white space than `limit` is a record, too long like any other.
    """
    begin = at
    while at < end:
        c = data[at]
        if c == NEWLINE:
            begin = at + 1
        elif at - begin > limit:
            return begin, True
        elif not (c == RETURN or (spaces and (c == SPACE or c == TAB))):
            return begin, True
        elif not spaces and at + 1 < end and data[at + 1] != NEWLINE:
            return begin, True
        at += 1
    return begin, False


@part
def valid_utf8(data, at, end):
    """Whether the bytes are UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, at most U+10FFFF."""
    while at < end:
        c = data[at]
        at += 1
        if c < 0x80:
            continue
        if 0xC2 <= c < 0xE0:
            more = 1
        elif 0xE0 <= c < 0xF0:
            more = 2
        elif 0xF0 <= c < 0xF5:
            more = 3
        else:
            return False
        if at + more > end:
            return False
        second = data[at]
        if (c == 0xE0 and second < 0xA0) or (c == 0xED and second >= 0xA0):
            return False
        if (c == 0xF0 and second < 0x90) or (c == 0xF4 and second >= 0x90):
            return False
        for i in range(more):
            if data[at + i] & 0xC0 != 0x80:
                return False
        at += more
    return True


@part
def next_record(data, at, end, final, limit, spaces, comment, state):
    """Where the next record begins, or INCOMPLETE with `state` set: nothing more to find in what is there."""
    if state[SKIP]:
        at = newline_from(data, at, end)
        if at == end:
            state[AT] = end
            return INCOMPLETE
        state[SKIP] = 0
        at += 1
    while True:
        at, found = blank_until(data, at, end, limit, spaces)
        if not found:
            state[AT] = end if final else at
            return INCOMPLETE
        if comment.shape[0] == 0:
            return at
        if end - at < comment.shape[0] and not final:
            state[AT] = at
            return INCOMPLETE
        if not starts_with(data, at, end, comment):
            return at
        at = newline_from(data, at, end)
        if at == end:
            state[AT], state[SKIP] = end, 1
            return INCOMPLETE
        at += 1


@part
def end_long_record(data, begin, end, limit, state):
    """Where to go on after a record that is longer than `limit`."""
    at = newline_from(data, begin + limit, end)
    if at == end:
        state[SKIP] = 1
        return end
    return at + 1


@kernel(I64, ro(U8), I64, I64, I64, I64, I64, ro(U8), rw(I64), rw(I64))
def find_lines(data, begin, end, final, limit, spaces, comment, state, starts):
    """Places where records that are lines begin, at most as many as `starts` holds; returns how many."""
    at, rows = begin, 0
    state[AT] = begin
    while rows < starts.shape[0]:
        at = next_record(data, at, end, final, limit, spaces, comment, state)
        if at == INCOMPLETE:
            return rows
        stop = newline_from(data, at, min(end, at + limit + 1))
        starts[rows] = at
        if stop - at > limit:
            at = end_long_record(data, at, end, limit, state)
        elif stop == end:
            state[AT] = end if final else at
            return rows + final
        else:
            at = stop + 1
        rows += 1
    state[AT] = at
    return rows
