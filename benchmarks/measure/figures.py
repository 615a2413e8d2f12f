"""Tables of `planning`, `scaling`, `sketches` and `startup`, and of where penstock's time goes."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import shorten
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

AXES = {"queries": "more queries", "data": "a longer stream", "cores": "more cores"}  # as the work of a line has them
LONGEST = 200  # letters of a plan; all of it is in the JSON data
RUN = {  # figures of a run, and how they are called
    "startup_seconds": "start-up {:.1f} s",
    "planning_seconds": "planning {:.2f} s",
    "first_batch_seconds": "first micro-batch {:.1f} s",
    "tasks_ns_per_record": "tasks {:,.0f} ns",
    "merge_ns_per_record": "closing windows {:,.0f} ns",
    "between_ns_per_record": "between micro-batches (Spark, re-planning) {:,.0f} ns",
    "tables_cpu_ns_per_record": "processor time in tables {:,.0f} ns",
    "leaves_cpu_ns_per_record": "in leaves {:,.0f} ns",
}


def show_planning(report: dict[str, Any], console: Console) -> None:
    """Milliseconds of processor time by number of queries and chooser."""
    for work in dict.fromkeys(line["work"] for line in report["results"]):
        table = new_table(work, "chooser", ("cold ms", "again ms", "re-plan ms", "tables", "ns a record"))
        for line in (line for line in report["results"] if line["work"] == work):
            spent = [line.get(name) for name in ("seconds", "seconds_again", "seconds_replan")]
            if line["seconds"] is None:
                table.add_row(line["engine"], "-")
            else:
                times = [f"{1000 * seconds:.1f}" for seconds in spent]
                table.add_row(line["engine"], *times, str(line["tables"]), f"{line['cost_ns']:.1f}")
        console.print(table)
    for line in report["results"]:
        if line["note"]:
            console.print(f"{line['engine']}, {line['work']}: {line['note']}")
    console.print("cold: nothing counted yet; again: with what was counted; re-plan: between two micro-batches")
    console.print("medians of processor time; ns a record: what the chooser expects its plan to cost")


def show_scaling(report: dict[str, Any], console: Console) -> None:
    """Microseconds a record, by what grows."""
    headings = ("µs a record", "ratio", "CPU µs", "tasks µs", "merges µs", "cold s")
    for (stream, plan, axis, _), lines in scaled(report["results"]).items():
        said = [line["work"].split(", ") for line in lines]
        place = list(AXES).index(axis)
        same = [text for number, text in enumerate(said[0]) if number != place]
        table = new_table(f"{AXES[axis]}: {stream}, {', '.join(same)}, --plan {plan}", "", headings)
        for line, parts in zip(lines, said, strict=True):
            table.add_row(parts[place], *_costs(line))
        console.print(table)
    for note in dict.fromkeys(line["note"] for line in report["results"]):
        if note:
            console.print(note)
    console.print("warm, to Parquet; ratio: against the first line; CPU: all processes; /process: without Spark")
    console.print("tasks, merges: without Spark, processor time of one thread")


def scaled(lines: list[dict[str, Any]]) -> dict[tuple[str, str, str, int], list[dict[str, Any]]]:
    """Lines of `scaling` by what they can be compared with: stream, plan, axis, and queries while cores grow."""
    found: dict[tuple[str, str, str, int], list[dict[str, Any]]] = {}
    for line in lines:
        queries = line["queries"] if line["axis"] == "cores" else 0
        found.setdefault((line["data"], line["plan"], line["axis"], queries), []).append(line)
    return found


def show_details(report: dict[str, Any], console: Console) -> None:
    """A table for each piece of work."""
    for work in dict.fromkeys(line["work"] for line in report["results"]):
        table = new_table(work, "engine", ("seconds", "CPU s", "memory MB", "to penstock", "to its pairs"))
        for line in (line for line in report["results"] if line["work"] == work):
            if line["seconds"] is None:
                table.add_row(line["engine"], "-")
                continue
            table.add_row(
                line["engine"],
                f"{line['seconds']:.2f}",
                f"{line['cpu_seconds']:.2f}",
                f"{line['memory'] / 1e6:,.0f}",
                *("" if ratio is None else f"{ratio:.2f}x" for ratio in
                  (line["ratio_to_penstock"], line["ratio_to_pairs"])),
            )  # fmt: skip
        console.print(table)
    for note in dict.fromkeys(f"{line['engine']}: {line['note']}" for line in report["results"] if line["note"]):
        console.print(note, markup=False)
    console.print(f"medians of {report['times']}, whole processes in turns; memory: of the largest process")


def show_sketches(report: dict[str, Any], console: Console) -> None:
    """A line for each sketch, with its errors."""
    table = new_table("sketches", "engine", ("sketch", "seconds", "bytes", "errors"))
    for line in report["results"]:
        if line["seconds"] is None:
            table.add_row(line["engine"], "-", "", "", line["note"])
            continue
        if "missing" in line:
            told = f"{line['missing']:.0f} missing, {line['too_many']:.0f} too many"
        else:
            told = f"mean {line['mean_error']:.2%}, most {line['greatest_error']:.2%}"
        table.add_row(line["engine"], line["work"], f"{line['seconds']:.2f}", f"{line['bytes_per_group']:,.0f}", told)
    console.print(table)
    console.print("seconds: of the process, less one that only reads and counts; bytes: of a group; errors: of values")


def show_startup(report: dict[str, Any], console: Console) -> None:
    """Seconds of whole processes, and how many times as long as what they are compared with."""
    for work in dict.fromkeys(line["work"] for line in report["results"]):
        table = new_table(work, "command", ("seconds", "CPU s", "ratio", "CPU ratio", "at most", "beside"))
        for line in (line for line in report["results"] if line["work"] == work):
            if line["seconds"] is None:
                table.add_row(line["engine"], "-")
                continue
            ratios = ["" if line[name] is None else f"{line[name]:.2f}x" for name in ("ratio", "cpu_ratio", "most")]
            table.add_row(
                line["engine"], f"{line['seconds']:.2f}", f"{line['cpu_seconds']:.2f}", *ratios, line["beside"]
            )
        console.print(table)
    for line in report["results"]:
        if line["note"]:
            console.print(f"{line['engine']}: {line['note']}", markup=False)
    said = "imports: of pyarrow and numba; CPU: all processes of a command"
    console.print(f"medians of {report['times']}, in turns; {said}")


def show_paired(report: dict[str, Any], console: Console) -> None:
    """Processor time of engines that ran in turn."""
    for work in dict.fromkeys(line["work"] for line in report["results"]):
        table = new_table(work, "engine", ("CPU s", "ratio", "95 %", "batches", "95 %", "answer"))
        for line in (line for line in report["results"] if line["work"] == work):
            if line["seconds"] is None:
                table.add_row(line["engine"], "-")
                continue
            same = {None: "-", True: "same", False: "DIFFERS"}[line["same_answer"]]
            told = [text for found in (line, line.get("batches", {})) for text in _interval(found)]
            table.add_row(line["engine"], f"{line['cpu_seconds_median']:.2f}", *told, same)
        console.print(table)
    for note in dict.fromkeys(f"{line['engine']}: {line['note']}" for line in report["results"] if line["note"]):
        console.print(note, markup=False)
    console.print(
        f"medians of {report['rounds']} rounds, engines in turn; CPU: all processes, of penstock the whole run"
    )
    console.print(
        "ratio: CPU of the first engine to this one's; below 1 the first needs less; batches: those after the first"
    )


def _interval(found: dict[str, Any]) -> tuple[str, str]:
    """A ratio, and how sure it is."""
    if found.get("ratio") is None:
        return "-", "-"
    return f"{found['ratio']:.3f}", f"{found['low']:.2f} to {found['high']:.2f}"


def show_work(report: dict[str, Any], console: Console) -> None:
    """What penstock's runs did, by stream and sink."""
    lines = [line for line in report["results"] if line["seconds"] is not None]
    lines = [line for line in lines if "figures" in line.get("extra", {})]
    for work in dict.fromkeys(line["work"] for line in lines):
        headings = ("hash ops", "unshared", "written B", "read B", "results B", "results", "results/s")
        table = new_table(f"a record of {work}", "engine", headings)
        for line in (line for line in lines if line["work"] == work):
            told = line["extra"]["figures"]
            names = ("hash_operations", "naive_hash_operations", "bytes_written", "bytes_read", "result_bytes")
            cells = [f"{told[f'{name}_per_record']:,.1f}" for name in names]
            table.add_row(
                line["engine"], *cells, f"{told['results_per_record']:.2f}", short(told["results_per_second"])
            )
        console.print(table)
    if lines:
        console.print("hash ops: probes and inserts of tasks; written, read: segments, with what compactions write")


