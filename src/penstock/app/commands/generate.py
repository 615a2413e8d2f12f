"""`penstock generate`: a synthetic stream as a file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from penstock.app.commands.commands import command, errors
from penstock.app.sizes import count
from penstock.errors import ConfigError


@command(
    epilog="Examples: penstock generate flows -o flows.parquet --rows 5M --seed 7 --option flow_length=50; "
    "penstock generate zipf -o zipf.csv --rows 10k"
)
def generate(
    kind: Annotated[str, typer.Argument(help="uniform, zipf, clustered (or flows), bursty")],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE", help="To write: .parquet, .csv, .json, .jsonl, .pcap, .csv.gz, ..."
        ),
    ],
    rows: Annotated[
        int | None,
        typer.Option("--rows", metavar="N", parser=partial(count, option="--rows"), help="Records; default: 1M."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same stream.")] = 7,
    option: Annotated[list[str] | None, typer.Option("--option", metavar="K=V", help="As in WITH (k = v).")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Write a synthetic stream: seeded, repeatable, the same as the source generate:KIND."""
    from rich.console import Console
    from rich.progress import Progress

    from penstock.app.record_files import writer_of
    from penstock.sources.generate.source import open_generate

    options = {"rows": str(1_000_000 if rows is None else rows), "seed": str(seed)}
    for setting in option or []:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ConfigError(f"--option {setting} is not of the form K=V", "write it like --option rate=1000")
        options[key] = value
    source = open_generate(kind, options)
    write = writer_of(output)
    with Progress(console=Console(quiet=True) if quiet else errors, disable=quiet) as progress:
        task = progress.add_task(f"generating {kind}", total=source.rows())
        write(source, output, lambda done: progress.update(task, completed=done))
    print(f"{output}: {source.rows():,} records")
