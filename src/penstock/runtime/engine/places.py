"""What the tasks of a run must reach: folders that they write to, files that they read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.sinks.base import Sink
from penstock.sinks.folder import STAGED, FolderSink
from penstock.sources.base import Source, growing

FILES = 32  # of a stream that are looked for


@dataclass(frozen=True)
class Places:
    """Folders, each with what it is; files, each with its size."""

    folders: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, int], ...] = ()


def places_of(checkpoint: Path, sinks: Mapping[str, Sink], sources: Mapping[str, Source]) -> Places:
    """The checkpoint, folders of results outside of it, and files of streams that are there now."""
    folders = [("checkpoint", str(checkpoint.absolute()))]
    for sink in sinks.values():
        if isinstance(sink, FolderSink) and not Path(sink.folder).is_relative_to(checkpoint.absolute()):
            folders.append(("output", str(Path(sink.folder) / STAGED)))
    files = [found for source in sources.values() for found in _files(source)]
    return Places(tuple(folders), tuple(files))


def _files(source: Source) -> list[tuple[str, int]]:
    """At most `FILES` of a stream, from all over it: those that a run has read may be gone."""
    if not growing(source):
        return []
    paths = _sampled(list(dict.fromkeys(entry.path for entry in source.entries if entry.path)))
    return [(path, os.path.getsize(path)) for path in paths if os.path.isfile(path)]


def _sampled(paths: Sequence[str]) -> Sequence[str]:
    return paths[:: max(1, -(-len(paths) // FILES))]
