"""What all steps of a batch on the driver work with: the executor, what was decided, the state before.

`driver` makes one `Context` per batch; `close` and `compaction` take it. The two functions say how far the streams are
that a query reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from penstock.logical.query import Query, QuerySet
from penstock.runtime.batch.executor import Executor
from penstock.runtime.merge.together.readings import Readings
from penstock.runtime.sent import Sent
from penstock.runtime.settings import TaskSettings
from penstock.state.garbage import SEGMENTS
from penstock.state.manifest import Manifest
from penstock.state.protocol import Offset, SegmentRef, StreamState, together
from penstock.state.versions import Version

Streams = Mapping[str, StreamState]
T = TypeVar("T")


@dataclass(frozen=True)
class Context:
    """A batch: `before` is the state that it starts from, `offset` what was decided about it. `kept` is what batches
    before it have sent to tasks, by name, `readings` what they have found out about the version."""

    executor: Executor[Any]
    settings: TaskSettings
    checkpoint: Path
    version: Version
    before: Manifest
    offset: Offset
    kept: dict[str, Sent[Any]] = field(default_factory=dict)
    readings: Readings = field(default_factory=Readings)

    def sent(self, name: str, value: T) -> Sent[T]:
        """A value for tasks: what was sent under that name before, as long as it is the same."""
        known = self.kept.get(name)
        if known is None or known.value != value:
            known = self.kept[name] = Sent(value)
        return known

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
