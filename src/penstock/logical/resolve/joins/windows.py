"""The windows of a join: one slide for all streams, and instants at which all of them end.

At an instant t a stream with range r holds [t − r, t). Ranges must be equal modulo the slide, or there would be no
instant at which all windows end; a window until now has any. The query's own window numbers the instants: its k-th ends
where the longest range does.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import QueryError
from penstock.lang.ast import Duration, Select, WindowClause
from penstock.lang.durations import format_duration
from penstock.lang.text import AppText
from penstock.logical.resolve.joins.columns import JoinInput
from penstock.logical.resolve.windows import check_duration, check_time, resolve_window, row_count
from penstock.logical.window import ALL_RECORDS, LAST, Window

_NONE = "add a window like [RANGE '5 minutes'] after it, or EVERY 5 MINUTES"
_EVERY = "say how often the join gives results: EVERY 1 MINUTE"


def side_windows(
    text: AppText, select: Select, streams: tuple[JoinInput, ...], bucket: Duration | None
) -> tuple[Window, ...]:
    """The window of each stream. One stream alone, beside tables, has any that it may have without them."""
    if len(streams) == 1 and not (select.every is not None and _of_rows(streams[0])):
        (one,) = streams
        return (resolve_window(text, select, one.window, bucket, one.span, one.input),)
    if bucket is not None:
        hint = "give the streams windows, like [RANGE '5 minutes']: results have window_start and window_end"
        raise text.error(bucket.span, "a time bucket in a join is not executable", hint)
    if select.every is None and all(one.input.bounded and one.window is None for one in streams):
        return (ALL_RECORDS,) * len(streams)
    for one in streams:
        if one.input.bounded:
            check_time(text, one.window or one.span, one.input)
    slide = _slide(text, select, streams)
    windows = tuple(_window(text, one, slide) for one in streams)
    _check_ends(text, streams, windows)
    cut = next((window.length % slide for window in windows if not window.counted and not window.landmark), 0)
    return tuple(replace(window, cut=cut) if window.counted else window for window in windows)


def joined_window(windows: tuple[Window, ...]) -> Window:
    """The window that numbers the instants, of those of FROM."""
    timed = [window for window in windows if not window.counted]
    if not timed:
        return Window(windows[0].length, windows[0].slide)
    ranges = [window.range for window in timed if window.range is not None]
    return Window(max(ranges) if ranges else None, timed[0].slide, timed[0].axis)


def _slide(text: AppText, select: Select, streams: tuple[JoinInput, ...]) -> int:
    """EVERY, or the slide on which all windows agree; a bare range is its own."""
    every, found = select.every, None
    if every is not None:
        check_duration(text, every)
    for one in streams:
        window = one.window
        if window is None and every is None:
            raise text.error(one.span, f"{one.input.what} has no window", _NONE)
        if window is None or window.kind == "landmark":
            continue
        if window.rows is not None:
            _check_rows(text, select, one, window)
            continue
        mine = window.slide or every or window.size
        assert mine is not None
        check_duration(text, mine)
        before = every or found
        if before is not None and mine.microseconds != before.microseconds:
            told = f"{format_duration(before.microseconds)} and {format_duration(mine.microseconds)}"
            hint = "give all windows the same SLIDE, or leave it out and say EVERY"
            raise text.error(mine.span, f"the windows of a join slide together, but here by {told}", hint)
        found = mine
    chosen = every or found
    if chosen is None:
        first = streams[0]
        raise text.error(first.window.span if first.window else first.span, "windows until now need a slide", _EVERY)
    return chosen.microseconds


def _of_rows(one: JoinInput) -> bool:
    return one.window is not None and one.window.rows is not None


def needs_every(text: AppText, one: JoinInput) -> QueryError:
    """Of a window of rows in a join: instants are times."""
    assert one.window is not None
    return text.error(one.window.span, "a window of rows in a join needs EVERY", _EVERY)


def _check_rows(text: AppText, select: Select, one: JoinInput, window: WindowClause) -> None:
    if one.input.results:
        hint = "use a window of time, like [RANGE '5 minutes']"
        raise text.error(window.span, "the results of a query have no order of rows", hint)
    if window.row_slide is not None:
        raise text.error(window.row_slide.span, "a window of rows in a join has no slide of its own", _EVERY)
    if select.every is None:
        raise needs_every(text, one)


def _window(text: AppText, one: JoinInput, slide: int) -> Window:
    window = one.window
    if window is None:
        return Window(slide, slide)
    if window.kind == "landmark":
        return Window(None, slide)
    if window.rows is not None:
        return Window(row_count(text, window.rows), slide, LAST)
    assert window.size is not None
    check_duration(text, window.size)
    return Window(window.size.microseconds, slide)


def _check_ends(text: AppText, streams: tuple[JoinInput, ...], windows: tuple[Window, ...]) -> None:
    """At some instants all windows must end."""
    timed = [(one, window) for one, window in zip(streams, windows, strict=True) if not window.counted]
    rests = [(window.range or 0) % window.slide for _, window in timed]
    for (one, _), rest in zip(timed, rests, strict=True):
        if rest != rests[0]:
            span = one.span if one.window is None else one.window.span
            first, window = timed[0]
            fact = f"the windows of '{first.alias}' and '{one.alias}' never end together"
            hint = "make their ranges equal, or their difference a multiple of the slide"
            if window.landmark or not (one.window is None or one.window.size):
                hint = "beside a window until now, make the range a multiple of the slide"
            raise text.error(span, fact, hint)
