"""The command line. Exit codes: 0 done, 1 failed while running, 2 bad input or usage; no tracebacks for users.

Commands are thin: they parse options, call the API or a package's entry point, and print. Standard output has
the answer (with `--json` nothing else), standard error everything for watching.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from penstock.app.checkout import open_checkout
from penstock.app.options import (
    Alloc,
    AppFile,
    BatchRows,
    Json,
    Master,
    Memory,
    Parallelism,
    PeakLoad,
    PlanBudget,
    PlanKind,
    Set,
    Tables,
    Version,
)
from penstock.errors import ConfigError, PenstockError, QueryError, RunError, why
from penstock.sinks.console import write_to

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="penstock: many continuous aggregate queries on one fast stream, in one Spark streaming query.",
    epilog="Start with: [bold]penstock generate flows -o flows.parquet --rows 1000000[/], then "
    "[bold]penstock run examples/flows.sql --set trace=flows.parquet[/].",
)
errors = Console(stderr=True, highlight=False)


@app.callback()
def options(version: Version = False) -> None:
    """Options of penstock itself."""


def main() -> None:
    """Entry point: turns errors meant for users into one message and an exit code."""
    try:
        sys.exit(app(standalone_mode=False, prog_name="penstock"))
    except typer.TyperException as error:
        _misused(error)
    except RunError as error:
        _fail(error, 1)
    except PenstockError as error:
        _fail(error, 2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:  # of a folder that is full, gone or forbidden, where nothing nearer has said so
        _fail(RunError(f"{error.filename or 'a file'}: {why(error)}", "check that place, then run again"), 1)
    except Exception as error:
        if not type(error).__module__.startswith(("py4j.", "pyspark.")):
            raise  # a bug of ours: its traceback is wanted
        from penstock.runtime.spark.session import reason

        _fail(RunError(f"Spark failed: {reason(error)}", "restore what it names, then run again"), 1)


def _misused(error: typer.TyperException) -> None:
    """A command line that cannot be understood; without any command the help was printed."""
    fact = error.format_message().rstrip(".")
    if fact:
        command = getattr(getattr(error, "ctx", None), "command_path", "penstock")
        _fail(ConfigError(fact[0].lower() + fact[1:], f"see {command} --help"), error.exit_code)
    sys.exit(error.exit_code)


def _fail(error: PenstockError, code: int) -> None:
    errors.print(f"error: {error}", markup=False, soft_wrap=True)
    sys.exit(code)


def _load(path: Path, variables: list[str] | None, master: str = "local[*]") -> Any:
    from penstock.app.api import App

    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise QueryError(
            f"not UTF-8 text: byte {error.start}, in line {line}", "save it as UTF-8", file=str(path)
        ) from None
    except OSError as error:
        raise QueryError(f"cannot read {path}: {error.strerror}", "check the path") from None
    pairs = {}
    for setting in variables or []:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ConfigError(f"--set {setting} is not of the form K=V", "write it like --set trace=flows.parquet")
        pairs[key] = value
    return App(master=master).sql(text, str(path), pairs)


@app.command(epilog="Example: penstock check app.sql")
def check(path: AppFile, variables: Set = None, as_json: Json = False) -> None:
    """Parse and resolve only: errors with line, column and caret, and what is not executable yet."""
    queries = _load(path, variables).query_set()
    streams = [stream.name for stream in queries.streams]
    names = [query.name for query in queries.queries if not query.hidden]
    if as_json:
        print(json.dumps({"stream": streams[0], "streams": streams, "queries": names}))
        return
    over = f"stream{'s' if len(streams) > 1 else ''} " + ", ".join(f"'{name}'" for name in streams)
    print(f"{path}: {len(names)} {'query' if len(names) == 1 else 'queries'} over {over}, ready to run")


@app.command(
    epilog="Examples: penstock explain app.sql --json; penstock explain app.sql --analyze --plot plan.png; "
    "penstock explain app.sql --plan gc --memory 65536. How to read it: docs/plans.md"
)
def explain(
    path: AppFile,
    variables: Set = None,
    plan: PlanKind = "auto",
    alloc: Alloc = "auto",
    tables: Tables = "auto",
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
    master: Master = "local[*]",
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress of --analyze.")] = False,
) -> None:
    """The shared plan and why: relations, tables, predicted probes, evictions and cost against no sharing."""
    from penstock.sharing.explain import explained_dict
    from penstock.sharing.explain_text import explained_text

    draw = None if plot is None else _drawing(plot)
    loaded = _load(path, variables, master)
    options = {
        "plan": plan, "alloc": alloc, "tables": tables, "memory": memory, "peak_load": peak_load,
        "plan_budget": plan_budget, "batch_rows": batch_rows, "parallelism": parallelism,
    }  # fmt: skip
    explained = _analyzed(loaded, options, quiet) if analyze else loaded.explained(**options)
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
        from penstock.app.plan_picture import FORMATS, draw_plans
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


@app.command(epilog="Example: penstock run app.sql --checkpoint ckpt --output out --batch-rows 500000 --json")
def run(
    path: AppFile,
    variables: Set = None,
    master: Master = "local[*]",
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where state lives; a run on it goes on.")
    ] = None,
    output: Annotated[str, typer.Option(metavar="DIR", help="For queries without INTO.")] = "penstock-out",
    overwrite: Annotated[bool, typer.Option(help="Remove another run's results from the output first.")] = False,
    plan: PlanKind = "auto",
    alloc: Alloc = "auto",
    tables: Tables = "auto",
    memory: Memory = None,
    replan: Annotated[str, typer.Option(help="auto: plan anew as the data change; off: keep the first plan.")] = "auto",
    peak_load: PeakLoad = None,
    plan_budget: PlanBudget = None,
    batch_rows: BatchRows = None,
    task_memory: Annotated[int | None, typer.Option(metavar="BYTES", help="Cap on a task's tables.")] = None,
    parallelism: Parallelism = None,
    until: Annotated[
        str, typer.Option(help="end: until the sources end; stopped: on, as files arrive, until Ctrl-C.")
    ] = "end",
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no account.")] = False,
) -> None:
    """Run an app until its sources end. Kill it at any moment: with --checkpoint, the next run goes on."""
    loaded = _load(path, variables, master)
    settings = {
        "output": output, "overwrite": overwrite, "batch_rows": batch_rows,
        "task_memory": task_memory, "parallelism": parallelism, "until": until,
        "plan": plan, "alloc": alloc, "tables": tables, "memory": memory, "replan": replan, "peak_load": peak_load,
        "plan_budget": plan_budget,
    }  # fmt: skip
    write_to(sys.stderr if as_json else None)
    try:
        summary = watch(loaded, checkpoint, settings, quiet)
    finally:
        write_to(None)
    if as_json:
        print(json.dumps(summary))
    if not quiet:
        from penstock.monitor.progress import account_table, bytes_line, malformed_lines

        Console(stderr=True, width=max(errors.width, 110)).print(account_table(summary))
        for line in [*malformed_lines(summary), bytes_line(summary)]:
            errors.print(line, markup=False, soft_wrap=True)


def watch(loaded: Any, checkpoint: str | None, settings: dict[str, Any], quiet: bool) -> dict[str, Any]:
    """Run a loaded app to its end with a progress display; Ctrl-C and SIGTERM stop it between two batches."""
    from penstock.monitor.progress import ProgressDisplay

    try:
        with ProgressDisplay(errors, quiet) as display:
            start = partial(loaded.start, checkpoint, **settings)
            summary = _await_end(start, display)
    except OSError as error:
        place = error.filename or f"checkpoint {checkpoint or 'in the folder for temporary files'}"
        raise RunError(f"{place}: {why(error)}", "make room or mend the disk, then run again") from error
    finally:
        if "penstock.runtime.spark.session" in sys.modules:
            sys.modules["penstock.runtime.spark.session"].fall_silent()
    loaded.close()
    return summary


def _await_end(start: Callable[..., Any], display: Any) -> dict[str, Any]:
    running = start(listener=display.observe, on_phase=display.phase)
    display.phase("first batch")
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        # A flag, not an exception: one raised inside py4j would leave its connection in disorder.
        signal.signal(number, lambda *_: stopping.set())
    try:
        while not running.await_end(1):
            if stopping.is_set():
                display.phase("stopping after this batch")
                running.stop()
                break
    except PenstockError as error:  # whatever was wrong, it was met while running
        raise RunError(error.fact, error.hint) from error
    summary: dict[str, Any] = running.summary()
    return summary


@app.command(epilog="Example: penstock generate flows -o flows.parquet --rows 5000000 --seed 7 --option flow_length=50")
def generate(
    kind: Annotated[str, typer.Argument(help="uniform, zipf, clustered (or flows), bursty")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Parquet file to write.")],
    rows: Annotated[int, typer.Option(help="Number of records.")] = 1_000_000,
    seed: Annotated[int, typer.Option(help="Same seed, same stream.")] = 7,
    option: Annotated[list[str] | None, typer.Option("--option", metavar="K=V", help="As in WITH (k = v).")] = None,
    quiet: Annotated[bool, typer.Option("--quiet")] = False,
) -> None:
    """Write a synthetic stream: seeded, repeatable, the same as the source generate:KIND."""
    from rich.progress import Progress

    from penstock.sources.generate.source import open_generate
    from penstock.sources.parquet.write import write_parquet

    options = {"rows": str(rows), "seed": str(seed)}
    for setting in option or []:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ConfigError(f"--option {setting} is not of the form K=V", "write it like --option rate=1000")
        options[key] = value
    source = open_generate(kind, options)
    with Progress(console=errors, disable=quiet) as progress:
        task = progress.add_task(f"generating {kind}", total=rows)
        write_parquet(source, output, progress=lambda done: progress.update(task, completed=done))
    print(f"{output}: {source.rows():,} records")


@app.command(epilog="Example: penstock state --checkpoint ckpt --json")
def state(
    checkpoint: Annotated[str, typer.Option(metavar="DIR", help="A checkpoint, of a live or ended run.")],
    windows: Annotated[
        int, typer.Option(min=0, metavar="N", help="Closed windows to list of each query with --json, the newest ones.")
    ] = 100,
    as_json: Json = False,
) -> None:
    """What the manifest holds: panes, segments, bytes, watermark, plan versions, account, newest windows."""
    from penstock.app.state_view import state_of, state_text

    found = state_of(checkpoint, windows if as_json else 1)
    print(json.dumps(found, indent=2) if as_json else state_text(found))


@app.command(
    epilog="Examples: penstock bench multiquery --json; penstock bench multiquery --queries 78 --data zeek; "
    "penstock bench packets --quick; penstock bench packets --capture mine.pcap --engine penstock --engine nfdump"
)
def bench(
    names: Annotated[list[str] | None, typer.Argument(help="As --list has them; all if none is named.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="Names of the benchmarks, and what they compare.")] = False,
    rows: Annotated[
        int | None, typer.Option(help="Records to generate; packets to repeat a capture to; else as many as is usual.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="A short run, to see that it works.")] = False,
    engine: Annotated[list[str] | None, typer.Option(help="Only these engines.")] = None,
    queries: Annotated[list[int] | None, typer.Option(metavar="N", help="Only so many queries.")] = None,
    data: Annotated[list[str] | None, typer.Option(help="Only these streams of multiquery: flows, zeek.")] = None,
    work: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep data and results here.")] = None,
    capture: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", exists=True, dir_okay=False, help="pcap files for packets.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Benchmarks side by side with peers in one run: ratios, not only seconds."""
    open_checkout("benchmarks", "bench")
    from benchmarks.command import BENCHMARKS, WHAT, run_benchmarks

    if listing:
        print("\n".join(f"{name:<12}{WHAT[name]}" for name in BENCHMARKS))
        return
    for result in run_benchmarks(names or list(BENCHMARKS), rows, quick, engine, work, errors, capture, queries, data):
        if as_json:
            print(json.dumps(result))


@app.command(
    epilog="Examples: penstock reproduce --list; penstock reproduce smap-choice -o pictures; "
    "penstock reproduce smap-real --captures traces --json"
)
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Experiments; all if none is named.")] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="Ids of the experiments, and their tables and figures.")
    ] = False,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where pictures go.")] = Path(
        "penstock-lab"
    ),
    captures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Packet captures, for what the papers measured on real traffic.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="A short run on less data, to see that it works.")] = False,
    as_json: Json = False,
) -> None:
    """Run the papers' tables and figures again: our numbers beside theirs, every claim answered, a picture each."""
    open_checkout("experiments", "reproduce")
    from experiments.command import EXPERIMENTS, run_experiments
    from experiments.kit.report import QUICK_ROWS, ExperimentSettings

    if listing:
        print("\n".join(f"{name:<20}{what}" for name, (_, what) in EXPERIMENTS.items()))
        return
    settings = ExperimentSettings(QUICK_ROWS, captures, quick=True) if quick else ExperimentSettings(captures=captures)
    console = errors if as_json else Console(highlight=False)
    for result in run_experiments(names or list(EXPERIMENTS), settings, output, console, errors):
        if as_json:
            print(json.dumps(result))


if __name__ == "__main__":
    main()
