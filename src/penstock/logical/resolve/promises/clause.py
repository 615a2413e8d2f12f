"""Which queries may promise a delay: those whose windows end by the clock of one stream, which they read themselves."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, isfinite

from penstock.lang.ast import Duration, Word
from penstock.lang.durations import LONGEST, format_duration
from penstock.lang.text import AppText
from penstock.logical.query import Query, Stream
from penstock.logical.resolve.joins.subqueries import Inner
from penstock.logical.resolve.select import FromItem

_FRAMES = ("frame:", "spark:")
REPLAY = "replay:"  # what arrives by the clock
_ONE_STREAM = "a query on one stream, alone or with tables, can promise a delay"


def check_readable(query: Query, name: Word, text: AppText) -> None:
    """Estimates are for people: a query on them would not know how good they are."""
    if query.promise is not None:
        fact = f"the results of '{query.name}' may be estimates, by its LIMIT DELAY TO: no query can read them"
        raise text.error(
            name.span, fact, "read the stream itself, or leave LIMIT DELAY TO out of the query that is read"
        )


def check_promise(
    text: AppText, delay: Duration, sources: Sequence[FromItem], asked: Sequence[Inner], hidden: bool
) -> None:
    """All that FROM and the clause itself tell."""
    if hidden:
        hint = "another query reads its results, which would be estimates: promise a delay where a stream is read"
        raise text.error(delay.span, "LIMIT DELAY TO inside another query is not executable", hint)
    if not 0 < delay.microseconds <= LONGEST:
        long = delay.microseconds > 0
        told = "longer than 292,000 years" if long else f"a delay of {format_duration(delay.microseconds)}"
        raise text.error(delay.span, f"impossible LIMIT DELAY: {told}", "" if long else "it must be longer than zero")
    results = next((one.input for one in sources if one.input.results), None)
    if results is not None:
        fact = f"LIMIT DELAY TO is for queries on streams, and {results.what} is none"
        raise text.error(delay.span, fact, "leave it out: results are there as soon as those that they are made of")
    streams = [one for one in sources if one.input.table is None]
    if len(streams) > 1:
        raise text.error(streams[1].span, "LIMIT DELAY TO in a join of streams is not executable yet", _ONE_STREAM)
    for one in asked:
        if one.input.input.table is None:
            fact = f"LIMIT DELAY TO beside {one.asked.word} of a stream is not executable yet"
            raise text.error(one.input.span, fact, _ONE_STREAM)
    if streams:
        _check_window(text, streams[0])
        _check_stream(text, delay, streams[0].input.stream)


def _check_window(text: AppText, source: FromItem) -> None:
    if source.window is not None and source.window.rows is not None:
        hint = "its end is no time: use a window like [RANGE '5 minutes']"
        raise text.error(source.window.span, "LIMIT DELAY TO does not go with a window of rows", hint)


def _check_stream(text: AppText, delay: Duration, stream: Stream) -> None:
    if stream.source.startswith(_FRAMES):
        hint = "name the source itself, like 'parquet:folder'; a DataFrame's records come as Spark hands them over"
        raise text.error(delay.span, f"LIMIT DELAY TO on the DataFrame '{stream.name}' is not executable", hint)
    speed = _speed(stream)
    if stream.delay is None:
        if speed is not None:
            fact = f"the stream '{stream.name}' is live and has no WATERMARK: its windows would not end"
            hint = f"say how late its records may be, like WATERMARK {stream.time or 'ts'} DELAY '1 second'"
            raise text.error(delay.span, fact, hint)
        return
    waits = Fraction(stream.delay) / (speed or 1)
    if delay.microseconds < waits:
        unit = 1 if waits.denominator == 1 or waits < 1_000 else 1_000  # thirds of seconds read badly
        least = format_duration(ceil(waits / unit) * unit)
        replayed = "" if speed in (None, 1) else f", at its speed {least}"
        told = f"windows of '{stream.name}' stay open {format_duration(stream.delay)} after their end{replayed}"
        fact = f"a delay of {format_duration(delay.microseconds)} is too short: {told} (WATERMARK)"
        raise text.error(delay.span, fact, f"promise {least} at least, or shorten DELAY of its WATERMARK")


def arrives(stream: Stream) -> bool:
    """Whether the records of a stream come by the clock."""
    return _speed(stream) is not None


def _speed(stream: Stream) -> Fraction | None:
    """How fast a live stream's own time goes; None: it is not live. What is no speed, its source will refuse."""
    given = next((text for key, text in stream.options if key.lower() == "speed"), "1").strip().lower()
    if not stream.source.lower().startswith(REPLAY) or given == "max":
        return None
    try:
        speed = float(given)
    except ValueError:
        return Fraction(1)
    return Fraction(repr(speed)) if isfinite(speed) and speed > 0 else Fraction(1)
