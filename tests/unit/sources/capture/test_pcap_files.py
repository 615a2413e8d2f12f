"""Capture files: every form of pcap and pcapng, times, damage, what is no capture; the same rows in any splits."""

from __future__ import annotations

import os
import pickle
import random
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import RunError, SourceError
from penstock.kernels.packets.capture import LONGEST, LONGEST_BLOCK, MOST_INTERFACES
from penstock.sources.base import UNREADABLE, Split, growing
from penstock.sources.capture import index as capture_index
from penstock.sources.capture import source as pcap
from penstock.sources.capture import walk as capture
from penstock.sources.capture.columns import COLUMNS, FAULTS, LOST
from penstock.sources.capture.source import PcapSource, open_pcap
from support.captures import (
    Packet,
    block,
    enhanced,
    interface,
    obsolete,
    pcap_head,
    pcap_record,
    section,
    simple,
)
from support.captures import pcap as written
from support.entries import relogged
from support.packet_samples import SAMPLES

NAMES = list(COLUMNS)
DATA = [SAMPLES[name].data for name in ("ethernet", "qinq", "udp", "chain", "icmp six", "arp")]
_, DAMAGED, CUT, UNDESCRIBED, LENGTHS = LOST


def opened(path: Path, data: bytes, **options: str) -> PcapSource:
    path.write_bytes(data)
    pcap._counted.cache_clear()  # a file of the same size may have been there a moment ago
    return open_pcap(str(path), options)


def rows(source: PcapSource, names: list[str] = NAMES, batch_rows: int = 1000) -> list[dict[str, Any]]:
    return [row for batch in source.read(Split(0, source.rows()), names, batch_rows) for row in plain(batch)]


def plain(batch: Any) -> list[dict[str, Any]]:
    """Rows without flags that say nothing, so that batches cut differently compare equal."""
    times = batch.set_column(0, "ts", batch.column(0).cast("int64")) if batch.schema.names[:1] == ["ts"] else batch
    return [{key: value for key, value in row.items() if key in NAMES or value} for row in times.to_pylist()]


