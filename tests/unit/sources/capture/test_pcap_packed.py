"""Compressed captures and archives: known by their first bytes, unpacked once, the same rows as the plain file."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import RunError, SourceError
from penstock.sources.base import Split, growing
from penstock.sources.capture.source import SUFFIXES, PcapSource, open_pcap
from support.captures import Packet, enhanced, interface, pcap, section
from support.packet_samples import SAMPLES

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}
PLAIN = pcap([Packet(sample.data, None, i) for i, sample in enumerate(SAMPLES.values()) if sample.link == 1])
OTHER = section(">") + interface(">") + enhanced(">", 0, 5, SAMPLES["udp"].data)


def archive(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return out.getvalue()


def opened(tmp_path: Path, name: str, data: bytes) -> PcapSource:
    (tmp_path / name).write_bytes(data)
    return open_pcap(str(tmp_path / name), {"cache": str(tmp_path / "cache")})


def rows(source: PcapSource, start: int = 0) -> list[Any]:
    names = source.schema().names
    return [row for batch in source.read(Split(start, source.rows()), names, 7) for row in batch.to_pylist()]


@pytest.mark.parametrize("packer", PACKERS)
def test_packed_files(tmp_path: Path, packer: str) -> None:
    expected = rows(opened(tmp_path, "plain.pcap", PLAIN))
    for name in (f"x.pcap{packer}", "no_suffix", "wrong.pcap"):
        source = opened(tmp_path, name, PACKERS[packer](PLAIN))
        assert rows(source) == expected
        assert rows(pickle.loads(pickle.dumps(source.narrowed(Split(5, len(expected))))), 5) == expected[5:]
        assert source.place(1).endswith(" unpacked")
        assert rows(source.restarted(source.entries).live()) == expected


def test_archives(tmp_path: Path) -> None:
    data = archive(**{"b.pcapng": OTHER, "a/x.pcap.gz": gzip.compress(PLAIN), "__MACOSX/a": b"?", "c/.hidden": b"?"})
    source = opened(tmp_path, "x.zip", data)
    expected = rows(opened(tmp_path, "x.pcap", PLAIN)) + rows(opened(tmp_path, "y.pcapng", OTHER))
    assert rows(source) == expected
    assert rows(source, 3) == expected[3:]
    assert [entry.reading["member"] for entry in source.entries] == ["a/x.pcap.gz", "b.pcapng"]
    assert source.place(len(expected) - 1).startswith("x.zip/b.pcapng, packet 1, byte ")
    assert growing(source)
    assert source.live().arrivals() == []


def test_folders_of_all_kinds(tmp_path: Path) -> None:
    for number, suffix in enumerate(SUFFIXES):
        packed = suffix[suffix.rindex(".") :]
        data = archive(x=OTHER) if packed == ".zip" else PACKERS.get(packed, bytes)(OTHER)
        (tmp_path / f"{number:02}{suffix}").write_bytes(data)
    source = open_pcap(str(tmp_path), {"cache": str(tmp_path / "cache")})
    assert source.rows() == len(SUFFIXES)
    assert len({str(row) for row in rows(source)}) == 1


@pytest.mark.parametrize("packer", PACKERS)
def test_damaged_files_are_not_used_in_part(tmp_path: Path, packer: str) -> None:
    data = PACKERS[packer](PLAIN)
    with pytest.raises(SourceError, match="is damaged near byte"):
        opened(tmp_path, "x.pcap", data[:-9]).rows()


def test_what_is_packed_must_be_captures(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"x\.zip/readme' is not a capture: it begins with 68 65 6c 6c"):
        opened(tmp_path, "x.zip", archive(a=PLAIN, readme=b"hello"))
    with pytest.raises(SourceError, match="is an archive without files"):
        opened(tmp_path, "y.zip", archive())
    with pytest.raises(SourceError, match="is not a capture"):
        opened(tmp_path, "x.gz", gzip.compress(b"hello, this is not a capture"))
    with pytest.raises(SourceError, match="is damaged"):
        opened(tmp_path, "z.zip", archive(a=PLAIN)[:-30])


def test_packed_files_must_not_change(tmp_path: Path) -> None:
    source = opened(tmp_path, "x.pcap.gz", gzip.compress(PLAIN))
    assert source.rows() > 0
    (entry,) = source.entries
    assert source.changed(entry) is None
    (tmp_path / "x.pcap.gz").write_bytes(gzip.compress(OTHER))
    assert source.changed(entry) == "has changed"
    with pytest.raises(RunError, match="has changed since the run began"):
        rows(source)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"unwrap": "teredo"}, "unwrap"),
        ({"unwrap": "none,gre"}, "unwrap"),
        ({"speed": "2"}, "speed"),
        ({"x": "1"}, "x"),
    ],
)
def test_options_that_are_wrong(tmp_path: Path, options: dict[str, str], problem: str) -> None:
    (tmp_path / "x.pcap").write_bytes(PLAIN)
    with pytest.raises(SourceError, match=problem):
        open_pcap(str(tmp_path / "x.pcap"), options)


@pytest.mark.parametrize(
    ("unwrap", "found"),
    [("none", {0}), ("gre", {0, 1, "gre"}), ("ipip", {0, 1, 8}), ("vxlan", {0, 1}), ("GRE, ipip,vxlan", {0, 1, 2, 8})],
)
def test_only_tunnels_that_are_asked_for(tmp_path: Path, unwrap: str, found: set[Any]) -> None:
    samples = {name: sample for name, sample in SAMPLES.items() if sample.inner is not None}
    (tmp_path / "x.pcap").write_bytes(pcap([Packet(sample.data) for sample in samples.values()]))
    source = open_pcap(str(tmp_path / "x.pcap"), {"unwrap": unwrap})
    depths = [row["tunnel"] for row in rows(source)]
    assert set(depths) == found - {"gre"}
    kinds = {"gre": "gre", "ipip": " in ", "vxlan": "vxlan"}
    for name, depth in zip(samples, depths, strict=True):
        if name in ("nested", "too deep", "fragment of a tunnel", "gre other", "vxlan port only"):
            continue
        asked = [kind for kind, text in kinds.items() if text in name and (kind != "ipip" or "gre" not in name)]
        assert (depth > 0) == (asked[0] in unwrap.lower()), name
