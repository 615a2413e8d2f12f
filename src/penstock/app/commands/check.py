"""`penstock check`: is an app right?"""

from __future__ import annotations

import json

from penstock.app.commands.commands import command
from penstock.app.commands.loading import load_app
from penstock.app.commands.options import AppFile, Json, Master, Output, Set, Until


@command(epilog="Examples: penstock check app.sql; penstock check app.sql --until stopped --master process")
def check(
    path: AppFile,
    variables: Set = None,
    master: Master = None,
    output: Output = "penstock-out",
    until: Until = "end",
    as_json: Json = False,
) -> None:
    """Whether an app would run: its text (errors with line, column and caret), sources and sinks. Runs nothing."""
    queries = load_app(path, variables, master).check("checkpoint", output=output, until=until)
    streams = [stream.name for stream in queries.streams]
    names = [query.name for query in queries.queries if not query.hidden]
    if as_json:
        print(json.dumps({"stream": streams[0], "streams": streams, "queries": names}))
        return
    over = f"stream{'s' if len(streams) > 1 else ''} " + ", ".join(f"'{name}'" for name in streams)
    print(f"{path}: {len(names)} {'query' if len(names) == 1 else 'queries'} over {over}, ready to run")
