"""Results of `multiquery` and `packets` for people: one table per amount of work, the ratio to penstock first.

`benchmarks.measure.figures` has the tables of the other benchmarks, and of where penstock's time goes.
"""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.latency.shown import show_latency
from benchmarks.measure.figures import (
    show_details,
    show_paired,
    show_parts,
    show_planning,
    show_scaling,
    show_sketches,
    show_startup,
    show_work,
)
from benchmarks.measure.join_tables import show_aggjoin, show_joinplans

OTHERS = {
    "aggjoin": show_aggjoin,
    "details": show_details,
    "joinplans": show_joinplans,
    "latency": show_latency,
    "planning": show_planning,
    "scaling": show_scaling,
    "sketches": show_sketches,
    "startup": show_startup,
}


def show(report: dict[str, Any], console: Console) -> None:
    """Print the machine, the tables, where the time went, and the growth of memory."""
    where = report["machine"]
    console.print(
        f"[bold]{report['name']}[/bold]: {report['rows']:,} records on {where['cpu']}, {where['cores']} cores, "
        f"{where['memory'] / 2**30:.0f} GB memory, L2 {where['l2'] / 2**10:.0f} KB, Python {where['python']}"
    )
    if report["name"] in OTHERS:
        OTHERS[report["name"]](report, console)
        return
    if "rounds" in report:
        show_paired(report, console)
        return
    for work in dict.fromkeys(line["work"] for line in report["results"]):
        console.print(_table(work, [line for line in report["results"] if line["work"] == work]))
    for note in (*report.get("notes", ()), *_notes(report["results"])):
        console.print(note)
    console.print("warm, cold: seconds; ratio: seconds per record, warm, against penstock; above 1 penstock is faster")
    if _by_core(report["results"]):
        console.print("/s: records a second; /s/core: of processor time, all processes of the engine together")
    show_work(report, console)
    show_parts(report, console)
    for text in _memory(report.get("memory", {})):
        console.print(text)


def _table(work: str, lines: list[dict[str, Any]]) -> Table:
    """Narrow enough for 80 columns; versions and notes stand below it."""
    table = Table(title=work, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("engine", no_wrap=True)
    per_core = ("/s/core",) if _by_core(lines) else ()
    for heading in ("ratio", "/s" if per_core else "records/s", *per_core, "warm", "cold", "records"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("answer", no_wrap=True)
    show_count = _short if per_core else _long  # one more column needs room
    for line in lines:
        if line["seconds"] is None:
            table.add_row(line["engine"], "-")
            continue
        table.add_row(
            line["engine"],
            _ratio(line["ratio_to_penstock"]),
            show_count(line["rows_per_second"] or 0),
            *(_short(line["rows_per_core_second"]) if line.get("rows_per_core_second") else "-" for _ in per_core),
            f"{line['seconds']:.2f}",
            f"{line['seconds_cold']:.1f}",
            show_count(line["rows"]),
            _answer(line["same_answer"]),
        )
    return table


def _by_core(lines: list[dict[str, Any]]) -> bool:
    return any("rows_per_core_second" in line for line in lines)


def _long(count: int) -> str:
    return f"{count:,}"


def _short(count: int) -> str:
    """In few letters: 5.00M, 200k."""
    return f"{count / 1e6:.2f}M" if count >= 1_000_000 else f"{count / 1e3:.1f}k"


def _answer(same: bool | None) -> Text:
    """None: nothing was compared."""
    if same is None:
        return Text("-")
    return Text("same", "green") if same else Text("DIFFERS", "bold red")


def _notes(lines: list[dict[str, Any]]) -> list[Text]:
    told = {f"{line['engine']} {line['version']}".strip(): line["note"] for line in lines}
    return [Text(f"{name}: {note}", "dim") for name, note in told.items() if note]


def _ratio(ratio: float | None) -> Text:
    if ratio is None:
        return Text("-")
    style = "bold green" if ratio > 1 else "bold" if ratio == 1 else "bold yellow"
    return Text(f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.0f}x", style)


def _memory(memory: dict[str, Any]) -> list[str]:
    if "note" in memory:
        return [f"memory: {memory['note']}"]
    lines = []
    for run in memory.get("runs", ()):
        peaks = ", ".join(f"{name} {run[name] / 2**20:.1f} MB" for name in run if name.endswith("_bytes"))
        lines.append(f"memory at {run['rows']:,} records: {peaks}")
    if memory.get("growth"):
        lines.append(
            "memory, ten times the records: " + ", ".join(f"{k} x{v:.2f}" for k, v in memory["growth"].items())
        )
    return lines
