"""`make demo`: a generated trace through `examples/flows.sql` on local Spark, from the plan to a picture.

    generate (once) ──► explain ──► run with progress ──► results, account, where the time went ──► demo.png

Everything lands in `demo-out/` of the current folder; a second run keeps the trace and replaces the rest.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from penstock.app.api import App
from penstock.app.commands.generate import generate
from penstock.app.commands.watching import Stopped, watch
from penstock.errors import ConfigError, PenstockError, RunError
from penstock.monitor.account import account_table, time_text
from penstock.state.lease import holder

APP = Path(__file__).parents[3] / "examples" / "flows.sql"
FOLDER = Path("demo-out")
ROWS, SEED = 1_500_000, 7
OPTIONS = ("rate=3000", "clients=60000", "servers=20000")  # eight minutes of stream, a burst in every half of one
BATCH_ROWS = 262_144
NARROWEST = 110  # columns that the account needs; rich cuts tables to 80 where output is no terminal


def main() -> None:
    """Run the demo; errors end it as they end the command line."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        run(FOLDER, console)
    except Stopped as stopped:
        print(stopped, file=sys.stderr)
        sys.exit(stopped.code)
    except PenstockError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1 if isinstance(error, RunError) else 2)


def run(folder: Path, console: Console, rows: int = ROWS, app: Path = APP) -> dict[str, Any]:
    """The whole demo in `folder`; returns the summary of the run."""
    if not app.exists():
        raise ConfigError(f"{app} is missing", "the demo runs from a checkout of penstock")
    trace = make_trace(folder, rows, console)
    loaded = App().sql(app.read_text(), str(app), {"trace": str(trace)})
    headline(console, "the plan", f"penstock explain {_near(app)} --set trace={trace}")
    console.print(loaded.explain(), markup=False)
    headline(console, "the run", f"penstock run {_near(app)} --set trace={trace} --output {folder}/results")
    summary = watch(loaded, str(make_room(folder)), settings(folder), quiet=False)
    show_results(folder, console)
    headline(console, "the account", "where every record went, for every query")
    _wide(console).print(account_table(summary))
    headline(console, "where the time went", f"{summary['seconds']['total']:.1f} s from planning to the last window")
    for line in time_lines(summary):
        console.print(line, markup=False)
    headline(console, "to look at", "")
    console.print(f"  {folder}/results/*/*.parquet   one folder per query; any Parquet reader shows them")
    console.print(f"  penstock state --checkpoint {folder}/checkpoint   what a run keeps on disk")
    draw(folder, console)
    return summary


def make_trace(folder: Path, rows: int, console: Console) -> Path:
    """The bursty trace: seeded, so the file is the same on every machine; made once."""
    trace = folder / f"bursty-{rows}-{SEED}.parquet"
    if trace.exists():
        console.print(f"the trace is there: {trace}")
    else:
        generate("bursty", trace, rows, SEED, list(OPTIONS), quiet=False)
    return trace


def make_room(folder: Path) -> Path:
    """An empty checkpoint: the demo starts at the first record every time."""
    checkpoint = folder / "checkpoint"
    if holder(checkpoint) is not None:
        raise ConfigError(f"another demo runs on {checkpoint}", "wait for its end")
    shutil.rmtree(checkpoint, ignore_errors=True)
    return checkpoint


def settings(folder: Path) -> dict[str, Any]:
    return {"output": str(folder / "results"), "overwrite": True, "batch_rows": BATCH_ROWS}


def headline(console: Console, title: str, note: str) -> None:
    console.print(f"\n[bold cyan]{title}[/]  [dim]{note}[/]")


def read_results(folder: Path, query: str) -> pa.Table:
    """All rows that a query has written."""
    files = sorted((folder / "results" / query).glob("*.parquet"))
    if not files:
        raise RunError(f"query '{query}' wrote no rows", "run the demo again")
    return pa.concat_tables([pq.read_table(file) for file in files])


def busiest(folder: Path, query: str) -> pa.Table:
    """The rows of the window in which a query saw the most bytes, most bytes first."""
    found = read_results(folder, query)
    totals = found.group_by("window_start").aggregate([("bytes", "sum")]).sort_by([("bytes_sum", "descending")])
    return found.filter(pc.equal(found["window_start"], totals["window_start"][0])).sort_by([("bytes", "descending")])


def show_results(folder: Path, console: Console, rows: int = 10) -> None:
    """The top talkers of the busiest minute."""
    top = busiest(folder, "talkers")
    start = top["window_start"][0].as_py()
    headline(console, "top talkers", f"of the busiest minute, from {start:%H:%M:%S} on; query 'talkers'")
    seconds = read_results(folder, "rate")
    inside = pc.and_(
        pc.greater_equal(seconds["window_start"], top["window_start"][0]),
        pc.less_equal(seconds["window_end"], top["window_end"][0]),
    )
    total, most = pc.sum(seconds.filter(inside)["bytes"]).as_py(), top["bytes"][0].as_py()
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("src", "records", "packets", "bytes", "share", ""):
        table.add_column(name, justify="left" if name in ("src", "") else "right", no_wrap=True)
    for row in top.slice(0, rows).to_pylist():
        counts = [f"{row[name]:,}" for name in ("records", "packets", "bytes")]
        bar = "█" * max(1, round(24 * row["bytes"] / most))
        table.add_row(row["src"], *counts, f"{100 * row['bytes'] / total:.1f} %", f"[cyan]{bar}[/]")
    _wide(console).print(table)


def time_lines(summary: dict[str, Any]) -> list[str]:
    """Start, first batch, and the rate once everything is warm."""
    seconds, batches = summary["seconds"], summary["batches"]
    first, rest = seconds["per_batch"][0], sum(seconds["per_batch"][1:])
    lines = [
        f"  start of Spark      {seconds['startup']:6.1f} s   a Java machine, and the kernels if they never ran here",
        f"  first batch         {first:6.1f} s   {batches[0]['rows']:,} records; workers start, Spark warms up",
    ]
    rows = sum(batch["rows"] for batch in batches[1:])
    if rest > 0:
        lines.append(
            f"  {len(batches) - 1:>2} warm batches     {rest:6.1f} s   {rows:,} records: {rows / rest:,.0f} a second "
            f"through {len(summary['queries'])} queries"
        )
    last = batches[-1]["watermark"]
    if last is not None:
        lines.append(f"  stream time         up to {time_text(last)} (watermark of the last batch)")
    return lines


def draw(folder: Path, console: Console) -> None:
    """The picture, where matplotlib is installed."""
    try:
        from penstock.app.pictures.traffic import draw_demo
    except ImportError:
        console.print("  no picture: matplotlib is not installed (pip install 'penstock[plot]')", markup=False)
        return
    tables = {name: read_results(folder, name) for name in ("rate", "protocols")}
    draw_demo(folder / "demo.png", tables["rate"], tables["protocols"], busiest(folder, "talkers"))
    console.print(f"  {folder}/demo.png   traffic with its bursts, protocols, top talkers")


def _near(path: Path) -> str:
    """A path as one would type it here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _wide(console: Console) -> Console:
    """The same console, wide enough for a table's columns."""
    if console.is_terminal or console.width >= NARROWEST:
        return console
    return Console(file=console.file, width=NARROWEST, highlight=False)


if __name__ == "__main__":
    main()
