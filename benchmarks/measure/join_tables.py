"""Tables of `aggjoin`: one for each case and kind of window, penstock against its peers, goals and what is reached. And
of `joinplans`."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from benchmarks.measure.figures import new_table, short, times

FIGURES = {"spark": "Spark", "flink": "Flink", "duckdb": "DuckDB", "spark_state": "state", "tasks": "tasks"}


def show_aggjoin(report: dict[str, Any], console: Console) -> None:
    _show_cases(report["results"], console)
    _show_against(report["against"], console)
    _show_goals(report["goals"], console)
    if report["repeat"] > 1:
        console.print(f"medians of {report['repeat']} runs of each engine, all in turn")


def _show_cases(lines: list[dict[str, Any]], console: Console) -> None:
    for work in dict.fromkeys(line["work"] for line in lines):
        table = new_table(work, "engine", ("ratio", "seconds", "CPU s", "records", "ms/window", "state", "answer"))
        for line in (line for line in lines if line["work"] == work):
            if line["seconds"] is None:
                table.add_row(line["engine"], "-")
                continue
            table.add_row(
                line["engine"],
                times(line["ratio_to_penstock"]),
                f"{line['seconds']:.2f}",
                "" if line["cpu_seconds"] is None else f"{line['cpu_seconds']:.2f}",
                short(line["rows"]),
                "" if line["ms_a_window"] is None else f"{line['ms_a_window']:.1f}",
                "" if line["state_bytes"] is None else short(line["state_bytes"]),
                "same" if line["same_answer"] else "DIFFERS",
            )
        console.print(table)
    for line in lines:
        if line["seconds"] is None:
            console.print(f"{line['engine']}, {line['work']}: {line['note']}", markup=False)
    told = {f"{line['engine']} {line['version']}": line["note"] for line in lines if line["seconds"] is not None}
    for name, note in told.items():
        console.print(f"{name}: {note}", markup=False)
    console.print("seconds: warm; ratio: of seconds a record, against penstock on Spark; above 1 penstock is faster")
    console.print("ms/window: of closing (penstock) or the query (DuckDB) alone; state: bytes kept at most")


def _show_against(lines: list[dict[str, Any]], console: Console) -> None:
    if not lines:
        return
    table = new_table("penstock against its peers", "engine", ("case", "windows", *FIGURES.values()))
    for line in lines:
        figures = (f"{line[name]:.2f}" if name == "tasks" and line[name] else times(line[name]) for name in FIGURES)
        table.add_row(line["engine"], line["case"], _first(line["windows"]), *figures)
    console.print(table)
    console.print("how many times as fast: by seconds a record; DuckDB: its best form, by ms/window")
    console.print("state: Spark's bytes against ours; tasks: their CPU against that of decode and a probe a record")


def _show_goals(lines: list[dict[str, Any]], console: Console) -> None:
    if not lines:
        return
    engines = list(dict.fromkeys(engine for line in lines for engine in line["reached"]))
    table = new_table("goals, and what penstock reaches", "goal", ("case", "windows", *map(_last, engines)))
    for line in lines:
        reached = (_reached(line, engine) for engine in engines)
        table.add_row(f"{line['goal']:g} {line['what']}", line["case"], _first(line["windows"]), *reached)
    console.print(table)
    console.print("*: reached")


def _first(words: str) -> str:
    return words.split()[0]


def _last(engine: str) -> str:
    """The name without the one that all have."""
    return engine.rpartition("_")[2]


def _reached(line: dict[str, Any], engine: str) -> str:
    value = line["reached"].get(engine)
    return "-" if value is None else f"{value:.3g}{'*' if engine in line['met'] else ' '}"


def show_joinplans(report: dict[str, Any], console: Console) -> None:
    """All plans of each case, the best one and the one that was chosen."""
    lines = report["results"]
    for work in dict.fromkeys(line["work"] for line in lines):
        table = new_table(work, "plan", ("ns a record", "against the best", "expected", "state", "chosen"))
        for line in (line for line in lines if line["work"] == work):
            table.add_row(
                line["engine"],
                f"{line['ns_a_record']:.0f}",
                "" if line["regret"] is None else f"{line['regret']:.2f}",
                "" if line["expected"] is None else f"{line['expected']:.0f}",
                short(line["state_bytes"]),
                line["chosen"] if line["engine"] == "auto" else "",
            )
        console.print(table)
    console.print("ns a record: processor time of the whole run; expected: of what differs between plans alone")
