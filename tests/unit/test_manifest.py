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
from penstock.state.manifest import Manifest, first_manifest, live_segments, open_windows

SECOND = 1_000_000


def sample(batch: int = 4) -> Manifest:
    return Manifest(
        batch=batch,
        digest="f00d",
        offset={"n": batch + 1, "row": 70_000, "end": False, "wm": -5, "max": None, "plan": 0},
        watermark=-(1 << 62),
        greatest=1 << 62,
        ended=False,
        plan_version=2,
        segments=[segment("a.seg", {SECOND: [3, 4], 2 * SECOND: [1]})],
        account=account.opening(["q", "é"]),
        results={"q": {"windows": 1, "rows": 2}},
        work={"q": {"probes": 1 << 60, "evictions": 0}},
        staged=[["q", "/out/.penstock-q", "/out/q.parquet"]],
        rows=70_000,
    )


def segment(path: str, windows: dict[int, list[int]]) -> dict[str, Any]:
    sizes = {str(size): numbers for size, numbers in windows.items()}
    return {"path": path, "bytes": 100, "checksum": (1 << 64) - 1, "windows": sizes}


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


@pytest.mark.parametrize("flip", [0x01, 0x20, 0x80, 0xFF])
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
    first = first_manifest(["q", "r"])
    assert (first.batch, first.watermark, first.ended, first.segments) == (-1, None, False, [])
    assert account.closes(first.account["stream"])
    assert set(first.results) == set(first.work) == set(first.account["queries"]) == {"q", "r"}


def test_open_windows() -> None:
    manifest = replace(sample(), watermark=4 * SECOND + 1)
    assert open_windows(manifest, SECOND) == [4]
    assert open_windows(manifest, 2 * SECOND) == []
    assert open_windows(replace(manifest, watermark=None), SECOND) == [3, 4]
    assert open_windows(replace(manifest, ended=True), SECOND) == []
    assert open_windows(manifest, 7) == []


def test_live_segments() -> None:
    """A segment lives as long as one of its windows of any size is open: end > watermark."""
    one, both = segment("1", {SECOND: [3]}), segment("2", {SECOND: [3], 60 * SECOND: [0]})
    empty, before = segment("3", {SECOND: []}), segment("4", {SECOND: [-2, -1]})
    every = [one, both, empty, before]
    assert live_segments(every, None, False) == [one, both, before]
    assert live_segments(every, -1, False) == [one, both, before]
    assert live_segments(every, 0, False) == [one, both]
    assert live_segments(every, 4 * SECOND - 1, False) == [one, both]
    assert live_segments(every, 4 * SECOND, False) == [both]
    assert live_segments(every, 60 * SECOND, False) == []
    assert live_segments(every, None, True) == []


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
