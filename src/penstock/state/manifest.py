"""The manifest of a batch: all the state there is after it, in one small JSON file.

    {batch, digest, offset, streams: {...}, ended, segments: [...], account, results: {...}, staged: [...]}

`put` is the commit point of a batch: put-if-absent, so of two writers one loses. Results are *staged* by then
(written under temporary names); after the commit they are renamed to their final names, and whoever finds a
manifest rolls its renames forward, so a kill at any moment leaves each window in the output exactly once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import StateError
from penstock.faults import reach
from penstock.state import checked
from penstock.state.account import opening
from penstock.state.files import put_if_absent

FOLDER = "manifests"


@dataclass(frozen=True)
class Manifest:
    """State after batch `batch`. `streams` has, per stream (declared, or results that a query reads), position,
    watermark, greatest and first time and whether it has ended; times are microseconds, None: no tuple yet."""

    batch: int
    digest: str
    offset: dict[str, Any]
    streams: dict[str, dict[str, Any]]
    ended: bool
    segments: list[dict[str, Any]]
    account: dict[str, Any]
    results: dict[str, dict[str, int]]  # per query: windows and rows so far
    work: dict[str, dict[str, int]]  # per query: probes and evictions so far
    volume: dict[str, int]  # bytes so far, by VOLUME
    staged: list[list[str]] = field(default_factory=list)  # [query, temporary name, final name]
    rows: int = 0  # of this batch


# Bytes of segments that tasks wrote, that were read to close windows, that compactions wrote; bytes of results given to
# sinks; the number of compactions.
VOLUME = ("written", "read", "compacted", "results", "compactions")


def first_manifest() -> Manifest:
    """The state before batch 0."""
    return Manifest(-1, "", {}, {}, False, [], opening(), {}, {}, dict.fromkeys(VOLUME, 0))


def kept_bytes(manifest: Manifest) -> int:
    """State after the batch: bytes of live segments."""
    return sum(segment["bytes"] for segment in manifest.segments)


def volume_since(manifest: Manifest, before: Manifest) -> dict[str, int]:
    """Bytes of the batches after `before`, and what is kept now."""
    moved = {name: manifest.volume[name] - before.volume[name] for name in VOLUME}
    return moved | {"kept": kept_bytes(manifest)}


def stream_state(manifest: Manifest | None, name: str) -> dict[str, Any]:
    """What is known of a stream; of one that is new, nothing."""
    fresh = {"row": 0, "watermark": None, "greatest": None, "first": None, "ended": False}
    return fresh if manifest is None else manifest.streams.get(name, fresh)


def put(checkpoint: Path, manifest: Manifest) -> None:
    """Commit a batch."""
    data = checked.encode(vars(manifest))
    reach("manifest.write")
    if not put_if_absent(path_of(checkpoint, manifest.batch), data):
        raise StateError(
            f"manifest {manifest.batch} of {checkpoint} was written by another run",
            "only one run may use a checkpoint; end the other one",
        )
    reach("manifest.written")


def load(checkpoint: Path, batch: int) -> Manifest | None:
    """The manifest of a batch; None if there is none."""
    path = path_of(checkpoint, batch)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return Manifest(**checked.decode(data, path, "manifest"))


def batches(checkpoint: Path) -> list[int]:
    """Numbers of the manifests there are, ascending."""
    return sorted(int(path.stem) for path in (checkpoint / FOLDER).glob("[0-9]*.json"))


def newest(checkpoint: Path) -> Manifest | None:
    numbers = batches(checkpoint)
    return load(checkpoint, numbers[-1]) if numbers else None


def path_of(checkpoint: Path, batch: int) -> Path:
    return checkpoint / FOLDER / f"{batch:08d}.json"