@pytest.mark.parametrize(("nano", "modified"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("order", ["<", ">"])
def test_forms_of_pcap(tmp_path: Path, order: str, nano: bool, modified: bool) -> None:
    packets = [Packet(data, len(data) + 3, 1_700_000_000 + i, 123_456) for i, data in enumerate(DATA)]
    found = rows(opened(tmp_path / "x.pcap", written(packets, order, nano, modified)))
    parts = 123 if nano else 123_456
    assert [row["ts"] for row in found] == [(1_700_000_000 + i) * 1_000_000 + parts for i in range(len(DATA))]
    assert [(row["captured"], row["length"]) for row in found] == [(len(data), len(data) + 3) for data in DATA]
    assert found[0]["sport"] == 4660


@pytest.mark.parametrize(("version", "swapped"), [((2, 2), True), ((2, 3), True), ((2, 3), False), ((2, 4), False)])
def test_old_versions_have_their_lengths_the_other_way_round(
    tmp_path: Path, version: tuple[int, int], swapped: bool
) -> None:
    data = written([Packet(data, 1500) for data in DATA], version=version, swapped=swapped)
    found = rows(opened(tmp_path / "x.pcap", data), ["captured", "length"])
    assert found == [{"captured": len(data), "length": 1500} for data in DATA]


def test_bits_above_the_link_type_say_other_things(tmp_path: Path) -> None:
    data = written([Packet(DATA[0])], link=0xF4000001)
    assert rows(opened(tmp_path / "x.pcap", data), ["link", "sport"]) == [{"link": 1, "sport": 4660}]


@pytest.mark.parametrize("order", ["<", ">"])
def test_blocks_of_pcapng(tmp_path: Path, order: str) -> None:
    other = "<" if order == ">" else ">"
    raw = SAMPLES["raw"].data
    blocks = [
        section(order, [(2, b"hardware")]), interface(order, 1), block(order, 0x0BAD, bytes(50)),
        enhanced(order, 0, 5_000_001, DATA[0], 99, [(1, b"comment")]), interface(order, 101, given=[(9, b"\x09")]),
        enhanced(order, 1, 7_000_000_123, raw), obsolete(order, 1, 8_000_000_999, raw), enhanced(order, 0, 6, DATA[2]),
        section(other), interface(other, 1, snap=40), simple(other, DATA[0][:40], len(DATA[0])),
        enhanced(other, 0, 9, DATA[1]), enhanced(other, 1, 9, DATA[1]),
    ]  # fmt: skip
    found = rows(opened(tmp_path / "x.pcapng", b"".join(blocks)))
    assert [row["ts"] for row in found] == [5_000_001, 7_000_000, 8_000_000, 6, None, 9, None]
    assert [row["interface"] for row in found] == [0, 1, 1, 0, 0, 0, None]
    assert [row["link"] for row in found] == [1, 101, 101, 1, 1, 1, None]
    assert (found[0]["captured"], found[0]["length"]) == (len(DATA[0]), 99)
    assert (found[4]["captured"], found[4]["length"]) == (40, len(DATA[0]))
    assert found[1]["sport"] == found[2]["sport"] == 4660
    assert found[6][UNREADABLE] == UNDESCRIBED


def test_times_are_exact(tmp_path: Path) -> None:
    rng = random.Random(3)
    ticks = [0, 1, 999_999, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 10**19]
    ticks += [rng.getrandbits(rng.randint(1, 64)) for _ in range(20)]
    shifts = [0, 1, -1, 3600, -(10**9), 1 << 41, (1 << 63) - 1, -(1 << 63)]
    for unit in [*range(30), 127, *range(128, 256)]:
        shift = rng.choice(shifts)
        given = [(9, bytes([unit])), (14, struct.pack("<q", shift))]
        data = section("<") + interface("<", 1, given=given) + b"".join(enhanced("<", 0, t, b"") for t in ticks)
        found = [row["ts"] for row in rows(opened(tmp_path / "x.pcapng", data), ["ts"])]
        second = Fraction(1, 2 ** (unit & 127)) if unit & 128 else Fraction(1, 10**unit)
        for tick, time in zip(ticks, found, strict=True):
            exact = (tick * second * 1_000_000) // 1 + shift * 1_000_000
            assert time == exact if time is not None else abs(exact) > 1 << 60, (unit, tick, shift)
            assert time is not None or abs(exact) > 1 << 61 or abs(shift) > 1 << 42


def test_times_of_pcap_at_their_ends(tmp_path: Path) -> None:
    most = (1 << 32) - 1
    packets = [Packet(b"", 0, most, most), Packet(b"", 0, 0, 0), Packet(b"", 0, most, 999_999)]
    found = [row["ts"] for row in rows(opened(tmp_path / "x.pcap", written(packets)), ["ts"])]
    assert found == [most * 1_000_000 + most, 0, most * 1_000_000 + 999_999]


FAULTY = {  # bytes of an Ethernet frame, and the reason
    "link header cut short": b"\0" * 13,
    "IP header cut short": DATA[0][: 14 + 19],
    "IP header not valid": DATA[0][:14] + b"\x65" + DATA[0][15:],
    "IP length not valid": DATA[0][:16] + b"\0\x13" + DATA[0][18:],
    "IP extension header cut short": DATA[3][: 14 + 44],
    "TCP header cut short": DATA[0][: 14 + 20 + 15],
    "ports cut short": DATA[2][: 14 + 20 + 3],
    "ICMP header cut short": DATA[4][: 14 + 40 + 1],
    "TCP header not valid": DATA[0][:46] + b"\x40" + DATA[0][47:],
}


@pytest.mark.parametrize("fault", FAULTY)
def test_reasons_of_faults(tmp_path: Path, fault: str) -> None:
    (row,) = rows(opened(tmp_path / "x.pcap", written([Packet(FAULTY[fault])])))
    assert row["fault:"] == fault
    if fault == "TCP header not valid":
        assert (row["sport"], row["seq"], row["payload"]) == (4660, None, None)
        assert row["bad:seq"]
        assert row["bad:payload"]


def test_every_fault_has_a_test(tmp_path: Path) -> None:
    (row,) = rows(opened(tmp_path / "x.pcap", written([Packet(DATA[0])], link=105)))
    assert {*FAULTY, row["fault:"]} == {fault for fault in FAULTS if fault}


def test_damage_ends_a_file(tmp_path: Path) -> None:
    good, bad = pcap_record(Packet(DATA[0])), struct.pack("<IIII", 0, 0, LONGEST + 1, 60)
    for order_of, data in [
        ("pcap", pcap_head() + good * 3 + bad + good * 3),
        ("pcapng", section("<") + interface("<") + enhanced("<", 0, 0, DATA[0]) * 3 + struct.pack("<III", 6, 8, 0) * 9),
        ("pcapng", section("<") + interface("<") + enhanced("<", 0, 0, DATA[0]) * 3
         + struct.pack("<III", 6, LONGEST_BLOCK + 4, 0) * 9),
        ("pcapng", section("<") + interface("<") + enhanced("<", 0, 0, DATA[0]) * 3 + b"\n\r\r\n" + bytes(40)),
    ]:  # fmt: skip
        source = opened(tmp_path / f"x.{order_of}", data)
        found = rows(source)
        assert [row.get(UNREADABLE) for row in found] == [None] * 3 + [DAMAGED]
        assert all(found[3]["bad:" + name] and found[3][name] is None for name in NAMES)
        assert "packet 4, byte " in source.place(3)


@pytest.mark.parametrize("suffix", ["pcap", "pcapng"])
def test_files_cut_at_every_byte(tmp_path: Path, suffix: str) -> None:
    """Whole packets are those of the whole file; what is left at the end is one record that was cut short."""
    pieces = [pcap_head(), *(pcap_record(Packet(data)) for data in DATA[:3])]
    if suffix == "pcapng":
        big = block("<", 0x0BAD, bytes(100))
        pieces = [section("<", [(1, b"comment")]), interface("<"), enhanced("<", 0, 1, DATA[0]), big]
        pieces += [enhanced("<", 0, 2, DATA[2]), interface("<", 101), enhanced("<", 1, 3, SAMPLES["raw"].data)]
    whole = b"".join(pieces)
    ends = {sum(map(len, pieces[: i + 1])) for i in range(len(pieces))}
    expected = rows(opened(tmp_path / f"x.{suffix}", whole))
    for size in range(24, len(whole), 3 if suffix == "pcapng" else 1):
        source = opened(tmp_path / f"x.{suffix}", whole[:size])
        found = rows(source)
        if size in ends:
            assert found == expected[: len(found)]
        else:
            assert found[:-1] == expected[: len(found) - 1]
            assert found[-1][UNREADABLE] == CUT
        assert [row for i in range(source.rows()) for row in rows_at(source, i)] == found


def rows_at(source: PcapSource, row: int) -> list[dict[str, Any]]:
    return [one for batch in source.read(Split(row, row + 1), NAMES, 1) for one in plain(batch)]


@pytest.mark.parametrize("size", range(24))
def test_tiny_files(tmp_path: Path, size: int) -> None:
    for magic in (*capture.MAGICS, capture.PCAPNG):
        with pytest.raises(SourceError, match=f"has only {size} bytes"):
            opened(tmp_path / "x.pcap", magic.ljust(24, b"\0")[:size]).rows()


@pytest.mark.parametrize("data", [b"ts,src\n1,10.0.0.1\n", b"\0" * 100, b"\x1a\x2b\x3c\x4d" * 9, b"PAR1" * 9, b"x"])
def test_what_is_no_capture(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(SourceError, match="is not a capture: it begins with " + data[:4].hex(" ")):
        opened(tmp_path / "x.pcap", data)


def test_lengths_of_blocks_that_do_not_agree(tmp_path: Path) -> None:
    wrong = bytearray(enhanced("<", 0, 0, DATA[0]))
    struct.pack_into("<I", wrong, 20, len(DATA[0]) + 5)
    data = section("<") + interface("<") + bytes(wrong) + enhanced("<", 0, 0, DATA[0])
    assert [row.get(UNREADABLE) for row in rows(opened(tmp_path / "x.pcapng", data))] == [LENGTHS, None]


def test_blocks_larger_than_memory_and_many_interfaces(tmp_path: Path) -> None:
    """Those that are not looked at are passed over; a packet's block may have long options."""
    giant, packet = block("<", 0x0BAD, bytes(3 << 20)), enhanced("<", 0, 1, DATA[0])
    long = enhanced("<", 0, 2, bytes(LONGEST), given=[(1, bytes(60_000))] * 5)
    too_long = enhanced("<", 0, 2, bytes(LONGEST + 4))
    wide = interface("<", 101, given=[(2, bytes(65_000)), (9, b"\x09"), (1, bytes(65_000))])
    many = interface("<") * (MOST_INTERFACES + 10)
    pieces = [section("<", [(1, bytes(65_000))] * 3), interface("<"), giant, packet, giant, long, too_long, wide]
    pieces += [packet, many, packet, enhanced("<", MOST_INTERFACES - 1, 0, b""), enhanced("<", MOST_INTERFACES, 0, b"")]
    source = opened(tmp_path / "x.pcapng", b"".join(pieces))
    found = rows(source, ["captured"])
    lost = [row.get(UNREADABLE) for row in found]
    assert lost == [None, None, LENGTHS, None, None, None, UNDESCRIBED]
    assert found[1]["captured"] == LONGEST
    assert [row for i in range(7) for row in rows_at(source, i)] == rows(source)


def test_a_file_that_shrinks_is_noticed(tmp_path: Path) -> None:
    source = opened(tmp_path / "x.pcap", written([Packet(data) for data in DATA]))
    assert source.rows() == len(DATA)
    (tmp_path / "x.pcap").write_bytes(written([Packet(DATA[0])]))
    with pytest.raises(RunError, match="has changed since the run began"):
        rows(source)
    assert source.place(3) == "x.pcap, packet 4"


def random_file(rng: random.Random) -> tuple[str, bytes]:
    samples = [rng.choice(list(SAMPLES.values())) for _ in range(rng.choice([1, 20, 300]))]
    order = rng.choice("<>")
    if rng.random() < 0.4:
        link = samples[0].link
        packets = [Packet(one.data, None, i, 5) for i, one in enumerate(samples) if one.link == link]
        return "pcap", written(packets, order, link=link) + rng.choice([b"", b"\0" * 9])
    blocks, links = [section(order)], []
    for tick, one in enumerate(samples):
        if rng.random() < 0.05:
            order, links = rng.choice("<>"), []
            blocks.append(section(order))
        if one.link not in links:
            blocks.append(interface(order, one.link))
            links.append(one.link)
        if rng.random() < 0.1:
            blocks.append(block(order, 0x0BAD, bytes(rng.choice([0, 7, 3000]))))
        blocks.append(enhanced(order, links.index(one.link), tick, one.data))
    return "pcapng", b"".join(blocks) + rng.choice([b"", bytes(12), bytes(5)])


@pytest.mark.parametrize("seed", range(12))
def test_any_split_gives_the_same_rows(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    files = [random_file(rng) for _ in range(rng.randint(1, 3))]
    for number, (suffix, data) in enumerate(files):
        (tmp_path / f"{number}.{suffix}").write_bytes(data)
    unwrap = rng.choice(["none", "all", "gre,vxlan", "ipip"])
    expected = rows(open_pcap(str(tmp_path), {"unwrap": unwrap}), batch_rows=1 << 20)
    monkeypatch.setattr(capture, "PIECE", rng.choice([64, 500, 4096]))
    monkeypatch.setattr(capture_index, "STRIDE", rng.choice([1, 2, 64]))
    monkeypatch.setattr(capture_index, "POINTS", rng.choice([2, 16, 1024]))
    monkeypatch.setattr(pcap, "SOME", rng.choice([1, 3, 100]))
    pcap._counted.cache_clear()
    source = open_pcap(str(tmp_path), {"unwrap": unwrap})
    assert growing(source)
    again = source.restarted(relogged(source.entries))
    assert again.entries == source.entries
    assert source.rows() == len(expected)
    for one in (source, again):
        stop, found = source.rows(), []
        while stop > len(found):
            split = Split(len(found), rng.randint(len(found) + 1, min(stop, len(found) + 200)))
            part = pickle.loads(pickle.dumps(one.narrowed(split)))
            size = rng.choice([1, 7, 1000])
            batches = list(part.read(split, NAMES, size))
            assert all(0 < batch.num_rows <= size for batch in batches)
            found += [row for batch in batches for row in plain(batch)]
            assert part.place(split.start) == one.place(split.start)
        assert found == expected
    assert sum(batch.num_rows for batch in source.read(Split(0, source.rows()), [], 10)) == source.rows()


def test_a_file_that_was_written_over_is_noticed(tmp_path: Path) -> None:
    """Of the same size, and with whole packets: only its bytes tell."""
    path = tmp_path / "x.pcap"
    packets = [Packet(data, len(data), 1_700_000_000, 0) for data in DATA]
    source = opened(path, written(packets))
    assert source.rows() == len(DATA)
    path.write_bytes(written([Packet(data, len(data), 1_700_000_001, 0) for data in DATA]))
    os.utime(path, ns=(0, 0))
    with pytest.raises(RunError, match="has changed since the run began"):
        rows(source)
    path.write_bytes(written(packets))  # another time, the same bytes
    assert len(rows(source)) == len(DATA)
