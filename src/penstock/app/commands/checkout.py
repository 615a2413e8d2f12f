"""`penstock bench` and `penstock reproduce`: what a checkout has and the installed package has not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from penstock.app.checkout import open_checkout
from penstock.app.commands.commands import command, errors
from penstock.app.commands.options import Json


@command(
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
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these, of multiquery: flows, zeek, packets, prefixes, monitoring; of scaling: flows, packets; "
            "of aggjoin, joinplans: a case."
        ),
    ] = None,
    repeat: Annotated[
        int | None,
        typer.Option(metavar="N", help="Run engines so often, in turn: aggjoin, joinplans, latency, multiquery."),
    ] = None,
    peaks: Annotated[
        list[float] | None, typer.Option(metavar="X", help="Only bursts of so many times what can be read: latency.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(metavar="S", help="How long bursts are: latency.")] = None,
    soak: Annotated[
        float | None, typer.Option(metavar="MINUTES", help="Burst after burst, and memory over time: latency.")
    ] = None,
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
    asked = (rows, quick, engine, work, errors, capture, queries, data, repeat, peaks, seconds, soak)
    for result in run_benchmarks(names or list(BENCHMARKS), *asked):
        if as_json:
            print(json.dumps(result))


@command(
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
    from rich.console import Console

    console = errors if as_json else Console(highlight=False)
    for result in run_experiments(names or list(EXPERIMENTS), settings, output, console, errors):
        if as_json:
            print(json.dumps(result))
