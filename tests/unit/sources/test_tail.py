"""Files that arrive: logged before they are read, found again by later runs, and refused where they changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import StateError
from penstock.logical.query import Field
from penstock.logical.types import BIGINT
from penstock.sources.base import START, Position, Source, growing, whole
from penstock.sources.registry import open_source
from penstock.sources.tail import check_files, continued, reaching, with_arrivals
from penstock.state import arrivals

COLUMNS = (Field("n", BIGINT),)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    return made


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    made = tmp_path / "checkpoint"
    made.mkdir()
    return made


def put(folder: Path, name: str, *numbers: int) -> None:
    (folder / f"{name}.csv").write_text("".join(f"{number}\n" for number in numbers))


def opened(folder: Path) -> Source:
    return open_source(f"csv:{folder}", {}, COLUMNS)


def numbers(source: Source) -> list[int]:
    return [n for batch in source.read(whole(source), ["n"], 100) for n in batch.column("n").to_pylist()]


def names(checkpoint: Path) -> list[str]:
    return [Path(entry.path).stem for entry in arrivals.logged(checkpoint, "s")]


def test_a_run_goes_on_with_the_files_of_its_log_in_their_order(folder: Path, checkpoint: Path) -> None:
    put(folder, "b", 1, 2)
    first = continued(checkpoint, {"s": opened(folder)}, live=False)["s"]
    assert (numbers(first), names(checkpoint)) == ([1, 2], ["b"])
    put(folder, "a", 3)
    second = continued(checkpoint, {"s": opened(folder)}, live=True)["s"]
    assert (numbers(second), names(checkpoint)) == ([1, 2, 3], ["b", "a"])
    third = continued(checkpoint, {"s": opened(folder)}, live=True)["s"]
    assert (numbers(third), names(checkpoint)) == ([1, 2, 3], ["b", "a"])


def test_nothing_is_logged_of_a_folder_without_files(folder: Path, checkpoint: Path) -> None:
    assert numbers(continued(checkpoint, {"s": opened(folder)}, live=True)["s"]) == []
    assert not (checkpoint / arrivals.FOLDER).exists()


def test_files_are_looked_for_when_all_has_been_read(folder: Path, checkpoint: Path) -> None:
    put(folder, "a", 1, 2)
    source = continued(checkpoint, {"s": opened(folder)}, live=True)["s"]
    put(folder, "b", 3)
    assert with_arrivals(checkpoint, "s", source, Position(1)) is source
    longer = with_arrivals(checkpoint, "s", source, source.rows())
    assert (numbers(longer), names(checkpoint)) == ([1, 2, 3], ["a", "b"])
    assert with_arrivals(checkpoint, "s", longer, longer.rows()) is longer


def test_what_another_run_logs_first_is_not_read(
    folder: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder, "a", 1)
    source = continued(checkpoint, {"s": opened(folder)}, live=True)["s"]
    put(folder, "b", 2)
    monkeypatch.setattr(arrivals, "put_if_absent", lambda path, data: False)
    assert with_arrivals(checkpoint, "s", source, source.rows()) is source


def test_a_long_log_is_told_in_short(folder: Path, checkpoint: Path) -> None:
    put(folder, "a", 0)
    source = continued(checkpoint, {"s": opened(folder)}, live=True)["s"]
    for number in range(1, arrivals.LONG + 3):
        put(folder, f"a{number:03}", number)
        if number % 2:  # some files are gone once they have been read
            (folder / f"a{number - 1:03}.csv").unlink(missing_ok=True)
        source = with_arrivals(checkpoint, "s", source, source.rows())
    assert source.rows() == arrivals.LONG + 3
    assert len(list((checkpoint / arrivals.FOLDER / "s").iterdir())) < arrivals.LONG
    assert growing(source)
    assert list(source.entries) == arrivals.logged(checkpoint, "s")
    assert sum(entry.rows for entry in source.entries) == source.rows()


def test_a_place_in_a_file_that_came_later_is_found_by_the_log(folder: Path, checkpoint: Path) -> None:
    put(folder, "b", 1, 2)
    source = continued(checkpoint, {"s": opened(folder)}, live=True)["s"]
    put(folder, "a", 3)
    with_arrivals(checkpoint, "s", source, source.rows())
    assert reaching(checkpoint, "s", source, Position(1)) is source
    assert reaching(checkpoint, "s", source, Position(2)).place(Position(2)) == "a.csv, record 1, byte 0"


def test_files_must_be_what_the_log_says(folder: Path, checkpoint: Path) -> None:
    put(folder, "a", 1, 2)
    put(folder, "b", 3)
    sources = {"s": opened(folder), "g": open_source("generate:zipf", {})}
    continued(checkpoint, sources, live=False)
    check_files(checkpoint, sources, {})
    (folder / "a.csv").unlink()
    check_files(checkpoint, sources, {"s": Position(2)})  # it has been read
    for position in (START, Position(1)):
        with pytest.raises(StateError, match=r"file .*a\.csv, which checkpoint .* reads, is missing"):
            check_files(checkpoint, sources, {"s": position})
    put(folder, "b", 4)
    with pytest.raises(StateError, match=r"b\.csv, which checkpoint .* reads, has changed"):
        check_files(checkpoint, sources, {"s": Position(3)})


def test_sources_that_do_not_grow_stay_as_they_are(checkpoint: Path) -> None:
    source = open_source("generate:zipf", {"rows": "10"})
    assert continued(checkpoint, {"s": source}, live=True) == {"s": source}
    assert with_arrivals(checkpoint, "s", source, source.rows()) is source
    assert reaching(checkpoint, "s", source, Position(20)) is source
    assert not (checkpoint / arrivals.FOLDER).exists()
