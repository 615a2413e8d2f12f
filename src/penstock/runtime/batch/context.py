"""What all steps of a batch on the driver work with: the executor, what was decided, the state before.

`driver` makes one `Context` per batch; `close` and `compaction` take it. The two functions say how far the streams are
that a query reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.logical.query import Query, QuerySet
from penstock.runtime.batch.executor import Executor
from penstock.runtime.settings import TaskSettings
from penstock.state.garbage import SEGMENTS
from penstock.state.manifest import Manifest
from penstock.state.protocol import Offset, SegmentRef, StreamState, together
from penstock.state.versions import Version

Streams = Mapping[str, StreamState]


@dataclass(frozen=True)
class Context:
    """A batch: `before` is the state that it starts from, `offset` what was decided about it."""

    executor: Executor[Any]
    settings: TaskSettings
    checkpoint: Path
    version: Version
    before: Manifest
    offset: Offset

    @property
    def batch(self) -> int:
        return self.offset.batch

    def stored(self, segment: SegmentRef) -> SegmentRef:
        """A segment that the batch has written, with what its version stores."""
        return replace(segment, storages=(self.version.storage.number,))

    @property
    def folder(self) -> Path:
        """Of segments."""
        return self.checkpoint / SEGMENTS


def roots_state(app: QuerySet, query: Query, streams: Streams) -> StreamState:
    """How far the declared streams are that a query reads in the end: its windows close by them."""
    return together([streams.get(stream.name, StreamState()) for stream in app.roots(query)])


def inputs_state(query: Query, streams: Streams) -> StreamState:
    """What is known of the streams, or results, that a query reads itself."""
    return together([streams.get(name, StreamState()) for name in query.inputs])
