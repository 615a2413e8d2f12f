"""`penstock generate`: a synthetic stream as a file; an auction house as three."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.app.commands.commands import command, errors
from penstock.app.sizes import count
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@command(
    epilog="Examples: penstock generate flows -o flows.parquet --rows 5M --seed 7 --option flow_length=50; "
    "penstock generate zipf -o zipf.csv --rows 10k; "
    "penstock generate auction -o house --rows 5M (house/persons.parquet, house/auctions.parquet, house/bids.parquet)"
)
def generate(
    kind: Annotated[str, typer.Argument(help="uniform, zipf, clustered (or flows), bursty, auction")],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="To write: .parquet, .csv, .json, .jsonl, .pcap, .csv.gz, ...; of auction a folder.",
        ),
    ],
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows", metavar="N", parser=partial(count, option="--rows"), help="Records, of auction bids; default: 1M."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same stream.")] = 7,
    option: Annotated[list[str] | None, typer.Option("--option", metavar="K=V", help="As in WITH (k = v).")] = None,
    form: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="Of auction: parquet (default), csv, json.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Write a synthetic stream: seeded, repeatable, the same as the source generate:KIND."""
    from rich.console import Console
    from rich.progress import Progress

    from penstock.app.record_files import house_files, one_file, writer_of
    from penstock.sources.generate.source import HOUSE, open_generate

    options = {"rows": str(1_000_000 if rows is None else rows), "seed": str(seed)}
    for setting in option or []:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ConfigError(f"--option {setting} is not of the form K=V", "write it like --option rate=1000")
        options[key] = value
    parts = house_files(output, form) if kind.lower() == HOUSE else {kind: one_file(output, form)}
    writing = [(open_generate(stream, options), path, writer_of(path)) for stream, path in parts.items()]
    with Progress(console=Console(quiet=True) if quiet else errors, disable=quiet) as progress:
        for source, path, write in writing:
            task = progress.add_task(f"generating {source.kind}", total=source.rows())
            write(source, path, partial(_tell, progress, task))
    for source, path, _ in writing:
        print(f"{path}: {source.rows():,} records")


def _tell(progress: Progress, task: TaskID, done: int) -> None:
    progress.update(task, completed=done)
