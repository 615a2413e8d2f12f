"""Classic pcap files as arrays: a capture repeated to any number of packets, times going on.

Used by `benchmarks.data.traces`, which decides what is repeated. A capture is small and is read whole; what is written
may be large, so it is written a repetition at a time. Nothing here loops over packets in Python: the records' chain of
lengths is walked by a compiled loop, everything else is numpy.

Captures of months are bursts with long silences. Repeated as they are, most windows would be empty or hold a
packet; a link that is worth a dozen queries is not like that. So gaps between packets are cut to `LONGEST_GAP`,
which keeps the order of packets, hence all locality, and gives some 1,500 packets a second. Nothing but times is
changed.
"""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.errors import SourceError

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]

LITTLE_MICROS = 0xA1B2C3D4
HEADER = np.dtype(
    [("magic", "<u4"), ("major", "<u2"), ("minor", "<u2"), ("zone", "<i4"), ("figures", "<u4"), ("snap", "<u4"),
     ("link", "<u4")]
)  # fmt: skip
RECORD_BYTES = 16  # seconds, microseconds, captured, length: four 32-bit numbers
LONGEST_GAP = 1000  # microseconds


@dataclass(frozen=True)
class Capture:
    """Packets of a classic little-endian microsecond pcap file: its bytes, where records begin, their times."""

    link: int
    data: Bytes  # all records, without the file's header
    starts: Numbers  # of each record in `data`
    times: Numbers  # microseconds since 1970

    @property
    def packets(self) -> int:
        return len(self.starts)


def read_capture(path: Path) -> Capture:
    """Read a whole capture, plain or packed by xz."""
    content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    everything = np.frombuffer(content, np.uint8)
    header = everything[: HEADER.itemsize].view(HEADER)[0] if len(everything) >= HEADER.itemsize else None
    if header is None or header["magic"] != LITTLE_MICROS:
        raise SourceError(f"{path.name} is not a pcap file", "benchmarks take little-endian ones with microseconds")
    data = everything[HEADER.itemsize :]
    starts = _walk(data)
    words = _record_headers(data, starts)
    return Capture(int(header["link"]), data, starts, words[:, 0] * 1_000_000 + words[:, 1])


def _walk(data: Bytes) -> Numbers:
    """Where the records begin; a record that the file cuts off is left out."""
    from benchmarks.packets.capture_walk import walk  # compiles or loads when it is imported

    starts = np.empty(len(data) // RECORD_BYTES + 1, np.int64)
    return starts[: walk(data, starts)].copy()


def _record_headers(data: Bytes, starts: Numbers) -> Numbers:
    places = starts[:, None] + np.arange(RECORD_BYTES)
    return np.asarray(data[places].view("<u4"), dtype=np.int64)


def spread_times(times: Numbers, longest_gap: int = LONGEST_GAP) -> Numbers:
    """Times of one repetition from 0 on: gaps as they are, also negative ones, but none longer than that."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.minimum(np.diff(times), longest_gap))])


def replicated_times(capture: Capture, packets: int) -> Numbers:
    """Times of that many packets: repetitions follow each other after the longest gap."""
    once = spread_times(capture.times)
    period = int(once.max()) + LONGEST_GAP
    number = np.arange(packets)
    again = number // capture.packets * period
    return np.asarray(capture.times[0] + once[number % capture.packets] + again, dtype=np.int64)


def replicate(capture: Capture, packets: int, target: Path) -> Numbers:
    """Write that many packets as a file, appearing when it is whole; returns their times."""
    times = replicated_times(capture, packets)
    aside = target.with_name(f".{target.name}.tmp")
    with aside.open("wb") as file:
        file.write(file_header(capture.link))
        for first in range(0, packets, capture.packets):
            count = min(capture.packets, packets - first)
            file.write(_retimed(capture, times[first : first + count]))
    aside.rename(target)
    return times


def _retimed(capture: Capture, times: Numbers) -> bytes:
    """The first packets of the capture, with these times."""
    count = len(times)
    stop = int(capture.starts[count]) if count < capture.packets else _end(capture)
    data = capture.data[:stop].copy()
    stamps = np.empty((count, 2), "<u4")
    stamps[:, 0], stamps[:, 1] = np.divmod(times, 1_000_000)
    data[capture.starts[:count, None] + np.arange(8)] = stamps.view(np.uint8)
    return data.tobytes()


def _end(capture: Capture) -> int:
    last = capture.starts[-1:]
    return int(last[0]) + RECORD_BYTES + int(_record_headers(capture.data, last)[0, 2])


def prefix(file: Path, packets: int, target: Path) -> Path:
    """The first packets of a file as a file of their own; made when it is not there yet."""
    if not target.exists():
        content = np.memmap(file, np.uint8, mode="r")
        data = content[HEADER.itemsize : HEADER.itemsize + packets * (1 << 16)]
        starts = _walk(np.ascontiguousarray(data))
        stop = int(starts[packets]) if packets < len(starts) else len(data)
        aside = target.with_name(f".{target.name}.tmp")
        aside.write_bytes(content[: HEADER.itemsize + stop].tobytes())
        aside.rename(target)
    return target


def file_header(link: int, snap: int = 262144) -> bytes:
    return np.array([(LITTLE_MICROS, 2, 4, 0, 0, snap, link)], HEADER).tobytes()
