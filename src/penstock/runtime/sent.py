"""Values that the jobs of many batches hold: made ready to travel once, and read once by each worker.

    driver    value ──► Sent(digest, bytes), once ──► in the job of every batch
    worker    bytes of a digest that it has met ──► the value of then

How a query closes is the same in every batch of a version, and with dozens of queries it is nearly all that a merge job
consists of: to write it down and to read it took longer than many a merge.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import xxhash

T = TypeVar("T")

REMEMBERED = 4_096  # values of a worker: of hundreds of queries, and of a few versions


@dataclass(frozen=True)
class Sent(Generic[T]):
    """A value that never changes. Whoever holds on to this saves its next way."""

    value: T

    @cached_property
    def _written(self) -> tuple[str, bytes]:
        data = pickle.dumps(self.value, pickle.HIGHEST_PROTOCOL)
        return xxhash.xxh3_128_hexdigest(data), data

    def __reduce__(self) -> tuple[Any, tuple[str, bytes]]:
        return received, self._written


def received(digest: str, data: bytes) -> Sent[Any]:
    """What a driver has sent, now or before."""
    known = _known.get(digest)
    if known is None:
        if len(_known) >= REMEMBERED:
            _known.clear()
        known = _known[digest] = Sent(pickle.loads(data))
    return known


_known: dict[str, Sent[Any]] = {}
