"""Segments opened once and read many times: by a merge task for all its items, by the driver for all queries of a
batch, and from batch to batch as long as they live.

To open one is to parse its index, which names every block of every relation: done again for each query, it would cost
more than all merging.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from penstock.state.protocol import SegmentRef
from penstock.state.segments.read import Block, Handles, Segment


class Segments:
    """The segments of these references; each is opened when a query first asks for it, its file for every read unless
    there are `handles` to hold it."""

    def __init__(self, folder: Path, references: Iterable[SegmentRef] = (), handles: Handles | None = None) -> None:
        self._folder, self._references, self._handles = folder, list(references), handles
        self._open: dict[str, Segment] = {}

    def add(self, references: Iterable[SegmentRef]) -> None:
        self._references += references

    def keep(self, references: Iterable[SegmentRef]) -> None:
        """From now on these; the others are forgotten."""
        self._references = list(references)
        named = {reference.path for reference in self._references}
        self._open = {path: segment for path, segment in self._open.items() if path in named}

    def only(self, references: Iterable[SegmentRef]) -> Segments:
        """These alone; what is open is shared."""
        some = Segments(self._folder, references)
        some._open = self._open
        return some

    def blocks(
        self, relation: str, storages: Collection[int] | None = None, below: int | None = None
    ) -> Iterator[Block]:
        """The relation's blocks; only of segments of these storages, and of those that hold a pane before `below`."""
        for reference in self._references:
            panes = reference.panes.get(relation)
            wanted = storages is None or not set(storages).isdisjoint(reference.storages)
            if panes is not None and wanted and (below is None or panes[0] < below):
                yield from self._opened(reference).of(relation)

    def _opened(self, reference: SegmentRef) -> Segment:
        path = reference.path
        if path not in self._open:
            self._open[path] = Segment(self._folder / path, reference, self._handles)
        return self._open[path]

    @property
    def bytes_read(self) -> int:
        return sum(segment.bytes_read for segment in self._open.values())
