"""Offsets: what is decided about a batch before it runs, as Spark (or `decisions/N`) logs it.

{"n": batches so far, "plan": version of the app, "end": all streams have ended,
 "streams": {name: {"row": position, "end": it has ended, "wm": watermark, "max": greatest time,
                    "first": first time,               these three: before the batch
                    "ranges": [[stop, k], ...],        and of live streams: one record of 2^k is read
                    "reached": greatest time up to the end of the batch, read or not,
                    "tick": time that the clock had passed when a window was due,
                    "clock": {"wall", "source", "speed"},
                    "arrived": how far the stream had come, "rate": records a second}},
 "origins": {query: [greatest time, position] when it was added to the running app},
 "tables": {name: {"digest": content, "refused": contents that were not taken, "problem": why}},   read again
 "slack": seconds that the batch has left for what can wait, where delays are promised}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penstock.errors import RunError
from penstock.logical.query import Join, Query, QuerySet, side_name
from penstock.logical.window import Window
from penstock.runtime.batch.context import roots_state
from penstock.runtime.epoch import Epoch, first_window
from penstock.runtime.expressions.refreshing import Refresher
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
    checkpoint: Path,
    start: Offset,
    before: Manifest | None,
    rows: Mapping[str, int],
    ends: Mapping[str, bool],
    refresher: Refresher | None = None,
) -> Offset:
    """The offset of the next batch, which goes to these positions; `refresher` looks at tables that are read again."""
    number = versions.newest(checkpoint)
    assert number is not None  # written before the query starts
    version = versions.load(checkpoint, number)
    streams = {}
    for name, row in rows.items():
        known = StreamState() if before is None else before.stream(name)
        streams[name] = StreamOffset(row, ends[name], known.watermark, known.greatest, known.first)
    origins = _origins(checkpoint, start, before, version)
    joined = _joined(version.app, before)
    tables = {} if refresher is None else refresher.decided(version.app, start.tables)
    return Offset(start.n + 1, number, all(ends.values()), streams, origins, joined, tables)


def _joined(app: QuerySet, before: Manifest | None) -> dict[str, int | None]:
    """What is closed for each side of a join before the batch."""
    known = {} if before is None else before.streams
    return {
        side_name(query.name, side.alias): roots_state(app, query, known).watermark
        for query in app.queries
        if query.join is not None
        for side in query.join.streams
    }


def _origins(checkpoint: Path, start: Offset, before: Manifest | None, version: Version) -> dict[str, Origin]:
    """Where queries were added: kept from before, and those of a version that this batch is the first to use."""
    app = version.app
    names = {query.name for query in app.queries}
    origins = {name: origin for name, origin in start.origins.items() if name.partition(":")[0] in names}
    if before is not None and version.number != start.plan:
        old = versions.load(checkpoint, start.plan).app
        for name in names - {query.name for query in old.queries}:
            query = app.query(name)
            row = min(start.stream(root.name).row for root in app.roots(query))
            if query.join is None:
                origins[name] = (roots_state(app, query, before.streams).greatest, row)
            else:
                origins |= _join_origins(app, query, query.join, before, row)
    return origins


def _join_origins(app: QuerySet, query: Query, join: Join, before: Manifest, row: int) -> dict[str, Origin]:
    """Of an added join, by side. Its first instant is the first whose windows all start after the greatest times seen:
    that of the query as a whole, too."""
    firsts = {
        side.alias: first_window(side.window, (_greatest(app, side.stream, before), row)) for side in join.streams
    }
    instants = [side.window.end(first) for side in join.streams if (first := firsts[side.alias]) is not None]
    if not instants:
        return {}
    found: dict[str, Origin] = {query.name: (_before(query.window, max(instants)), row)}
    for side in join.streams:
        after = _greatest(app, side.stream, before) if side.window.landmark else _before(side.window, max(instants))
        found[side_name(query.name, side.alias)] = (after, row)
    return found


def _before(window: Window, end: int) -> int:
    """A time just before the window that ends at this instant."""
    return end - window.length - 1


def _greatest(app: QuerySet, stream: str, before: Manifest) -> int | None:
    """Of a stream, or of all streams that a query's results come from."""
    declared = {one.name for one in app.streams}
    if stream in declared:
        return before.stream(stream).greatest
    return roots_state(app, app.query(stream), before.streams).greatest


def ranges_of(first: Position, decided: StreamOffset) -> list[tuple[Position, Position, int]]:
    """The records of a batch from `first` on, as ranges (start, stop, k) of which one record in 2^k is read."""
    stops = decided.ranges or ((decided.row, 0),)
    starts = (first, *(stop for stop, _ in stops))
    return [(Position(start), Position(stop), k) for start, (stop, k) in zip(starts, stops, strict=False)]


def epoch_of(
    offset: Offset, stream: str, row: int, ordered: bool = True, greatest: int | None = None, step: int = 0
) -> Epoch:
    """What a task on a stream knows; `greatest` is the greatest time before its records, where that is later than what
    was known before the batch."""
    known = offset.streams[stream]
    return Epoch(
        offset.batch, known.watermark, known.greatest if greatest is None else greatest, known.first, row,
        offset.origins, ordered, offset.joined, offset.contents, step,
    )  # fmt: skip


def in_order(app: QuerySet, offset: Offset, stream: str) -> bool:
    """Whether one task must read the whole batch, to find the stream's first record: a landmark window begins there."""
    unknown = offset.streams[stream].first is None
    return unknown and any(window.landmark for query in app.readers(stream) for window in query.windows_on(stream))


# -- decisions that the checkpoint logs itself


def decision_path(checkpoint: Path, batch: int, kind: str = "") -> Path:
    return checkpoint / DECISIONS / f"{batch:08d}{kind}.json"


def log_decision(path: Path, offset: Offset) -> None:
    """Decide about a batch, unless that was done before."""
    put_if_absent(path, checked.dump(offset))


def read_decision(path: Path) -> Offset:
    return checked.parse(path.read_bytes(), Offset, path, "decision")
