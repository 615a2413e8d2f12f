"""Tables that are read again while an app runs: which version the records of a batch see.

    decide a batch ──► Refresher.decided ──► files changed? ──► read, checked ──► CHECKPOINT/tables/DIGEST.arrow
                                                                   └──► the offset names the digest ──► tasks

It is looked at when a batch is decided, at most once in the table's interval. The offset of the batch has what was
found, so a replay sees the same, whatever the file holds by then. A file that is gone or broken, and content that the
app's queries cannot take, change nothing: the version of before stays, and the offset says why.

Where a run goes on, or its app has changed, the version of before may be none that the app can take. The one that was
read when the run began always is: every query was resolved with it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from penstock import clock
from penstock.errors import PenstockError, why
from penstock.faults import reach
from penstock.logical.expressions import Match
from penstock.logical.query import QuerySet, Table
from penstock.state.garbage import VERSION
from penstock.state.protocol import TableVersion

Signature = tuple[tuple[str, int, int, int], ...]  # path, number, size and time of each file
MICROSECONDS = 1e6
UNSETTLED = 2.0  # seconds
SEVERAL = "some record would find several rows of it"


@dataclass
class Watched:
    """What is known of a table's files: where they are, how they were when they were last read, and when the next look
    is due."""

    address: Any = None
    seen: Signature | None = None
    due_at: float = 0.0


class Refresher:
    """Looks at tables. `first` are the contents that the run began with, by name."""

    def __init__(self, checkpoint: Path, first: Mapping[str, str], ticks: Callable[[], float] = time.monotonic) -> None:
        self._checkpoint, self._first, self._ticks = checkpoint, first, ticks
        self._watched: dict[str, Watched] = {}
        self._app: QuerySet | None = None
        self._asked: dict[str, tuple[Match, ...]] = {}

    def decided(self, app: QuerySet, before: Mapping[str, TableVersion]) -> dict[str, TableVersion]:
        """The versions that the next batch sees, by the name of the table."""
        tables = [table for table in app.tables if table.refresh is not None]
        if not tables:
            return {}
        changed = app is not self._app
        if changed:
            self._app, self._asked = app, {table.name: relied_on(app, table.name) for table in tables}
        return {table.name: self._looked(table, self._known(table, before, changed)) for table in tables}

    def _known(self, table: Table, before: Mapping[str, TableVersion], changed: bool) -> TableVersion:
        """The version of before, if the app can take it."""
        first = self._first[table.name]
        known = before.get(table.name, TableVersion(first))
        if not changed or known.digest == first:
            return known
        from penstock.sources.tables import load_table

        try:
            problem = self._problem(table, known.digest, load_table(self._checkpoint, known.digest))
        except PenstockError as error:
            problem = error.fact
        return known if problem is None else TableVersion(first, known.refused + 1, problem)

    def _looked(self, table: Table, known: TableVersion) -> TableVersion:
        """The version of now, if it is time to look."""
        assert table.refresh is not None
        watched = self._watched.setdefault(table.name, Watched())
        now = self._ticks()
        if now < watched.due_at:
            return known
        watched.due_at = now + table.refresh / MICROSECONDS
        try:
            found = self._read(table, watched)
        except PenstockError as error:
            found = TableVersion("", problem=error.fact)
        except Exception as error:  # whatever a broken file does: it must not stop the stream
            found = TableVersion("", problem=why(error) if isinstance(error, OSError) else f"{error}")
        if found is None:
            return known
        if found.digest:
            return replace(found, refused=known.refused)
        new = found.problem != known.problem
        return replace(known, refused=known.refused + new, problem=found.problem)

    def _read(self, table: Table, watched: Watched) -> TableVersion | None:
        """What the files hold: a version, or why it is none; None where they are as they were, or are being written."""
        from penstock.sources.arrow.kept import keep
        from penstock.sources.registry import open_source
        from penstock.sources.tables import read_table

        if watched.address is not None:
            before, watched.seen = watched.seen, signature(watched.address)
            if watched.seen == before:
                return None
        source: Any = open_source(table.source, dict(table.options), table.fields)
        watched.address, watched.seen = source.address, signature(source.address)
        try:
            found = read_table(source, table.fields, table.name)
        except Exception:
            if self._moved(watched):
                return None
            raise
        if self._moved(watched):
            return None
        problem = self._problem(table, found.digest, found.data)
        if problem is not None:
            return TableVersion("", problem=problem)
        version = VERSION + found.digest
        keep(self._checkpoint, found.data, version)
        reach("table.kept")
        return TableVersion(version)

    def _moved(self, watched: Watched) -> bool:
        """Whether the files are being written: what was read is nothing then, and they are looked at once more."""
        now = signature(watched.address)
        moved = now != watched.seen
        # Times of files are coarse: one that was written just now may be written again without a trace.
        fresh = any(at > 1e9 * (clock.now() - UNSETTLED) for *_, at in now)
        watched.seen = None if moved or fresh else watched.seen
        return moved

    def _problem(self, table: Table, digest: str, data: Any) -> str | None:
        """Why the app's queries cannot take this content; None if they can."""
        from penstock.runtime.expressions.matching.make import make_classes
        from penstock.runtime.expressions.matching.problems import problem_of

        for match in self._asked[table.name]:
            asked = replace(match, digest=digest)
            problem = problem_of(asked, data)
            if problem is None and match.single and not make_classes(asked, data).unique:
                problem = SEVERAL
            if problem is not None:
                return problem
        return None


def signature(address: Any) -> Signature:
    """The files of an address as they are now."""
    found = []
    for path in address.matching():
        with suppress(FileNotFoundError):  # it has just gone
            state = os.stat(path)
            found.append((path, state.st_ino, state.st_size, state.st_mtime_ns))
    return tuple(found)


def relied_on(app: QuerySet, table: str) -> tuple[Match, ...]:
    """All that queries ask of a table, but once where only the record's part differs."""
    found: dict[tuple[object, ...], Match] = {}
    for match in _matches(app.queries):
        if match.table == table:
            equals = tuple((of.type, column) for of, column in match.equals)
            value = None if match.value is None else match.value.type
            found[equals, value, match.bounds, match.where, match.longest, match.single] = match
    return tuple(found.values())


def _matches(value: object) -> Iterator[Match]:
    """All matches in a plan, wherever they stand."""
    if isinstance(value, Match):
        yield value
    if isinstance(value, tuple | list):
        for one in value:
            yield from _matches(one)
    elif isinstance(value, Mapping):
        yield from _matches(list(value.values()))
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _matches(getattr(value, field.name))
