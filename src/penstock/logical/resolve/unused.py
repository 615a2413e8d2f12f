"""What an app's text declares, or is given, for nothing: commands say so, since it is often a slip."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.lang.ast import CreateStream
from penstock.lang.parse import parse_app
from penstock.lang.text import variables_of
from penstock.logical.query import QuerySet


def unused(text: str, file: str, variables: Mapping[str, str], app: QuerySet) -> list[str]:
    """A sentence for every variable that the text does not have, and every stream that no query reads."""
    known = variables_of(text)
    there = ", ".join(f"${{{name}}}" for name in sorted(known)) or "no variables"
    found = [f"--set {name}=... is not used: the app has {there}" for name in variables if name not in known]
    read = {stream.name for stream in app.streams} | {table.name for table in app.tables}
    for statement in parse_app(text, file, variables).statements:
        if isinstance(statement, CreateStream) and statement.name.text not in read:
            found.append(
                f"{'table' if statement.table else 'stream'} '{statement.name.text}' is not used: no query reads it"
            )
    return found
