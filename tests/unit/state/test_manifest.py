"""Manifests: one per batch, written once, read whole or not at all."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from penstock.errors import StateError
from penstock.state import checked
from penstock.state import manifest as manifests
from penstock.state.account import Account, Entry, TaskAccount, entry
from penstock.state.files import put_if_absent
from penstock.state.files import replace as write_anew
from penstock.state.manifest import Manifest, first_manifest
from penstock.state.protocol import (
    Offset,
    Results,
    SegmentRef,
    Staged,
    StreamOffset,
    StreamState,
    Volume,
    together,
)
from support.amounts import quick_and


def sample(batch: int = 4) -> Manifest:
    return Manifest(
        batch=batch,
        digest="f00d",
        offset=Offset(batch + 1, 2, False, {"s": StreamOffset(70_000, False, -5, 1 << 62)}, {"é": (None, 5)}),
        streams={"s": known(70_000), "q": known(0)},
        ended=False,
        segments=(SegmentRef("a.seg", 100, (1 << 64) - 1, {"q": (-3, 1 << 62)}, "4"),),
        account=Account().book("s", task(), {"ts is NULL": ("é.parquet, row 1",)}),
        results={"q": Results(1, 2)},
        work={"q": {"probes": 1 << 60, "evictions": 0}},
        volume=Volume(written=1 << 40, compacted=3, compactions=1),
        staged=(Staged("q", "/out/.penstock-q", "/out/q.parquet"),),
        rows=70_000,
    )


def known(row: int) -> StreamState:
    return StreamState(row, -(1 << 62), 1 << 62)


def task() -> TaskAccount:
    """A task's account: 5 records, one of them malformed, one late for q."""
    return TaskAccount(entry(5, 4, 0, 0), {"q": entry(5, 3, 1, 0), "é": entry(5, 0, 0, 4)}, {"ts is NULL": 1})


def test_comes_back_as_it_was(tmp_path: Path) -> None:
    for batch in (9, 10, 123_456_789):
        manifests.put(tmp_path, sample(batch))
        manifests.forget()
        assert manifests.load(tmp_path, batch) == sample(batch)
    assert manifests.batches(tmp_path) == [9, 10, 123_456_789]
    assert manifests.newest(tmp_path) == sample(123_456_789)
    assert sorted(path.suffix for path in (tmp_path / manifests.FOLDER).iterdir()) == [".json"] * 3


def test_what_was_written_here_is_not_read_again(tmp_path: Path) -> None:
    written = sample(3)
    manifests.put(tmp_path, written)
    assert manifests.load(tmp_path, 3) is written
    path = manifests.path_of(tmp_path, 3)
    path.write_bytes(path.read_bytes() + b" ")  # but another file in its place is
    with pytest.raises(StateError, match="is damaged"):
        manifests.load(tmp_path, 3)
    path.unlink()
    assert manifests.load(tmp_path, 3) is None


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
    manifests.forget()
    path = manifests.path_of(tmp_path, 4)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
        with pytest.raises(StateError, match=r"manifest .*/00000004\.json is damaged"):
            manifests.load(tmp_path, 4)


def test_a_cut_off_manifest_is_noticed(tmp_path: Path) -> None:
    manifests.put(tmp_path, sample())
    manifests.forget()
    path = manifests.path_of(tmp_path, 4)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(StateError, match=r"manifest .*/00000004\.json is damaged"):
            manifests.newest(tmp_path)


def test_before_the_first_batch() -> None:
    first = first_manifest()
    assert (first.batch, first.ended, first.segments, first.streams, first.staged) == (-1, False, (), {}, ())
    assert (first.account, first.offset, first.volume) == (Account(), Offset(), Volume())
    assert (first.results, first.work, first.windows, first.kept_bytes, first.watermarks) == ({}, {}, 0, 0, {})


def test_what_is_known_of_a_stream() -> None:
    assert first_manifest().stream("s") == sample().stream("other") == StreamState(0, None, None, None, False)
    assert sample().stream("s") == known(70_000)
    assert sample().watermarks == {"s": -(1 << 62)}


def test_streams_that_one_query_reads_together() -> None:
    """Windows close as far as all of them are; one that has ended holds nobody back."""
    one, other = StreamState(10, 100, 150, 3), StreamState(7, 200, 250, 1)
    assert together([one]) is one
    assert together([one, other]) == StreamState(7, 100, 250, 1, False)
    assert together([one, replace(other, watermark=None)]).watermark is None
    assert together([replace(one, ended=True), other]) == StreamState(7, 200, 250, 1, False)
    assert together([replace(one, ended=True), replace(other, ended=True)]) == StreamState(7, 100, 250, 1, True)
    assert together([StreamState(), StreamState()]) == StreamState()


def test_a_manifest_of_other_fields_is_refused(tmp_path: Path) -> None:
    manifests.put(tmp_path, sample())
    manifests.forget()
    path = manifests.path_of(tmp_path, 4)
    body = checked.decode(path.read_bytes(), path, "manifest")
    for change, fact in (({"more": 1}, "it has a 'more' that is not known"), ({"rows": "7"}, "rows is not a whole")):
        path.write_bytes(checked.encode(body | change))
        with pytest.raises(StateError, match=rf"manifest .*4\.json does not fit this version of penstock: {fact}"):
            manifests.load(tmp_path, 4)


def test_accounts_add_up_by_stream_and_query() -> None:
    total = Account()
    for turn in range(4):
        total = total.book("s", task(), {"ts is NULL": (f"row {turn}",)})
    total = total.book("other", TaskAccount(entry(2, 2, 0, 0)), {})
    assert total.streams["s"] == Entry(input=20, exact=16, malformed=4)
    assert total.queries["q"] == Entry(input=20, exact=12, late=4, malformed=4)
    assert total.queries["é"] == Entry(input=20, filtered=16, malformed=4)
    assert total.of("other") == Entry(input=2, exact=2)
    assert total.of("none") == Entry()
    assert total.malformed == {"s": {"ts is NULL": 4}, "other": {}}
    assert total.places["s"] == {"ts is NULL": ("row 0", "row 1", "row 2")}  # the first ones only
    assert all(one.closes for one in (*total.streams.values(), *total.queries.values()))
    assert not Entry(input=1).closes


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
