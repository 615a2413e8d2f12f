"""Options and arguments that several commands of the command line have."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import penstock
from penstock.app.sizes import count, size


def _show_version(asked: bool) -> None:
    if asked:
        print(f"penstock {penstock.__version__}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
]
AppFile = Annotated[Path, typer.Argument(metavar="APP.sql", help="The app: CREATE STREAM and CREATE QUERY statements.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable answer on stdout, everything else on stderr.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="K=V", help="Replaces ${K} in the app's text.")]
ADVANCED = "Advanced: for speed and memory; results stay the same"


def advanced(*names: str, **settings: Any) -> Any:
    """An option that hardly anybody needs; everyday ones have no panel of their own."""
    return typer.Option(*names, rich_help_panel=ADVANCED, **settings)


def size_option(name: str, text: str) -> Any:
    """An advanced option for bytes, with or without a unit."""
    return advanced(name, metavar="SIZE", parser=partial(size, option=name), help=text)


def count_option(name: str, text: str, metavar: str = "N") -> Any:
    """An advanced option for a number of something, like 500k."""
    return advanced(name, metavar=metavar, parser=partial(count, option=name), help=text)


PlanKind = Annotated[str, advanced("--plan", help="How phantoms are chosen: auto, none, gc, gp, epes, tree.")]
Alloc = Annotated[
    str, advanced("--alloc", help="How they share memory: auto, sl, sr, pl, pr, es, fptas, all-or-nothing.")
]
Tables = Annotated[
    str, advanced("--tables", help="auto, direct-mapped (direct), or evicting the least recently used (lru).")
]
Joins = Annotated[
    str,
    advanced("--joins", help="Which streams of joins are aggregated before they are stored: auto, early, late, 10."),
]
Stored = Annotated[
    str,
    advanced(
        "--stored", help="What is stored: auto, each relation by itself (each), all as one, as groups (one) or rows."
    ),
]
PlanBudget = Annotated[
    float | None, advanced("--plan-budget", metavar="S", help="Processor time for comparing plans; default: 0.2 s.")
]
Memory = Annotated[
    int | None, size_option("--memory", "For shared tables of a task, like 256KiB; default: the L2 cache.")
]
TaskMemory = Annotated[int | None, size_option("--task-memory", "Cap on a task's tables, like 2GiB; default: 256MiB.")]
PeakLoad = Annotated[
    float | None, advanced("--peak-load", metavar="NS", help="Most nanoseconds to flush a task's tables.")
]
Replan = Annotated[str, advanced("--replan", help="auto: plan anew as the data change; off: keep the first plan.")]
BatchRows = Annotated[int | None, count_option("--batch-rows", "Most rows of a micro-batch, like 500k; default: 4M.")]
Parallelism = Annotated[int | None, count_option("--parallelism", "Tasks per batch; default: cores.")]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Spark master; default: spark-submit's, or local[*]; process: no Spark, its own workers.",
    ),
]
Until = Annotated[
    str, typer.Option("--until", help="end: until the sources end; stopped: on, as files arrive, until Ctrl-C.")
]
Overload = Annotated[
    str,
    typer.Option(
        "--overload",
        metavar="MODE",
        help="In bursts, where LIMIT DELAY is promised: triage (estimates), drop, summarise, or queue (late).",
    ),
]
Output = Annotated[str, typer.Option("--output", metavar="DIR", help="For queries without INTO.")]
LogLevel = Annotated[
    str | None,
    typer.Option("--log-level", metavar="LEVEL", help="Lines of a log instead of a bar: debug, info, warning, error."),
]
LogFormat = Annotated[
    str | None, typer.Option("--log-format", metavar="FORM", help="text, or json: an object for each line.")
]
Conf = Annotated[list[str] | None, typer.Option("--conf", metavar="K=V", help="A setting of Spark's; may be repeated.")]
