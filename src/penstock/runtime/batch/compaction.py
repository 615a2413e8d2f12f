"""Compaction: many small segments into few, so that files, bytes and what a window reads stay bounded.

A batch leaves a *unit* of segments, one per task. When more than `MOST` units are live, the newest are merged into one
unit: from the oldest on that is not larger than all that are newer together (the logarithmic method). A group is then
rewritten a logarithmic number of times, and what is kept is at most about twice what one merged unit would be. Panes of
closed windows are left out; those of a landmark window that all its coming windows hold become one.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from penstock.faults import reach
from penstock.logical.query import Query
from penstock.logical.window import Window
from penstock.relations.relation import Relation
from penstock.relations.storage import Storage, StoredSource, mixable
from penstock.runtime.batch.context import Context, Streams, roots_state
from penstock.runtime.batch.merge_job import ShareWork
from penstock.runtime.merge.items import FOREVER, MergeItem, cut_panes, row_bytes, share_out
from penstock.runtime.settings import TaskSettings
from penstock.state.garbage import segment_name
from penstock.state.protocol import CompactionReport, SegmentRef
from penstock.state.segments import opened as indexes
from penstock.state.versions import Version

MOST = 12  # live units,
FORCED = 48  # and in a burst, where there is no time


@dataclass(frozen=True)
class Keep:
    """Of a relation: the first pane to keep, the pane into which all earlier ones are gathered (landmark), and how many
    panes the longest window has that is made of it."""

    relation: Relation
    first: int
    gather: int | None
    reach: int


def chosen(segments: Sequence[SegmentRef], hurried: bool = False) -> int:
    """How many of the first segments stay as they are; those after them are merged, if there are many units; where
    there is no time, only if there are far too many."""
    units = [list(unit) for _, unit in itertools.groupby(segments, lambda segment: segment.unit)]
    if len(units) <= (FORCED if hurried else MOST):
        return len(segments)
    sizes = [sum(segment.bytes for segment in unit) for unit in units]
    newer = list(itertools.accumulate(reversed(sizes), initial=0))[-2::-1]
    first = next(
        i for i, (size, rest) in enumerate(zip(sizes, newer, strict=True)) if size <= rest or i == len(units) - 2
    )
    return sum(len(unit) for unit in units[:first])


def compact(
    context: Context,
    segments: Sequence[SegmentRef],
    opened: indexes.Segments,
    keeps: Mapping[str, Keep],
    hurried: bool = False,
) -> tuple[list[SegmentRef], list[CompactionReport]]:
    """(segments afterwards, reports of the tasks)."""
    at = chosen(segments, hurried)
    if at == len(segments):
        return list(segments), []
    reach("compaction.start")
    kept, reports = list(segments[:at]), []
    for old in apart(segments[at:], context.version.storages):
        told = _merged(context, old, opened.only(old), keeps)
        storages = tuple(sorted({number for segment in old for number in segment.storages}))
        kept += [replace(one.segment, unit=f"{context.batch} compacted", storages=storages) for one in told]
        reports += told
    return kept, reports


def apart(segments: Sequence[SegmentRef], storages: Sequence[Storage]) -> list[tuple[SegmentRef, ...]]:
    """Segments that can be merged, together; mostly all can."""
    known = {storage.number: storage for storage in storages}
    lots: list[list[SegmentRef]] = []
    for segment in segments:
        mine = [known[number] for number in segment.storages if number in known]
        for lot in lots:
            theirs = [known[number] for number in {n for other in lot for n in other.storages} if number in known]
            if all(mixable(one, other) for one in mine for other in theirs):
                lot.append(segment)
                break
        else:
            lots.append([segment])
    return [tuple(lot) for lot in lots]


def _merged(
    context: Context, old: tuple[SegmentRef, ...], opened: indexes.Segments, keeps: Mapping[str, Keep]
) -> list[CompactionReport]:
    """New segments with all of some old ones that is still needed."""
    settings, executor = context.settings, context.executor
    work = ShareWork(keeps, str(context.folder), old, settings, context.batch)
    cut = [item for keep in keeps.values() for item in _items(keep, opened, settings)]
    shares = share_out(cut, executor.parallelism)
    run = partial(compact_share, shares, work)
    return executor.run_shares(len(shares), run, CompactionReport) if shares else []


def _items(keep: Keep, opened: indexes.Segments, settings: TaskSettings) -> list[MergeItem]:
    """Ranges of panes, cut to fit a task's memory."""
    panes, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for block in opened.blocks(keep.relation.name):
        panes.append(gathered(block.panes, keep.gather))
        rows.append(np.diff(block.starts))
    numbers, index = np.unique(np.concatenate(panes), return_inverse=True)
    counts = np.bincount(index, np.concatenate(rows), len(numbers)).astype(np.int64)
    kept = numbers >= max(keep.first, -(1 << 63))
    limit = max(1, settings.task_memory // row_bytes(keep.relation))
    cuts = cut_panes(numbers[kept], counts[kept], limit, settings.slots)
    return [MergeItem(0, (keep.relation.name,), cut) for cut in cuts]


def gathered(panes: np.ndarray, into: int | None) -> np.ndarray:
    return panes if into is None else np.maximum(panes, into)


def compact_share(shares: list[list[MergeItem]], work: ShareWork[Keep], number: int) -> CompactionReport:
    """Merge some items into one new segment, a run each."""
    from penstock.runtime.merge.coarse import coarsened
    from penstock.runtime.merge.merge import merge
    from penstock.runtime.merge.shares import Share
    from penstock.runtime.merge.windows import TaskSegments, pane_pieces
    from penstock.state.segments.write import SegmentWriter

    name = segment_name(work.batch, f"c{number:03d}", uuid.uuid4().hex[:8])
    new = SegmentWriter(Path(work.folder) / name, work.settings.slots)
    with new as writer, TaskSegments(Path(work.folder), work.references) as opened:
        for item in shares[number]:
            (name,), cut = item.names, item.cut
            keep = work.named[name]
            relation, pieces = keep.relation, list(pane_pieces(StoredSource(keep.relation), cut, opened, keep.gather))
            assert cut.turn is not None
            groups = merge(relation, pieces, Share(cut.turn, cut.passes), opened.vocabulary)
            if len(groups):
                writer.add(name, groups, coarsened(relation, groups, keep.reach), relation.slot_key)
                writer.end_run(groups.dictionaries)
        return CompactionReport(writer.close(), opened.bytes_read)


def keeps_of(version: Version, floors: Mapping[str, int], streams: Streams) -> dict[str, Keep]:
    """What of each relation is still needed after a batch."""
    keeps: dict[str, Keep] = {}
    for query in version.app.queries:
        for relation, window in version.reads(query):
            first = floors.get(relation.name, FOREVER)
            if first < FOREVER:
                known = keeps.get(relation.name)
                longest = max(window.reach, 0 if known is None else known.reach)
                gather = _gather(version, query, window, relation, streams)
                if known is not None:  # another query may be behind this one
                    gather = None if None in (gather, known.gather) else min(gather or 0, known.gather or 0)
                keeps[relation.name] = Keep(relation, first, gather, longest)
    return keeps


def _gather(version: Version, query: Query, window: Window, relation: Relation, streams: Streams) -> int | None:
    """The next landmark window to close holds all panes up to its own, and so do all after it."""
    if relation.landmark is None:
        return None
    return window.first_open(roots_state(version.app, query, streams).watermark)
