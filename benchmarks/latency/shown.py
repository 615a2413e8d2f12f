"""Tables of `latency` for people."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from benchmarks.latency import reading
from benchmarks.latency.trial import BURST, CALM, FIRST
from benchmarks.measure.figures import new_table, short

MIB = 1 << 20


def show_latency(report: dict[str, Any], console: Console) -> None:
    """A table for each part that there is."""
    parts = {part: [line for line in report["results"] if line["part"] == part] for part in SHOWN}
    if "capacity" in report:
        console.print(
            f"slowed down to {report['capacity']:,} records a second; bursts of {report['burst_seconds']:g} s, "
            "windows of 10 s, a dozen queries"
        )
    for part, show in SHOWN.items():
        if parts[part]:
            show(parts[part], console)
    if "picture" in report:
        console.print(f"picture: {report['picture']}")


def _reading(lines: list[dict[str, Any]], console: Console) -> None:
    steps = [f"1_in_{1 << k}" for k in reading.STEPS]
    headings = ["all read", *(step.replace("_", " ") for step in steps), *(f"ratio {1 << k}" for k in reading.STEPS)]
    table = new_table(f"{lines[0]['work']}: ns of a core for each record that arrives", "source", headings)
    for line in lines:
        costs = [line["full_ns"], *(line[f"ns_{step}"] for step in steps)]
        ratios = [f"{line[f'ratio_{step}']:.1f}x" for step in steps]
        table.add_row(line["engine"], *(f"{cost:,.1f}" for cost in costs), *ratios)
    console.print(table)
    console.print(f"undragged; aimed at: {reading.GOAL:g} times as cheap unread, of mapped Arrow files")


def _peaks(lines: list[dict[str, Any]], console: Console) -> None:
    """Two tables for each burst: how late, and how far off."""
    for line in lines:
        kinds = [kind for kind in (FIRST, CALM, BURST) if kind in line]
        title = f"{line['work']}; {line['runs']} runs"
        late = new_table(title, "", ("windows", "in time", "≤ 1 batch", "later", "stalled", "median", "p99", "max"))
        errors = new_table("", "", ("arrived", "read", "total off", "at most", "±", "RMSE"))
        for kind in kinds:
            found = line[kind]
            counts = [found[name] for name in ("windows", "within", "a_batch_later", "later", "while_stalled")]
            times = [f"{found[name]:.2f}" for name in ("median", "p99", "greatest")]
            late.add_row(kind, *(f"{count:,}" for count in counts), *times)
            arrived, promised = found["read"] + found["unread"], found["promised_error"]
            errors.add_row(
                kind,
                short(arrived),
                _percent(found["read"] / max(1, arrived), 1),
                _percent(found["total_error"]),
                _percent(found["greatest_total_error"]),
                "-" if promised is None else _percent(promised),
                f"{found['rmse']:.1f}",
            )
        console.print(late)
        console.print(errors)
    console.print("windows: of all queries; delays in seconds; stalled: the machine stood still for a quarter of D")
    console.print("total: bytes; ±: one standard error as reported; RMSE: records of a port, over ports of a window")


def _percent(part: float, digits: int = 3) -> str:
    return f"{100 * part:.{digits}f} %"


def _beside(lines: list[dict[str, Any]], console: Console) -> None:
    headings = ("median", "p99", "max", "read", "total off", "RMSE", "calm")
    table = new_table(f"{lines[0]['work']}, dealt with in other ways", "", headings)
    for line in lines:
        times = [f"{line[name]:.2f}" if line[name] is not None else "-" for name in ("median", "seconds", "greatest")]
        table.add_row(
            line["engine"],
            *times,
            _percent(line["read_share"], 1),
            _percent(line["total_error"]),
            f"{line['rmse']:.1f}",
            "exact" if line["same_answer"] else "not exact",
        )
    console.print(table)
    for line in lines:
        if line["note"]:
            console.print(f"{line['engine']}: {line['note']}")
    console.print("delays of all windows, in seconds; read, total, RMSE: of windows of the burst; calm: the others")


def _soak(lines: list[dict[str, Any]], console: Console) -> None:
    for line in lines:
        memory, late = line["memory"], line["delays"]
        console.print(
            f"{line['work']}: {late['within']:,} of {late['windows']:,} windows in time, p99 {late['p99']:.2f} s"
        )
        if "note" in memory:
            console.print(f"memory: {memory['note']}")
            continue
        quarters = " ".join(f"{size / MIB:,.0f}" for size in memory["anonymous"])
        files = " ".join(f"{size / MIB:,.0f}" for size in memory["files"])
        flat = "flat" if memory["flat"] else "NOT FLAT"
        console.print(f"memory by quarters of the run: {quarters} MB, and of files {files} MB: {flat}")


SHOWN = {"reading": _reading, "peaks": _peaks, "beside": _beside, "soak": _soak}
