"""Captures that are still being written: however they grow, the rows are those of the finished file."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import RunError
from penstock.kernels.packets.capture import LONGEST
from penstock.sources.base import UNREADABLE, Split
from penstock.sources.capture import index as capture_index
from penstock.sources.capture import source as pcap
from penstock.sources.capture import walk as capture
from penstock.sources.capture.columns import COLUMNS, LOST
from penstock.sources.capture.source import PcapSource, open_pcap
from support.captures import Packet, block, enhanced, interface, pcap_head, section
from support.captures import pcap as written
from support.entries import relogged
from support.packet_samples import SAMPLES

NAMES = list(COLUMNS)
FOUR = {name: sample for name, sample in SAMPLES.items() if sample.link == 1}


def rows(source: PcapSource) -> list[dict[str, Any]]:
    found = []
    for batch in source.read(Split(0, source.rows()), NAMES, 100):
        times = batch.set_column(0, "ts", batch.column(0).cast("int64"))
        found += [{key: value for key, value in row.items() if key in NAMES or value} for row in times.to_pylist()]
    return found


def finished(path: Path) -> list[dict[str, Any]]:
    pcap._counted.cache_clear()
    return rows(open_pcap(str(path), {}))


def random_file(rng: random.Random, suffix: str) -> bytes:
    samples = [rng.choice(list(FOUR.values())) for _ in range(30)]
    if suffix == "pcap":
        return written([Packet(one.data, None, i) for i, one in enumerate(samples)], rng.choice("<>"))
    order, number = rng.choice("<>"), 0
    blocks = [section(order, [(1, bytes(300))]), interface(order)]
    for tick, one in enumerate(samples):
        match rng.randrange(8):
            case 0:  # another unit: packets that are taken for those of another interface have other times
                blocks.append(interface(order, 1, given=[(9, bytes([rng.choice([3, 6, 9, 0x94])])), (1, bytes(200))]))
                number += 1
            case 1:
                blocks.append(block(order, 0x0BAD, bytes(rng.choice([0, 50, 5000]))))
            case 2 if rng.random() < 0.3:
                order, number = rng.choice("<>"), 0
                blocks += [section(order), interface(order)]
        blocks.append(enhanced(order, rng.randint(0, number), tick * 10**9, one.data))
    return b"".join(blocks)


@pytest.mark.parametrize("suffix", ["pcap", "pcapng"])
@pytest.mark.parametrize("seed", range(12))
def test_a_file_that_grows_by_any_pieces(
    tmp_path: Path, seed: int, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(capture, "PIECE", rng.choice([100, 1 << 18]))
    monkeypatch.setattr(capture_index, "STRIDE", rng.choice([1, 4096]))
    data, folder, path = random_file(rng, suffix), tmp_path / "f", tmp_path / "f" / f"x.{suffix}"
    folder.mkdir()
    path.write_bytes(b"")
    source = open_pcap(str(folder), {}).live()
    assert source.rows() == 0
    size = 0
    while size < len(data):
        size = min(len(data), size + rng.choice([1, 2, 3, 30, 100, 3000]))
        path.write_bytes(data[:size])
        os.utime(path, ns=(size, size))
        for _ in range(2):
            source = source.extended(source.arrivals())
        if rng.random() < 0.3:
            source = again(source)
        assert not [entry for entry in source.entries if source.changed(entry)]
        if rng.random() < 0.1:
            assert all("packet " in source.place(row) for row in range(source.rows()))
    assert rows(source) == finished(path)
    assert source.place(source.rows() - 1) == open_pcap(str(folder), {}).place(source.rows() - 1)
    for part in (1, len(source.entries) // 2):
        assert rows(source.restarted(source.entries[:part])) == rows(source)[: sum(
            entry.rows for entry in source.entries[:part]
        )]  # fmt: skip


def again(source: PcapSource) -> PcapSource:
    """As a new run takes it up from its log."""
    entries = relogged(source.entries)
    pcap._counted.cache_clear()
    folder = os.path.dirname(source.files[0].path) if source.files else source.address.place
    return open_pcap(folder, {}, source.fields).restarted(entries).live()


def test_large_blocks_that_come_in_parts_are_met_once(tmp_path: Path) -> None:
    """A packet's block and a description that are longer than what is looked at of them."""
    packet = enhanced("<", 0, 5, SAMPLES["udp"].data)
    giant = enhanced("<", 0, 6, bytes(LONGEST + 8), given=[(1, bytes(60_000))] * 4)
    wide = interface("<", 101, given=[(1, bytes(65_000))] * 4)
    data = section("<", [(1, bytes(65_000))] * 4) + interface("<") + packet + giant + wide + packet
    data += enhanced("<", 1, 7, SAMPLES["raw"].data) + block("<", 0x0BAD, bytes(1 << 20)) + packet
    path = tmp_path / "x.pcapng"
    path.write_bytes(data[:30])
    source = open_pcap(str(path), {}).live()
    for size in [*range(30, len(data), 40_001), len(data)]:
        path.write_bytes(data[:size])
        os.utime(path, ns=(size, size))
        source = source.extended(source.arrivals())
    found = rows(source)
    assert found == finished(path)
    assert [row.get(UNREADABLE) for row in found] == [None, LOST[4], None, None, None]


