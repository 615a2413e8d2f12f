"""URI scheme → sink: the one line a new sink adds."""

from __future__ import annotations

from pathlib import Path

from penstock.errors import ConfigError
from penstock.sinks.base import Sink
from penstock.sinks.parquet import ParquetSink
from penstock.state.files import local_path

SCHEMES = {"parquet": ParquetSink}


def open_sink(query: str, uri: str | None, output: Path) -> Sink:
    """The sink of a query: where INTO says, or `output`/query."""
    if uri is None:
        return ParquetSink(query, str(output.absolute() / query))
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() not in SCHEMES:
        known = ", ".join(f"{s}:" for s in sorted(SCHEMES))
        raise ConfigError(f"query '{query}' writes to unknown sink '{uri}'", f"a sink starts with one of {known}")
    if not rest:
        raise ConfigError(f"query '{query}' writes to '{uri}', which names no folder", "write parquet:FOLDER")
    return SCHEMES[scheme.lower()](query, str(local_path(rest, "output")))
