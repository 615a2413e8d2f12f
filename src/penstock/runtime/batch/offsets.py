"""Offsets: what is decided about a batch before it runs, as Spark (or `decisions/N`) logs it.

{"n": batches so far, "plan": version of the app, "end": all streams have ended,
 "streams": {name: {"row": position, "end": it has ended, "wm": watermark, "max": greatest time,
                    "first": first time}},             the last three: before the batch
 "origins": {query: [greatest time, position] when it was added to the running app}}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.errors import RunError
from penstock.logical.query import QuerySet
from penstock.runtime.epoch import Epoch
from penstock.sources.base import Position
from penstock.state import manifest as manifests
from penstock.state import versions
from penstock.state.checked import RESTORE
from penstock.state.manifest import Manifest, stream_state
from penstock.state.versions import Version

Offset = dict[str, Any]


def initial_offset() -> Offset:
    return {"n": 0, "plan": 0, "end": False, "streams": {}, "origins": {}}


def position(offset: Offset, stream: str) -> Position:
    return Position(offset["streams"].get(stream, {}).get("row", 0))


def has_ended(offset: Offset, stream: str) -> bool:
    return bool(offset["streams"].get(stream, {}).get("end", False))


def manifest_before(checkpoint: Path, offset: Offset) -> Manifest | None:
    """The state that the batch after this offset starts from."""
    batch = offset["n"]
    if not batch:
        return None
    before = manifests.load(checkpoint, batch - 1)
    if before is None:
        raise RunError(f"manifest {batch - 1} of {checkpoint} is missing", RESTORE)
    return before


def decide(
    checkpoint: Path, start: Offset, before: Manifest | None, rows: Mapping[str, int], ends: Mapping[str, bool]
) -> Offset:
    """The offset of the next batch, which goes to these positions."""
    number = versions.newest(checkpoint)
    assert number is not None  # written before the query starts
    version = versions.load(checkpoint, number)
    streams = {}
    for name, row in rows.items():
        known = stream_state(before, name)
        streams[name] = {
            "row": row, "end": ends[name], "wm": known["watermark"], "max": known["greatest"], "first": known["first"],
        }  # fmt: skip
    return {
        "n": start["n"] + 1,
        "plan": number,
        "end": all(ends.values()),
        "streams": streams,
        "origins": _origins(checkpoint, start, before, version),
    }


def _origins(checkpoint: Path, start: Offset, before: Manifest | None, version: Version) -> dict[str, list[Any]]:
    """Where queries were added: kept from before, and those of a version that this batch is the first to use."""
    names = {query.name for query in version.app.queries}
    origins = {name: origin for name, origin in start["origins"].items() if name in names}
    if before is not None and version.number != start["plan"]:
        old = versions.load(checkpoint, start["plan"]).app
        for name in names - {query.name for query in old.queries}:
            root = version.app.root(version.app.query(name)).name
            origins[name] = [stream_state(before, root)["greatest"], position(start, root)]
    return origins


def epoch_of(offset: Offset, stream: str, row: int) -> Epoch:
    """What a task on a stream knows."""
    known = offset["streams"][stream]
    return Epoch(offset["n"] - 1, known["wm"], known["max"], known["first"], row, origins_of(offset))


def origins_of(offset: Offset) -> dict[str, tuple[int | None, int]]:
    return {name: (after, row) for name, (after, row) in offset["origins"].items()}


def in_order(app: QuerySet, offset: Offset, stream: str) -> bool:
    """Whether the batch must find the stream's first tuple, for a landmark window to begin there: one task reads it."""
    unknown = offset["streams"][stream]["first"] is None
    return unknown and any(query.window.landmark for query in app.readers(stream))
