"""Windows: brackets, EVERY and `time/n` to one `logical.window.Window`; all that are given must agree.

| written | range | slide |
| --- | --- | --- |
| `[RANGE r SLIDE s]` | r | s, or EVERY, or r |
| `[WINDOW UNTIL NOW]` | from the first record on | EVERY or `time/n` |
| `[ROWS n SLIDE m]` | n records | m records, or n |
| `EVERY s` or `time/n` alone | s | s |
| nothing, of what has an end: a file in FROM | all records | |
"""

from __future__ import annotations

from penstock.lang.ast import Duration, Select, WindowClause, Word
from penstock.lang.durations import LONGEST, format_duration
from penstock.lang.text import AppText, Span
from penstock.logical import window as logical
from penstock.logical.resolve.scopes import Input
from penstock.logical.types import Kind
from penstock.logical.values import constants

MINUTE = 60_000_000
_HINT = "add a window like [RANGE '5 minutes'] after the stream, EVERY 5 MINUTES, or GROUP BY time/5"


def resolve_window(
    text: AppText,
    select: Select,
    window: WindowClause | None,
    bucket: Duration | None,
    source: Span,
    read: Input,
) -> logical.Window:
    """`source` is where the input `read` is named."""
    if read.bounded:
        if window is None and select.every is None and bucket is None:
            return logical.ALL_RECORDS
        check_time(text, (window or select.every or bucket or source), read)
    if window is not None and window.rows is not None:
        return _rows(text, select, window, window.rows, bucket, read.results)
    size = window.size if window else None
    slide = _slide(text, select.every, window.slide if window else None)
    given = [duration for duration in (size, slide, bucket) if duration is not None]
    if window is not None and window.kind == "landmark":
        return _landmark(text, window, slide, bucket)
    if not given:
        raise text.error(source, "the query has no window", _HINT)
    for duration in given:
        check_duration(text, duration)
    length, step = (size or given[0]).microseconds, (slide or given[0]).microseconds
    if bucket is not None and not bucket.microseconds == length == step:
        _disagree(text, bucket, length if bucket.microseconds != length else step)
    return logical.Window(length, step)


def check_time(text: AppText, clause: WindowClause | Duration | Span, read: Input) -> None:
    """A window needs a time."""
    if read.stream.time:
        return
    span = clause if isinstance(clause, Span) else clause.span
    if read.results:
        fact = f"the results of {read.what} have no time: it has no window"
        raise text.error(span, fact, "leave the window out here, or give it one there")
    times = [field.name for field in read.stream.fields if field.type.kind is Kind.TIMESTAMP]
    found = f"{len(times)} TIMESTAMP columns: {', '.join(times)}" if times else "no TIMESTAMP column"
    fact = f"{read.what} has {found}"
    hint = "leave the window out, or declare the file as a stream with a time: CREATE STREAM ... WATERMARK"
    raise text.error(span, fact, hint)


def _landmark(text: AppText, window: WindowClause, slide: Duration | None, bucket: Duration | None) -> logical.Window:
    step = slide or bucket
    if step is None:
        hint = "say how often it gives results: EVERY 1 MINUTE, or GROUP BY time/1"
        raise text.error(window.span, "a window until now needs EVERY", hint)
    check_duration(text, step)
    if bucket is not None and bucket.microseconds != step.microseconds:
        _disagree(text, bucket, step.microseconds)
    return logical.Window(None, step.microseconds)


def _rows(
    text: AppText, select: Select, window: WindowClause, rows: Word, bucket: Duration | None, results: bool
) -> logical.Window:
    if results:
        hint = "use a window of time, like [RANGE '5 minutes']"
        raise text.error(window.span, "the results of a query have no order of rows", hint)
    if select.every is not None:
        hint = f"say it in rows: [ROWS {rows.text} SLIDE {rows.text}]"
        raise text.error(select.every.span, "EVERY cannot be used with a window of rows", hint)
    if bucket is not None:
        raise text.error(bucket.span, "a time bucket cannot be used with a window of rows", "leave one of them out")
    size = row_count(text, rows)
    return logical.Window(size, row_count(text, window.row_slide) if window.row_slide else size, logical.ROWS)


def row_count(text: AppText, word: Word) -> int:
    count = constants.whole(word.text)
    if count is None or not 0 < count <= LONGEST:
        raise text.error(word.span, f"impossible window: {word.text} rows", "it must be a whole number above zero")
    return count


def _slide(text: AppText, every: Duration | None, slide: Duration | None) -> Duration | None:
    if every and slide and every.microseconds != slide.microseconds:
        raise text.error(every.span, "EVERY and SLIDE disagree", "one of them is enough")
    return slide or every


def check_duration(text: AppText, duration: Duration) -> None:
    if duration.microseconds <= 0:
        told = format_duration(duration.microseconds)
        raise text.error(duration.span, f"impossible window: a length of {told}", "it must be longer than zero")
    if duration.microseconds > LONGEST:
        raise text.error(duration.span, "impossible window: longer than 292,000 years")


def _disagree(text: AppText, bucket: Duration, other: int) -> None:
    told = f"{format_duration(bucket.microseconds)} and {format_duration(other)}"
    hint = "leave one of them out, or make them equal"
    raise text.error(bucket.span, f"time bucket and window disagree: {told}", hint)
