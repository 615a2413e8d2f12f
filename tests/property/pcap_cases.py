"""What must hold of any file that claims to be a capture, however damaged; one shard of cases, in a process of its own.

    python pcap_cases.py FOLDER FIRST COUNT     the numbers of cases; FOLDER has small captures
    last line printed: JSON with the number of cases, rows, what came of files, and the greatest memory

A case is a capture, a seed for its mutation and for how it is read. The number of the case at hand is on disk before
it runs, so that whoever started the process knows it after a crash. Every file is counted and walked over in splits;
packets of `POOL` files are decoded together, many of them cut, each twice with other bytes after it; one file of
`THOROUGH` is read column by column in several ways.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import SourceError
from penstock.kernels.capture import CUT, Records
from penstock.kernels.packet_fields import take_service
from penstock.kernels.packet_layers import room
from penstock.kernels.packet_layout import END
from penstock.kernels.packet_tunnel import GRE, IPIP, VXLAN
from penstock.sources import capture, pcap
from penstock.sources.base import BAD, FAULT, UNREADABLE, Split, fields
from penstock.sources.capture import HEAD, Section, Walker
from penstock.sources.capture_columns import COLUMNS, STATIONS, Batch, Piece, schema
from penstock.sources.files import Address
from penstock.testing.mutations import Anatomy, anatomy, mutated

Array = np.ndarray[Any, Any]
NAMES = list(COLUMNS)
FIELDS = fields(schema())
UNWRAPS = (7, 0, 7, GRE, IPIP, VXLAN)
HEADERS = 130  # bytes; most packets have theirs in fewer
GAP, POISONS = 96, (0xFF, 0x45)  # bytes after each packet
POOL, THOROUGH = 64, 16
ALONE = int(os.environ.get("PENSTOCK_ALONE", "4"))
SECONDS = 120  # what takes longer hangs; a case takes less than a millisecond


@dataclass(frozen=True)
class Base:
    name: str
    data: bytes
    known: Anatomy


def bases(folder: Path) -> list[Base]:
    files = sorted(folder.iterdir())
    return [Base(file.name, data, anatomy(data)) for file in files for data in [file.read_bytes()]]


@dataclass
class Pool:
    """Packets of several files, each followed by bytes that are not its own."""

    packets: list[bytes] = field(default_factory=list)
    records: list[Records] = field(default_factory=list)

    def take(self, data: Array, records: Records, rng: np.random.Generator) -> None:
        """Half of the packets as they are, the others cut somewhere in their headers: by a snap length, or as sent."""
        known, count = copied(records), len(records.at)
        cut, sent = rng.random(count) < 0.5, rng.random(count) < 0.5
        known.captured = np.where(cut, rng.integers(0, np.minimum(known.captured, HEADERS) + 1), known.captured)
        known.captured = known.captured.astype(np.int32)
        known.length = np.where(cut & sent, known.captured, known.length)
        text = data.tobytes()
        places = zip(known.at.tolist(), known.captured.tolist(), strict=True)
        self.packets += [text[at : at + size] for at, size in places]
        self.records.append(known)

    def check(self, unwrap: int) -> None:
        """What is decoded does not depend on bytes after a packet's captured end; flags are as they should be."""
        if not self.packets:
            return
        data, records = poisoned(self.packets, self.records, POISONS)
        batch = decoded(data, records, unwrap)
        for name, found in raw(batch).items():
            third = len(found) // len(POISONS)
            first, *others = (found[at : at + third].tobytes() for at in range(0, len(found), third))
            assert all(first == other for other in others), f"{name} depends on what follows the packet"
        check_flags(batch.arrow())


def copied(records: Records) -> Records:
    same = Records(0)
    same.__dict__ = {name: column.copy() for name, column in records.__dict__.items()}
    return same


def poisoned(
    packets: list[bytes], parts: list[Records], poisons: Sequence[int], gap: int = GAP
) -> tuple[Array, Records]:
    """The packets one after the other with a gap after each; all of them once for each poison."""
    gaps = [bytes([byte]) * gap for byte in poisons]
    data = np.frombuffer(b"".join(gap.join(packets) + gap for gap in gaps), np.uint8)
    records = Records(0)
    records.__dict__ = {
        name: np.tile(np.concatenate([part.__dict__[name] for part in parts]), len(poisons))
        for name in records.__dict__
    }
    sizes = records.captured.astype(np.int64) + gap
    records.at = np.cumsum(sizes) - sizes
    return data, records


