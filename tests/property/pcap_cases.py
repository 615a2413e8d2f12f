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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pcap_pool import NAMES, Pool, check_alone, check_flags, flag_of, require_checks

from penstock.errors import SourceError
from penstock.kernels.packets.capture import CUT, PacketRecords
from penstock.kernels.packets.tunnel import GRE, IPIP, VXLAN
from penstock.sources.base import BAD, UNREADABLE, Split, fields
from penstock.sources.capture import source as pcap
from penstock.sources.capture import walk as capture
from penstock.sources.capture.columns import COLUMNS, STATIONS, schema
from penstock.sources.capture.walk import HEAD, Section, Walker
from penstock.sources.files import Address
from support.mutations import Anatomy, anatomy, mutated

FIELDS = fields(schema())
UNWRAPS = (7, 0, 7, GRE, IPIP, VXLAN)
POOL, THOROUGH = 64, 16
SECONDS = 120  # what takes longer hangs; a case takes less than a millisecond


@dataclass(frozen=True)
class Base:
    name: str
    data: bytes
    known: Anatomy


def bases(folder: Path) -> list[Base]:
    files = sorted(folder.iterdir())
    return [Base(file.name, data, anatomy(data)) for file in files for data in [file.read_bytes()]]


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
    file, records, rows = source.files[0], PacketRecords(256), 0
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
                assert (flag_of(batch, BAD + name) == flag_of(piece, BAD + name)).all(), name
            assert _texts(batch, UNREADABLE) == _texts(piece, UNREADABLE)
            at += batch.num_rows
        assert at == stop


def _plain(array: pa.Array) -> pa.Array:
    return pc.cast(array, pa.string()) if pa.types.is_dictionary(array.type) else array


def _texts(batch: pa.RecordBatch, name: str) -> list[Any]:
    return batch.column(name).to_pylist() if name in batch.schema.names else [None] * batch.num_rows


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
                check_alone(pool, random.Random(case), UNWRAPS[case // POOL % len(UNWRAPS)])
                pool = Pool()
            if case == first + min(count // 4, 5000):
                warm = peak()
        signal.alarm(0)
    print(json.dumps({**seen, "cases": count, "warm_mb": warm, "peak_mb": peak()}))


def peak() -> int:
    """The greatest memory of this process, in MiB; ru_maxrss would begin with that of the one that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) >> 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
