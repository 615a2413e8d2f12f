"""Live sources made ready for a run: each reads its times once, however many streams are the same records of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from penstock.errors import QueryError
from penstock.logical.query import QuerySet, Stream
from penstock.sources.base import Source
from penstock.sources.live.contract import LiveSource, live


def prepared(app: QuerySet, sources: Mapping[str, Source]) -> dict[str, Source]:
    """The sources of an app by stream, those that are live with their index."""
    made: dict[Hashable, LiveSource] = {}
    found = {}
    for name, source in sources.items():
        found[name] = source
        if live(source):
            stream = app.stream(name)
            key = stream.source, stream.options, stream.fields, stream.time, stream.ahead
            made[key] = made.get(key) or source.prepare(stream.time, stream.ahead)
            found[name] = made[key]
    return found


def check_live(stream: Stream, source: Source) -> None:
    """Windows of what arrives by the clock must close some time."""
    if live(source) and stream.delay is None:
        raise QueryError(
            f"stream '{stream.name}' arrives live and has no WATERMARK, so its windows would never close",
            f"say how late records may be: WATERMARK {stream.time or 'ts'} DELAY '1 second'",
        )
