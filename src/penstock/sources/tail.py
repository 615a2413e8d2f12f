"""Files that arrive at the end of a growing stream, and the log that fixes their order (`state.arrivals`).

    a run starts      check_files ──► continued: the files of the log, then those that arrived since
    a batch is cut    with_arrivals: once all is read, a look for more; logged before any offset counts on them
    the driver asks   reaching: the source as far as a position, by what the log says now

All of this asks only sources that grow; any other comes back as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penstock.errors import StateError
from penstock.sources.base import START, GrowingSource, Position, Source, growing
from penstock.state import arrivals
from penstock.state.arrivals import FileEntry


def check_files(checkpoint: Path, sources: Mapping[str, Source], read: Mapping[str, Position]) -> None:
    """Refuse to go on over files that are not what the log says; those that were `read` may be gone."""
    for stream, source in sources.items():
        if not growing(source):
            continue
        beyond = 0
        for entry in arrivals.logged(checkpoint, stream):
            beyond += entry.rows
            change = source.changed(entry) if entry.path else None
            if change is not None and not (beyond <= read.get(stream, START) and change == "is missing"):
                raise StateError(
                    f"file {entry.path}, which checkpoint {checkpoint} reads, {change}",
                    "restore the file, or use another checkpoint",
                )


def continued(checkpoint: Path, sources: Mapping[str, Source], live: bool) -> dict[str, Source]:
    """Sources as the checkpoint knows them: the files of its log in their order, then those that arrived since.

    `live`: the run goes on after their end.
    """
    return {
        stream: _continued(checkpoint, stream, source.live() if live else source) if growing(source) else source
        for stream, source in sources.items()
    }


def _continued(checkpoint: Path, stream: str, source: GrowingSource) -> Source:
    known = arrivals.logged(checkpoint, stream)
    if not known:
        if source.entries:
            arrivals.log(checkpoint, stream, source.entries)
        return source
    kept = source.restarted(known)
    found = kept.arrivals()
    if found:
        arrivals.log(checkpoint, stream, found)
        return kept.extended(found)
    return kept


def with_arrivals(checkpoint: Path, stream: str, source: Source, at: Position) -> Source:
    """The source with the files that have arrived, if all of it has been read; what another run logs first counts."""
    if not growing(source) or at < source.rows():
        return source
    source = _shortened(checkpoint, stream, source)
    found = source.arrivals()
    return source.extended(found) if found and arrivals.log(checkpoint, stream, found) else source


def _shortened(checkpoint: Path, stream: str, source: GrowingSource) -> GrowingSource:
    """A source that has been read to its end, and whose log has become long, begins its log again in short."""
    if not arrivals.is_long(checkpoint, stream):
        return source
    read: list[FileEntry] = source.done(source.entries)
    return source.restarted(read) if arrivals.log(checkpoint, stream, read, restart=True) else source


def reaching(checkpoint: Path, stream: str, source: Source, at: Position) -> Source:
    """The source as far as a record: files that arrived since the run started stand in the log."""
    if not growing(source) or at < source.rows():
        return source
    return source.restarted(arrivals.logged(checkpoint, stream))
