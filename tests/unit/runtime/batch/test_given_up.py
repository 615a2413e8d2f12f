"""Records that wait longer than they are kept: which they are, and what a batch says of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.logical.query import Stream
from penstock.runtime.batch.live.dues import Seen
from penstock.runtime.batch.live.given_up import kept_from, with_given_up
from penstock.sources.base import Position
from penstock.sources.live.replay import ReplaySource
from penstock.sources.registry import open_source
from penstock.state.protocol import Clock
from penstock.triage.picks import DROP

SECOND = 1_000_000
WALL, ROWS, RATE = 1_800_000_000 * SECOND, 10_000, 1_000


def seen(kept: str | None, now: float, start: int = 0, speed: float = 1.0) -> Seen:
    """A stream of a thousand records in each of its seconds; `now` are seconds after its clock began."""
    options = {"rows": str(ROWS), "rate": str(RATE), "speed": str(speed)} | ({} if kept is None else {"kept": kept})
    source = open_source("replay:generate:uniform", options)
    assert isinstance(source, ReplaySource)
    source = source.prepare("ts", None)
    clock = source.anchored(WALL, Position(0))
    at = WALL + int(now * SECOND)
    stream = Stream("s", (), "replay:generate:uniform", (), "ts", 0, None)
    return Seen(stream, source, clock, at, Position(start), source.arrived(clock, at), RATE * speed)


@pytest.mark.parametrize(("speed", "now"), [(1.0, 5.0), (2.0, 4.0)])
def test_what_arrived_longer_ago_than_it_is_kept(speed: float, now: float) -> None:
    one = seen("3 seconds", now, speed=speed)
    first = kept_from(one, promised=False)
    assert first == pytest.approx((now - 3) * speed * RATE, rel=0.05)
    before = Clock(one.clock.wall, one.clock.source, speed)
    assert (
        one.source.arrived(before, one.now - 3 * SECOND - 1)
        <= first
        <= one.source.arrived(before, one.now - 3 * SECOND)
    )


def test_nothing_is_given_up_of_what_is_kept() -> None:
    for one in (seen(None, 9.0), seen("3 seconds", 2.9), seen("3 seconds", 5.0, start=2_500)):
        assert kept_from(one, promised=False) == one.start
    assert kept_from(seen("3 seconds", 9.0), promised=True) == 0


def test_no_more_is_given_up_than_has_arrived() -> None:
    one = seen("1 second", 1_000.0)
    assert kept_from(one, promised=False) == one.arrived == ROWS
    one = replace(one, arrived=Position(77))
    assert kept_from(one, promised=False) == 77


@pytest.mark.parametrize(
    ("start", "kept", "ranges", "expected"),
    [
        (0, 0, [(9, 0)], ((9, 0),)),
        (4, 3, [(9, 0)], ((9, 0),)),
        (0, 5, [], ((5, DROP),)),
        (0, 5, [(5, 0)], ((5, DROP),)),
        (0, 5, [(3, 0), (9, 0), (12, 0)], ((5, DROP), (9, 0), (12, 0))),
    ],
)
def test_ranges_begin_with_what_is_given_up(
    start: int, kept: int, ranges: list[tuple[int, int]], expected: tuple[tuple[int, int], ...]
) -> None:
    assert with_given_up(Position(start), Position(kept), ranges) == expected
