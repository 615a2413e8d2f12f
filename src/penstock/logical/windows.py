"""Windows: the four spellings of a tumbling window to one size, and a refusal for the others."""

from __future__ import annotations

from penstock.lang.ast import Duration, Select, Window
from penstock.lang.durations import LONGEST, format_duration
from penstock.lang.text import AppText, Span
from penstock.logical.query import Tumbling

MINUTE = 60_000_000
_HINT = "add a window like [RANGE '5 minutes'] after the stream, EVERY 5 MINUTES, or GROUP BY time/5"


def resolve_window(
    text: AppText, select: Select, window: Window | None, bucket: Duration | None, stream: Span
) -> Tumbling:
    """One size from the bracket, EVERY and `time/n`; all that are given must agree."""
    if window is not None and window.kind != "range":
        kind = "landmark windows are" if window.kind == "landmark" else "windows of rows are"
        raise text.error(window.span, f"{kind} not executable yet")
    size = window.size if window else None
    slide = _slide(text, select.every, window.slide if window else None)
    given = [d for d in (size, slide, bucket) if d is not None]
    if not given:
        raise text.error(stream, "the query has no window", _HINT)
    for duration in given:
        _check(text, duration)
    if size and slide and size.microseconds != slide.microseconds:
        _refuse_sliding(text, size, slide)
    first = given[0]
    if bucket and bucket.microseconds != first.microseconds:
        told = f"{format_duration(bucket.microseconds)} and {format_duration(first.microseconds)}"
        raise text.error(bucket.span, f"time bucket and window disagree: {told}")
    return Tumbling(first.microseconds)


def _slide(text: AppText, every: Duration | None, slide: Duration | None) -> Duration | None:
    if every and slide and every.microseconds != slide.microseconds:
        raise text.error(every.span, "EVERY and SLIDE disagree", "one of them is enough")
    return slide or every


def _check(text: AppText, duration: Duration) -> None:
    if duration.microseconds <= 0:
        told = format_duration(duration.microseconds)
        raise text.error(duration.span, f"impossible window: a length of {told}", "it must be longer than zero")
    if duration.microseconds > LONGEST:
        raise text.error(duration.span, "impossible window: longer than 292,000 years")


def _refuse_sliding(text: AppText, size: Duration, slide: Duration) -> None:
    told = f"a range of {format_duration(size.microseconds)} and a slide of {format_duration(slide.microseconds)}"
    hint = f"it has {told}; only equal ones, tumbling windows, run now"
    raise text.error(slide.span, "a sliding window is not executable yet", hint)
