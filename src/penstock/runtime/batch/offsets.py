"""Offsets: what is decided about a batch before it runs, as Spark (or `decisions/N`) logs it.

{"n": batches so far, "plan": version of the app, "end": all streams have ended,
 "streams": {name: {"row": position, "end": it has ended, "wm": watermark, "max": greatest time,
                    "first": first time}},             the last three: before the batch
 "origins": {query: [greatest time, position] when it was added to the running app}}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penstock.errors import RunError
from penstock.logical.query import QuerySet
from penstock.runtime.batch.context import roots_state
from penstock.runtime.epoch import Epoch
from penstock.sources.base import Position
from penstock.state import checked, versions
from penstock.state import manifest as manifests
from penstock.state.checked import RESTORE
from penstock.state.files import put_if_absent
from penstock.state.garbage import DECISIONS
from penstock.state.manifest import Manifest
from penstock.state.protocol import Offset, Origin, StreamOffset, StreamState
from penstock.state.versions import Version


def position(offset: Offset, stream: str) -> Position:
    return Position(offset.stream(stream).row)


def manifest_before(checkpoint: Path, offset: Offset) -> Manifest | None:
    """The state that the batch after this offset starts from."""
    if not offset.n:
        return None
    before = manifests.load(checkpoint, offset.batch)
    if before is None:
        raise RunError(f"manifest {offset.batch} of {checkpoint} is missing", RESTORE)
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
        known = StreamState() if before is None else before.stream(name)
        streams[name] = StreamOffset(row, ends[name], known.watermark, known.greatest, known.first)
    return Offset(start.n + 1, number, all(ends.values()), streams, _origins(checkpoint, start, before, version))


def _origins(checkpoint: Path, start: Offset, before: Manifest | None, version: Version) -> dict[str, Origin]:
    """Where queries were added: kept from before, and those of a version that this batch is the first to use."""
    app = version.app
    names = {query.name for query in app.queries}
    origins = {name: origin for name, origin in start.origins.items() if name in names}
    if before is not None and version.number != start.plan:
        old = versions.load(checkpoint, start.plan).app
        for name in names - {query.name for query in old.queries}:
            query = app.query(name)
            row = min(start.stream(root.name).row for root in app.roots(query))
            origins[name] = (roots_state(app, query, before.streams).greatest, row)
    return origins


def epoch_of(offset: Offset, stream: str, row: int, ordered: bool = True) -> Epoch:
    """What a task on a stream knows."""
    known = offset.streams[stream]
    return Epoch(offset.batch, known.watermark, known.greatest, known.first, row, offset.origins, ordered)


def in_order(app: QuerySet, offset: Offset, stream: str) -> bool:
    """Whether one task must read the whole batch, to find the stream's first record: a landmark window begins there."""
    unknown = offset.streams[stream].first is None
    return unknown and any(query.window.landmark for query in app.readers(stream))


# -- decisions that the checkpoint logs itself


def decision_path(checkpoint: Path, batch: int, kind: str = "") -> Path:
    return checkpoint / DECISIONS / f"{batch:08d}{kind}.json"


def log_decision(path: Path, offset: Offset) -> None:
    """Decide about a batch, unless that was done before."""
    put_if_absent(path, checked.dump(offset))


def read_decision(path: Path) -> Offset:
    return checked.parse(path.read_bytes(), Offset, path, "decision")
