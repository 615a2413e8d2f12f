"""Garbage collection: delete what no manifest that could still be needed names.

Runs after Spark has committed batch N: a replay can then start from manifest N − 1 at the earliest, so
segments of batches ≤ N that neither manifest names, and older manifests, are gone for good. Files of later
batches belong to tasks that may be running and are left alone. After the end of the source nothing is replayed,
and only the last manifest counts. Tables stay, but for versions of those that are read again.
"""

from __future__ import annotations

from pathlib import Path

from penstock.faults import reach
from penstock.state import manifest as manifests

SEGMENTS = "segments"
VERSIONS = "versions"  # of the app and its plans
DECISIONS = "decisions"  # about batches of DataFrames
SAMPLES = "samples"  # of the streams, for plans
TABLES = "tables"  # that queries join with, by content
VERSION = "version-"  # before the digest, in the name of a content that others will replace
KEEP = 2  # manifests


def segment_name(batch: int, task: str, attempt: str) -> str:
    """Name of a task's segment; the batch in front decides when it may be collected."""
    return f"{batch:08d}-{task}-{attempt}.seg"


def table_path(checkpoint: Path, digest: str) -> Path:
    """Where a checkpoint keeps the table of this content."""
    return checkpoint / TABLES / f"{digest}.arrow"


def collect(checkpoint: Path, committed: int, tables: frozenset[str] | None = None) -> int:
    """Delete what is not needed once Spark committed `committed`; returns the number of files deleted. `tables` are
    versions that are needed whatever manifests say: those of a batch that is decided. Without it none is deleted."""
    last = manifests.load(checkpoint, committed)
    if last is None:  # nothing says what is still needed: a later owner may have gone on
        return 0
    kept = [last, None if last.ended else manifests.load(checkpoint, committed - 1)]
    named = {segment.path for manifest in kept if manifest is not None for segment in manifest.segments}
    deleted = 0
    for path in sorted((checkpoint / SEGMENTS).glob("[0-9]*-*.seg")):
        if int(path.name.split("-")[0]) <= committed and path.name not in named:
            reach("garbage.delete")
            path.unlink(missing_ok=True)
            deleted += 1
    if tables is not None:
        tables = tables.union(*(manifest.offset.contents.values() for manifest in kept if manifest is not None))
        for path in sorted((checkpoint / TABLES).glob(f"{VERSION}*.arrow")):
            if path.stem not in tables:
                reach("garbage.delete")
                path.unlink(missing_ok=True)
                deleted += 1
    for batch in manifests.batches(checkpoint):
        if batch <= committed - KEEP:
            manifests.path_of(checkpoint, batch).unlink(missing_ok=True)
            deleted += 1
    needed = min((manifest.offset.plan for manifest in kept if manifest is not None), default=0)
    for path in sorted((checkpoint / VERSIONS).glob("[0-9]*.json")):
        if int(path.stem) < needed:  # a replay runs what its offset names; the newest is never older
            path.unlink(missing_ok=True)
            deleted += 1
    for path in sorted((checkpoint / DECISIONS).glob("[0-9]*.*")):
        if int(path.name[:8]) <= committed - KEEP:
            path.unlink(missing_ok=True)
            deleted += 1
    asides = [*(checkpoint / manifests.FOLDER).glob(".*.tmp"), *(checkpoint / SAMPLES).glob(".*.sample.*")]
    for aside in asides:  # of a driver killed while it committed, of tasks killed while they left a sample
        aside.unlink(missing_ok=True)
        deleted += 1
    return deleted
