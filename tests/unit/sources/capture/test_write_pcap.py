"""Generated records as captures: what is written is read again, and the headers are right."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from penstock.sources.base import whole
from penstock.sources.capture.source import open_pcap
from penstock.sources.capture.write import file_header, frames
from penstock.sources.generate.source import open_generate


def test_packets_are_read_as_they_were_written(tmp_path: Path) -> None:
    source = open_generate("bursty", {"rows": "5000", "seed": "3"})
    table = pa.Table.from_batches(source.read(whole(source), source.schema().names, 5000))
    path = tmp_path / "x.pcap"
    path.write_bytes(file_header() + frames(table))
    capture = open_pcap(str(path), {}, None)
    names = ["ts", "src", "dst", "sport", "dport", "proto", "ip_length"]
    read = pa.Table.from_batches(capture.read(whole(capture), names, 5000))
    assert read.column_names == names, "no packet is malformed"
    assert read.column("ts").cast(pa.int64()).to_pylist() == table.column("ts").cast(pa.int64()).to_pylist()
    sources = [value["four"] if isinstance(value, dict) else value for value in read.column("src").to_pylist()]
    assert sources == table.column("src").to_pylist()
    for name in ("sport", "dport"):
        assert read.column(name).to_pylist() == table.column(name).to_pylist()
    assert set(read.column("proto").to_pylist()) <= {6, 17}
    sizes = [min(max(size, 40), 65_521) for size in table.column("bytes").to_pylist()]
    assert read.column("ip_length").to_pylist() == sizes
