"""Options of commands from the environment: `--batch-rows` is also `PENSTOCK_BATCH_ROWS`, of every command that has it.

What stands on the command line goes before. A command that fails says which of its options came from here.
"""

from __future__ import annotations

import os
from typing import Any

from typer.core import TyperCommand, TyperOption

PREFIX = "PENSTOCK_"
_taken: list[str] = []


class Command(TyperCommand):
    """A command whose options may be given in the environment."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        for option in self.params:
            if isinstance(option, TyperOption) and not option.is_eager:
                option.envvar = variable(option.opts, str(self.name))
                option.show_envvar = False  # one line of the help says it of all

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        finally:
            _taken[:] = [str(option.envvar) for option in self.params if _from_environment(ctx, option)]


def variable(options: list[str], command: str) -> str:
    """The variable of an option. Where one answer goes, `-o`, is said for each command apart from the output of runs.

    >>> variable(["--output"], "run"), variable(["-o", "--output"], "query"), variable(["--batch-rows"], "run")
    ('PENSTOCK_OUTPUT', 'PENSTOCK_QUERY_OUTPUT', 'PENSTOCK_BATCH_ROWS')
    """
    words = max(options, key=len).lstrip("-").replace("-", "_")
    return PREFIX + (f"{command}_{words}" if "-o" in options else words).upper()


def taken() -> list[str]:
    """The options of the last command that came from the environment, as NAME=VALUE."""
    return [f"{name}={os.environ.get(name, '')}" for name in _taken]


def _from_environment(ctx: Any, option: Any) -> bool:
    source = ctx.get_parameter_source(option.name)
    return source is not None and source.name == "ENVIRONMENT"
