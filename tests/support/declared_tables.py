"""Tables that nobody reads: they have the columns that the text declares. For tests of what an app means."""

from __future__ import annotations

from penstock.logical.expressions import Match
from penstock.logical.query import Field, Table


class Declared:
    """In the place of `penstock.runtime.expressions.known_tables.KnownTables`; `several`: some records have more than
    one row."""

    def __init__(self, several: bool = False) -> None:
        self._several = several

    def read(
        self,
        name: str,
        uri: str,
        options: tuple[tuple[str, str], ...],
        fields: tuple[Field, ...] | None,
        longest: bool,
        refresh: int | None = None,
    ) -> Table:
        return Table(name, fields or (), uri, options, f"digest of {name}", longest, refresh)

    def several(self, match: Match) -> bool:
        return self._several

    def problem(self, match: Match) -> str | None:
        return None
