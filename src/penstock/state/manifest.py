"""The manifest of a batch: all the state there is after it, in one small JSON file.

    {batch, digest, offset, streams: {...}, ended, segments: [...], account, results: {...}, staged: [...]}

`put` is the commit point of a batch: put-if-absent, so of two writers one loses. Results are *staged* by then
(written under temporary names); after the commit they are renamed to their final names, and whoever finds a
manifest rolls its renames forward, so a kill at any moment leaves each window in the output exactly once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import StateError
from penstock.faults import reach
from penstock.state import checked
from penstock.state.account import Account
from penstock.state.data import sparse
from penstock.state.files import put_if_absent
from penstock.state.protocol import Offset, Results, SegmentRef, Staged, StreamState, Timings, Volume, Work

FOLDER = "manifests"
REMEMBERED = 4  # manifests that were read or written: a batch needs those of the two before it


@dataclass(frozen=True)
class Manifest:
    """State after a batch; results, work and volume are of all batches so far, `staged`, `rows` and, of live streams,
    `timings` of this one."""

    batch: int
    digest: str
    offset: Offset
    streams: Mapping[str, StreamState]
    ended: bool
    segments: tuple[SegmentRef, ...]
    account: Account
    results: Mapping[str, Results]
    work: Work
    volume: Volume
    staged: tuple[Staged, ...] = ()
    rows: int = 0
    timings: Timings | None = sparse(None)

    def stream(self, name: str) -> StreamState:
        """What is known of a stream; of one that is new, nothing."""
        return self.streams.get(name, StreamState())

    @property
    def kept_bytes(self) -> int:
        """State after the batch: bytes of live segments."""
        return sum(segment.bytes for segment in self.segments)

    @property
    def windows(self) -> int:
        """Closed so far, of all queries."""
        return sum(result.windows for result in self.results.values())

    @property
    def watermarks(self) -> dict[str, int | None]:
        """Of the declared streams."""
        return {name: self.streams[name].watermark for name in self.offset.streams}


def first_manifest() -> Manifest:
    """The state before batch 0."""
    return Manifest(-1, "", Offset(), {}, False, (), Account(), {}, {}, Volume())


def put(checkpoint: Path, manifest: Manifest) -> None:
    """Commit a batch."""
    data = checked.dump(manifest)
    reach("manifest.write")
    path = path_of(checkpoint, manifest.batch)
    if not put_if_absent(path, data):
        raise StateError(
            f"manifest {manifest.batch} of {checkpoint} was written by another run",
            "only one run may use a checkpoint; end the other one",
        )
    _remember(path, path.stat(), manifest)
    reach("manifest.written")


def load(checkpoint: Path, batch: int) -> Manifest | None:
    """The manifest of a batch; None if there is none. One never changes once it is written, and several look at the
    newest: it is read when the first does, and not at all in the process that wrote it."""
    path = path_of(checkpoint, batch)
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    known = _known.get(path)
    if known is not None and known[0] == _identity(found):
        return known[1]
    manifest = checked.parse(path.read_bytes(), Manifest, path, "manifest")
    _remember(path, found, manifest)
    return manifest


def _identity(found: os.stat_result) -> tuple[int, int, int]:
    """Of a file: where a checkpoint was deleted, another may stand in its place."""
    return found.st_ino, found.st_mtime_ns, found.st_size


def _remember(path: Path, found: os.stat_result, manifest: Manifest) -> None:
    with _lock:
        _known.pop(path, None)
        if len(_known) >= REMEMBERED:
            del _known[next(iter(_known))]
        _known[path] = _identity(found), manifest


def forget() -> None:
    """Begin like a process that has neither read nor written any."""
    with _lock:
        _known.clear()


def batches(checkpoint: Path) -> list[int]:
    """Numbers of the manifests there are, ascending."""
    return sorted(int(path.stem) for path in (checkpoint / FOLDER).glob("[0-9]*.json"))


def newest(checkpoint: Path) -> Manifest | None:
    numbers = batches(checkpoint)
    return load(checkpoint, numbers[-1]) if numbers else None


def path_of(checkpoint: Path, batch: int) -> Path:
    return checkpoint / FOLDER / f"{batch:08d}.json"


_known: dict[Path, tuple[tuple[int, int, int], Manifest]] = {}
_lock = threading.Lock()
