"""Streams that are joined are read in step: state follows how far they drift apart in time.

A stream waits while its greatest time is a slide ahead of a partner that has unread records. Those that are read share
the batch by how dense they are, so that each gives about as much time. The partner that is furthest behind never waits:
something is always read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from penstock.logical.query import QuerySet
from penstock.state.protocol import StreamState

Streams = Mapping[str, StreamState]
FIRST = 8  # part of a batch that streams have before it is known how dense they are


@dataclass(frozen=True)
class Partners:
    """Declared streams that a join connects, through results of queries too, and its slide."""

    streams: tuple[str, ...]
    slide: int


def partners(app: QuerySet) -> tuple[Partners, ...]:
    """Of all joins of an app that read several streams by time."""
    joins = (query for query in app.queries if query.join is not None and not query.window.whole)
    found = (Partners(tuple(stream.name for stream in app.roots(query)), query.window.slide) for query in joins)
    return tuple(one for one in dict.fromkeys(found) if len(one.streams) > 1)


def batch_limits(app: QuerySet, known: Streams, unread: frozenset[str], batch_rows: int) -> dict[str, int]:
    """How many records of each stream with unread ones the next batch may have; 0: it waits."""
    joined = partners(app)
    waiting = {name for one in joined for name in one.streams if name in unread and _waits(name, one, known, unread)}
    limits = {}
    for name in unread:
        near = {other for one in joined if name in one.streams for other in one.streams if other in unread - waiting}
        limits[name] = 0 if name in waiting else _share(name, near, known, batch_rows)
    return limits


def _waits(name: str, one: Partners, known: Streams, unread: Collection[str]) -> bool:
    """Whether a stream is too far ahead of a partner."""
    mine = known.get(name, StreamState()).greatest
    if mine is None:
        return False
    for other in one.streams:
        if other != name and other in unread:
            theirs = known.get(other, StreamState()).greatest
            if theirs is None or theirs + one.slide < mine:
                return True
    return False


def _share(name: str, near: Collection[str], known: Streams, batch_rows: int) -> int:
    """As much time as the densest of the streams that are read beside it."""
    rates = {other: _rate(known.get(other, StreamState())) for other in (*near, name)}
    mine, most = rates[name], max((rate for rate in rates.values() if rate is not None), default=None)
    if len(rates) == 1:
        return batch_rows
    if mine is None or most is None or None in rates.values():
        return max(1, batch_rows // FIRST)
    return max(1, min(batch_rows, round(batch_rows * mine / most)))


def _rate(state: StreamState) -> float | None:
    """Records a microsecond so far; None: not known yet."""
    if state.greatest is None or state.first is None or state.greatest <= state.first:
        return None
    return state.row / (state.greatest - state.first)
