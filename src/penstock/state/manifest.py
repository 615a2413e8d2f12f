"""The manifest of a batch: all the state there is after it, in one small JSON file.

    {batch, digest, offset, watermark, greatest, ended, segments: [...], account, results: {...}, staged: [...]}

`put` is the commit point of a batch: put-if-absent, so of two writers one loses. Results are *staged* by then
(written under temporary names); after the commit they are renamed to their final names, and whoever finds a
manifest rolls its renames forward, so a kill at any moment leaves each window in the output exactly once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
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
    """State after batch `batch`. Times are microseconds; None: no tuple yet."""

    batch: int
    digest: str
    offset: dict[str, Any]
    watermark: int | None
    greatest: int | None
    ended: bool
    plan_version: int
    segments: list[dict[str, Any]]
    account: dict[str, Any]
    results: dict[str, dict[str, int]]  # per query: windows and rows so far
    work: dict[str, dict[str, int]]  # per query: probes and evictions so far
    staged: list[list[str]] = field(default_factory=list)  # [query, temporary name, final name]
    rows: int = 0  # of this batch


def first_manifest(queries: list[str]) -> Manifest:
    """The state before batch 0."""
    results = {name: {"windows": 0, "rows": 0} for name in queries}
    work = {name: {"probes": 0, "evictions": 0} for name in queries}
    return Manifest(-1, "", {}, None, None, False, 0, [], opening(queries), results, work)


def put(checkpoint: Path, manifest: Manifest) -> None:
    """Commit a batch."""
    data = checked.encode(asdict(manifest))
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


def open_windows(manifest: Manifest, size: int) -> list[int]:
    """Windows of this size that hold groups and are not closed."""
    numbers = {w for segment in manifest.segments for w in segment["windows"].get(str(size), [])}
    first = None if manifest.watermark is None else manifest.watermark // size
    if manifest.ended:
        return []
    return sorted(w for w in numbers if first is None or w >= first)


def live_segments(segments: list[dict[str, Any]], watermark: int | None, ended: bool) -> list[dict[str, Any]]:
    """Segments with a window that is still open."""
    if ended:
        return []
    return [s for s in segments if any(_open(size, windows, watermark) for size, windows in s["windows"].items())]


def _open(size: str, windows: list[int], watermark: int | None) -> bool:
    return bool(windows) and (watermark is None or windows[-1] >= watermark // int(size))
