"""`penstock state`: what a checkpoint holds."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from penstock.app.commands.commands import command
from penstock.app.commands.options import Json


@command(epilog="Example: penstock state --checkpoint ckpt --json")
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
