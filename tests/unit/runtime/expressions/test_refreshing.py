"""Tables that are read again: when they are looked at, what is taken, and what stays in force when it is not."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import SourceError
from penstock.logical.expressions import Column, Lookup, Match
from penstock.logical.query import Field, QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.logical.types import BIGINT, STRING, TIMESTAMP
from penstock.runtime.expressions import folders, lookups
from penstock.runtime.expressions.evaluate import Operand, Scope
from penstock.runtime.expressions.known_tables import KnownTables
from penstock.runtime.expressions.lookups import hold, looked_up
from penstock.runtime.expressions.refreshing import Refresher, relied_on, signature
from penstock.sources import tables as tables_module
from penstock.sources.registry import open_source
from penstock.state import garbage, manifest
from penstock.state.protocol import Offset, TableVersion

STREAM = "CREATE STREAM s (ts TIMESTAMP, k BIGINT, x BIGINT) FROM 'csv:none.csv' WATERMARK ts DELAY '1 second';\n"
BY_KEY = "CREATE QUERY q AS SELECT name, count(*) FROM s [RANGE '1 minute'], t WHERE s.k = t.k GROUP BY name;\n"
LEFT = "CREATE QUERY l AS SELECT name, count(*) FROM s [RANGE '1 minute'] LEFT JOIN t ON s.k = t.k GROUP BY name;\n"
BY_NAME = "CREATE QUERY n AS SELECT t.k, count(*) FROM s [RANGE '1 minute'], t WHERE s.x = t.other GROUP BY t.k;\n"
ONE, TWO, TWICE = [(1, "a", 1)], [(1, "b", 1), (2, "c", 2)], [(1, "b", 1), (1, "c", 2)]
Rows = Sequence[tuple[object, object, object]]


@pytest.fixture(autouse=True)
def _nothing_held() -> Iterator[None]:
    yield
    lookups.classes_of.cache_clear()
    for kept in (lookups._held, lookups._loaded, lookups._newest_read, folders._folders):
        kept.clear()


class Place:
    """A table's file, an app that reads it, a checkpoint, and a clock that tests set."""

    def __init__(self, folder: Path) -> None:
        self.file, self.checkpoint, self.now = folder / "t.csv", folder / "ckpt", 100.0
        self.written_at = 1_000_000_000.0
        self.checkpoint.mkdir()
        self.refresher: Refresher

    def write(self, rows: Rows, header: str = "k,name,other") -> None:
        lines = [header, *(",".join(map(str, row)) for row in rows)]
        aside = self.file.with_suffix(".tmp")
        aside.write_text("\n".join(lines) + "\n", encoding="utf-8")
        os.utime(aside, (self.written_at, self.written_at))
        self.written_at += 1
        os.replace(aside, self.file)

    def app(self, queries: str = BY_KEY + LEFT) -> QuerySet:
        declared = f"CREATE TABLE t (k BIGINT, name STRING, other BIGINT) FROM 'csv:{self.file}' "
        text = STREAM + declared + "WITH (refresh = '10 seconds');\n" + queries
        fields = (Field("ts", TIMESTAMP), Field("k", BIGINT))
        return resolve_app(text, "app", lambda uri, options: fields, None, KnownTables(open_source))

    def begin(self, app: QuerySet) -> None:
        """As the start of a run does."""
        (table,) = app.tables
        first = lookups.newest_of(table.digest)
        tables_module.keep(self.checkpoint, lookups.table_of(first), first)
        self.refresher = Refresher(self.checkpoint, {"t": first}, lambda: self.now)

    def decided(self, app: QuerySet, before: TableVersion | None = None) -> TableVersion:
        return self.refresher.decided(app, {} if before is None else {"t": before})["t"]

    def content(self, version: TableVersion) -> list[tuple[object, ...]]:
        table = tables_module.load_table(self.checkpoint, version.digest)
        return list(zip(*table.to_pydict().values(), strict=True))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# -- when it is looked at, and what is taken


def test_a_table_is_read_again_when_it_is_time(place: Place) -> None:
    place.write(ONE)
    app = place.app()
    place.begin(app)
    first = place.decided(app)
    assert place.content(first) == ONE
    place.write(TWO)
    place.now += 9.9
    assert place.decided(app, first) == first
    place.now += 0.2
    second = place.decided(app, first)
    assert place.content(second) == TWO
    assert (second.refused, second.problem) == (0, "")
    place.write(ONE)  # and back
    place.now += 10
    assert place.decided(app, second) == first