def decoded(data: Array, records: Records, unwrap: int) -> Batch:
    count = len(records.at)
    piece, batch = Piece(data, records, room(count), count), Batch(NAMES, count)
    batch.take(piece, pcap._locate(piece, unwrap) > 0)
    return batch


def raw(batch: Batch) -> dict[str, Array]:
    """Values and marks of all columns, and the faults."""
    found = {"fault": batch._fault}
    for values in batch._values:
        found |= {values.name: values.out, f"{values.name} there": values.there}
        if values.six is not None:
            found |= {f"{values.name} six": values.six, f"{values.name} long": values.long}
    return found


def run_case(base: Base, case: int, path: Path, pool: Pool) -> tuple[str, int]:
    """What came of the file, and its rows; an AssertionError says which property does not hold."""
    rng = random.Random(-case)
    data = mutated(base.data, base.known, case)
    path.write_bytes(data)
    capture.PIECE = rng.choice((1 << 10, *[1 << 14] * 3, *[1 << 18] * 4))
    pcap._counted.cache_clear()  # a file of the same size may have come within a tick of the clock
    unwrap = UNWRAPS[case // POOL % len(UNWRAPS)]
    try:
        source = pcap.PcapSource(Address.of("pcap", str(path), ()), FIELDS, "", (str(path),), unwrap=unwrap)
        rows = source.rows()
    except SourceError:
        return "refused", 0
    if rows:
        middle = rng.randrange(rows)
        assert sum(batch.num_rows for batch in source.read(Split(middle, rows), (), rows)) == rows - middle
        assert walk(source, pool, np.random.default_rng(case)) == rows
        if case % THOROUGH == 0:
            check_parts(source, rows, check_all(source, rows), rng)
            check_growth(source, path, data, rng)
    return "read", rows


def check_growth(source: pcap.PcapSource, path: Path, data: bytes, rng: random.Random) -> None:
    """Met while it is written, the file has the same rows, but for a last one that may not be whole yet."""
    size, names = rng.randrange(HEAD, len(data) + 1), ["ts", "length", "interface", *rng.sample(NAMES, 2)]
    path.write_bytes(data[:size])
    pcap._counted.cache_clear()
    growing = replace(source, known=None, paths=(str(path),)).live()
    assert growing.rows() <= source.rows()
    path.write_bytes(data)
    pcap._counted.cache_clear()
    growing = growing.extended(growing.arrivals())
    rows = source.rows() - (source.files[-1].ended == CUT)
    assert growing.rows() == rows
    one, two = (list(each.read(Split(0, rows), names, 1000)) for each in (source, growing))
    for name in names:
        assert values(one, name).equals(values(two, name)), name


def values(batches: list[pa.RecordBatch], name: str) -> pa.ChunkedArray:
    kind = pa.string() if name in STATIONS else COLUMNS[name].type
    return pa.chunked_array([_plain(batch.column(name)) for batch in batches], kind)


def walk(source: pcap.PcapSource, pool: Pool, rng: np.random.Generator) -> int:
    """Go over the file in a buffer that ends where it ends: of use where bounds are checked."""
    file, records, rows = source.files[0], Records(256), 0
    walker = Walker(file.path, file.form, file.begin, file.stop, Section(), bool(file.ended))
    walker.data = np.fromfile(file.path, np.uint8, file.stop - file.begin, offset=file.begin)
    walker.end = len(walker.data)
    for count in walker.pieces(records):
        if count:
            pool.take(walker.data, records.part(0, count), rng)
            rows += count
    return rows


def check_all(source: pcap.PcapSource, rows: int) -> pa.RecordBatch:
    (batch,) = source.read(Split(0, rows), NAMES, rows)
    assert batch.num_rows == rows
    check_flags(batch)
    return batch


def check_flags(batch: pa.RecordBatch) -> None:
    """The contract of `sources.base` about flags."""
    flags = batch.schema.names[len(NAMES) :]
    assert batch.schema.names[: len(NAMES)] == NAMES
    assert all(column.null_count == 0 for column in batch.columns[len(NAMES) :] if pa.types.is_boolean(column.type))
    if not flags:
        return
    lost, flagged = ~_null(batch, UNREADABLE), [flag for flag in flags if flag.startswith(BAD)]
    bad = np.array([_true(batch, flag) for flag in flagged])
    assert not lost.any() or flagged == [BAD + name for name in NAMES]
    assert (bad >= lost).all(), "a value of an unreadable record is not bad"
    assert bad.any(axis=1).all(), "a flag that says nothing"
    nulls = np.array([_null(batch, flag.removeprefix(BAD)) for flag in flagged])
    assert (nulls >= bad).all(), "a value is bad and there"
    assert (~_null(batch, FAULT) == (bad.any(axis=0) & ~lost)).all(), "a fault without a bad value, or no fault"
    assert set(flags) <= {FAULT, UNREADABLE, *flagged}


def _null(batch: pa.RecordBatch, name: str) -> Array:
    if name not in batch.schema.names:
        return np.ones(batch.num_rows, bool)
    nulls: Array = batch.column(name).is_null().to_numpy(zero_copy_only=False)
    return nulls


def _true(batch: pa.RecordBatch, name: str) -> Array:
    if name not in batch.schema.names:
        return np.zeros(batch.num_rows, bool)
    values: Array = batch.column(name).to_numpy(zero_copy_only=False)
    return values


def check_parts(source: pcap.PcapSource, rows: int, whole: pa.RecordBatch, rng: random.Random) -> None:
    """Some columns, read in splits and batches of any size, are those of the whole."""
    names = rng.sample(NAMES, rng.choice((1, 3)))
    edges = [0, *sorted(rng.randrange(rows + 1) for _ in range(rng.choice((0, 1, 3)))), rows]
    at = 0
    for start, stop in itertools.pairwise(edges):
        for batch in source.read(Split(start, stop), names, rng.choice((1 + rows // 8, 1 + rows // 3, rows))):
            piece = whole.slice(at, batch.num_rows)
            for name in names:
                assert _plain(batch.column(name)).equals(_plain(piece.column(name))), name
                assert (_true(batch, BAD + name) == _true(piece, BAD + name)).all(), name
            assert _texts(batch, UNREADABLE) == _texts(piece, UNREADABLE)
            at += batch.num_rows
        assert at == stop


def _plain(array: pa.Array) -> pa.Array:
    return pc.cast(array, pa.string()) if pa.types.is_dictionary(array.type) else array


def _texts(batch: pa.RecordBatch, name: str) -> list[Any]:
    return batch.column(name).to_pylist() if name in batch.schema.names else [None] * batch.num_rows


def require_checks() -> None:
    """Where bounds should be checked they are: by a read that lies outside."""
    layers = room(1)
    layers[:] = 0
    layers[0, END] = 100
    try:
        take_service(np.zeros(1, np.uint8), layers, 1, np.zeros(1, np.uint16), np.zeros(1, np.uint8))
    except IndexError:
        return
    raise AssertionError("bounds are not checked")


def main(folder: str, first: int, count: int) -> None:
    if os.environ.get("NUMBA_BOUNDSCHECK") == "1":
        require_checks()
    known, seen, pool = bases(Path(folder)), Counter[str](), Pool()
    mark = os.open(Path(folder).parent / f"at-{first}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as scratch:
        path, warm = Path(scratch) / "case.pcap", 0
        for case in range(first, first + count):
            base = known[case % len(known)]
            os.pwrite(mark, f"{case} {base.name}".ljust(80).encode(), 0)
            signal.alarm(SECONDS)  # kills: compiled loops do not listen to Python
            what, rows = run_case(base, case, path, pool)
            seen[what] += 1
            seen["rows"] += rows
            if (case + 1) % POOL == 0 or case == first + count - 1:
                os.pwrite(mark, f"{case} and up to {POOL} before it".ljust(80).encode(), 0)
                pool.check(UNWRAPS[case // POOL % len(UNWRAPS)])
                check_alone(pool, case)
                pool = Pool()
            if case == first + min(count // 4, 5000):
                warm = peak()
        signal.alarm(0)
    print(json.dumps({**seen, "cases": count, "warm_mb": warm, "peak_mb": peak()}))


def check_alone(pool: Pool, case: int) -> None:
    """Some packets in buffers that end where they end: of use where bounds are checked."""
    rng, before = random.Random(case), 0
    for part in pool.records:
        row = rng.randrange(len(part.at))
        if len(pool.records) <= ALONE or rng.random() * len(pool.records) < ALONE:
            data, alone = poisoned([pool.packets[before + row]], [part.part(row, row + 1)], (0,), gap=0)
            decoded(data, alone, UNWRAPS[case // POOL % len(UNWRAPS)])
        before += len(part.at)


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
