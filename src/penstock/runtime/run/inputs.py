"""What an app reads: sources of penstock's own, by stream, or one DataFrame of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import StateError
from penstock.sources.base import Source, growing
from penstock.state import arrivals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Inputs:
    """Either `sources` by stream, or `frame` as the stream `name`."""

    sources: dict[str, Source] = field(default_factory=dict)
    frame: DataFrame | None = None
    name: str = ""

    def fingerprints(self) -> dict[str, str]:
        """What must stay the same from run to run on a checkpoint."""
        if self.frame is not None:
            return {self.name: "frame:" + self.frame.schema.simpleString()}
        return {name: source.fingerprint() for name, source in self.sources.items()}


def check_files(checkpoint: Path, sources: Mapping[str, Source], streams: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse to go on over files that are not what the log says; those that were read may be gone."""
    for name, source in sources.items():
        row, position = 0, streams.get(name, {}).get("row", 0)
        for entry in arrivals.logged(checkpoint, name) if growing(source) else []:
            row += entry["rows"]
            change = source.changed(entry) if growing(source) and entry["path"] else None
            if change is not None and not (row <= position and change == "is missing"):
                raise StateError(
                    f"file {entry['path']}, which checkpoint {checkpoint} reads, {change}",
                    "restore the file, or use another checkpoint",
                )


def continued(checkpoint: Path, sources: Mapping[str, Source], live: bool) -> dict[str, Source]:
    """Sources as the checkpoint knows them: the files of its log in their order, then those that arrived since.

    `live`: the run goes on after their end.
    """
    return {
        name: _continued(checkpoint, name, source.live() if live and growing(source) else source)
        for name, source in sources.items()
    }


def _continued(checkpoint: Path, name: str, source: Source) -> Source:
    if not growing(source):
        return source
    known = arrivals.logged(checkpoint, name)
    if not known:
        if source.entries:
            arrivals.log(checkpoint, name, list(source.entries))
        return source
    kept = source.restarted(known)
    found = kept.arrivals()
    if found:
        arrivals.log(checkpoint, name, found)
        return kept.extended(found)
    return kept