def test_a_table_that_is_as_it_was_is_not_read(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write(ONE)
    app = place.app()
    place.begin(app)
    first = place.decided(app)
    reads: list[str] = []
    read = tables_module.read_table
    monkeypatch.setattr(tables_module, "read_table", lambda *given: reads.append(given[2]) or read(*given))
    place.now += 100
    assert place.decided(app, first) == first
    assert reads == []
    place.write(ONE)  # another file, the same rows
    place.now += 100
    assert place.decided(app, first) == first
    assert reads == ["t"]


def test_a_file_that_was_written_just_now_is_read_once_more(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write(ONE)
    app = place.app()
    place.begin(app)
    first = place.decided(app)
    place.written_at = time.time()
    place.write(TWO)
    was = place.file.stat()
    place.now += 10
    second = place.decided(app, first)
    place.file.write_text(place.file.read_text(encoding="utf-8").replace("c", "d"), encoding="utf-8")
    os.utime(place.file, ns=(was.st_atime_ns, was.st_mtime_ns))  # as size, time and file tell, nothing has happened
    place.now += 10
    assert place.content(place.decided(app, second)) == [(1, "b", 1), (2, "d", 2)]


def test_a_new_reader_looks_at_once(place: Place) -> None:
    place.write(ONE)
    app = place.app()
    place.begin(app)
    first = place.decided(app)
    place.write(TWO)
    place.begin(app)
    assert place.content(place.decided(app, first)) == TWO


@pytest.mark.parametrize(
    ("rows", "header", "problem"),
    [
        (TWICE, "k,name,other", "some record would find several rows of it"),
        ([("x", "b", 1)], "k,name,other", "its k is not a valid BIGINT"),
        ([], "k,name,other", "table 't' is empty"),
        ([(1, "b")], "k,name", "other"),
    ],
)
def test_content_that_cannot_be_taken_changes_nothing(place: Place, rows: Rows, header: str, problem: str) -> None:
    place.write(ONE)
    app = place.app()
    place.begin(app)
    first = place.decided(app)
    place.write(rows, header)
    place.now += 10
    stays = place.decided(app, first)
    assert (stays.digest, stays.refused) == (first.digest, 1)
    assert problem in stays.problem
    place.now += 10
    assert place.decided(app, stays) == stays  # counted once
    place.write(TWO)
    place.now += 10
    taken = place.decided(app, stays)
    assert place.content(taken) == TWO
    assert (taken.refused, taken.problem) == (1, "")


def test_a_file_that_is_gone_changes_nothing(place: Place) -> None:
    place.write(ONE)
    app = place.app()
    place.begin(app)
    place.file.unlink()
    first = place.decided(app)  # gone before the first batch: what the run began with
    assert place.content(first) == ONE
    assert first.refused == 1
    assert "no such file" in first.problem
    for _ in range(3):
        place.now += 10
        assert place.decided(app, first) == first
    place.write(TWO)
    place.now += 10
    assert place.content(place.decided(app, first)) == TWO


def test_a_file_that_is_being_written_is_read_later(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write(ONE)
    app = place.app()
    place.begin(app)
    first = place.decided(app)
    read = tables_module.read_table

    def meanwhile(*given: object) -> object:
        place.write(TWO)
        raise SourceError("the file ends in the middle of a record")

    place.write(TWICE)
    place.now += 10
    monkeypatch.setattr(tables_module, "read_table", meanwhile)
    assert place.decided(app, first) == first
    monkeypatch.setattr(tables_module, "read_table", read)
    place.now += 10
    assert place.content(place.decided(app, first)) == TWO


def test_whatever_goes_wrong_does_not_stop_the_stream(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write(ONE)
    app = place.app()
    place.begin(app)
    first = place.decided(app)

    def broken(*given: object) -> object:
        raise UnicodeError("no text")

    monkeypatch.setattr(tables_module, "read_table", broken)
    place.write(TWO)
    place.now += 10
    assert place.decided(app, first) == replace(first, refused=1, problem="no text")


def test_questions_may_find_several_rows(place: Place) -> None:
    place.write(ONE)
    asking = "CREATE QUERY e AS SELECT count(*) FROM s [RANGE '1 minute'] WHERE k IN (SELECT k FROM t);\n"
    app = place.app(asking)
    place.begin(app)
    first = place.decided(app)
    place.write(TWICE)
    place.now += 10
    assert place.content(place.decided(app, first)) == TWICE


# -- apps that change


def test_a_version_that_a_new_query_cannot_take_is_given_up(place: Place) -> None:
    place.write([(1, "a", 1), (2, "a", 1)])
    app = place.app()
    place.begin(app)
    old = place.decided(app)
    place.write(TWO)
    both = place.app(BY_KEY + LEFT + BY_NAME)  # by `other`, of which the old version has one value twice
    place.begin(both)
    place.file.unlink()
    found = place.decided(both, old)
    assert place.content(found) == TWO
    assert found.refused == 2  # the old version, then the file that is gone
    assert place.decided(both, found) == found


def test_what_queries_rely_on(place: Place) -> None:
    place.write(ONE)
    assert len(relied_on(place.app(), "t")) == 1  # the same of both, but of the record's columns
    assert len(relied_on(place.app(BY_KEY + BY_NAME), "t")) == 2
    assert all(match.single for match in relied_on(place.app(), "t"))
    assert relied_on(place.app(), "u") == ()
    place.write(TWO)
    again = place.app()
    assert again.queries == place.app().queries  # whatever the table holds


def test_an_app_without_such_tables_decides_nothing(tmp_path: Path) -> None:
    assert Refresher(tmp_path, {}).decided(QuerySet((), ()), {}) == {}


# -- lookups, files, garbage


def test_records_see_the_version_that_their_batch_names() -> None:
    for digest, name in (("version-1", "one"), ("version-2", "two")):
        hold(digest, pa.table({"k": pa.array([7], pa.int64()), "name": pa.array([name])}))
    lookups.name_newest("refreshed-t", "version-2")
    key = Column("k", BIGINT)
    lookup = Lookup(Match("t", "refreshed-t", ((key, key),), single=True), "name", STRING)

    def names(versions: dict[str, str]) -> list[str | None]:
        scope = Scope(lambda _: Operand(pa.array([7, 8]).to_numpy()), 2, versions=versions)
        found = looked_up(lookup, scope)
        assert found.valid is not None
        return [str(value) if there else None for value, there in zip(found.values, found.valid, strict=True)]

    assert names({"t": "version-1"}) == ["one", None]
    assert names({"t": "version-2"}) == ["two", None]
    assert names({}) == ["two", None]  # as it was read last


def test_tables_that_are_no_files_cannot_be_read_again(place: Place) -> None:
    reader = KnownTables(open_source)
    with pytest.raises(SourceError, match="'generate:flows' cannot be read again while the app runs"):
        reader.read("t", "generate:flows", (), None, False, 10)


def test_files_of_a_folder_are_watched(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"k": [1]}), tmp_path / "t" / "1.parquet")
    source: object = open_source(f"parquet:{tmp_path}/t", {})
    address = vars(source)["address"]
    one = signature(address)
    assert one == signature(address)
    pq.write_table(pa.table({"k": [2]}), tmp_path / "t" / "2.parquet")
    assert len(signature(address)) == 2
    assert signature(address)[:1] == one


def test_garbage_keeps_the_versions_that_are_needed(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "manifests").mkdir()
    names = ["version-1", "version-2", "version-3", "version-4", "version-5", "plain"]
    for name in names:
        garbage.table_path(tmp_path, name).write_bytes(b"")
    for batch, version in enumerate(["version-1", "version-2", "version-3"]):
        offset = Offset(batch + 1, tables={"t": TableVersion(version)})
        manifest.put(tmp_path, replace(manifest.first_manifest(), batch=batch, offset=offset))

    def left() -> list[str]:
        return sorted(path.stem for path in (tmp_path / "tables").iterdir())

    garbage.collect(tmp_path, 2)  # it is not known what was decided since
    assert left() == sorted(names)
    garbage.collect(tmp_path, 2, frozenset({"version-5"}))
    assert left() == ["plain", "version-2", "version-3", "version-5"]
