"""Finds the source of a URI scheme. A new source adds one line here; its module loads when its scheme is first used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from penstock.errors import SourceError
from penstock.logical.query import Field
from penstock.sources.base import Source

SCHEMES = {
    "parquet": ("penstock.sources.parquet.source", "open_parquet"),
    "arrow": ("penstock.sources.arrow.source", "open_arrow"),
    "csv": ("penstock.sources.text.csv", "open_csv"),
    "json": ("penstock.sources.text.json", "open_json"),
    "pcap": ("penstock.sources.capture.source", "open_pcap"),
    "stdin": ("penstock.sources.stdin", "open_stdin"),
    "generate": ("penstock.sources.generate.source", "open_generate"),
    "replay": ("penstock.sources.live.replay", "open_replay"),
}


# What people ask for, and what to do until it is there.
FRAMES = (
    "read it with Spark and hand over the DataFrame: App(spark).stream('name', spark.readStream.format(...).load())"
)
LOCAL = "copy it to this machine or mount it, then name the file: csv:path/x.csv"
ELSEWHERE = {
    "kafka": FRAMES, "kinesis": FRAMES, "pulsar": FRAMES, "delta": FRAMES, "iceberg": FRAMES,
    "jdbc": FRAMES, "postgres": FRAMES, "postgresql": FRAMES, "mysql": FRAMES, "sqlite": FRAMES,
    "netflow": "write the flows to CSV first, like nfdump -r FILE -o csv > flows.csv, and read csv:flows.csv",
    "http": LOCAL, "https": LOCAL, "ftp": LOCAL, "s3": LOCAL, "s3a": LOCAL, "gs": LOCAL, "hdfs": LOCAL, "abfss": LOCAL,
}  # fmt: skip


def open_source(uri: str, options: Mapping[str, str], declared: tuple[Field, ...] | None = None) -> Source:
    """Open the source that `uri` names (`parquet:trace/*.parquet`, `generate:zipf`), with its WITH options.

    `declared` are the columns that the stream declares, if it does: text is read as these, and a folder may be empty.
    """
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() not in SCHEMES:
        if colon and scheme.lower() in ELSEWHERE:
            raise SourceError(f"unknown source '{uri}': there is no {scheme.lower()}: yet", ELSEWHERE[scheme.lower()])
        known = ", ".join(f"{s}:" for s in sorted(SCHEMES))
        fitting = [s for s in SCHEMES if uri.lower().endswith(f".{s}") and not colon]
        meant = f"did you mean {fitting[0]}:{uri}? " if fitting else ""
        raise SourceError(f"unknown source '{uri}'", f"{meant}a source starts with one of {known}")
    module, function = SCHEMES[scheme.lower()]
    source: Source = getattr(import_module(module), function)(rest, options, declared)
    return source
