"""What is found in packets of every kind: whole, cut at every byte by a snap length, and cut as they were sent."""

from __future__ import annotations

import ipaddress
import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.sources.base import ADDRESS, BAD, FAULT, UNREADABLE, Split
from penstock.sources.capture.columns import COLUMNS
from penstock.sources.registry import open_source
from support.captures import Packet, pcap
from support.packet_samples import SAMPLES, Sample

NAMES = list(COLUMNS)
OF_RECORD = {"ts", "length", "captured", "interface", "link"}
NOT_SAID = OF_RECORD | {"ip_length"}


def address(value: dict[str, Any] | None) -> str | None:
    if value is None:
        return None
    return str(ipaddress.ip_address(value["four"] if value["six"] is None else value["six"]))


def rows_of(path: Path, data: bytes, **options: str) -> list[dict[str, Any]]:
    path.write_bytes(data)
    source = open_source(f"pcap:{path}", options)
    found = []
    for batch in source.read(Split(0, source.rows()), NAMES, 1 << 16):
        plain = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        for name in NAMES:
            if batch.schema.field(name).type == ADDRESS:
                plain[name] = [address(value) for value in plain[name]]
        found += pa.table(plain).to_pylist()
    return found


def said(sample: Sample, unwrap: str) -> dict[str, Any]:
    columns = sample.inner if unwrap == "all" and sample.inner is not None else sample.plain
    return {**dict.fromkeys(set(NAMES) - NOT_SAID), "tunnel": 0, **columns}


@pytest.mark.parametrize("unwrap", ["none", "all"])
@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_in_a_packet(tmp_path: Path, name: str, unwrap: str) -> None:
    sample = SAMPLES[name]
    data = pcap([Packet(sample.data, seconds=7, parts=8)], link=sample.link)
    (row,) = rows_of(tmp_path / "x.pcap", data, unwrap=unwrap)
    assert not [key for key in row if key not in NAMES]
    expected = said(sample, unwrap)
    assert {key: row[key] for key in expected} == expected
    assert (row["length"], row["captured"], row["link"], row["interface"]) == (len(sample.data),) * 2 + (sample.link, 0)


@pytest.mark.parametrize("unwrap", ["none", "all"])
@pytest.mark.parametrize("name", SAMPLES)
def test_what_the_snap_length_leaves_is_never_wrong(tmp_path: Path, name: str, unwrap: str) -> None:
    sample, cuts = SAMPLES[name], range(len(SAMPLES[name].data) + 1)
    packets = [Packet(sample.data[:cut], length=len(sample.data)) for cut in cuts]
    rows = rows_of(tmp_path / "x.pcap", pcap(packets, link=sample.link), unwrap=unwrap)
    whole = rows[-1]
    for cut, row in zip(cuts, rows, strict=True):
        wrong = {key for key in NAMES if row[key] is not None and row[key] != whole[key]} - {"captured"}
        assert not wrong, (cut, wrong)
        assert not [key for key in row if key.startswith((BAD, FAULT, UNREADABLE)) and row[key]], cut
    # With more bytes there is never less.
    for fewer, more in itertools.pairwise(rows):
        assert not [key for key in NAMES if fewer[key] is not None and more[key] is None]


@pytest.mark.parametrize("unwrap", ["none", "all"])
@pytest.mark.parametrize("name", SAMPLES)
def test_packets_that_were_sent_too_short_are_faults(tmp_path: Path, name: str, unwrap: str) -> None:
    sample, cuts = SAMPLES[name], range(len(SAMPLES[name].data) + 1)
    packets = [Packet(sample.data[:cut]) for cut in cuts]
    rows = rows_of(tmp_path / "x.pcap", pcap(packets, link=sample.link), unwrap=unwrap)
    snapped = [Packet(sample.data[:cut], length=len(sample.data)) for cut in cuts]
    cut_rows = rows_of(tmp_path / "y.pcap", pcap(snapped, link=sample.link), unwrap=unwrap)
    whole = rows[-1]
    judged = set(NAMES) - OF_RECORD - {"tunnel", "outer_src", "outer_dst", "ip_length"}
    for cut, row, snap in zip(cuts, rows, cut_rows, strict=True):
        hidden = {key for key in judged if snap[key] is None and whole[key] is not None}
        bad = {key for key in NAMES if row.get(BAD + key)}
        assert bool(bad) == (row.get(FAULT) is not None), cut
        assert all(row[key] is None for key in bad), cut
        if unwrap == "none":  # else a tunnel that ends too soon may be read as none
            assert hidden <= bad, (cut, hidden - bad)
            assert all(row[key] in (None, whole[key]) for key in judged), cut
        elif hidden:
            assert bad or row["tunnel"] == 0, cut
