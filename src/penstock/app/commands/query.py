"""`penstock query`: one-off queries on files, answered at once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.app.commands.commands import command, errors
from penstock.app.commands.options import Json
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.app.api import App


@command(
    epilog="Examples: penstock query \"SELECT src, count(*) AS n FROM 'x.pcap' GROUP BY src ORDER BY n DESC LIMIT 5\"; "
    "penstock query \"SELECT dport, sum(ip_length) AS bytes FROM 'day/*.pcap.gz' [RANGE '1 minute'] GROUP BY dport\" "
    "--format csv -o ports.csv; zcat x.csv.gz | penstock query \"SELECT count(*) AS n FROM '-'\"; "
    "penstock query --columns x.pcap"
)
def query(
    text: Annotated[
        str | None, typer.Argument(metavar="SELECT", help="Queries on files named in FROM; several with ';' between.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="FILE", help="List the columns that a file has, and their types.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="table, csv, json or parquet; default: table on a terminal, else csv."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="F", help="A file; of several queries a folder.")
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="process: without Spark; or a Spark master. Default: by size, process mostly."
        ),
    ] = None,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, and no word about malformed records.")] = False,
) -> None:
    """One-off queries on files: FROM 'x.pcap'. Without a window: all records. Answers in a second, without Spark."""
    if columns is not None:
        _list_columns(columns, as_json)
        return
    if text is None:
        raise ConfigError("there is no query", "penstock query \"SELECT count(*) AS n FROM 'x.pcap'\"")
    from penstock.app.answers import answered, input_bytes, place_of
    from penstock.app.api import App
    from penstock.app.rendering import writer_of

    app = App().selects(text)
    names = [one.name for one in app.query_set().queries if not one.hidden]
    writer = writer_of("json" if as_json and form is None else form, output, names)
    size = input_bytes(app)
    place = place_of(size, len(names), master)
    if place.master != "process" and master is None and not quiet:
        told = f"{size / (1 << 30):.1f} GiB of input: running on Spark; --master process runs it without"
        errors.print(told, markup=False, soft_wrap=True)
    found = answered(app, place, lambda ordered, checkpoint, settings: _watched(ordered, checkpoint, settings, quiet))
    writer(found.tables)
    if not quiet:
        _tell(found.summary)


def _watched(app: App, checkpoint: str, settings: dict[str, Any], quiet: bool) -> dict[str, Any]:
    from penstock.app.commands.watching import Stopped, watch

    try:
        return watch(app, checkpoint, settings, quiet or not sys.stderr.isatty())
    except Stopped as stopped:  # half an answer is none, and nothing is kept to go on from
        raise Stopped(stopped.number, None, None) from None


def _tell(summary: dict[str, Any]) -> None:
    """Records that are in no result because something is wrong with them."""
    from penstock.monitor.account import malformed_lines

    for line in malformed_lines(summary):
        errors.print(line, markup=False, soft_wrap=True)


def _list_columns(file: str, as_json: bool) -> None:
    import json

    from penstock.app.api import App
    from penstock.logical.resolve.addresses import SUFFIX_HINT, address_of

    address = address_of(file)
    if address is None:
        raise ConfigError(f"'{file}' does not say what kind of file it is", SUFFIX_HINT)
    fields = App().fields_of(address.uri, dict(address.options))
    if as_json:
        print(json.dumps({field.name: str(field.type) for field in fields}))
        return
    width = max(len(field.name) for field in fields)
    print("\n".join(f"{field.name:<{width}}  {field.type}" for field in fields))
