"""`penstock run`: an app, until its sources end or it is stopped."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from penstock.app.commands.commands import command, errors
from penstock.app.commands.lines import check_asked, only_json, showing
from penstock.app.commands.loading import load_app
from penstock.app.commands.options import (
    Alloc,
    AppFile,
    BatchRows,
    Conf,
    Joins,
    Json,
    LogFormat,
    LogLevel,
    Master,
    Memory,
    Output,
    Overload,
    Parallelism,
    PeakLoad,
    PlanBudget,
    PlanKind,
    Replan,
    Set,
    Stored,
    Tables,
    TaskMemory,
    Until,
)
from penstock.app.commands.watching import Stopped, watch


@command(epilog="Example: penstock run app.sql --checkpoint ckpt --output out --batch-rows 500k --json")
def run(
    path: AppFile,
    variables: Set = None,
    master: Master = None,
    conf: Conf = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where state lives; a run on it goes on.")
    ] = None,
    output: Output = "penstock-out",
    overwrite: Annotated[bool, typer.Option(help="Remove another run's results from the output first.")] = False,
    plan: PlanKind = "auto",
    alloc: Alloc = "auto",
    tables: Tables = "auto",
    joins: Joins = "auto",
    stored: Stored = "auto",
    memory: Memory = None,
    replan: Replan = "auto",
    peak_load: PeakLoad = None,
    plan_budget: PlanBudget = None,
    batch_rows: BatchRows = None,
    task_memory: TaskMemory = None,
    parallelism: Parallelism = None,
    until: Until = "end",
    overload: Overload = "triage",
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no account.")] = False,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
) -> None:
    """Run an app until its sources end. Kill it at any moment: with --checkpoint, the next run goes on."""
    check_asked(log_level, log_format)
    loaded = load_app(path, variables, master, conf)
    settings = {
        "output": output, "overwrite": overwrite, "batch_rows": batch_rows,
        "task_memory": task_memory, "parallelism": parallelism, "until": until, "overload": overload,
        "plan": plan, "alloc": alloc, "tables": tables, "memory": memory, "replan": replan, "peak_load": peak_load,
        "plan_budget": plan_budget, "joins": joins, "stored": stored,
    }  # fmt: skip
    from penstock.sinks.console import write_to

    told = not quiet and not only_json(log_format)
    write_to(sys.stderr if as_json else None)
    try:
        with showing(log_level, log_format, quiet) as bar:
            summary = watch(loaded, checkpoint, settings, quiet=not bar)
    except Stopped as stopped:
        if stopped.summary is not None:
            _show(stopped.summary, as_json, told)
        raise
    finally:
        write_to(None)
    _show(summary, as_json, told)


def _show(summary: dict[str, Any], as_json: bool, told: bool) -> None:
    """What the run came to, on stdout for programs and, if `told`, on stderr for people."""
    if as_json:
        print(json.dumps(summary))
    if told:
        if summary["ended"] and not summary["batches"]:
            again = f"nothing was left to read: an earlier run on checkpoint {summary['checkpoint']} came to the end"
            errors.print(again, markup=False, soft_wrap=True)
        from rich.console import Console

        from penstock.monitor.account import account_table, bytes_line, malformed_lines

        Console(stderr=True, width=max(errors.width, 110)).print(account_table(summary))
        for line in [*malformed_lines(summary), bytes_line(summary)]:
            errors.print(line, markup=False, soft_wrap=True)
