"""Options and arguments that several commands of the command line have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import penstock


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
PlanKind = Annotated[str, typer.Option("--plan", help="How phantoms are chosen: auto, none, gc, gp, epes, tree.")]
Alloc = Annotated[
    str, typer.Option("--alloc", help="How they share memory: auto, sl, sr, pl, pr, es, fptas, all-or-nothing.")
]
Tables = Annotated[
    str, typer.Option("--tables", help="auto, direct-mapped (direct), or evicting the least recently used (lru).")
]
PlanBudget = Annotated[
    float | None,
    typer.Option("--plan-budget", metavar="S", help="Processor time for comparing plans; default: 0.2 s."),
]
Memory = Annotated[
    int | None, typer.Option(min=0, metavar="BYTES", help="For shared tables of a task; default: the L2 cache.")
]
PeakLoad = Annotated[
    float | None, typer.Option("--peak-load", metavar="NS", help="Most nanoseconds to flush a task's tables.")
]
BatchRows = Annotated[int | None, typer.Option(metavar="N", help="Most rows of a micro-batch.")]
LogLevel = Annotated[
    str | None,
    typer.Option("--log-level", metavar="LEVEL", help="Lines of a log instead of a bar: debug, info, warning, error."),
]
LogFormat = Annotated[
    str | None, typer.Option("--log-format", metavar="FORM", help="text, or json: an object for each line.")
]
Parallelism = Annotated[int | None, typer.Option(metavar="N", help="Tasks per batch; default: cores.")]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Spark master; default: spark-submit's, or local[*]; process: no Spark, its own workers."
    ),
]
Conf = Annotated[list[str] | None, typer.Option("--conf", metavar="K=V", help="A setting of Spark's; may be repeated.")]
