"""Tables as resolving an app asks for them (`logical.resolve.joins.tables.Tables`): read, and looked into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.errors import SourceError
from penstock.logical.expressions import Match
from penstock.logical.query import Field, Table
from penstock.sources.base import Source
from penstock.state.garbage import VERSION

Open = Callable[[str, Mapping[str, str], tuple[Field, ...] | None], Source]  # address, options, declared columns


def no_more(uri: str, options: Mapping[str, str], fields: tuple[Field, ...] | None) -> Source:
    raise SourceError(f"'{uri}' cannot be read while the app runs", "declare the table before it starts")


@dataclass(frozen=True)
class KnownTables:
    """Tables that `opened` finds; what is read stays in memory, as long as this process resolves apps with it.
    `versions` are the contents that tables have which are read again, by name; else as they were read last."""

    opened: Open = no_more
    versions: Mapping[str, str] = field(default_factory=dict)

    def read(
        self,
        name: str,
        uri: str,
        options: tuple[tuple[str, str], ...],
        fields: tuple[Field, ...] | None,
        longest: bool,
        refresh: int | None = None,
    ) -> Table:
        from penstock.runtime.expressions.lookups import hold, name_newest
        from penstock.sources.tables import read_table, refreshed_identity

        source = self.opened(uri, dict(options), fields)
        if refresh is not None and not source.abilities.grows:
            raise SourceError(f"'{uri}' cannot be read again while the app runs", "refresh is for tables in files")
        found = read_table(source, fields, name)
        if refresh is None:
            hold(found.digest, found.data)
            return Table(name, found.fields, uri, options, found.digest, longest)
        known, version = refreshed_identity(name, found.fields), VERSION + found.digest
        hold(version, found.data)
        name_newest(known, version)
        return Table(name, found.fields, uri, options, known, longest, refresh)

    def several(self, match: Match) -> bool:
        from penstock.runtime.expressions.lookups import classes_of, in_force

        return not classes_of(in_force(match, self.versions)).unique

    def problem(self, match: Match) -> str | None:
        from penstock.runtime.expressions.lookups import in_force, problems

        return problems(in_force(match, self.versions))
