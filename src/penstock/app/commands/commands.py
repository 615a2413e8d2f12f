"""Where commands are registered: a module for each decorates its function with `command`.

Modules of commands load what they need when they are called: `--help` must not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from penstock.app.commands import light
from penstock.app.commands.environment import Command

if TYPE_CHECKING:
    from rich.console import Console

light.install()
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="penstock: many continuous aggregate queries on one fast stream, in one Spark streaming query.",
    epilog="Start with: [bold]penstock generate flows -o flows.parquet --rows 1000000[/], then "
    "[bold]penstock run examples/flows.sql --set trace=flows.parquet[/]. "
    "Every option may come from the environment: --batch-rows as PENSTOCK_BATCH_ROWS.",
)


class _Errors:
    """Standard error: it turns into rich's console, which takes long to load, when there is something to say."""

    def __getattr__(self, name: str) -> Any:
        from rich.console import Console

        self.__class__ = Console  # type: ignore[assignment]
        Console.__init__(self, stderr=True, highlight=False)  # type: ignore[arg-type]
        return getattr(self, name)


errors: Console = _Errors()  # type: ignore[assignment]


def command(**settings: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function as the command of its name."""
    return app.command(cls=Command, **settings)
