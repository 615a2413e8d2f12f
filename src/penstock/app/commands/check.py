"""`penstock check`: is an app right?"""

from __future__ import annotations

import json

from penstock.app.commands.commands import command
from penstock.app.commands.loading import load_app
from penstock.app.commands.options import AppFile, Json, Set


@command(epilog="Example: penstock check app.sql")
def check(path: AppFile, variables: Set = None, as_json: Json = False) -> None:
    """Parse and resolve only: errors with line, column and caret, and what is not executable yet."""
    queries = load_app(path, variables).query_set()
    streams = [stream.name for stream in queries.streams]
    names = [query.name for query in queries.queries if not query.hidden]
    if as_json:
        print(json.dumps({"stream": streams[0], "streams": streams, "queries": names}))
        return
    over = f"stream{'s' if len(streams) > 1 else ''} " + ", ".join(f"'{name}'" for name in streams)
    print(f"{path}: {len(names)} {'query' if len(names) == 1 else 'queries'} over {over}, ready to run")
