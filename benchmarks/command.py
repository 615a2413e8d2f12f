"""What `penstock bench` calls: benchmarks by name, each printed as a table and handed on as JSON data."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.comparisons import (
    aggjoin,
    details,
    joinplans,
    multiquery,
    packets,
    planning,
    scaling,
    sketches,
    startup,
)
from benchmarks.latency import bursts
from benchmarks.measure import table
from penstock.errors import ConfigError

BENCHMARKS: dict[str, Callable[..., dict[str, Any]]] = {
    "aggjoin": aggjoin.run,
    "details": details.run,
    "joinplans": joinplans.run,
    "latency": bursts.run,
    "multiquery": multiquery.run,
    "packets": packets.run,
    "planning": planning.run,
    "scaling": scaling.run,
    "sketches": sketches.run,
    "startup": startup.run,
}
WHAT = {
    "aggjoin": "windows of two streams joined and grouped, beside DuckDB, Spark and Flink (--data: a case)",
    "details": "distinct counts beside sums and pairs, and beside DuckDB, Polars and Spark",
    "joinplans": "all plans of a join beside the one that is chosen (--data: a case; --engine: LAP, EAP10, …, auto)",
    "latency": "promised delays in bursts, beside queues and dropping (--engine: peaks, beside, reading, soak)",
    "multiquery": "12 to 78 aggregations on one stream, beside Spark, Flink, DuckDB, Polars and ClickHouse",
    "packets": "a dozen monitoring queries on packet traces, beside nfdump, tshark and pmacct",
    "planning": "how long plans for 6 to 300 queries take, by chooser (--engine: a value of --plan)",
    "scaling": "what a record costs penstock with more queries, more data, more cores",
    "sketches": "approximate aggregates beside Apache DataSketches: error, time, bytes",
    "startup": "how long commands take from call to prompt, beside imports, PySpark and DuckDB (--engine: a command)",
}
# Options that not all of them have.
OPTIONS = {
    "aggjoin": ("streams", "repeat"),
    "details": (),
    "joinplans": ("streams", "repeat"),
    "latency": ("repeat", "peaks", "seconds", "minutes"),
    "multiquery": ("queries", "streams", "repeat"),
    "packets": ("captures",),
    "planning": ("queries",),
    "scaling": ("queries", "streams"),
    "sketches": (),
    "startup": (),
}


def run_benchmarks(
    names: Sequence[str],
    rows: int | None,
    quick: bool,
    engines: list[str] | None,
    work: Path | None,
    console: Console,
    captures: Sequence[Path] | None = None,
    queries: Sequence[int] | None = None,
    streams: Sequence[str] | None = None,
    repeat: int | None = None,
    peaks: Sequence[float] | None = None,
    seconds: float | None = None,
    minutes: float | None = None,
) -> Iterator[dict[str, Any]]:
    """Run these in the folder `work`, or in one that is removed at the end; progress and tables go to `console`.

    `captures` are what `packets` reads instead of those it knows, `queries` and `streams` what `multiquery` and
    `scaling` compare instead of all (`streams` also the cases of `aggjoin`); engines run `repeat` times in turn;
    without `rows` each benchmark has its own number. `peaks`, `seconds` and `minutes` are bursts of `latency`, and its
    soak.
    """
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        raise ConfigError(f"unknown benchmark '{unknown[0]}'", f"benchmarks are {', '.join(BENCHMARKS)}")
    if rows is not None and rows < 1:
        raise ConfigError(f"a benchmark needs records, not {rows} of them")
    if repeat is not None and repeat < 1:
        raise ConfigError(f"engines cannot run {repeat} times", "--repeat takes a number from 1 on")
    for option, asked in (("--seconds", seconds), ("--soak", minutes)):
        if asked is not None and not asked > 0:
            raise ConfigError(f"{option} {asked:g} is no time", "give a number above 0")
    given: dict[str, Any] = {"captures": captures, "queries": queries, "streams": streams, "repeat": repeat}
    given |= {"peaks": peaks, "seconds": seconds, "minutes": minutes}
    with ExitStack() as stack:
        folder = work or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-bench-")))
        for name in names:
            settings: dict[str, Any] = {"quick": quick, "engines": engines or None}
            settings |= {} if rows is None else {"rows": rows}
            settings |= {option: given[option] or None for option in OPTIONS[name]}
            with console.status(name) as status:
                # In a file lines stay: of a run that was ended early they are what is left.
                tell = status.update if console.is_terminal else partial(console.print, markup=False)
                report = BENCHMARKS[name](work=folder.absolute(), progress=tell, **settings)
            table.show(report, console)
            yield report
