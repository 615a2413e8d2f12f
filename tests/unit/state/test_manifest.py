"""Manifests: one per batch, written once, read whole or not at all."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import StateError
from penstock.state import account
from penstock.state import manifest as manifests
from penstock.state.files import put_if_absent
from penstock.state.files import replace as write_anew
from penstock.state.manifest import Manifest, first_manifest, stream_state
from support.amounts import quick_and


def sample(batch: int = 4) -> Manifest:
    return Manifest(
        batch=batch,
        digest="f00d",
        offset={"n": batch + 1, "plan": 2, "end": False, "streams": {"s": known(70_000)}, "origins": {"é": [None, 5]}},
        streams={"s": known(70_000), "q": known(0)},
        ended=False,
        segments=[{"path": "a.seg", "bytes": 100, "checksum": (1 << 64) - 1, "panes": {"q": [-3, 1 << 62]}}],
        account=account.book(account.opening(), "s", task(), {"ts is NULL": ["é.parquet, row 1"]}),
        results={"q": {"windows": 1, "rows": 2}},
        work={"q": {"probes": 1 << 60, "evictions": 0}},
        volume={"written": 1 << 40, "read": 0, "compacted": 3, "compactions": 1},
        staged=[["q", "/out/.penstock-q", "/out/q.parquet"]],
        rows=70_000,
    )


def known(row: int) -> dict[str, Any]:
    return {"row": row, "watermark": -(1 << 62), "greatest": 1 << 62, "first": None, "ended": False}


def task() -> dict[str, Any]:
    """A task's account: 5 records, one of them malformed, one late for q."""
    return {
        "stream": account.entry(5, 4, 0, 0),
        "queries": {"q": account.entry(5, 3, 1, 0), "é": account.entry(5, 0, 0, 4)},
        "malformed": {"ts is NULL": 1},
    }


def test_comes_back_as_it_was(tmp_path: Path) -> None:
    for batch in (9, 10, 123_456_789):
        manifests.put(tmp_path, sample(batch))
        assert manifests.load(tmp_path, batch) == sample(batch)
    assert manifests.batches(tmp_path) == [9, 10, 123_456_789]
    assert manifests.newest(tmp_path) == sample(123_456_789)
    assert sorted(path.suffix for path in (tmp_path / manifests.FOLDER).iterdir()) == [".json"] * 3


def test_there_may_be_none(tmp_path: Path) -> None:
    assert manifests.load(tmp_path, 0) is None
    assert manifests.newest(tmp_path) is None
    assert manifests.batches(tmp_path) == []


def test_the_second_writer_loses(tmp_path: Path) -> None:
    manifests.put(tmp_path, sample())
    with pytest.raises(StateError, match=r"manifest 4 .* was written by another run"):
        manifests.put(tmp_path, replace(sample(), digest="other"))
    assert manifests.load(tmp_path, 4) == sample()


@pytest.mark.parametrize("flip", quick_and([0x01, 0x80], [0x20, 0xFF]))
def test_any_flipped_byte_is_noticed(tmp_path: Path, flip: int) -> None:
    manifests.put(tmp_path, sample())
    path = manifests.path_of(tmp_path, 4)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
        with pytest.raises(StateError, match=r"manifest .*/00000004\.json is damaged"):
            manifests.load(tmp_path, 4)


def test_a_cut_off_manifest_is_noticed(tmp_path: Path) -> None:
    manifests.put(tmp_path, sample())
    path = manifests.path_of(tmp_path, 4)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(StateError, match=r"manifest .*/00000004\.json is damaged"):
            manifests.newest(tmp_path)


def test_before_the_first_batch() -> None:
    first = first_manifest()
    assert (first.batch, first.ended, first.segments, first.streams, first.staged) == (-1, False, [], {}, [])
    assert first.account == account.opening()
    assert (first.results, first.work) == ({}, {})
    assert set(first.volume.values()) == {0}


def test_what_is_known_of_a_stream() -> None:
    fresh = {"row": 0, "watermark": None, "greatest": None, "first": None, "ended": False}
    assert stream_state(None, "s") == stream_state(first_manifest(), "s") == stream_state(sample(), "other") == fresh
    assert stream_state(sample(), "s") == known(70_000)


def test_accounts_add_up_by_stream_and_query() -> None:
    total = account.opening()
    for turn in range(4):
        total = account.book(total, "s", task(), {"ts is NULL": [f"row {turn}"]})
    total = account.book(total, "other", {"stream": account.entry(2, 2, 0, 0), "queries": {}, "malformed": {}}, {})
    assert total["streams"]["s"] == account.empty() | {"input": 20, "exact": 16, "malformed": 4}
    assert total["queries"]["q"] == account.empty() | {"input": 20, "exact": 12, "late": 4, "malformed": 4}
    assert total["queries"]["é"] == account.empty() | {"input": 20, "filtered": 16, "malformed": 4}
    assert total["streams"]["other"] == account.empty() | {"input": 2, "exact": 2}
    assert total["malformed"] == {"s": {"ts is NULL": 4}, "other": {}}
    assert total["places"]["s"] == {"ts is NULL": ["row 0", "row 1", "row 2"]}  # the first ones only
    assert all(account.closes(entry) for entry in (*total["streams"].values(), *total["queries"].values()))


def _put_all(folder: str, mine: bytes, start: Barrier, count: int) -> None:
    start.wait()
    won = [put_if_absent(Path(folder) / f"{n}", mine) for n in range(count)]
    put_if_absent(Path(folder) / f"won by {mine.decode()}", repr(won).encode())


def test_of_two_processes_one_creates_a_file(tmp_path: Path) -> None:
    spawned, count = multiprocessing.get_context("spawn"), 300
    start = spawned.Barrier(2)
    racers = [spawned.Process(target=_put_all, args=(str(tmp_path), who, start, count)) for who in (b"a", b"b")]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
        assert racer.exitcode == 0
        racer.close()
    won = {who: eval((tmp_path / f"won by {who}").read_text()) for who in "ab"}
    for n in range(count):
        assert won["a"][n] != won["b"][n]
        assert (tmp_path / f"{n}").read_text() == ("a" if won["a"][n] else "b")
    assert not list(tmp_path.glob(".*"))


def test_a_file_written_anew_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "below" / "file"
    for data in (b"x" * 10_000, b"", b"short"):
        write_anew(path, data)
        assert path.read_bytes() == data
    assert [found.name for found in path.parent.iterdir()] == ["file"]
