"""Processor seconds by block, for `benchmarks.engines.penstock_parts`: functions of the engine are wrapped, so that a
clock is read when they begin and when they end.

A profiler reads its clock at every call of every function, 0.88 µs each, and doubled what it measured. A wrapped
function is called a few times for a chunk of tens of thousands of records. Time belongs to the innermost block that is
open, and so the blocks add up to the whole.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any

Clock = Callable[[], float]


class Blocks:
    """Seconds of this process, all its threads, by the name of the block that was open."""

    def __init__(self, clock: Clock = time.process_time) -> None:
        self.seconds: dict[str, float] = {}
        self._clock, self._open, self._since = clock, list[str](), 0.0

    @property
    def whole(self) -> float:
        return sum(self.seconds.values())

    @contextmanager
    def block(self, name: str) -> Iterator[None]:
        """What is done inside belongs to it, but for blocks that are opened inside."""
        self._charge()
        self._open.append(name)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    def _charge(self) -> None:
        now = self._clock()
        if self._open:
            self.seconds[self._open[-1]] = self.seconds.get(self._open[-1], 0.0) + now - self._since
        self._since = now

    def wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as a block; of one that gives items, the making of each item."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.block(name):
                return function(*args, **kwargs)

        @wraps(function)
        def steps(*args: Any, **kwargs: Any) -> Iterator[Any]:
            yield from self.items(name, function(*args, **kwargs))

        return steps if isgeneratorfunction(function) else call

    def items(self, name: str, given: Iterator[Any]) -> Iterator[Any]:
        """The same items, the making of each a block."""
        nothing = object()
        while True:
            with self.block(name):
                item = next(given, nothing)
            if item is nothing:
                return
            yield item


@contextmanager
def watched(blocks: Blocks, places: Mapping[str, str]) -> Iterator[None]:
    """Meanwhile these functions are blocks: `module:name` or `module:Class.name`, and the name of the block."""
    kept: list[tuple[Any, str, Any]] = []
    try:
        for place, name in places.items():
            module, _, path = place.partition(":")
            owner: Any = importlib.import_module(module)
            *classes, last = path.split(".")
            for one in classes:
                owner = getattr(owner, one)
            kept.append((owner, last, getattr(owner, last)))
            setattr(owner, last, blocks.wrapped(name, kept[-1][2]))
        yield
    finally:
        for owner, last, function in reversed(kept):
            setattr(owner, last, function)
