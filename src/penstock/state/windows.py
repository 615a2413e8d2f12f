"""The account of closed windows: per query a ring of the newest ones, in one file of the checkpoint.

    windows/QUERY    record i of the query's closed windows stands at slot i % CAPACITY

    record           index │ window │ start │ end │ rows │ exact │ triaged │ checksum      8 bytes each, little-endian

The manifest says how many windows a query has closed (`results`); records of a batch are written before its manifest.
Only those below the manifest's number are believed, and of these only the ones whose index and checksum are right: what
a killed attempt left is not seen, the replay writes the same records into the same slots, and nothing grows with the
stream. Like segments, rings are not synced: the promise is about killed processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xxhash

from penstock.errors import RunError, why
from penstock.faults import reach

FOLDER = "windows"
CAPACITY = 1 << 16  # windows of a query: 4 MiB
SHOWN = ("window", "start", "end", "rows", "exact", "triaged")
RECORD = np.dtype([*((name, "<i8") for name in ("index", *SHOWN)), ("checksum", "<u8")])
COVERED = RECORD.itemsize - 8  # bytes that the checksum is of

Array = np.ndarray


def fresh(windows: Array) -> Array:
    """Records of these windows (ascending, at most CAPACITY), with nothing counted yet."""
    records = np.zeros(len(windows), RECORD)
    records["window"] = windows
    return records


def write_windows(checkpoint: Path, query: str, closed: int, records: Array) -> None:
    """Keep the records of the newest of `closed` windows, in order."""
    if not len(records):
        return
    first, kept = closed - len(records), records.copy()
    kept["index"] = np.arange(first, closed)
    kept["checksum"] = _checksums(kept)
    reach("windows.write")
    path = _path(checkpoint, query)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
            for begin, end in _runs(first, closed):
                file.seek(begin % CAPACITY * RECORD.itemsize)
                file.write(kept[begin - first : end - first].tobytes())
    except OSError as error:
        raise RunError(f"cannot write {path}: {why(error)}", "make room or mend the disk, then run again") from error


def read_windows(checkpoint: Path, query: str, closed: int, most: int = CAPACITY) -> Array:
    """Records of the newest of `closed` windows, oldest first; those that are damaged or overwritten are left out."""
    first, found = closed - min(closed, most, CAPACITY), [np.empty(0, RECORD)]
    try:
        with open(_path(checkpoint, query), "rb") as file:
            for begin, end in _runs(first, closed):
                file.seek(begin % CAPACITY * RECORD.itemsize)
                data = file.read((end - begin) * RECORD.itemsize)
                part = np.frombuffer(data[: len(data) // RECORD.itemsize * RECORD.itemsize], RECORD)
                right = part["index"] == np.arange(begin, begin + len(part))
                found.append(part[right & (part["checksum"] == _checksums(part))])
    except FileNotFoundError:  # no window has closed, or this was no account of windows yet
        pass
    return np.concatenate(found)


def listed(records: Array) -> list[dict[str, int]]:
    """As JSON and users have it: times are microseconds."""
    return [dict(zip(SHOWN, values, strict=True)) for values in records[list(SHOWN)].tolist()]


def accounted(checkpoint: Path) -> set[str]:
    """Queries, dropped ones too, of which there are records."""
    folder = checkpoint / FOLDER
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def _path(checkpoint: Path, query: str) -> Path:
    return checkpoint / FOLDER / query  # a query's name can be a folder's


def _runs(first: int, beyond: int) -> Iterator[tuple[int, int]]:
    """The indices [first, beyond), cut where the ring comes round."""
    turn = (first // CAPACITY + 1) * CAPACITY
    yield first, min(turn, beyond)
    if turn < beyond:
        yield turn, beyond


def _checksums(records: Array) -> Array:
    data = records.tobytes()
    starts = range(0, len(data), RECORD.itemsize)
    return np.array([xxhash.xxh3_64_intdigest(data[at : at + COVERED]) for at in starts], np.uint64)
