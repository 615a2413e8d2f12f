"""`penstock prepare`: once for an installation, so that runs start faster."""

from __future__ import annotations

from penstock.app.commands.commands import command, errors


@command(epilog="Example: penstock prepare")
def prepare() -> None:
    """Compile kernels and keep an archive of Spark's classes: once, so that every later run starts in half the time."""
    from penstock.app.prepare import prepare as prepare_all

    with errors.status("preparing") as status:
        made = prepare_all(lambda doing: status.update(doing))
    for line in made:
        print(line)
