"""`penstock explain`: the shared plan, and why it was chosen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.app.commands.commands import command, errors
from penstock.app.commands.lines import check_asked, showing
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
    Parallelism,
    PeakLoad,
    PlanBudget,
    PlanKind,
    Set,
    Stored,
    Tables,
)
from penstock.app.commands.watching import watch
from penstock.errors import ConfigError, why


@command(
    epilog="Examples: penstock explain app.sql --json; penstock explain app.sql --analyze --plot plan.png; "
    "penstock explain app.sql --plan gc --memory 64KiB. How to read it: docs/plans.md"
)
def explain(
    path: AppFile,
    variables: Set = None,
    plan: PlanKind = "auto",
    alloc: Alloc = "auto",
    tables: Tables = "auto",
    joins: Joins = "auto",
    stored: Stored = "auto",
    memory: Memory = None,
    peak_load: PeakLoad = None,
    plan_budget: PlanBudget = None,
    analyze: Annotated[
        bool, typer.Option("--analyze", help="Run the app, discard its results, show measured beside predicted.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="F.png", help="Draw the tree of relations; also .svg and .pdf.")
    ] = None,
    batch_rows: BatchRows = None,
    parallelism: Parallelism = None,
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress of --analyze.")] = False,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
) -> None:
    """The shared plan and why: relations, tables, predicted probes, evictions and cost against no sharing."""
    from penstock.sharing.explain import explained_dict
    from penstock.sharing.explain_text import explained_text

    draw = None if plot is None else _drawing(plot)
    check_asked(log_level, log_format)
    if not analyze and (log_level or log_format):
        raise ConfigError("without --analyze nothing runs, and there is no log", "add --analyze")
    loaded = load_app(path, variables, master, conf)
    options = {
        "plan": plan, "alloc": alloc, "tables": tables, "memory": memory, "peak_load": peak_load,
        "plan_budget": plan_budget, "joins": joins, "stored": stored, "batch_rows": batch_rows,
        "parallelism": parallelism,
    }  # fmt: skip
    if analyze:
        with showing(log_level, log_format, quiet) as bar:
            explained = _analyzed(loaded, options, quiet=not bar)
    else:
        explained = loaded.explained(**options)
    if draw is not None:
        draw(explained)
    print(json.dumps(explained_dict(explained), indent=2) if as_json else explained_text(explained))


def _analyzed(loaded: Any, options: dict[str, Any], quiet: bool) -> list[dict[str, Any]]:
    """The plans of an app, after a run for their counters; progress on stderr."""
    from penstock.app.analysis import Analysis

    with Analysis(loaded, options) as analysis:
        watch(analysis, None, {}, quiet)
        return analysis.explained()


def _drawing(path: Path) -> Callable[[list[dict[str, Any]]], None]:
    """What draws a picture of plans there, if that is possible: said before anything runs."""
    try:
        from penstock.app.pictures.plans import FORMATS, draw_plans
    except ImportError:
        raise ConfigError("--plot needs matplotlib, which is not installed", "pip install 'penstock[plot]'") from None
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"--plot {path}: no picture of that kind", f"its name must end in {', '.join(FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"--plot {path}: there is no such folder", "make it first")
    if path.is_dir():
        raise ConfigError(f"--plot {path}: that is a folder", "name a file")

    def draw(explained: list[dict[str, Any]]) -> None:
        try:
            draw_plans(path, explained)
        except OSError as error:
            raise ConfigError(f"--plot {path}: {why(error)}", "choose another place") from error
        errors.print(f"{path}: a picture of the plan", markup=False, soft_wrap=True)

    return draw
