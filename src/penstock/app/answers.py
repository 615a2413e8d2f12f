"""One-off queries on files: run them to their end, wherever that is fastest, and give all their rows in order.

    SELECTs ──► App.selects ──► a run in temporary folders ──► rows by window, ORDER BY and keys

A small input is done in this process before workers would have started, a large one by a worker for each core. From
`SPARK_BYTES` on Spark's start does not count any more: what it offers for long runs (its pages, tasks that are tried
again) is worth having then. docs/design/20261118_query.md has the measurements.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.app.api import App
from penstock.app.sessions import PROCESS
from penstock.logical.query import Query
from penstock.sinks.schema import result_schema

if TYPE_CHECKING:
    import pyarrow as pa

SPARK = "local[*]"
SPARK_BYTES = 16 << 30
WORKER_BYTES = 512 << 20
MANY = 8  # queries from which on a shared plan is looked for, whatever the size
ALL_ROWS = 1 << 62  # a LIMIT that cuts nothing: the rows of each window come in order and from one task
GUESS = 50  # bytes a record, of sources that have no files

Watch = Callable[[App, str, dict[str, Any]], dict[str, Any]]  # runs an app on a checkpoint; gives the summary


@dataclass(frozen=True)
class Place:
    """Where queries run: a master, tasks at a time (None: as many as there are cores), and how plans are made."""

    master: str
    parallelism: int | None = None
    plan: str = "auto"


@dataclass(frozen=True)
class Answered:
    """The rows of all queries, and the summary of their run."""

    tables: dict[str, pa.Table]
    summary: dict[str, Any]


def place_of(size: int, queries: int, asked: str | None) -> Place:
    """By the bytes of the input; `asked` is the master that the user wants."""
    if asked is not None and asked != PROCESS:
        return Place(asked)
    if asked is None and size >= SPARK_BYTES:
        return Place(SPARK)
    shared = queries >= MANY or size >= WORKER_BYTES
    return Place(PROCESS, 1 if size < WORKER_BYTES else None, "auto" if shared else "none")


def input_bytes(app: App) -> int:
    """Bytes of all files that an app reads; of what has no files a guess."""
    found = 0
    for source in app.inputs(app.query_set()).sources.values():
        entries = getattr(source, "entries", None)
        found += GUESS * source.rows() if entries is None else sum(entry.size for entry in entries)
    return found


def answered(app: App, place: Place, watch: Watch) -> Answered:
    """Run the queries and read their rows."""
    settings = {
        "parallelism": place.parallelism, "plan": place.plan, "replan": "off" if place.plan == "none" else "auto",
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="penstock-query-") as folder:
        out = Path(folder) / "out"
        ordered = app.changed(_in_order, place.master)
        summary = watch(ordered, f"{folder}/checkpoint", {**settings, "output": str(out)})
        shown = [query for query in app.query_set().queries if not query.hidden]
        return Answered({query.name: _rows(query, out / query.name) for query in shown}, summary)


def _in_order(query: Query) -> Query:
    """The same query, whose rows come by window, ORDER BY and keys."""
    if query.hidden:
        return query
    return replace(query, limit=ALL_ROWS if query.limit is None else query.limit, sink=None)


def _rows(query: Query, folder: Path) -> pa.Table:
    """Files are named by batch and part: their order is that of windows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = sorted(folder.glob("*.parquet"), key=lambda path: [int(word) for word in path.stem.split("-")[-2:]])
    schema = result_schema(query)
    return pa.concat_tables([schema.empty_table(), *(pq.ParquetFile(path).read() for path in paths)])
