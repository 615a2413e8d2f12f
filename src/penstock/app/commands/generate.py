"""`penstock generate`: a synthetic stream as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.app.commands.commands import command, errors
from penstock.errors import ConfigError


@command(epilog="Example: penstock generate flows -o flows.parquet --rows 5000000 --seed 7 --option flow_length=50")
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
