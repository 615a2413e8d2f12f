"""What sources declare is true of them, and callers go by it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from penstock.errors import QueryError
from penstock.logical.query import Field
from penstock.logical.resolve.app import resolve_app
from penstock.logical.types import BIGINT
from penstock.logical.window import ROWS, TIME, Window
from penstock.runtime.batch.fused import FusedReader
from penstock.runtime.batch.job import Job
from penstock.runtime.planning.replan import sample_source
from penstock.runtime.settings import TaskSettings
from penstock.sources.base import OF_FILES, OF_FRAMES, START, Abilities, Position, Source, Split, growing, whole
from penstock.sources.base import fields as source_fields
from penstock.sources.fit import check_window
from penstock.sources.generate.source import GeneratedSource, open_generate
from penstock.sources.registry import SCHEMES, open_source
from support.captures import Packet
from support.captures import pcap as captured
from support.packet_samples import SAMPLES

COUNT = 300


def _parquet(folder: Path, name: str, numbers: range) -> None:
    pq.write_table(pa.table({"n": list(numbers)}), folder / f"{name}.parquet", row_group_size=40)


def _arrow(folder: Path, name: str, numbers: range) -> None:
    pa.feather.write_feather(pa.table({"n": list(numbers)}), folder / f"{name}.arrow", chunksize=40)


def _csv(folder: Path, name: str, numbers: range) -> None:
    (folder / f"{name}.csv").write_text("".join(f"{n}\n" for n in numbers))


def _json(folder: Path, name: str, numbers: range) -> None:
    (folder / f"{name}.json").write_text("".join(json.dumps({"n": n}) + "\n" for n in numbers))


def _pcap(folder: Path, name: str, numbers: range) -> None:
    (folder / f"{name}.pcap").write_bytes(captured([Packet(SAMPLES["udp"].data, None, n) for n in numbers]))


FILES: dict[str, tuple[Callable[[Path, str, range], None], str]] = {
    "parquet": (_parquet, "n"),
    "arrow": (_arrow, "n"),
    "csv": (_csv, "n"),
    "json": (_json, "n"),
    "pcap": (_pcap, "ts"),
}


@pytest.fixture(params=[scheme for scheme in SCHEMES if scheme not in ("stdin", "replay")])  # which are of the others
def stream(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Source, str]:
    """A source of each scheme with `COUNT` records, and a column that differs from record to record."""
    if request.param not in FILES:
        return open_source(f"{request.param}:clustered", {"rows": str(COUNT)}), "ts"
    put, column = FILES[request.param]
    put(tmp_path, "a", range(120))
    put(tmp_path, "b", range(120, COUNT))
    declared = None if request.param == "pcap" else (Field("n", BIGINT),)
    return open_source(f"{request.param}:{tmp_path}", {}, declared), column


def values(source: Source, split: Split, column: str) -> list[object]:
    return [value for batch in source.read(split, [column], 64) for value in batch.column(column).to_pylist()]


def test_rows_in_order_have_numbers_in_the_stream(stream: tuple[Source, str]) -> None:
    source, column = stream
    assert source.abilities.rows_in_order
    found = values(source, whole(source), column)
    assert len(found) == source.rows() == COUNT
    assert found == sorted(found)  # type: ignore[type-var]
    assert len(set(found)) > COUNT // 2


def test_random_access_gives_the_same_records_from_the_middle(stream: tuple[Source, str]) -> None:
    source, column = stream
    assert source.abilities.random_access
    found = values(source, whole(source), column)
    for start, stop in ((0, 1), (119, 121), (120, COUNT), (77, 203), (COUNT - 1, COUNT), (50, 50)):
        split = Split(Position(start), Position(stop))
        narrow: Source = pickle.loads(pickle.dumps(source.narrowed(split)))
        assert values(narrow, split, column) == found[start:stop]
    parts = source.splits(START, source.rows(), 4)
    assert [value for split in reversed(parts) for value in reversed(values(source, split, column))] == found[::-1]


def test_abilities_are_known_to_a_narrowed_source(stream: tuple[Source, str]) -> None:
    source, _ = stream
    assert pickle.loads(pickle.dumps(source.narrowed(whole(source)))).abilities == source.abilities


def test_what_grows_takes_files_that_arrive(stream: tuple[Source, str], tmp_path: Path) -> None:
    source, column = stream
    if not growing(source):
        assert not hasattr(source, "arrivals")
        return
    assert source.abilities == OF_FILES
    assert source.arrivals() == []
    put, _ = next(FILES[scheme] for scheme in FILES if (tmp_path / f"a.{scheme}").exists())
    put(tmp_path, "c", range(COUNT, COUNT + 5))
    longer = source.extended(source.arrivals())
    assert longer.rows() == COUNT + 5
    assert values(longer, whole(longer), column)[:COUNT] == values(source, whole(source), column)


def test_windows_of_rows_need_an_order() -> None:
    rows, time = (Window(axis=axis, range=10, slide=10) for axis in (ROWS, TIME))
    for window, abilities in ((rows, OF_FILES), (time, OF_FILES), (time, OF_FRAMES)):
        check_window("q", window, abilities)
    with pytest.raises(QueryError, match="query 'q' has a window of rows, but rows of a DataFrame have no order"):
        check_window("q", rows, OF_FRAMES)


@dataclass(frozen=True)
class Listed(GeneratedSource):
    """Remembers what was read of it."""

    splits_read: list[Split] = field(default_factory=list, compare=False)

    def read(self, split: Split, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        self.splits_read.append(split)
        return super().read(split, columns, batch_rows)


@dataclass(frozen=True)
class OneWay(Listed):
    """Can be read from its start alone."""

    abilities: ClassVar[Abilities] = Abilities(random_access=False, rows_in_order=True, grows=False)


def generated(kind: type[Listed]) -> Listed:
    made = open_generate("uniform", {"rows": "200_000"})
    return kind(made.kind, made.seed, made.count, made.clock, made.recipe)


@pytest.mark.parametrize(("kind", "tasks"), [(Listed, 4), (OneWay, 1)])
def test_a_batch_is_shared_by_tasks_where_they_can_begin_in_its_middle(kind: type[Listed], tasks: int) -> None:
    source = generated(kind)
    reader = FusedReader(Job({"s": source}, TaskSettings(), "nowhere", 1 << 20, 4))
    splits = list(reader._splits(source, START, source.rows(), None, one=False))
    assert len(splits) == tasks
    assert (splits[0].start, splits[-1].stop) == (START, source.rows())


@pytest.mark.parametrize(("least", "tasks"), [(1, 4), (60_000, 3), (150_000, 1), (1 << 20, 1)])
def test_small_batches_have_fewer_tasks(least: int, tasks: int) -> None:
    source = generated(Listed)
    reader = FusedReader(Job({"s": source}, TaskSettings(), "nowhere", 1 << 20, 4, task_rows=least))
    splits = list(reader._splits(source, START, source.rows(), None, one=False))
    assert len(splits) == tasks
    assert (splits[0].start, splits[-1].stop) == (START, source.rows())


@pytest.mark.parametrize("kind", [Listed, OneWay])
def test_a_sample_comes_from_all_over_a_batch_where_that_is_cheap(kind: type[Listed]) -> None:
    source = generated(kind)
    stream = "CREATE STREAM s FROM 'generate:uniform';"
    query = "CREATE QUERY q AS SELECT a, count(*) AS n FROM s [RANGE '1 second'] GROUP BY a;"
    app = resolve_app(f"{stream}\n{query}", "app", lambda *_: source_fields(source.schema()))
    assert sample_source(app, "s", source, 1 << 20) is not None
    if source.abilities.random_access:
        assert source.splits_read[-1].start > source.rows() // 2
        assert len(source.splits_read) > 1
    else:
        assert [split.start for split in source.splits_read] == [START]
        assert source.splits_read[0].stop < source.rows()