def short(count: int) -> str:
    """In few letters: 5.0M, 200k."""
    return f"{count / 1e6:,.1f}M" if count >= 1_000_000 else f"{count / 1e3:,.0f}k"


def times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.0f}x"


def _costs(line: dict[str, Any]) -> Iterable[str]:
    if line["seconds"] is None:
        return ["-"]
    alone = [line.get(name) for name in ("tasks_us_per_record", "merge_us_per_record")]
    return [
        f"{line['us_per_record']:.3f}",
        f"{line['ratio_to_penstock']:.2f}x",
        f"{line['cpu_us_per_record']:.3f}",
        *("" if cost is None else f"{cost:.3f}" for cost in alone),
        f"{line['seconds_cold']:.1f}",
    ]


def show_parts(report: dict[str, Any], console: Console) -> None:
    """Where the time of penstock's runs went, and of its tasks alone."""
    for line in report["results"]:
        told = line.get("extra", {}).get("time") if line["seconds"] is not None else None
        if told:
            figures = ", ".join(text.format(told[name]) for name, text in RUN.items() if name in told)
            console.print(f"{line['engine']}, {line['work']}: {figures}; ns are a record, warm")
    for found in report.get("parts", ()):
        title = f"{found['data']}: {found['queries']} queries, penstock's tasks in one thread"
        if "note" in found:
            console.print(f"{title}: {found['note']}")
            continue
        table = new_table(title, "part", ("ns a record", "ns a group"))
        for part in found["parts"]:
            group = part["ns_per_group"]
            table.add_row(part["part"], f"{part['ns_per_record']:,.0f}", "" if group is None else f"{group:,.0f}")
        table.add_section()
        table.add_row("all", f"{sum(part['ns_per_record'] for part in found['parts']):,.0f}")
        if "plain_ns_per_record" in found:
            table.add_row("not watched", f"{found['plain_ns_per_record']:,.0f}")
        console.print(table)
        console.print(
            f"{found['records']:,} records, {found['partial_groups']:,} groups of tasks, {found['groups']:,} results; "
            f"plan {shorten(found['plan'], LONGEST, placeholder=' …')}",
            markup=False,
        )


def new_table(title: str, first: str, headings: Iterable[str]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
