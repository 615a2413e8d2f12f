"""Where commands are registered: a module for each decorates its function with `command`.

Modules of commands load what they need when they are called: `--help` must not wait for it.
"""

from __future__ import annotations

import typer
from rich.console import Console

from penstock.app.commands import light

light.install()
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="penstock: many continuous aggregate queries on one fast stream, in one Spark streaming query.",
    epilog="Start with: [bold]penstock generate flows -o flows.parquet --rows 1000000[/], then "
    "[bold]penstock run examples/flows.sql --set trace=flows.parquet[/].",
)
errors = Console(stderr=True, highlight=False)
command = app.command
