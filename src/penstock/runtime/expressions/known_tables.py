"""Tables as resolving an app asks for them (`logical.resolve.joins.tables.Tables`): read, and looked into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.errors import SourceError
from penstock.logical.expressions import Match
from penstock.logical.query import Field, Table
from penstock.sources.base import Source

Open = Callable[[str, Mapping[str, str], tuple[Field, ...] | None], Source]  # address, options, declared columns


def no_more(uri: str, options: Mapping[str, str], fields: tuple[Field, ...] | None) -> Source:
    raise SourceError(f"'{uri}' cannot be read while the app runs", "declare the table before it starts")


@dataclass(frozen=True)
class KnownTables:
    """Tables that `opened` finds; what is read stays in memory, as long as this process resolves apps with it."""

    opened: Open = no_more

    def read(
        self,
        name: str,
        uri: str,
        options: tuple[tuple[str, str], ...],
        fields: tuple[Field, ...] | None,
        longest: bool,
    ) -> Table:
        from penstock.runtime.expressions.lookups import hold
        from penstock.sources.tables import read_table

        found = read_table(self.opened(uri, dict(options), fields), fields, name)
        hold(found.digest, found.data)
        return Table(name, found.fields, uri, options, found.digest, longest)

    def several(self, match: Match) -> bool:
        from penstock.runtime.expressions.lookups import classes_of

        return not classes_of(match).unique

    def problem(self, match: Match) -> str | None:
        from penstock.runtime.expressions.lookups import problems

        return problems(match)
