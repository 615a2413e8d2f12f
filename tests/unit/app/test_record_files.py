"""Records of a source as a file: every format says the same."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from penstock.app.record_files import house_files, one_file, writer_of
from penstock.errors import ConfigError
from penstock.sources.base import START, Position, Source, Split, fields
from penstock.sources.generate.source import open_generate
from penstock.sources.registry import open_source

OPTIONS = {"rows": "3000", "seed": "7"}


def written(folder: Path, name: str, kind: str = "flows", options: dict[str, str] = OPTIONS) -> Path:
    path = folder / name
    writer_of(path)(open_generate(kind, options), path, lambda done: None)
    return path


def records(source: Source) -> list[list[Any]]:
    names = source.schema().names
    batches = source.read(Split(START, Position(source.rows())), names, 65_536)
    columns: list[list[Any]] = [[] for _ in names]
    for batch in batches:
        for column, name in zip(columns, names, strict=True):
            column += batch.column(name).to_pylist()
    return [[_plain(value) for value in column] for column in columns]


def _plain(value: Any) -> Any:
    return int(ip_address(value)) if isinstance(value, str) else value


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.jsonl", "x.json.gz"])
def test_text_reads_back_as_what_was_generated(name: str, tmp_path: Path) -> None:
    declared = fields(open_generate("flows", OPTIONS).schema())
    scheme = "csv" if ".csv" in name else "json"
    found = open_source(f"{scheme}:{written(tmp_path, name)}", {}, declared)
    expected = open_source(f"parquet:{written(tmp_path, 'x.parquet')}", {}, declared)
    assert records(found) == records(expected)
    assert len(records(found)[0]) == 3000


def test_more_records_than_are_written_at_a_time(tmp_path: Path) -> None:
    lines = written(tmp_path, "x.csv", "zipf", {"rows": "140000"}).read_text().splitlines()
    assert len(lines) == 140_001
    assert lines.count(lines[0]) == 1


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.json"])
def test_the_same_bytes_each_time(name: str, tmp_path: Path) -> None:
    first = written(tmp_path, name, "zipf", {"rows": "1000"}).read_bytes()
    assert first == written(tmp_path, name, "zipf", {"rows": "1000"}).read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_no_records(tmp_path: Path) -> None:
    assert written(tmp_path, "x.csv", "zipf", {"rows": "0"}).read_text().count("\n") == 1
    assert written(tmp_path, "x.jsonl", "zipf", {"rows": "0"}).read_text() == ""


@pytest.mark.parametrize("name", ["x", "x.txt", "x.gz", "x.parquet.gz", ".csv"])
def test_other_endings(name: str) -> None:
    with pytest.raises(ConfigError, match="no format has that ending"):
        writer_of(Path(name))


def test_a_capture(tmp_path: Path) -> None:
    found = open_source(f"pcap:{written(tmp_path, 'x.pcap', 'bursty')}", {})
    assert found.rows() == 3000
    assert written(tmp_path, "y.pcap.gz", "bursty").stat().st_size < (tmp_path / "x.pcap").stat().st_size
    assert open_source(f"pcap:{tmp_path / 'y.pcap.gz'}", {}).rows() == 3000


def test_an_auction_house_is_a_folder(tmp_path: Path) -> None:
    found = house_files(tmp_path / "house", None)
    assert [path.name for path in found.values()] == ["persons.parquet", "auctions.parquet", "bids.parquet"]
    for kind, path in house_files(tmp_path / "house", "csv").items():
        written(path.parent, path.name, kind, {"rows": "100"})
    texts = {path.name: path.read_text().splitlines() for path in (tmp_path / "house").iterdir()}
    assert {name: len(lines) for name, lines in texts.items()} == {
        "persons.csv": 4,
        "auctions.csv": 10,
        "bids.csv": 101,
    }
    assert texts["persons.csv"][0] == '"personID","name","state"'
    with pytest.raises(ConfigError, match="auction is three files"):
        house_files(tmp_path / "x.csv.gz", None)
    with pytest.raises(ConfigError, match="unknown format 'xml'"):
        house_files(tmp_path, "xml")
    with pytest.raises(ConfigError, match="--format is for auction"):
        one_file(tmp_path / "x.csv", "csv")