def test_what_is_left_at_the_end_is_a_record_only_when_no_more_is_awaited(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(written([Packet(SAMPLES["udp"].data)]) + bytes(10))
    source = open_pcap(str(path), {})
    assert source.live().rows() == 1
    assert [row.get(UNREADABLE) for row in rows(source)] == [None, LOST[2]]
    ended = source.entries[-1]
    assert source.changed(ended) is None
    with path.open("ab") as file:
        file.write(bytes(6))
    assert source.changed(ended) == "has changed"  # the record that was cut short is another now
    assert source.arrivals() == []


def test_damage_ends_a_growing_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(written([Packet(SAMPLES["udp"].data)]) + b"\xff" * 20)
    source = open_pcap(str(path), {}).live()
    assert [row.get(UNREADABLE) for row in rows(source)] == [None, LOST[1]]
    with path.open("ab") as file:
        file.write(bytes(100))
    assert source.arrivals() == []
    assert rows(source) == finished(path)


def test_changes_are_told(tmp_path: Path) -> None:
    path, data = tmp_path / "x.pcap", written([Packet(SAMPLES["udp"].data, None, i) for i in range(9)])
    path.write_bytes(data)
    source = open_pcap(str(path), {}).live()
    (entry,) = source.entries
    assert source.changed(entry) is None
    path.write_bytes(data)  # the same, later
    os.utime(path, ns=(1, 1))
    assert source.changed(entry) is None
    path.write_bytes(data + bytes(5))
    assert source.changed(entry) is None
    path.write_bytes(data[:-1] + b"?" + bytes(5))
    assert source.changed(entry) == "has changed"
    path.write_bytes(data[:-1])
    assert source.changed(entry) == "has changed"
    path.unlink()
    assert source.changed(entry) == "is missing"
    assert source.arrivals() == []
    path.mkdir()
    assert source.changed(entry) == "has changed"


def test_new_files_come_after_old_ones_and_grow_apart(tmp_path: Path) -> None:
    data = written([Packet(SAMPLES["udp"].data, None, i) for i in range(4)])
    half = 24 + 2 * (len(data) - 24) // 4
    (tmp_path / "b.pcap").write_bytes(data[: half + 5])
    source = open_pcap(str(tmp_path), {}).live()
    (tmp_path / "a.pcap").write_bytes(data[: half + 7])
    (tmp_path / ".c.pcap").write_bytes(data)
    (tmp_path / "d.pcap.tmp").write_bytes(data)
    source = source.extended(source.arrivals())
    for name in "ab":
        (tmp_path / f"{name}.pcap").write_bytes(data)
    source = source.extended(source.arrivals())
    assert [Path(entry.path).name[0] + str(entry.rows) for entry in source.entries] == ["b2", "a2", "b2", "a2"]
    assert [row["ts"] // 1_000_000 for row in rows(source)] == [0, 1, 0, 1, 2, 3, 2, 3]
    assert source.place(7).startswith("a.pcap, packet 4, byte ")


def test_a_file_that_turns_out_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(written([]))
    source = open_pcap(str(tmp_path), {}).live()
    (tmp_path / "b.pcap").write_bytes(pcap_head()[:3])
    assert source.arrivals() == []
    (tmp_path / "b.pcap").write_bytes(b"\xd4\xc3x")
    with pytest.raises(RunError, match=r"b\.pcap' is not a capture"):
        source.arrivals()
