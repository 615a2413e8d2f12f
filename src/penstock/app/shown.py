"""An app for notebooks: its streams and queries, as tables."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.logical.query import Query, Stream
from penstock.logical.render import render
from penstock.markup import html_table
from penstock.sharing.explain import duration_text, window_text


def app_html(streams: Iterable[Stream], queries: Iterable[Query]) -> str:
    return html_table(
        "streams", ("name", "source", "time", "delay", "columns"), map(_stream, streams)
    ) + html_table(
        "queries", ("name", "reads", "window", "where", "grouped by", "columns", "into"),
        [_query(query) for query in queries if not query.hidden],
    )  # fmt: skip


def _stream(stream: Stream) -> list[object]:
    delay = None if stream.delay is None else duration_text(stream.delay)
    return [stream.name, stream.source, stream.time, delay, ", ".join(f"{f.name} {f.type}" for f in stream.fields)]


def _query(query: Query) -> list[object]:
    return [
        query.name,
        ", ".join(query.inputs),
        window_text(query.window),
        None if query.where is None else render(query.where),
        None if query.per_tuple else ", ".join(key.name for key in query.keys),
        ", ".join(output.name for output in query.select),
        query.sink,
    ]
