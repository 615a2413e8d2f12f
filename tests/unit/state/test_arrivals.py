"""The log of files that a growing source has met: in order, written once, noticed when damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import StateError
from penstock.state import arrivals
from penstock.state.arrivals import FileEntry


def entry(name: str, rows: int = 5) -> FileEntry:
    return FileEntry(name, rows, 100, "c0ffee", 1, {"index": [0, 40], "columns": None})


def test_files_come_back_in_stream_order(tmp_path: Path) -> None:
    assert arrivals.logged(tmp_path, "s") == []
    batches = [[entry("b"), entry("a")], [], [entry("é", 0)], *([entry(f"f{n}")] for n in range(12))]
    for batch in batches:
        assert arrivals.log(tmp_path, "s", batch)
    assert arrivals.logged(tmp_path, "s") == [one for batch in batches for one in batch]


def test_streams_have_logs_of_their_own(tmp_path: Path) -> None:
    names = ["s", "S t", "a/b", "..", "é", "%2E"]
    for name in names:
        assert arrivals.log(tmp_path, name, [entry(name)])
    for name in names:
        assert arrivals.logged(tmp_path, name) == [entry(name)]
    outside = [path for path in tmp_path.rglob("*.json") if tmp_path / arrivals.FOLDER not in path.parents]
    assert outside == []


def test_a_long_log_begins_again(tmp_path: Path) -> None:
    for number in range(arrivals.LONG):
        assert not arrivals.is_long(tmp_path, "s")
        assert arrivals.log(tmp_path, "s", [entry(f"f{number}")])
    assert arrivals.is_long(tmp_path, "s")
    kept = {path: path.read_bytes() for path in arrivals._paths(tmp_path, "s")}
    assert arrivals.log(tmp_path, "s", [entry("", 160), entry("f1", 0)], restart=True)
    assert len(arrivals._paths(tmp_path, "s")) == 1
    assert arrivals.log(tmp_path, "s", [entry("g")])
    expected = [entry("", 160), entry("f1", 0), entry("g")]
    assert arrivals.logged(tmp_path, "s") == expected
    for path, data in kept.items():  # as a kill before they were deleted would leave them
        path.write_bytes(data)
    assert arrivals.logged(tmp_path, "s") == expected


def test_of_two_writers_one_loses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert arrivals.log(tmp_path, "s", [entry("a")])
    stale = arrivals._paths(tmp_path, "s")
    assert arrivals.log(tmp_path, "s", [entry("b")])
    monkeypatch.setattr(arrivals, "_paths", lambda checkpoint, stream: stale)
    assert not arrivals.log(tmp_path, "s", [entry("c")])
    monkeypatch.undo()
    assert arrivals.logged(tmp_path, "s") == [entry("a"), entry("b")]


def test_a_damaged_log_is_noticed(tmp_path: Path) -> None:
    arrivals.log(tmp_path, "s", [entry("a")])
    (path,) = arrivals._paths(tmp_path, "s")
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(StateError, match=r"list of files .*00000000\.json is damaged"):
            arrivals.logged(tmp_path, "s")
    for size in (0, 10, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(StateError, match=r"00000000\.json is damaged"):
            arrivals.logged(tmp_path, "s")
